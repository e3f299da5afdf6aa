// Texts that become sentences, wherever they are shown.

/** A text that others follow, with a full stop where it has no end of its own. What a server wrote often has none. */
export function sentence(text: string): string {
  const trimmed = text.trimEnd();
  return trimmed === "" || /[.?!…]["'`)\]]?$/.test(trimmed) ? trimmed : `${trimmed}.`;
}

/** As a text begins. */
export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
