// A random id as a word that a person can type: base64url, and never one that a command line would read as an option.

import { randomBytes } from "node:crypto";

export function randomId(bytes: number, draw: (bytes: number) => Buffer = randomBytes): string {
  for (;;) {
    const word = draw(bytes).toString("base64url");
    if (!word.startsWith("-")) return word;
  }
}
