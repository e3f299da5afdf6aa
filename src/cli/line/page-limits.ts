// How much of a long list a verb shows at once, and the options that say so. Apart from the verbs, since the help has it
// without them.

import { usageError } from "./errors.js";

/** A screen of a long list. */
export const USUAL_LIMIT = 50;
/** As many as a gateway answers at a time. */
export const MAX_LIMIT = 1_000;

/** A number of rows as it was typed after `flag`; `usual` where it was not. Throws a UserError where it is out of its range. */
export function rowsOf(flag: string, text: string | undefined, usual: number, most: number, least: number = 0): number {
  if (text === undefined) return usual;
  const count = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
  if (count >= least && count <= most) return count;
  throw usageError(`${flag} ${text}: expected a whole number from ${least} to ${most}.`);
}
