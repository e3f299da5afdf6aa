// What a change of a client's config looks like: the lines that go and come, and nothing around them. A config of a
// client holds keys of other servers, which belong on no screen.

import { type Change, lineDiff } from "../text/line-diff.js";

/** A longer line is a file without line breaks: of it, what is the same at both ends is left out. */
const LONG_LINE = 100;

export function showChange(before: string, after: string): string[] {
  const changes = lineDiff(linesOf(before), linesOf(after));
  const shown: string[] = [];
  let line = 1;
  for (let at = 0; at < changes.length; at++) {
    const from = at;
    while (changes[at] !== undefined && changes[at]?.kind !== "same") at++;
    const block = changes.slice(from, at);
    if (block.length > 0) shown.push(...blockText(block, line));
    line += block.filter(({ kind }) => kind === "new").length + 1;
  }
  return shown;
}

function blockText(block: readonly Change[], line: number): string[] {
  let old = block.filter(({ kind }) => kind === "old").map((change) => change.line);
  let fresh = block.filter(({ kind }) => kind === "new").map((change) => change.line);
  let first = line;
  // A line that only got or lost its comma is somebody else's, and may hold a key.
  if (old[0] !== undefined && fresh[0] !== undefined && middles(old[0], fresh[0]).join("").replace(",", "") === "") {
    [old, fresh, first] = [old.slice(1), fresh.slice(1), first + 1];
  }
  const [gone, come] = [old[0] ?? "", fresh[0] ?? ""];
  if (old.length > 0 && fresh.length > 0 && Math.max(gone.length, come.length) > LONG_LINE) {
    const [was, is] = middles(gone, come);
    old = [...(was === "" ? [] : [`… ${was} …`]), ...old.slice(1)];
    fresh = [...(is === "" ? [] : [`… ${is} …`]), ...fresh.slice(1)];
  }
  if (old.length + fresh.length === 0) return [];
  return [`@@ line ${first} @@`, ...old.map((text) => `- ${text}`), ...fresh.map((text) => `+ ${text}`)];
}

/** What is left of both without their common beginning and end. */
function middles(one: string, other: string): [string, string] {
  const most = Math.min(one.length, other.length);
  let start = 0;
  while (start < most && one[start] === other[start]) start++;
  let end = 0;
  while (end < most - start && one.at(-1 - end) === other.at(-1 - end)) end++;
  return [one.slice(start, one.length - end), other.slice(start, other.length - end)];
}

function linesOf(text: string): string[] {
  return text === "" ? [] : text.replace(/\r?\n$/, "").split(/\r?\n/);
}
