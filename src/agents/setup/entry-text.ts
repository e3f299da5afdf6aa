// An entry of ours in the text of a client's config: found, put in, taken out. What is not ours stays as it is, byte for
// byte. One implementation for each format; both check that the edited text says what it should, and throw a ConfigError
// with the place where the text is broken. And the text after it was taken out: as it was before, where nothing else has
// changed since. Reads and writes no file.

export type EntryValue = string | boolean | readonly string[] | Readonly<Record<string, string>>;

/** An entry, as it stands in a client's config. */
export type ClientEntry = Readonly<Record<string, EntryValue>>;

/** Where an entry stands. */
export interface ClientEntryPlace {
  /** It is named in messages. */
  readonly file: string;
  /** The key of the object that holds the servers. */
  readonly group: string;
  readonly name: string;
}

export interface EntryText {
  /** Undefined where there is none. */
  read(text: string, place: ClientEntryPlace): unknown;
  /**
   * The text with the entry. One of that name that is there gets these values; of its other keys those in `owned` go, and
   * the rest stays, since somebody else wrote it. Without a text, one that has the entry alone.
   */
  put(text: string | undefined, place: ClientEntryPlace, entry: ClientEntry, owned: readonly string[]): string;
  /** The text without the entry; the same where there is none. `withGroup`: and without its group, where nothing is left in it. */
  take(text: string, place: ClientEntryPlace, withGroup?: boolean): string;
  /** Whether a group stands in the text that would stay there without its entries. */
  hasGroup(text: string, place: ClientEntryPlace): boolean;
}

/** A file is the user's: an edit that does not say what it should is an error here, and never written. */
export function refuseWrongEdit(isRight: boolean, { file }: ClientEntryPlace): void {
  if (!isRight) throw new Error(`The edited text of ${file} does not say what it should. Nothing was written.`);
}

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
