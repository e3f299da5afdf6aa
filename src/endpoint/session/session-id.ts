// A session id is what an agent said at initialize, sealed. It survives a restart and costs no memory until it is used.

import { randomBytes } from "node:crypto";
import { isObject, type JsonObject } from "../../protocol/jsonrpc.js";
import { isLegacyVersion } from "../../protocol/versions.js";
import type { Sealer } from "../../runtime/seal.js";

/** What a session is, apart from what has happened in it. */
export interface SessionFacts {
  readonly principalId: string;
  readonly version: string;
  readonly capabilities: JsonObject;
  readonly clientInfo: JsonObject;
  readonly scope: string | undefined;
  /** A random number of 128 bits that names the session inside the gateway. */
  readonly key: string;
  readonly createdAt: number;
  /** The gateway that made it, where there are several. */
  readonly home?: string | undefined;
}

const PURPOSE = "session";

/** The id travels in a header of every request, and some proxies cap all headers at 8 KiB. */
const MAX_CAPABILITIES_BYTES = 1536;
const MAX_CLIENT_NAME = 128;
const MAX_CLIENT_VERSION = 64;
/** No id that we make is longer; what is longer is not worth a decryption. */
const MAX_ID_LENGTH = 6144;

/** What of the capabilities decides whether an agent can be asked something. */
const KEPT: Readonly<Record<string, readonly string[]>> = {
  sampling: ["tools", "context"],
  elicitation: ["form", "url"],
  roots: ["listChanged"],
};

export function newSessionKey(): string {
  return randomBytes(16).toString("base64url");
}

export function sealSession(sealer: Sealer, facts: SessionFacts): string {
  return sealer.seal(PURPOSE, {
    p: facts.principalId,
    v: facts.version,
    c: facts.capabilities,
    i: facts.clientInfo,
    s: facts.scope,
    k: facts.key,
    t: facts.createdAt,
    h: facts.home,
  });
}

export function unsealSession(sealer: Sealer, id: string): SessionFacts | undefined {
  if (id.length > MAX_ID_LENGTH) return undefined;
  const value = sealer.unseal(PURPOSE, id);
  if (!isObject(value)) return undefined;
  const { p, v, c, i, s, k, t, h } = value;
  if (typeof p !== "string" || typeof v !== "string" || !isLegacyVersion(v)) return undefined;
  if (typeof k !== "string" || typeof t !== "number" || !isObject(c) || !isObject(i)) return undefined;
  if (s !== undefined && typeof s !== "string") return undefined;
  const home = typeof h === "string" ? h : undefined;
  return { principalId: p, version: v, capabilities: c, clientInfo: i, scope: s, key: k, createdAt: t, home };
}

/** The capabilities as sent if they are small, else only what we decide by. */
export function boundCapabilities(value: unknown): JsonObject {
  if (!isObject(value)) return {};
  if (Buffer.byteLength(JSON.stringify(value)) <= MAX_CAPABILITIES_BYTES) return value;
  const kept: JsonObject = {};
  for (const [name, flags] of Object.entries(KEPT)) {
    const capability = value[name];
    if (!isObject(capability)) continue;
    const small: JsonObject = {};
    for (const flag of flags) {
      if (capability[flag] === true || isObject(capability[flag])) small[flag] = capability[flag] === true ? true : {};
    }
    kept[name] = small;
  }
  return kept;
}

export function boundClientInfo(value: unknown): JsonObject {
  const info: JsonObject = {};
  if (!isObject(value)) return info;
  if (typeof value["name"] === "string") info["name"] = value["name"].slice(0, MAX_CLIENT_NAME);
  if (typeof value["version"] === "string") info["version"] = value["version"].slice(0, MAX_CLIENT_VERSION);
  return info;
}
