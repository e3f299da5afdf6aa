// The legacy protocol versions that agents may speak, and what differs between them on this side.

import { LATEST_LEGACY, LEGACY_VERSIONS } from "../../protocol/versions.js";

export function isLegacyVersion(version: string): boolean {
  return LEGACY_VERSIONS.includes(version);
}

/** The asked version if we speak it, else our newest: the agent then decides whether it can go on. */
export function negotiate(asked: unknown): string {
  return typeof asked === "string" && isLegacyVersion(asked) ? asked : LATEST_LEGACY;
}

/** JSON-RPC batches came with 2025-03-26 and went with 2025-06-18. */
export function hasBatches(version: string): boolean {
  return version === "2025-03-26";
}

/**
 * Since 2025-11-25 a stream opens with an event that has an id and no data, so that it can be resumed before
 * its first message. Older clients take the empty data for a message and stumble over it.
 */
export function hasPriming(version: string): boolean {
  return version >= "2025-11-25";
}
