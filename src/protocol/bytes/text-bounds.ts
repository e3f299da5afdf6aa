// How much there may be to a JSON text that a server sent before it is parsed: the same bounds as for what agents send
// (endpoint/session/limits.ts), and for the same reason. Parsing is one turn of the event loop, and everybody waits.

import { JsonShape } from "./scan-bytes.js";

export interface TextBounds {
  /** Levels of objects and arrays. */
  readonly depth: number;
  /** Members and elements at all depths. */
  readonly values: number;
  /** Different names of members: each costs V8 as much as ten values. */
  readonly names: number;
}

/** What one message may have: 200,000 values are parsed in some 50 ms, and nothing honest nests to 128. */
export const MESSAGE_BOUNDS: TextBounds = { depth: 128, values: 200_000, names: 20_000 };

/** So much is counted before a look at the bounds: what is far over them is not read to its end. */
const SLICE_BYTES = 256 * 1024;

/** So many characters are counted in one turn of the event loop, which takes a few milliseconds. */
const CHARS_A_TURN = 1024 * 1024;

/** What is too much about a text, as the end of a sentence; undefined where nothing is. It need not be JSON. */
export function excessOf(pieces: readonly Uint8Array[], bounds: TextBounds): string | undefined {
  const shape = new JsonShape();
  for (const piece of pieces) {
    const excess = excessAfter(shape, piece, bounds);
    if (excess !== undefined) return excess;
  }
  return undefined;
}

/** The same for a text of megabytes, where `pause` lets others have their turn. */
export async function excessOfLong(
  text: string,
  bounds: TextBounds,
  pause: () => Promise<void>,
): Promise<string | undefined> {
  const shape = new JsonShape();
  for (let from = 0; from < text.length; from += CHARS_A_TURN) {
    if (from > 0) await pause();
    // A character that is cut in two is neither a quote nor a bracket in either half.
    const excess = excessAfter(shape, Buffer.from(text.slice(from, from + CHARS_A_TURN)), bounds);
    if (excess !== undefined) return excess;
  }
  return undefined;
}

function excessAfter(shape: JsonShape, piece: Uint8Array, bounds: TextBounds): string | undefined {
  for (let from = 0; from < piece.length; from += SLICE_BYTES) {
    shape.push(piece.length <= SLICE_BYTES ? piece : piece.subarray(from, from + SLICE_BYTES));
    if (shape.depth > bounds.depth) return `is nested deeper than ${bounds.depth} levels`;
    if (shape.values > bounds.values) return `has more than ${bounds.values} values (members and elements)`;
    if (shape.names > bounds.names) return `has more than ${bounds.names} different names of members`;
  }
  return undefined;
}
