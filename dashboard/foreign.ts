// Text that somebody else wrote, in pieces: what is plain, and what the eye would not see. The same characters are
// hidden here as in a terminal. It decides only, and knows no browser.

import { MARK_END, MARK_START, marked } from "../src/runtime/visible.js";

export interface Piece {
  readonly text: string;
  /** `text` is the name of a character that is not seen, as `U+202E`. */
  readonly isHidden: boolean;
}

/** `lines`: line breaks and tabs are what they look like. */
export function piecesOf(text: string, lines: boolean): Piece[] {
  const shown = lines ? text.replaceAll("\r\n", "\n").split(/([\n\t])/) : [text];
  const joined = shown.map((part) => (lines && (part === "\n" || part === "\t") ? part : marked(part))).join("");
  const pieces: Piece[] = [];
  for (const [i, part] of joined.split(MARK_START).entries()) {
    // Of `\u{202E}` and the mark after it, what is between the braces.
    const end = i === 0 ? -1 : part.indexOf(MARK_END);
    if (end >= 0) pieces.push({ text: `U+${part.slice(3, end - 1)}`, isHidden: true });
    const plain = part.slice(end + 1);
    if (plain !== "") pieces.push({ text: plain, isHidden: false });
  }
  return pieces;
}
