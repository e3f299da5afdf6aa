// How much memory the values of a JSON text take once it is parsed, beside the text itself: an empty object is two characters of
// text and 64 bytes of V8. About that is said here, rather too much than too little.

import { COMMA, OPEN_BRACE, OPEN_BRACKET } from "./codes.js";

/** An empty object in an array; other values take less, and names of members of their own about twice as much. */
const VALUE_BYTES = 64;
const NAME_BYTES = 128;

/** A comma or a bracket stands for no more: an empty object has one of each. */
const MARK_BYTES = 48;

/** What is shorter has so few values that the rest of a call takes more. */
const LIGHT_BYTES = 512;

/**
 * One of so many characters is looked at: to look at each would take as long as all else that is done with a call of some
 * kilobytes. Where the first one stands is drawn, so that no text can be laid out to hide what is in it.
 */
const STRIDE = 13;

/** By what was counted. */
export const weightBy = (values: number, names: number): number => values * VALUE_BYTES + names * NAME_BYTES;

/** Of a text that is short, by about how many commas and brackets are in it; those in strings count as well. */
export function weightOf(bytes: Uint8Array): number {
  if (bytes.length < LIGHT_BYTES) return 0;
  let marks = 0;
  for (let at = Math.floor(Math.random() * STRIDE); at < bytes.length; at += STRIDE) {
    if (isMark(bytes[at] as number)) marks++;
  }
  return marks * STRIDE * MARK_BYTES;
}

/** The same of a text whose bytes are not at hand. */
export function weightOfText(text: string): number {
  if (text.length < LIGHT_BYTES) return 0;
  let marks = 0;
  for (let at = Math.floor(Math.random() * STRIDE); at < text.length; at += STRIDE) {
    if (isMark(text.charCodeAt(at))) marks++;
  }
  return marks * STRIDE * MARK_BYTES;
}

function isMark(c: number): boolean {
  return c === COMMA || c === OPEN_BRACE || c === OPEN_BRACKET;
}
