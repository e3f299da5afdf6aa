// Patterns in which `*` stands for any run of characters, none included. What a pattern is about, and what else may be
// in it, is its users' business.

/** The texts between the stars; a single one where there is no star. */
export type Glob = readonly string[];

export function readGlob(pattern: string): Glob {
  return pattern.split("*");
}

/**
 * Whether the whole text fits. Each part between two stars is taken where it first occurs: only the ends are fixed, so
 * that never has to be taken back. The text is gone through once, whatever the pattern.
 */
export function fits(glob: Glob, text: string): boolean {
  const first = glob[0] ?? "";
  if (glob.length === 1) return text === first;
  const last = glob[glob.length - 1] ?? "";
  if (text.length < first.length + last.length || !text.startsWith(first) || !text.endsWith(last)) return false;
  const end = text.length - last.length;
  let at = first.length;
  for (let i = 1; i < glob.length - 1; i++) {
    const part = glob[i] ?? "";
    const found = text.indexOf(part, at);
    if (found < 0 || found + part.length > end) return false;
    at = found + part.length;
  }
  return true;
}
