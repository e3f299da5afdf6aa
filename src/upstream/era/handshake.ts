// Does the legacy era's handshake with a server.

import type { ServerIntro } from "../../contracts/upstream.js";
import { Fault } from "../../protocol/errors.js";
import { isObject, type JsonObject } from "../../protocol/jsonrpc.js";
import { LATEST_LEGACY, LEGACY_VERSIONS } from "../../protocol/versions.js";
import { ask, type CallSender, ServerError } from "../link/own-call.js";

/** What we tell a server of the agents behind us. */
export interface HandshakeOffer {
  readonly clientInfo: JsonObject;
  readonly capabilities: JsonObject;
}

/** To a shared server we declare everything: each agent that lacks something answers for itself, with an error. */
export const EVERY_CAPABILITY: JsonObject = {
  roots: { listChanged: true },
  sampling: { tools: {}, context: {} },
  elicitation: { form: {}, url: {} },
};

export async function shakeHands(sender: CallSender, offer: HandshakeOffer, signal: AbortSignal): Promise<ServerIntro> {
  const params: JsonObject = {
    protocolVersion: LATEST_LEGACY,
    capabilities: offer.capabilities,
    clientInfo: offer.clientInfo,
  };
  const { result } = await ask(sender, "initialize", params, signal).catch((error: unknown) => {
    if (error instanceof ServerError) {
      throw new Fault("unavailable", `initialize was refused: ${error.message}`, { cause: error });
    }
    throw error;
  });
  const version = result["protocolVersion"];
  if (typeof version !== "string" || !LEGACY_VERSIONS.includes(version)) {
    throw new Fault(
      "protocol",
      `The server speaks protocol version ${JSON.stringify(version)}, which Toolway does not know.`,
    );
  }
  const { capabilities, serverInfo, instructions } = result;
  return {
    version,
    capabilities: isObject(capabilities) ? capabilities : {},
    serverInfo: isObject(serverInfo) ? serverInfo : {},
    instructions: typeof instructions === "string" ? instructions : undefined,
  };
}
