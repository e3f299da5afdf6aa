// Which variables hold secrets of Toolway's own, by their names.

/**
 * The token of a gateway or a broker, that of a run, those of clients that were set up, the key of an engine. Whoever has one
 * could call every server.
 */
const OWN_SECRET = /^TOOLWAY_.*(?:TOKEN|KEY)$/i;

export function isOwnSecret(variable: string): boolean {
  return OWN_SECRET.test(variable);
}
