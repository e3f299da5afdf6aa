// A tool's definition as lines to compare: JSON, one member a line, texts cut at line ends and sentences, hidden
// characters marked.

import { marked } from "../../runtime/visible.js";

/** A text longer than this is cut into sentences, so that a changed one stands out. */
const SENTENCES_FROM = 40;

/** Deeper than schemas are; what is deeper stands on one line. */
const MAX_DEPTH = 64;

export function definitionLines(json: string): string[] {
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
