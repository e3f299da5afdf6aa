// The change of a pinned tool as a person reads it: side by side where the terminal is wide enough, else one under the
// other. What is hidden in a text is marked by "!" beside the line, and listed below.

import type { PinDiff } from "../../contracts/pins.js";
import { hiddenIn, MARK_END, MARK_START, marked, visible } from "../../runtime/visible.js";
import type { Io } from "../line/io.js";
import { type Change, lineDiff } from "./line-diff.js";
import { HASH_SHOWN, type Style, styleOf } from "./print.js";

/** Two columns of text that can still be read. */
const SIDE_BY_SIDE_FROM = 110;

/** Unchanged lines that are shown around a change. */
const CONTEXT = 3;

/** A wide terminal gains nothing from longer lines. */
const MAX_COLUMN = 100;

type Paint = (text: string) => string;

export function pinDiffText(diff: PinDiff, io: Io): string {
  const style = styleOf(io);
  const { old: before, new: after } = diff;
  const title = style.bold(`${visible(diff.server)}/${visible(diff.tool)}`);
  const parts = [
    `${title}\n${style.red(`- accepted ${before.at}  ${before.hash.slice(0, HASH_SHOWN)}`)}\n` +
      style.green(`+ seen     ${after.at}  ${after.hash.slice(0, HASH_SHOWN)}`),
  ];
  if (before.definition === undefined || after.definition === undefined) {
    parts.push("A definition that large is not kept: all that is known is that it changed.");
  } else {
    const changes = shortened(lineDiff(definitionLines(before.definition), definitionLines(after.definition)));
    const columns = io.isTTY ? (io.columns ?? 0) : 0;
    parts.push(columns >= SIDE_BY_SIDE_FROM ? sideBySide(changes, columns, style) : unified(changes, style));
    const hidden = hiddenIn(JSON.stringify(JSON.parse(after.definition)));
    if (hidden.length > 0) parts.push(style.yellow(`! Hidden in the new definition: ${hidden.join(", ")}`));
  }
  return parts.join("\n");
}

/** Long stretches without a change become one line. */
function shortened(changes: readonly Change[]): Change[] {
  const near = changes.map((_, i) =>
    changes.slice(Math.max(0, i - CONTEXT), i + CONTEXT + 1).some(({ kind }) => kind !== "same"),
  );
  // Equal texts of different hashes: numbers that a double cannot tell apart. Then everything is shown.
  if (!near.includes(true)) return [...changes];
  const shown: Change[] = [];
  let left = 0;
  for (const [i, change] of changes.entries()) {
    if (near[i] === true) {
      if (left > 0) shown.push({ kind: "same", line: `… ${left} more of the same` });
      left = 0;
      shown.push(change);
    } else {
      left++;
    }
  }
  if (left > 0) shown.push({ kind: "same", line: `… ${left} more of the same` });
  return shown;
}

const SIGNS: Readonly<Record<Change["kind"], string>> = { same: " ", old: "-", new: "+" };

function unified(changes: readonly Change[], style: Style): string {
  return changes
    .map(({ kind, line }) => {
      const text = `${SIGNS[kind]}${isMarked(line) ? "!" : " "} ${line}`;
      return painted(text, paintOf(kind, style), style);
    })
    .join("\n");
}

function sideBySide(changes: readonly Change[], columns: number, style: Style): string {
  const width = Math.min(MAX_COLUMN, Math.floor((columns - 3) / 2));
  const rows: string[] = [];
  const put = (left: Change | undefined, right: Change | undefined): void => {
    const [ls, rs] = [cells(left, width), cells(right, width)];
    for (let i = 0; i < Math.max(ls.length, rs.length); i++) {
      const [l, r] = [ls[i] ?? "", rs[i] ?? ""];
      const gap = " ".repeat(Math.max(0, width - lengthOf(l)));
      const leftPart = painted(l, paintOf(left?.kind ?? "same", style), style) + gap;
      rows.push(`${leftPart} │ ${painted(r, paintOf(right?.kind ?? "same", style), style)}`.trimEnd());
    }
  };
  for (let i = 0; i < changes.length; ) {
    const olds = takeWhile(changes, i, "old");
    const news = takeWhile(changes, i + olds.length, "new");
    if (olds.length + news.length === 0) {
      put(changes[i], changes[i]);
      i++;
      continue;
    }
    for (let row = 0; row < Math.max(olds.length, news.length); row++) put(olds[row], news[row]);
    i += olds.length + news.length;
  }
  return rows.join("\n");
}

