// The chain of the audit log: each line has a number and the hash of the line before it, so that none can be changed, taken
// out or put elsewhere without the next one saying so. It reads and writes no files, and has no clock.

import { hash } from "node:crypto";

/** The last line of a chain: its number, and its hash. */
export interface ChainHead {
  readonly seq: number;
  readonly hash: string;
}

/** Before the first line. */
export const NO_LINES: ChainHead = { seq: 0, hash: "" };

/** Of a line without its end. Of 256 bits, in 43 letters. */
export function lineHash(line: string): string {
  return hash("sha256", line, "base64url");
}

/** Lines of these bodies, which are JSON objects with at least one member, as they continue the chain. */
export function chained(
  bodies: readonly string[],
  head: ChainHead,
): { readonly text: string; readonly head: ChainHead } {
  let { seq, hash: prev } = head;
  let text = "";
  for (const body of bodies) {
    const line = `{"seq":${++seq},"prev":"${prev}",${body.slice(1)}`;
    prev = lineHash(line);
    text += `${line}\n`;
  }
  return { text, head: { seq, hash: prev } };
}

/** What a line says of the chain itself. */
export interface ChainLine {
  readonly seq: number;
  readonly prev: string;
  readonly kind: string;
  readonly [member: string]: unknown;
}

/** Undefined where it is no line of a chain. */
export function readLine(text: string): ChainLine | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== "object" || value === null) return undefined;
    const { seq, prev, kind } = value as Partial<ChainLine>;
    const isLine = Number.isSafeInteger(seq) && typeof prev === "string" && typeof kind === "string";
    return isLine ? (value as ChainLine) : undefined;
  } catch {
    return undefined;
  }
}

/** Where a chain goes on after its last bytes. */
export interface ChainEnd {
  /** What the next line continues. */
  readonly head: ChainHead;
  /** The last line that is whole: another one than the head where its end was torn. */
  readonly whole: ChainHead;
  /** It was torn by a kill: its line ends here, and the next one says so. */
  readonly isTorn: boolean;
  /** What is to be written before anything else. */
  readonly end: "" | "\n";
}

/** `tail` are the last lines of the last file, whole but for the first of them. Undefined where no whole line is in it. */
export function resumption(tail: string): ChainEnd | undefined {
  const lines = tail.split("\n");
  const rest = lines.pop() ?? "";
  const whole = readLine(rest);
  if (whole !== undefined) {
    const head = { seq: whole.seq, hash: lineHash(rest) };
    return { head, whole: head, isTorn: false, end: "\n" };
  }
  for (let at = lines.length - 1; at >= 0; at--) {
    const line = readLine(lines[at] as string);
    if (line === undefined) continue;
    // What comes after it is torn, and is what the next line continues: it cannot be changed unseen either.
    const last = rest === "" ? (lines[lines.length - 1] as string) : rest;
    return {
      head: { seq: line.seq, hash: lineHash(last) },
      whole: { seq: line.seq, hash: lineHash(lines[at] as string) },
      isTorn: last !== lines[at],
      end: rest === "" ? "" : "\n",
    };
  }
  return undefined;
}
