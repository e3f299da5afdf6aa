// `toolway call` while it waits: ties the call, in its session with the gateway, to the person who made it.

import type { Duplex } from "node:stream";
import type { JsonObject } from "../../protocol/jsonrpc.js";
import type { Terminal } from "../line/ask.js";
import { Answers } from "./answers.js";
import { CallView } from "./call-view.js";
import { type CallAnswer, callInSession } from "./conversation.js";

export { addressesOf } from "./answers.js";

interface PersonsCall {
  readonly tool: { readonly name: string; readonly server: string };
  readonly arguments: JsonObject;
  readonly json: boolean;
  readonly verbose: boolean;
}

/** Resolves with the one answer. Rejects with a Stopped at Ctrl-C, once the tool has been told. */
export async function callThrough(
  session: Duplex,
  call: PersonsCall,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<CallAnswer> {
  const { name, server } = call.tool;
  const view = new CallView(terminal, { server, tool: name, showsProgress: terminal.isRead && !call.json });
  const answers = new Answers(terminal, server, view);
  const sent = {
    tool: name,
    arguments: call.arguments,
    wantsProgress: view.showsProgress,
    logLevel: call.verbose ? "debug" : undefined,
  };
  const events = {
    onProgress: (params: JsonObject) => view.progress(params),
    onLog: (params: JsonObject) => {
      if (call.verbose) view.log(params);
    },
    onElicit: (params: JsonObject, takenBack: AbortSignal) => answers.elicit(params, takenBack),
  };
  try {
    return await callInSession(session, sent, events, signal);
  } finally {
    view.end();
  }
}