function takeWhile(changes: readonly Change[], from: number, kind: Change["kind"]): Change[] {
  let to = from;
  while (changes[to]?.kind === kind) to++;
  return changes.slice(from, to);
}

/** One line of the definition, wrapped into a column; a mark is never cut in two. */
function cells(change: Change | undefined, width: number): string[] {
  if (change === undefined) return [];
  const gutter = `${SIGNS[change.kind]}${isMarked(change.line) ? "!" : " "} `;
  const units = change.line.match(new RegExp(`${MARK_START}[^${MARK_END}]*${MARK_END}|.`, "gsu")) ?? [];
  const rows: string[] = [];
  let row = gutter;
  for (const unit of units) {
    if (lengthOf(row) + lengthOf(unit) > width) {
      rows.push(row);
      row = " ".repeat(gutter.length);
    }
    row += unit;
  }
  return [...rows, row];
}

function isMarked(line: string): boolean {
  return line.includes(MARK_START);
}

function lengthOf(text: string): number {
  let length = 0;
  for (const character of text) if (character !== MARK_START && character !== MARK_END) length++;
  return length;
}

function paintOf(kind: Change["kind"], style: Style): Paint {
  return kind === "old" ? style.red : kind === "new" ? style.green : style.dim;
}

/** The marked parts in a colour of their own. */
function painted(text: string, paint: Paint, style: Style): string {
  return text
    .split(MARK_START)
    .map((part, i) => {
      if (i === 0) return part === "" ? "" : paint(part);
      const [mark = "", rest = ""] = part.split(MARK_END);
      return style.bold(style.yellow(mark)) + (rest === "" ? "" : paint(rest));
    })
    .join("");
}

/** A text longer than this is cut into sentences, so that a changed one stands out. */
const SENTENCES_FROM = 40;

/** Deeper than schemas are; what is deeper stands on one line. */
const MAX_DEPTH = 64;

function definitionLines(json: string): string[] {
  const lines: string[] = [];
  write(JSON.parse(json), "", "", "", 0, lines);
  return lines;
}

/** `head` is the key with its colon, `tail` the comma. */
function write(value: unknown, indent: string, head: string, tail: string, depth: number, lines: string[]): void {
  if (typeof value === "string") {
    const pieces = piecesOf(value);
    if (pieces.length <= 1) {
      lines.push(`${indent}${head}${quote(value)}${tail}`);
      return;
    }
    lines.push(`${indent}${head.trimEnd()}`);
    for (const [i, piece] of pieces.entries()) {
      lines.push(`${indent}  ${quote(piece)}${i === pieces.length - 1 ? tail : ""}`);
    }
    return;
  }
  const entries = typeof value === "object" && value !== null ? Object.entries(value) : [];
  if (entries.length === 0 || depth === MAX_DEPTH) {
    lines.push(`${indent}${head}${marked(JSON.stringify(value))}${tail}`);
    return;
  }
  const isList = Array.isArray(value);
  lines.push(`${indent}${head}${isList ? "[" : "{"}`);
  entries.forEach(([key, member], i) => {
    const comma = i === entries.length - 1 ? "" : ",";
    write(member, `${indent}  `, isList ? "" : `${quote(key)}: `, comma, depth + 1, lines);
  });
  lines.push(`${indent}${isList ? "]" : "}"}${tail}`);
}

/** The line break stays with the line that it ends. */
function piecesOf(text: string): string[] {
  const rows = text.split(/(?<=\n)/);
  return rows.flatMap((row) => (row.length <= SENTENCES_FROM ? [row] : row.split(/(?<=[.!?:;] )/)));
}

function quote(text: string): string {
  const escaped = text
    .replace(/["\\]/g, "\\$&")
    .replaceAll("\n", "\\n")
    .replaceAll("\r", "\\r")
    .replaceAll("\t", "\\t");
  return `"${marked(escaped)}"`;
}
