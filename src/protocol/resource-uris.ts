// Which updates of resources a subscription means: those of the resource itself, and of what lies under it.

/** Borders of the parts of a URI: `file:///a` covers `file:///a/b`, and not `file:///ab`. */
const BORDERS = "/?#";

export function coversUri(subscribed: ReadonlySet<string>, uri: string): boolean {
  if (subscribed.has(uri)) return true;
  for (const one of subscribed) {
    if (uri.startsWith(one) && (one.endsWith("/") || BORDERS.includes(uri.charAt(one.length)))) return true;
  }
  return false;
}
