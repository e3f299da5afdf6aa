// Percent codes, as addresses and names of files have them.

/** What is no such code (`%zz`) stands for itself. */
export function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
