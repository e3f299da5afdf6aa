// Members of objects in a text of JSON with comments: put in, given another value, taken out. What need not be touched
// stays as it is, byte for byte: comments, order, layout, commas at the end of a list. Knows no config.

import { createScanner, type Node, parseTree } from "jsonc-parser";
import { isObject } from "../../runtime/words/json-object.js";

export function treeOf(text: string): Node {
  // A byte order mark is blanked, so that offsets stay right.
  const tree = parseTree(text.replace(/^\uFEFF/, " "), [], { allowTrailingComma: true });
  if (tree === undefined) throw new Error("a text that was read as JSON must have a tree");
  return tree;
}

export function memberOf(object: Node, key: string): Node | undefined {
  return object.children?.find((member) => member.children?.[0]?.value === key);
}

export function valueNode(member: Node): Node {
  const value = member.children?.[1];
  if (value === undefined) throw new Error("a member that was read must have a value");
  return value;
}

/** Puts a member behind the last one, and behind the comment on that one's line. */
export function insertMember(text: string, object: Node, key: string, value: unknown): string {
  const eol = text.includes("\r\n") ? "\r\n" : "\n";
  const close = object.offset + object.length - 1;
  const last = object.children?.at(-1);
  const inOneLine = !text.slice(object.offset, close).includes("\n");
  if (last === undefined) {
    const outer = indentAt(text, object.offset);
    const inner = outer + unitOf(text);
    const kept = text.slice(object.offset + 1, close).trimEnd();
    const member = memberText(key, value, inner, unitOf(text), eol);
    return `${text.slice(0, object.offset + 1)}${kept}${eol}${inner}${member}${eol}${outer}${text.slice(close)}`;
  }
  const end = last.offset + last.length;
  const comma = commaAfter(text, end);
  const head = comma === undefined ? `${text.slice(0, end)},` : text.slice(0, end);
  const after = comma === undefined ? end : comma + 1;
  // A list that ends with a comma keeps that habit.
  const tail = comma === undefined ? "" : ",";
  if (inOneLine) {
    const member = `${JSON.stringify(key)}: ${oneLine(value)}`;
    return `${head}${text.slice(end, after)} ${member}${tail}${text.slice(after)}`;
  }
  const at = restOfLine(text, after);
  const isLined = isFirstOnLine(text, last.offset);
  const indent = isLined ? indentAt(text, last.offset) : indentAt(text, object.offset) + unitOf(text);
  const member = memberText(key, value, indent, unitOf(text), eol);
  const closing = text.slice(at).trimStart();
  // What follows begins a line of its own; a bracket that stood behind the last member does so now.
  const gap = /^\s*\n/.test(text.slice(at)) ? "" : closing.startsWith("}") ? eol + indentAt(text, object.offset) : " ";
  return `${head}${text.slice(end, at)}${eol}${indent}${member}${tail}${gap}${text.slice(at)}`;
}

/** Another value for a member, laid out as the file is; what stands around it stays. */
export function replaceValue(text: string, member: Node, value: unknown): string {
  const old = valueNode(member);
  const eol = text.includes("\r\n") ? "\r\n" : "\n";
  const inOneLine = !text.slice(old.offset, old.offset + old.length).includes("\n");
  const lined = JSON.stringify(value, null, unitOf(text))
    .split("\n")
    .join(eol + indentAt(text, member.offset));
  return text.slice(0, old.offset) + (inOneLine ? oneLine(value) : lined) + text.slice(old.offset + old.length);
}

/** Puts an item behind the last one of a list that has some, on a line of its own where that one is. */
export function appendItem(text: string, key: string, value: unknown): string {
  const list = memberOf(treeOf(text), key);
  const last = list === undefined ? undefined : valueNode(list).children?.at(-1);
  if (last === undefined) throw new Error("a list that is added to must have an item");
  const eol = text.includes("\r\n") ? "\r\n" : "\n";
  const isLined = isFirstOnLine(text, last.offset);
  const lined = JSON.stringify(value, null, unitOf(text))
    .split("\n")
    .join(eol + indentAt(text, last.offset));
  const item = isLined ? `,${eol}${indentAt(text, last.offset)}${lined}` : `, ${oneLine(value)}`;
  const end = last.offset + last.length;
  return text.slice(0, end) + item + text.slice(end);
}

