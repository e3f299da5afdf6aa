// How text looks on a terminal: colours where they help, tables whose columns line up.

import type { Io } from "../line/io.js";

export interface Style {
  bold(text: string): string;
  dim(text: string): string;
  green(text: string): string;
  yellow(text: string): string;
  red(text: string): string;
}

function paint(code: number, on: boolean): (text: string) => string {
  return on ? (text) => `\u001b[${code}m${text}\u001b[0m` : (text) => text;
}

/** Colours only where a person looks, and where NO_COLOR (no-color.org) is unset or empty. */
export function styleOf(io: Pick<Io, "env" | "isTTY">): Style {
  const on = io.isTTY && (io.env["NO_COLOR"] ?? "") === "" && io.env["TERM"] !== "dumb";
  return { bold: paint(1, on), dim: paint(2, on), green: paint(32, on), yellow: paint(33, on), red: paint(31, on) };
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: colour codes start with ESC
const COLOUR = /\u001b\[[0-9;]*m/g;

/** How wide a cell is on the screen: without colours, and characters rather than UTF-16 units. */
function width(cell: string): number {
  return [...cell.replace(COLOUR, "")].length;
}

/** Rows with the columns aligned; the last column keeps its own length. */
export function table(rows: readonly (readonly string[])[], indent = ""): string {
  const widths: number[] = [];
  for (const row of rows) {
    row.forEach((cell, i) => {
      widths[i] = Math.max(widths[i] ?? 0, width(cell));
    });
  }
  return rows
    .map((row) => {
      const cells = row.map((cell, i) =>
        i === row.length - 1 ? cell : cell + " ".repeat((widths[i] ?? 0) - width(cell)),
      );
      return (indent + cells.join("  ")).trimEnd();
    })
    .join("\n");
}

export function heading(style: Style, cells: readonly string[]): string[] {
  return cells.map((cell) => style.dim(cell));
}

/** `1 tool`, `2 tools`. */
export function count(n: number, noun: string): string {
  return `${n} ${noun}${n === 1 ? "" : "s"}`;
}

/** `850 ms`, `2.4 s`, `3 min`. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  return ms < 100_000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.round(ms / 60_000)} min`;
}

/** How long something has been up: `45 s`, `12 min`, `5 h`, `3 days`. */
export function longDuration(ms: number): string {
  const minutes = ms / 60_000;
  if (minutes < 2) return `${Math.floor(ms / 1000)} s`;
  if (minutes < 120) return `${Math.floor(minutes)} min`;
  return minutes < 2880 ? `${Math.floor(minutes / 60)} h` : `${Math.floor(minutes / 1440)} days`;
}

/** Text of a server, made safe for a terminal: one line, no control characters, at most `limit` characters. */
export function oneLine(text: string, limit: number): string {
  const flat = printable(text).replace(/\s+/g, " ").trim();
  const letters = [...flat];
  return letters.length <= limit ? flat : `${letters.slice(0, limit - 1).join("")}…`;
}

/** Without the control characters that would move the cursor or recolour the screen; tabs and newlines stay. */
function printable(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters to take out
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, "");
}
