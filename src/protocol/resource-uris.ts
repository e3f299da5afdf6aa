// Which updates of resources a subscription means: those of the resource itself, and of what lies under it.

/** Borders of the parts of a URI: `file:///a` covers `file:///a/b`, and not `file:///ab`. */
const BORDERS = "/?#";
const SLASH = "/";

/** A URI is a line; what is subscribed to is no longer than this, and neither is what an update is looked for under. */
export const MAX_URI_CHARS = 8_192;

/**
 * How long the beginnings of `uri` are under which it lies, without the whole of it: a subscription to one of these, and to
 * nothing else, means it too.
 */
export function lengthsAbove(uri: string): number[] {
  const lengths: number[] = [];
  const most = Math.min(uri.length - 1, MAX_URI_CHARS);
  for (let at = 0; at <= most; at++) {
    if (BORDERS.includes(uri.charAt(at)) || (at > 0 && uri.charAt(at - 1) === SLASH)) lengths.push(at);
  }
  return lengths;
}

export function coversUri(subscribed: ReadonlySet<string>, uri: string): boolean {
  if (subscribed.has(uri)) return true;
  const above = lengthsAbove(uri);
  if (above.length < subscribed.size) return above.some((length) => subscribed.has(uri.slice(0, length)));
  for (const one of subscribed) if (above.includes(one.length) && uri.startsWith(one)) return true;
  return false;
}
