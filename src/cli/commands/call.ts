// `toolway call`: calls one tool and prints its result.

import { isObject } from "../../protocol/jsonrpc.js";
import type { GatewayClient } from "../gateway/port.js";
import { gatewayFor } from "../gateway/which.js";
import { noteIfSlow, withGateway } from "../gateway/with-gateway.js";
import { readJsonText, toArguments } from "../line/call-arguments.js";
import { defineCommand, gatewayOptions } from "../line/command.js";
import { Exit, UserError } from "../line/errors.js";
import { note, print, printJson, shown } from "../line/io.js";
import { checkArguments } from "../line/parameters.js";
import { resultText } from "../text/call-result.js";
import { findTool, isDecided, listTools, unknownServers, unknownTool } from "../text/tool-list.js";

export const call = defineCommand({
  metadata: {
    name: "call",
    summary: "Calls a tool and prints its result.",
    description:
      "Calls a tool and prints its result: through the running gateway, else through one started for this. " +
      "Text is printed plainly. Arguments that the tool needs and does not get, and those that its schema forbids, are " +
      "refused before anything is called; those that it does not declare are warned of. A tool that answers with an error makes it exit 1.",
  },
  args: {
    tool: { required: true, description: "Its name, as `toolway tools` lists it.", completes: "tool" },
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
    json: { description: "Prints the whole result as JSON." },
  },
  examples: [
    { line: "toolway call demo__add --arg a=2 --arg b=3", note: "arguments one by one" },
    { line: `toolway call demo__echo '{"text": "hello"}'`, note: "arguments as JSON" },
    { line: "jq -n '{text: \"hi\"}' | toolway call demo__echo -", note: "arguments from stdin" },
  ],
  async handler(input, io) {
    const json = await readJsonText(input.arguments, io);
    const source = await gatewayFor(input, io);
    let said = false;
    const say = (text: string): void => {
      if (!said) note(io, text);
      said = true;
    };
    const until = (client: GatewayClient): Promise<boolean> => isDecided(input.tool, client, io.signal, say);
    return withGateway(source, io, { servers: "called", until }, async ({ client }) => {
      const tools = await listTools(client, io.signal);
      const tool = findTool(input.tool, tools);
      if (tool === undefined) throw unknownTool(input.tool, tools, await unknownServers(client, io.signal, input.tool));
      const args = toArguments(json, input.arg, tool.inputSchema);
      for (const warning of checkArguments(tool.name, args, tool.inputSchema)) note(io, `toolway: ${warning}`);
      const body = { tool: tool.name, arguments: args };
      const work = client.post("/call", body, io.signal);
      const answer = await noteIfSlow(io, `Waiting for ${tool.name} …`, work);
      if (!isObject(answer)) throw new UserError("The gateway's answer cannot be read.");
      if (input.json) printJson(io, answer["result"] ?? answer);
      const { error, result } = answer;
      if (isObject(error)) {
        if (!input.json)
          note(io, `toolway: ${String(error["message"] ?? "the call failed")} (${String(error["code"])})`);
        return Exit.failure;
      }
      const failed = isObject(result) && result["isError"] === true;
      if (!input.json && failed) note(io, resultText(result));
      else if (!input.json) print(io, resultText(shown(result, io.isTTY)));
      return failed ? Exit.failure : Exit.ok;
    });
  },
});
