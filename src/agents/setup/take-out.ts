// A client's text after our entry: as it was before, where nothing else has changed since. Reads and writes no file.

import type { ClientEntry, ClientEntryPlace, EntryText } from "./entry-text.js";

/** What it says does not matter: it is put in and taken out again, to see what that leaves of a text. */
const ANY_ENTRY: ClientEntry = { url: "" };

/**
 * The text without our entry. `before` is what was there when it was put in, undefined where there was no file. Undefined
 * where nothing is left of a file that we made.
 */
export function textWithout(
  format: EntryText,
  text: string,
  place: ClientEntryPlace,
  before: string | undefined,
): string | undefined {
  const left = format.take(text, place);
  if (left === text) return text;
  const isLeftOf = (earlier: string | undefined) =>
    left === format.take(format.put(earlier, place, ANY_ENTRY, []), place);
  if (before !== undefined && isFree(format, before, place) && isLeftOf(before)) return before;
  if (isLeftOf(undefined)) return undefined;
  const isGroupOurs = before === undefined || (isFree(format, before, place) && !format.hasGroup(before, place));
  return isGroupOurs ? format.take(text, place, true) : left;
}

/** Whether a text is one that our entry can be put into, and has none. */
function isFree(format: EntryText, text: string, place: ClientEntryPlace): boolean {
  try {
    format.put(text, place, ANY_ENTRY, []);
    return format.read(text, place) === undefined;
  } catch {
    return false;
  }
}