export function removeMember(text: string, object: Node, key: string): string {
  const members = object.children ?? [];
  const index = members.findIndex((member) => member.children?.[0]?.value === key);
  const member = members[index];
  if (member === undefined) throw new Error("a member that was read must be in the tree");
  const end = member.offset + member.length;
  const comma = commaAfter(text, end);
  const isLast = index === members.length - 1;
  const after = comma === undefined ? end : comma + 1;
  const lineEnd = restOfLine(text, after);
  const alone = isFirstOnLine(text, member.offset) && /^[ \t]*(?:\r?\n|$)/.test(text.slice(lineEnd));
  let from = member.offset;
  let to = after;
  if (alone) {
    from = text.lastIndexOf("\n", member.offset - 1) + 1;
    const newline = text.indexOf("\n", lineEnd);
    to = newline < 0 ? text.length : newline + 1;
  } else {
    // What stands between the last one and the bracket does so behind the one before.
    if (!isLast || index === 0) while (text[to] === " " || text[to] === "\t") to++;
    if (isLast) while (/[ \t]/.test(text[from - 1] ?? "")) from--;
  }
  const previous = members[index - 1];
  if (alone && previous !== undefined) from = startOfComments(text, previous.offset + previous.length, from);
  // The one before is the last now, and keeps its comma only where the list ended with one.
  const stale =
    isLast && comma === undefined && previous !== undefined
      ? commaAfter(text, previous.offset + previous.length)
      : undefined;
  const before = stale === undefined ? text.slice(0, from) : text.slice(0, stale) + text.slice(stale + 1, from);
  return before + text.slice(to);
}

/**
 * Where the lines of comments begin that stand directly above a line, which `to` is the start of. They are about what
 * follows; above the first member they may be about all, so nobody asks there.
 */
function startOfComments(text: string, from: number, to: number): number {
  const scanner = createScanner(text, false);
  scanner.setPosition(from);
  const comments: { readonly start: number; readonly end: number }[] = [];
  for (let kind = scanner.scan(); scanner.getTokenOffset() < to && kind !== END_OF_FILE; kind = scanner.scan()) {
    const start = scanner.getTokenOffset();
    if (COMMENTS.includes(kind)) comments.push({ start, end: start + scanner.getTokenLength() });
  }
  let at = to;
  for (const { start, end } of comments.reverse()) {
    if (!/^[ \t]*\r?\n$/.test(text.slice(end, at)) || !isFirstOnLine(text, start)) break;
    at = text.lastIndexOf("\n", start - 1) + 1;
  }
  return at;
}

/** Of jsonc-parser's kinds of tokens, whose enum is not there at run time: comments of a line and of a block, the end. */
const COMMENTS: readonly number[] = [12, 13];
const END_OF_FILE = 17;

/** Where the comma behind a member stands, if there is one. */
function commaAfter(text: string, end: number): number | undefined {
  const ignoreComments = true;
  const scanner = createScanner(text, ignoreComments);
  scanner.setPosition(end);
  scanner.scan();
  const at = scanner.getTokenOffset();
  return text[at] === "," ? at : undefined;
}

/** Behind the comments that stand on the same line, which belong to what is before them. */
function restOfLine(text: string, from: number): number {
  const comment = /^(?:[ \t]*\/\*(?:(?!\*\/)[^\n])*\*\/)*(?:[ \t]*\/\/[^\r\n]*)?/.exec(text.slice(from))?.[0] ?? "";
  const at = from + comment.length;
  // In front of something else on this line it belongs to that.
  return /^[ \t]*(?:\r?\n|$|\})/.test(text.slice(at)) ? at : from;
}

function isFirstOnLine(text: string, offset: number): boolean {
  return /(?:^|\n)[ \t]*$/.test(text.slice(0, offset));
}

function indentAt(text: string, offset: number): string {
  const start = text.lastIndexOf("\n", offset - 1) + 1;
  return /^[ \t]*/.exec(text.slice(start, offset))?.[0] ?? "";
}

/** One step of the file's indentation. */
function unitOf(text: string): string {
  return /\n([ \t]+)\S/.exec(text)?.[1] ?? "  ";
}

function memberText(key: string, value: unknown, indent: string, unit: string, eol: string): string {
  const lines = JSON.stringify(value, null, unit).split("\n");
  return `${JSON.stringify(key)}: ${lines.join(eol + indent)}`;
}

/** With the spaces that people write. */
function oneLine(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(oneLine).join(", ")}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const members = Object.entries(value).filter(([, item]) => item !== undefined);
  if (members.length === 0) return "{}";
  return `{ ${members.map(([key, item]) => `${JSON.stringify(key)}: ${oneLine(item)}`).join(", ")} }`;
}
