// What counts as a token, and when one ends that says so.

import { Fault } from "../protocol/errors.js";
import { isObject } from "../protocol/jsonrpc.js";

/** As long as the longest tokens are; more is not one. */
export const MAX_TOKEN_BYTES = 16 * 1024;

/** The last moment that a date can name. What says that it ends later, in another unit perhaps, does not say when. */
const LAST_DATE_MS = 8.64e15;

/**
 * When a JWT ends, in milliseconds since 1970; undefined where it does not say. It is only read, never believed: the
 * server decides.
 */
export function expiryOf(token: string): number | undefined {
  const [, payload, signature, ...more] = token.split(".");
  if (payload === undefined || signature === undefined || more.length > 0) return undefined;
  try {
    const claims: unknown = JSON.parse(Buffer.from(payload, "base64url").toString());
    const exp = isObject(claims) ? claims["exp"] : undefined;
    return typeof exp === "number" && exp > 0 && exp * 1000 <= LAST_DATE_MS ? exp * 1000 : undefined;
  } catch {
    return undefined;
  }
}

/** The token in a text, without the line break that editors add; undefined for none. */
export function checked(text: string, what: string): string | undefined {
  const token = text.trim();
  if (token === "") return undefined;
  // The value is a secret, wrong or not.
  if (!/^[\x21-\x7e]+$/.test(token)) throw noToken(`${what} holds something that is no token: one word, in ASCII.`);
  return token;
}

export function noToken(message: string): Fault {
  return new Fault("unauthorized", message);
}
