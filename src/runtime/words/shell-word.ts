// A name in a line that people paste: one word for a shell, whatever it holds.

import { visible } from "../visible.js";

/** A word of our own making, or of whoever typed it, as a shell takes it for one. */
export function quotedWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/**
 * A name is a server's own choice, and must not become a command where somebody pastes the line. One with hidden
 * characters, or with the backtick that ends a command in our texts, is not shown at all.
 */
export function shellWord(text: string): string {
  return visible(text) === text && !text.includes("`") ? quotedWord(text) : "<name>";
}
