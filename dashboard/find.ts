// What a word that somebody typed may mean: a view, a server, a tool, a principal, a receipt, or a call by its request or
// trace id. It decides only.

export interface Findable {
  readonly kind: "view" | "server" | "tool" | "agent" | "write" | "call";
  readonly name: string;
  readonly href: string;
  /** Other texts by which it is found. */
  readonly also?: readonly string[];
}

/** A list that nobody has to scroll far. */
const MAX_FOUND = 12;

/** What begins so comes first, then what has it at all; a call only by its whole id, of which there are thousands. */
export function found(all: Iterable<Findable>, typed: string): Findable[] {
  const word = typed.trim().toLowerCase();
  if (word === "") return [];
  const ranked: { readonly one: Findable; readonly rank: number }[] = [];
  for (const one of all) {
    const rank = Math.min(...[one.name, ...(one.also ?? [])].map((text) => rankOf(text.toLowerCase(), word)));
    if (rank < (one.kind === "call" ? 1 : 3)) ranked.push({ one, rank });
  }
  ranked.sort((a, b) => a.rank - b.rank || a.one.name.length - b.one.name.length);
  return ranked.slice(0, MAX_FOUND).map(({ one }) => one);
}

function rankOf(text: string, word: string): number {
  if (text === word) return 0;
  if (text.startsWith(word)) return 1;
  return text.includes(word) ? 2 : 3;
}
