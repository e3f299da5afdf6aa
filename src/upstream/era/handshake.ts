// Does the legacy era's handshake with a server.

import type { Askable } from "../../contracts/server-spec.js";
import type { ServerIntro } from "../../contracts/upstream.js";
import { Fault } from "../../protocol/errors.js";
import { isObject, type JsonObject } from "../../protocol/jsonrpc.js";
import { LATEST_LEGACY, LEGACY_VERSIONS } from "../../protocol/versions.js";
import { sentence } from "../../runtime/words/sentence.js";
import { ask, type CallSender, ServerError } from "../link/own-call.js";

/** What we tell a server of the agents behind us. */
export interface HandshakeOffer {
  readonly clientInfo: JsonObject;
  readonly capabilities: JsonObject;
}

/** What a server is told before anybody is known who would call it; a question to one who lacks it is refused. */
export const EVERY_CAPABILITY: Readonly<Record<Askable, JsonObject>> = {
  roots: { listChanged: true },
  sampling: { tools: {}, context: {} },
  elicitation: { form: {}, url: {} },
};

/** What an entry says by `declare`. */
export function declared(names: readonly Askable[]): JsonObject {
  return Object.fromEntries(names.map((name) => [name, EVERY_CAPABILITY[name]]));
}

/**
 * An agent's own capabilities, for a session that it shares with others like it: there a server that asks for a task of
 * an agent's could not say whose.
 */
export function shareable({ tasks: _, ...rest }: JsonObject): JsonObject {
  return rest;
}

export async function shakeHands(sender: CallSender, offer: HandshakeOffer, signal: AbortSignal): Promise<ServerIntro> {
  const params: JsonObject = {
    protocolVersion: LATEST_LEGACY,
    capabilities: offer.capabilities,
    clientInfo: offer.clientInfo,
  };
  const { result } = await ask(sender, "initialize", params, signal).catch((error: unknown) => {
    if (error instanceof ServerError) {
      throw new Fault("unavailable", sentence(`It refused initialize: ${error.message}`), { cause: error });
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
  const { protocolVersion: _, capabilities, serverInfo, instructions, ...more } = result;
  return {
    version,
    capabilities: isObject(capabilities) ? capabilities : {},
    serverInfo: isObject(serverInfo) ? serverInfo : {},
    instructions: typeof instructions === "string" ? instructions : undefined,
    ...(Object.keys(more).length === 0 ? {} : { more }),
  };
}
