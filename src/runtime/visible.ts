// Text that somebody wrote to deceive: what the eye cannot see, or sees in another place, made visible.

/**
 * Controls, format and bidirectional characters, tags (U+E0000…), zero-width ones and other ignorables, private and
 * unassigned ones, halves of surrogate pairs, and every space but the plain one.
 */
const HIDDEN = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|(?! )\p{Zs}/gu;

/** Around what was made visible, for whoever colours it. No text has them: they are controls, and made visible. */
export const MARK_START = "\u0001";
export const MARK_END = "\u0002";

/** Every hidden character as `\u{202E}`, between marks. */
export function marked(text: string): string {
  return text.replace(HIDDEN, (character) => `${MARK_START}${escapeOf(character)}${MARK_END}`);
}

/** The same without marks, for names in a table. */
export function visible(text: string): string {
  return text.replace(HIDDEN, escapeOf);
}

/** The same for a text of several lines: line breaks and tabs are what they look like. */
export function visibleLines(text: string): string {
  return text
    .replaceAll("\r\n", "\n")
    .replace(HIDDEN, (character) => (character === "\n" || character === "\t" ? character : escapeOf(character)));
}

/** JSON text with hidden characters as JSON's own escapes: the same value, safe to print. */
export function visibleJson(json: string): string {
  // Line breaks of JSON text are between its values, where no escape may stand.
  return json.replace(HIDDEN, (character) => {
    if (character === "\n") return character;
    let escaped = "";
    for (let i = 0; i < character.length; i++) {
      escaped += `\\u${character.charCodeAt(i).toString(16).padStart(4, "0")}`;
    }
    return escaped;
  });
}

/** The distinct hidden characters of a text, in words. */
export function hiddenIn(text: string): string[] {
  const found = new Set(text.match(HIDDEN) ?? []);
  return [...found].map((character) => `${escapeOf(character)} (${kindOf(character.codePointAt(0) ?? 0)})`);
}

function escapeOf(character: string): string {
  return `\\u{${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}}`;
}

const KINDS: readonly (readonly [from: number, to: number, kind: string])[] = [
  [0x0000, 0x001f, "control"],
  [0x007f, 0x009f, "control"],
  [0x00ad, 0x00ad, "soft hyphen"],
  [0x061c, 0x061c, "changes the direction of text"],
  [0x200b, 0x200d, "zero width"],
  [0x200e, 0x200f, "changes the direction of text"],
  [0x202a, 0x202e, "changes the direction of text"],
  [0x2060, 0x2064, "zero width"],
  [0x2066, 0x2069, "changes the direction of text"],
  [0xd800, 0xdfff, "half of a character"],
  [0xe000, 0xf8ff, "private use"],
  [0xfe00, 0xfe0f, "variation selector"],
  [0xfeff, 0xfeff, "zero width"],
  [0xe0000, 0xe007f, "tag: text that only machines read"],
  [0xe0100, 0xe01ef, "variation selector"],
];

function kindOf(code: number): string {
  return KINDS.find(([from, to]) => from <= code && code <= to)?.[2] ?? "not visible";
}
