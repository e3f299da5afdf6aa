// The text of a config as it may be shown: byte for byte as it is, but for values that are or may be keys. What names a
// variable stays, so that a secret is seen by its name. Pure.

import { createScanner, type Node } from "jsonc-parser";
import { SECRET_NAME } from "../../runtime/redact/ordinary.js";
import { isObject } from "../../runtime/words/json-object.js";
import { Source } from "../jsonc.js";
import { hideSecrets } from "./entry-secrets.js";
import { treeOf } from "./members.js";

/** More than anybody reads on a page, and it is parsed in one turn: some milliseconds. */
export const MAX_SHOWN_CHARACTERS = 256 * 1024;

const HIDDEN_COMMENT = "(a comment that may hold a key)";
/** What a key looks like in plain words: long, with a digit. It looks ahead so far only, so that no text takes long. */
const LIKE_A_KEY = /(?=[\w+/.=-]{0,64}\d)[\w+/.=-]{12,}/;
/** An address with somebody's name in it, and a member with its value that was taken out. */
const ADDRESS_OF_SOMEBODY = /:\/\/[^\s/]*@/;
const MEMBER = /"\s*:\s*"/;
/** What is between quotes, and the colon after a key of an object. One that does not end goes to the end of its line. */
const QUOTED = /"(?:[^"\\]|\\.)*(?:"|$)(\s*:)?/g;

/** A text between quotes, and what stands outside of them without being a sign of JSON. */
const PARTS = /"(?:[^"\\]|\\.)*"|[^\s{}[\]:,"]+/g;
/** Of the latter what is JSON, and nobody's key. */
const PLAIN = /^(?:true|false|null|-?\d{1,6})$/;

/** The kinds of the scanner's tokens that are comments. */
const COMMENTS: ReadonlySet<number> = new Set([12, 13]);

/** Undefined where it is not JSON, so that nobody can say what is a value in it; and where it is too long. */
export function shownText(text: string): string | undefined {
  if (text.length > MAX_SHOWN_CHARACTERS) return undefined;
  let isWrong = false;
  const value = new Source(text).read(() => {
    isWrong = true;
  });
  const tree = treeOf(text);
  if (isWrong || tree === undefined) return undefined;
  const changes: Change[] = [];
  collect(tree, hidden("", value), changes);
  collectComments(text, changes);
  changes.sort((a, b) => a.offset - b.offset);
  let shown = "";
  let at = 0;
  for (const { offset, length, by } of changes) {
    // What stands in a value that is hidden is hidden with it.
    if (offset < at) continue;
    // Each line keeps its number, by which mistakes are told.
    const lines = text.slice(offset, offset + length).split("\n").length;
    shown += text.slice(at, offset) + by + "\n".repeat(lines - 1);
    at = offset + length;
  }
  return shown + text.slice(at);
}

/** A text that may not be JSON at all: without any value, since nobody can say which are keys. */
export function maskedText(text: string): string {
  return text
    .slice(0, MAX_SHOWN_CHARACTERS)
    .split("\n")
    .map((line) =>
      line
        .slice(0, MAX_LINE)
        .replaceAll(QUOTED, (whole, colon?: string) =>
          colon === undefined || LIKE_A_KEY.test(whole) ? `"…"${colon ?? ""}` : whole,
        )
        // Where a quote is missing or is another sign, a value stands outside of them.
        .replaceAll(PARTS, (part) => (part.startsWith('"') || PLAIN.test(part) ? part : "…")),
    )
    .join("\n");
}

/** A line that is longer is no place to look for a mistake. */
const MAX_LINE = 500;

interface Change {
  readonly offset: number;
  readonly length: number;
  readonly by: string;
}

/** A value as it may be shown. What looks like a server's entry is hidden as one, wherever it stands. */
function hidden(key: string, value: unknown): unknown {
  if (Array.isArray(value)) {
    // What an option before it names is known by the whole list.
    return value.every((item) => typeof item !== "object")
      ? hideSecrets({ [key]: value })[key]
      : value.map((item) => hidden(key, item));
  }
  if (!isObject(value)) return hideSecrets({ [key]: value })[key];
  if (key === "env" || key === "headers") return hideSecrets({ [key]: value })[key];
  // What an entry says of its tools are names and settings; the "key" of an outbox is the way to an argument.
  const tools = "tools" in value ? { tools: value["tools"] } : {};
  // By what they are: a server may have any of these names, and the servers together are no entry.
  const isEntry =
    ["command", "url", "httpUrl", "serverUrl", "broker"].some((name) => typeof value[name] === "string") ||
    Array.isArray(value["args"]);
  const shown = isEntry
    ? { ...hideSecrets(value), ...tools }
    : Object.fromEntries(Object.entries(value).map(([name, item]) => [name, hidden(name, item)]));
  // What is typed where nobody may look, and what stands for it.
  return value["password"] === true && "default" in value ? { ...shown, default: "(hidden)" } : shown;
}

/** Where what is shown differs from what is there. */
function collect(node: Node, shown: unknown, changes: Change[]): void {
  if (node.type === "object" && isObject(shown)) {
    for (const { children: [key, value] = [] } of node.children ?? []) {
      if (key !== undefined && value !== undefined) collect(value, shown[String(key.value)], changes);
    }
  } else if (node.type === "array" && Array.isArray(shown)) {
    for (const [i, child] of (node.children ?? []).entries()) collect(child, shown[i], changes);
  } else if (node.type === "object" || node.type === "array" || node.value !== shown) {
    changes.push({ offset: node.offset, length: node.length, by: JSON.stringify(shown ?? "(hidden)") });
  }
}

function collectComments(text: string, changes: Change[]): void {
  const scanner = createScanner(text, false);
  for (let kind = scanner.scan(); kind !== 17; kind = scanner.scan()) {
    if (!COMMENTS.has(kind)) continue;
    const comment = scanner.getTokenValue();
    if (![LIKE_A_KEY, SECRET_NAME, ADDRESS_OF_SOMEBODY, MEMBER].some((form) => form.test(comment))) continue;
    const by = comment.startsWith("//") ? `// ${HIDDEN_COMMENT}` : `/* ${HIDDEN_COMMENT} */`;
    changes.push({ offset: scanner.getTokenOffset(), length: scanner.getTokenLength(), by });
  }
}
