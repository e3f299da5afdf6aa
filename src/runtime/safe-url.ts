// URLs as they may be shown, in messages, logs and status: without user, password, query and fragment, which may hold
// secrets.

export function safeUrl({ protocol, host, pathname }: URL): string {
  return `${protocol}//${host}${pathname}`;
}

/** The same without a path that is only "/", for addresses that people give without one. */
export function safeAddress({ protocol, host, pathname }: URL): string {
  return `${protocol}//${host}${pathname === "/" ? "" : pathname}`;
}
