// What the answer to a modern `server/discover` says of a server's era, and where verdicts are remembered.
// It decides only, without I/O or time; meeting.ts asks.

import { createHash } from "node:crypto";
import type { Target } from "../../contracts/server-spec.js";
import type { Fault } from "../../protocol/errors.js";
import { isObject, type JsonObject } from "../../protocol/jsonrpc.js";
import { type Era, MODERN_VERSION, ModernError } from "../../protocol/modern.js";
import { LEGACY_VERSIONS } from "../../protocol/versions.js";

/**
 * Verdicts that outlive a connection. Legacy ones expire: a server that has moved on would be met as it was for ever.
 */
export interface EraMemory {
  get(server: string, identity: string): Era | undefined;
  /** `undefined` drops the verdict. */
  put(server: string, identity: string, era: Era | undefined): void;
}

export const noEraMemory: EraMemory = { get: () => undefined, put: () => {} };

/** Remembers for as long as the process lives: where nobody keeps verdicts on disk, a reconnect need not ask again. */
export class ProcessEras implements EraMemory {
  readonly #verdicts = new Map<string, Era>();

  get(server: string, identity: string): Era | undefined {
    return this.#verdicts.get(`${server} ${identity}`);
  }

  put(server: string, identity: string, era: Era | undefined): void {
    if (era === undefined) this.#verdicts.delete(`${server} ${identity}`);
    else this.#verdicts.set(`${server} ${identity}`, era);
  }
}

/** Another command, address, environment or header may be another server. */
export function identityOf(target: Target): string {
  // Where a value came from says nothing of the server.
  const { secrets: _, ...where } = target;
  return createHash("sha256").update(JSON.stringify(where)).digest("base64url");
}

export type DiscoverOutcome =
  | { readonly kind: "result"; readonly result: JsonObject }
  /** A JSON-RPC error, whatever the HTTP status that brought it. */
  | { readonly kind: "error"; readonly code: number; readonly message: string; readonly data: unknown }
  /** An HTTP status, or an answer that is no message. */
  | { readonly kind: "refused"; readonly status: number; readonly fault: Fault }
  /** The child ended. */
  | { readonly kind: "exited"; readonly fault: Fault }
  /** The network, TLS or a redirect was in the way. */
  | { readonly kind: "unreachable"; readonly fault: Fault }
  | { readonly kind: "silent" };

export type EraVerdict =
  | { readonly kind: "modern"; readonly result: JsonObject }
  /** It is modern, and of no use to us; the message says why. */
  | { readonly kind: "unusable"; readonly message: string }
  | { readonly kind: "legacy" }
  | { readonly kind: "none" };

const LEGACY: EraVerdict = { kind: "legacy" };
const NONE: EraVerdict = { kind: "none" };

/** Statuses that speak of credentials or load, not of the protocol. So do all 5xx. */
const NO_VERDICT = new Set([401, 403, 408, 429]);

export function saysNothingOfEra(status: number): boolean {
  return status >= 500 || NO_VERDICT.has(status);
}

export function classify(kind: "stdio" | "http", outcome: DiscoverOutcome): EraVerdict {
  switch (outcome.kind) {
    case "result": {
      const versions = outcome.result["supportedVersions"];
      return Array.isArray(versions) ? choose(versions, outcome.result) : LEGACY;
    }
    case "error":
      return classifyError(kind, outcome);
    case "refused":
      // 200 with something that is no message is a server that does not know what it was asked.
      return saysNothingOfEra(outcome.status) ? NONE : LEGACY;
    case "exited":
      return LEGACY;
    case "unreachable":
      return NONE;
    case "silent":
      return kind === "stdio" ? LEGACY : NONE;
  }
}

function classifyError(kind: "stdio" | "http", outcome: Extract<DiscoverOutcome, { kind: "error" }>): EraVerdict {
  const { code, data, message } = outcome;
  if (code === ModernError.unsupportedVersion) {
    const supported = isObject(data) ? data["supported"] : undefined;
    return Array.isArray(supported) ? choose(supported, undefined) : LEGACY;
  }
  // On stdio there are no headers to disagree about, and a legacy server's errors are its own.
  if (kind === "http" && (code === ModernError.headerMismatch || code === ModernError.missingCapability)) {
    return { kind: "unusable", message: `It refused server/discover: ${message} (${code}).` };
  }
  return LEGACY;
}

/** The newest version that both speak. */
function choose(versions: readonly unknown[], result: JsonObject | undefined): EraVerdict {
  if (versions.includes(MODERN_VERSION) && result !== undefined) return { kind: "modern", result };
  if (versions.some((version) => LEGACY_VERSIONS.includes(version as string))) return LEGACY;
  const named = versions.filter((version) => typeof version === "string").slice(0, 8);
  const message = `The server speaks protocol versions ${JSON.stringify(named)}, none of which Toolway knows.`;
  return { kind: "unusable", message };
}
