// The handshake of the legacy era: what an agent says of itself, and what it is told.

import type { Introduction } from "../../contracts/service.js";
import type { RequestMessage } from "../../protocol/message.js";
import { boundCapabilities, boundClientInfo, newSessionKey, type SessionFacts } from "./session-id.js";
import { negotiate } from "./versions.js";

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

export function introduction(version: string, { capabilities, serverInfo, instructions }: Introduction): object {
  return instructions === undefined
    ? { protocolVersion: version, capabilities, serverInfo }
    : { protocolVersion: version, capabilities, serverInfo, instructions };
}
