// `toolway call`: calls one tool and prints its result.

import type { Duplex } from "node:stream";
import type { JsonObject } from "../../protocol/jsonrpc.js";
import type { GatewayClient } from "../gateway/port.js";
import { gatewayFor } from "../gateway/which.js";
import { withGateway } from "../gateway/with-gateway.js";
import { terminalOf } from "../line/ask.js";
import { readJsonText, toArguments } from "../line/call-arguments.js";
import { defineCommand, gatewayOptions } from "../line/command.js";
import { Exit, type ExitCode, UserError } from "../line/errors.js";
import { type Io, note, print, printJson, shown } from "../line/io.js";
import { checkArguments } from "../line/parameters.js";
import { resultText } from "../text/call-result.js";
import type { ToolLine } from "../text/tool-list.js";

export const call = defineCommand({
  metadata: {
    name: "call",
    summary: "Calls a tool and prints its result.",
    description:
      "Calls a tool and prints its result: through the running gateway, else through one started for this, which starts " +
      "no server but the tool's, or those that may have it where that is not known yet. The name that a " +
      "tool has at its server, without the server's, is refused where several servers have one of that name: nothing is called then. " +
      "Text is printed plainly. Arguments that the tool needs and does not get, and those that its schema forbids, are " +
      "refused before anything is called; those that it does not declare are warned of. What the server asks meanwhile " +
      "is asked on the terminal, field by field; without a terminal it is declined. A tool that answers with an error " +
      "makes it exit 1; Ctrl-C cancels the call at its server, and makes it exit 130.",
  },
  args: {
    tool: {
      required: true,
      description:
        "Its name, as `toolway tools` lists it; also `server/tool`, or the name that it has at its server, where one server alone has it.",
      completes: "tool",
    },
    arguments: { description: "A JSON object, `-` for stdin, or `@file`.", completes: "file" },
  },
  options: {
    arg: {
      value: "KEY=VALUE",
      repeat: true,
      description: "One argument; its type follows the tool's schema.",
      completes: "argument",
    },
    ...gatewayOptions,
    json: { description: "Prints the whole result as JSON, and no progress." },
    verbose: { description: "Shows on stderr what the server logs meanwhile." },
  },
  examples: [
    { line: "toolway call demo__add --arg a=2 --arg b=3", note: "arguments one by one" },
    { line: `toolway call demo__echo '{"text": "hello"}'`, note: "arguments as JSON" },
    { line: "jq -n '{text: \"hi\"}' | toolway call demo__echo -", note: "arguments from stdin" },
  ],
  async handler(input, io) {
    const json = await readJsonText(input.arguments, io);
    const { demandTool, isDecided, serversToStart } = await import("../text/tool-list.js");
    const source = await gatewayFor(input, io);
    let said = false;
    const say = (text: string): void => {
      if (!said) note(io, text);
      said = true;
    };
    const until = (client: GatewayClient): Promise<boolean> => isDecided(input.tool, client, io.signal, say);
    const toStart = (client: GatewayClient) => serversToStart(input.tool, client, io.signal);
    return withGateway(source, io, { servers: "called", until, toStart }, async ({ client }) => {
      const tool = await demandTool(input.tool, client, io.signal, (text) => note(io, text));
      const args = toArguments(json, input.arg, tool.inputSchema);
      for (const warning of checkArguments(tool.name, args, tool.inputSchema)) note(io, `toolway: ${warning}`);
      return callTool(client, tool, args, input, io);
    });
  },
});

async function callTool(
  client: GatewayClient,
  tool: ToolLine,
  args: JsonObject,
  { json, verbose }: { readonly json: boolean; readonly verbose: boolean },
  io: Io,
): Promise<ExitCode> {
  const { addressesOf, callThrough } = await import("../call/call-through.js");
  const session = await openSession(client, tool.server, io.signal);
  const answer = await callThrough(session, { tool, arguments: args, json, verbose }, terminalOf(io), io.signal);
  if ("error" in answer) {
    const { message, code } = answer.error;
    if (json) printJson(io, answer);
    else note(io, `toolway: ${String(message ?? "the call failed")} (${String(code)})`);
    for (const url of json ? [] : addressesOf(answer.error)) note(io, `  Open ${url}, and call it again.`);
    return Exit.failure;
  }
  const { result } = answer;
  const failed = result["isError"] === true;
  if (json) printJson(io, result);
  else if (failed) note(io, resultText(result));
  else print(io, resultText(shown(result, io.isTTY)));
  return failed ? Exit.failure : Exit.ok;
}

async function openSession(client: GatewayClient, server: string, signal: AbortSignal): Promise<Duplex> {
  try {
    return await client.session(server, signal);
  } catch (cause) {
    // The first is what gateways said of a way that they do not have before there was a word for it.
    const code = (cause as { code?: unknown } | null)?.code;
    if (code !== "not-found" && code !== "no-route") throw cause;
    throw new UserError("The gateway that runs is of an older version, which this command cannot talk to.", {
      hint: "Start it again: `toolway down`, then `toolway serve`.",
    });
  }
}
