// How text looks on a terminal: colours where they help, tables whose columns line up.

import { visible } from "../../runtime/visible.js";
import { seconds } from "../../runtime/words/amounts.js";
import type { Io } from "../line/io.js";

/** As git shows hashes, and a little more; long enough for `--hash`. */
export const HASH_SHOWN = 12;

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

// biome-ignore lint/suspicious/noControlCharactersInRegex: colour codes start with ESC
const COLOURS = /(\u001b\[[0-9;]*m)/;

// biome-ignore lint/suspicious/noControlCharactersInRegex: colour codes start with ESC
const COLOUR_ALONE = /^\u001b\[[0-9;]*m$/;

/** What terminals draw two columns wide: East Asian wide and fullwidth letters, and emoji. */
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{17000}-\u{18cff}\u{1b000}-\u{1b2ff}\u{20000}-\u{3fffd}\p{Emoji_Presentation}]/u;

/** What is drawn over the letter before it. */
const COMBINING = /[\p{Mn}\p{Me}\u200b-\u200d]/u;

function letterWidth(letter: string): number {
  // Most are ASCII.
  if (letter < "\u0300") return 1;
  return COMBINING.test(letter) ? 0 : WIDE.test(letter) ? 2 : 1;
}

/** How many columns of the screen a cell takes: without colours, and of letters as a terminal draws them. */
function width(cell: string): number {
  let columns = 0;
  for (const letter of cell.replace(COLOUR, "")) columns += letterWidth(letter);
  return columns;
}

type Rows = readonly (readonly string[])[];

/** Rows with the columns aligned; the last column keeps its own length. */
export function table(rows: Rows, indent = ""): string {
  const flat = rows.map(oneLineEach);
  return aligned(flat, widthsOf(flat), indent);
}

/** A name with a line break in it must not look like a row of its own. */
function oneLineEach(row: readonly string[]): string[] {
  return row.map((cell) => cell.replace(/[\n\v\f\r\u0085\u2028\u2029]/g, visible));
}

/** Between two columns. */
const GAP = 2;

/** No column is cut below this while another is wider: less of a name tells little. */
const MIN_WIDTH = 8;

/** The least that columns have where that is not enough; the first keeps the names readable. */
const NARROWEST = 4;

/**
 * The same within the width of a terminal: the widest columns give way first, and what is cut ends with "…". Where
 * nobody looks, or the width is not known, nothing is cut.
 *
 * `whole` are the headings, as the first row has them, of columns that are never cut: what is typed or copied from the
 * table, and by what its rows are told apart. Where they leave too little room, lines are longer than the terminal,
 * which then breaks them: nothing of them is lost.
 */
export function fittedTable(
  given: Rows,
  io: Pick<Io, "isTTY" | "columns">,
  { whole = [] }: { readonly whole?: readonly string[] } = {},
): string {
  const rows = given.map(oneLineEach);
  const isWhole = (rows[0] ?? []).map((cell) => whole.includes(cell.replace(COLOUR, "")));
  let widths = widthsOf(rows);
  const room = io.isTTY && io.columns !== undefined && io.columns > 0 ? io.columns : Number.POSITIVE_INFINITY;
  const over = widths.reduce((sum, one) => sum + one + GAP, -GAP) - room;
  const left = narrow(widths, over, { gives: (i) => isWhole[i] !== true, least: MIN_WIDTH });
  const narrowest = [...widths];
  const lacking = narrow(narrowest, left, { gives: (i) => i > 0 && isWhole[i] !== true, least: NARROWEST });
  // A line that is broken in any case has room for the rest of the words.
  if (lacking <= 0 || !isWhole.includes(true)) widths = narrowest;
  return aligned(
    rows.map((row) => row.map((cell, i) => cut(cell, widths[i] ?? 0))),
    widths,
    "",
  );
}

/** Which columns give way, and what each of them keeps. */
interface Narrowing {
  gives(column: number): boolean;
  readonly least: number;
}

/** Takes so much from the widest columns that give. Returns what could not be taken. */
function narrow(widths: number[], over: number, { gives, least }: Narrowing): number {
  let left = over;
  while (left > 0) {
    const givers = widths.map((one, i) => (gives(i) && one > least ? one : 0));
    const widest = Math.max(...givers);
    if (widest === 0) break;
    const at = givers.lastIndexOf(widest);
    const second = Math.max(least, ...givers.filter((_, i) => i !== at));
    // Down to the next widest, and by one at least, so that it ends.
    const less = Math.min(left, Math.max(1, widest - second));
    widths[at] = widest - less;
    left -= less;
  }
  return left;
}

function widthsOf(rows: readonly (readonly string[])[]): number[] {
  const widths: number[] = [];
  for (const row of rows) {
    row.forEach((cell, i) => {
      widths[i] = Math.max(widths[i] ?? 0, width(cell));
    });
  }
  return widths;
}

function aligned(rows: readonly (readonly string[])[], widths: readonly number[], indent: string): string {
  return rows
    .map((row) => {
      const cells = row.map((cell, i) =>
        i === row.length - 1 ? cell : cell + " ".repeat((widths[i] ?? 0) - width(cell)),
      );
      return (indent + cells.join(" ".repeat(GAP))).trimEnd();
    })
    .join("\n");
}

/** At most so many columns of a cell; its colours stay whole. */
function cut(cell: string, limit: number): string {
  if (width(cell) <= limit) return cell;
  let left = limit - 1;
  const kept = cell.split(COLOURS).map((part) => {
    if (COLOUR_ALONE.test(part)) return part;
    let some = "";
    for (const letter of part) {
      if (left < 0) break;
      left -= letterWidth(letter);
      some += left < 0 ? "…" : letter;
    }
    return some;
  });
  return kept.join("");
}

/** How many lines of the screen a text takes, where the terminal breaks those that are too long for it. */
export function screenLines(text: string, { isTTY, columns }: Pick<Io, "isTTY" | "columns">): number {
  const lines = text.split("\n");
  if (!isTTY || columns === undefined || columns <= 0) return lines.length;
  return lines.reduce((sum, line) => sum + Math.max(1, Math.ceil(width(line) / columns)), 0);
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
  return ms < 100_000 ? seconds(ms) : `${Math.round(ms / 60_000)} min`;
}

/** How long something has been up: `45 s`, `12 min`, `5 h`, `3 days`. */
export function longDuration(ms: number): string {
  const minutes = ms / 60_000;
  if (minutes < 2) return `${Math.floor(ms / 1000)} s`;
  if (minutes < 120) return `${Math.floor(minutes)} min`;
  return minutes < 2880 ? `${Math.floor(minutes / 60)} h` : `${Math.floor(minutes / 1440)} days`;
}

/** `10:02` where the person is; with the day where that is another one. */
export function clockTime(iso: string, nowMs: number): string {
  const at = new Date(iso);
  const two = (part: number) => String(part).padStart(2, "0");
  const time = `${two(at.getHours())}:${two(at.getMinutes())}`;
  const isToday = at.toDateString() === new Date(nowMs).toDateString();
  return isToday ? time : `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${time}`;
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
