// A `requestState` of ours is sealed, and bound to who asked, what was asked and a time. That of a modern server is sealed
// for its principal: the server itself knows nobody but the gateway. The first half only says that it was sealed here, so
// that one which was tampered with is refused, and one of somebody else's is passed on.

import { createHash } from "node:crypto";
import { isObject, type JsonObject } from "../../protocol/jsonrpc.js";
import type { RequestMessage } from "../../protocol/message.js";
import type { Sealer } from "../../runtime/seal.js";

export interface RequestState {
  /** The parked call that waits for the answers; none where the call is to be made again. */
  readonly parked: string | undefined;
  readonly principalId: string;
  /** The digest of the request that it belongs to. */
  readonly digest: string;
  /** Milliseconds since 1970. */
  readonly expires: number;
  /** The gateway that the call waits at, where there are several. */
  readonly home?: string | undefined;
}

/** A modern server's own state, and whose call it was given for. What it is worth is the server's to say. */
export interface ForwardedState {
  readonly principalId: string;
  /** JSON text, as the server wrote it. */
  readonly json: string;
  /** The gateway that asked the server, where there are several: what the state stands for may be in that one's talk with it. */
  readonly home?: string | undefined;
}

const PURPOSE = "request-state";
const MARK = "toolway";

export class RequestStates {
  readonly #sealer: Sealer;
  readonly #home: string | undefined;
  #mark: string | undefined;

  /** `home`: this gateway, where there are several. */
  constructor(sealer: Sealer, home?: string) {
    this.#sealer = sealer;
    this.#home = home;
  }

  seal({ parked, principalId, digest, expires }: RequestState): string {
    this.#mark ??= this.#sealer.seal(PURPOSE, MARK);
    const home = parked === undefined ? undefined : this.#home;
    return `${this.#mark}.${this.#sealer.seal(PURPOSE, { i: parked, p: principalId, d: digest, e: expires, h: home })}`;
  }

  sealServers({ principalId, json }: ForwardedState): string {
    this.#mark ??= this.#sealer.seal(PURPOSE, MARK);
    return `${this.#mark}.${this.#sealer.seal(PURPOSE, { p: principalId, s: json, h: this.#home })}`;
  }

  /** `foreign` was not sealed by us; `broken` was, and changed since. */
  read(text: string): RequestState | ForwardedState | "foreign" | "broken" {
    const dot = text.indexOf(".");
    if (dot < 0 || this.#sealer.unseal(PURPOSE, text.slice(0, dot)) !== MARK) return "foreign";
    const value = this.#sealer.unseal(PURPOSE, text.slice(dot + 1));
    if (!isObject(value)) return "broken";
    const { i, p, d, e, s, h } = value;
    const home = typeof h === "string" ? h : undefined;
    if (typeof p === "string" && typeof s === "string") return { principalId: p, json: s, home };
    if (typeof p !== "string" || typeof d !== "string" || typeof e !== "number") return "broken";
    if (i !== undefined && typeof i !== "string") return "broken";
    return { parked: i, principalId: p, digest: d, expires: e, home };
  }
}

/** What a retry brings anew; all else must be as it was. */
const RETRY_MEMBERS: ReadonlySet<string> = new Set(["_meta", "inputResponses", "requestState"]);

/** Is equal for two requests that ask for the same: a client may write the members in another order. */
export function requestDigest(message: RequestMessage, scope: string | undefined): string {
  const asked: JsonObject = {};
  for (const [key, value] of Object.entries(message.params ?? {})) if (!RETRY_MEMBERS.has(key)) asked[key] = value;
  return createHash("sha256")
    .update(canonical([message.method, scope ?? null, asked]))
    .digest("base64url");
}

/** Of the parsed value: whatever a client sends has a digest, also what canonical JSON refuses. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const members = Object.keys(value).sort((a, b) => (a < b ? -1 : 1));
  return `{${members.map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`).join(",")}}`;
}
