// Counts the members of a JSON text before it is parsed: objects with very many keys cost V8 far more than their bytes.
// Works on any text, and judges nothing else.

import { skipValue } from "../../protocol/scan.js";

const QUOTE = 0x22;
const COLON = 0x3a;

/** `"":0,` — so short texts need no look. */
const SHORTEST_MEMBER = 5;

/** True where all objects of `text` together have more than `limit` members. */
export function hasMoreMembers(text: string, limit: number): boolean {
  if (text.length < limit * SHORTEST_MEMBER) return false;
  let members = 0;
  let i = 0;
  while (i < text.length) {
    const c = text.charCodeAt(i);
    if (c === QUOTE) {
      i = skipValue(text, i);
      continue;
    }
    if (c === COLON && ++members > limit) return true;
    i++;
  }
  return false;
}
