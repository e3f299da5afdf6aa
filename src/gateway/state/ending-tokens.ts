// Tokens that end soon, as `toolway status` tells them.

import type { GatewayStatus } from "../../contracts/status.js";
import type { TokenInfo } from "../../tokens/tokens.js";

/** Within a week: its owner needs another, and weeks have holidays. */
const ENDING_MS = 7 * 86_400_000;
/** More of them are one thing to do. */
const MAX_SHOWN = 20;

/** Those that are good now, the first to end first. */
export function endingTokens(tokens: readonly TokenInfo[], nowMs: number): GatewayStatus["endingTokens"] {
  return tokens
    .flatMap(({ id, expires }) =>
      expires !== undefined && expires > nowMs && expires < nowMs + ENDING_MS ? [{ id, expires }] : [],
    )
    .sort((a, b) => a.expires - b.expires)
    .slice(0, MAX_SHOWN)
    .map(({ id, expires }) => ({ id, at: new Date(expires).toISOString() }));
}
