// The handshake of the legacy era: what an agent says of itself, what it is told, and what differs between the versions
// that the two may agree upon.

import type { Introduction } from "../../contracts/service.js";
import type { RequestMessage } from "../../protocol/message.js";
import { isLegacyVersion, LATEST_LEGACY } from "../../protocol/versions.js";
import { boundCapabilities, boundClientInfo, newSessionKey, type SessionFacts } from "./session-id.js";

export function initializeFacts(
  message: RequestMessage,
  principalId: string,
  scope: string | undefined,
  createdAt: number,
): SessionFacts {
  const { params } = message;
  return {
    principalId,
    version: negotiate(params?.["protocolVersion"]),
    capabilities: boundCapabilities(params?.["capabilities"]),
    clientInfo: boundClientInfo(params?.["clientInfo"]),
    scope,
    key: newSessionKey(),
    createdAt,
  };
}

/** The asked version if we speak it, else our newest: the agent then decides whether it can go on. */
function negotiate(asked: unknown): string {
  return typeof asked === "string" && isLegacyVersion(asked) ? asked : LATEST_LEGACY;
}

/** At `/mcp/<server>` an agent is told who that server is, with every member that it gave. */
export function introduction(version: string, introduced: Introduction): object {
  const { capabilities, instructions, own } = introduced;
  const serverInfo = typeof own?.serverInfo["name"] === "string" ? own.serverInfo : introduced.serverInfo;
  const known = { protocolVersion: version, capabilities, serverInfo };
  return { ...own?.more, ...known, ...(instructions === undefined ? {} : { instructions }) };
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
