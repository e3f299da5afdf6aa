// `toolway inspect`: everything that is known of one tool.

import type { PinLine } from "../../contracts/pins.js";
import type { ToolAccess } from "../call/tool-sheet.js";
import type { GatewayClient } from "../gateway/port.js";
import { gatewayFor } from "../gateway/which.js";
import { withGateway } from "../gateway/with-gateway.js";
import { defineCommand, gatewayOptions, jsonOption } from "../line/command.js";
import { Exit } from "../line/errors.js";
import { note, pasted, print, printJson, shown } from "../line/io.js";
import { exampleCall } from "../line/parameters.js";

export const inspect = defineCommand({
  metadata: {
    name: "inspect",
    summary: "Shows a tool: parameters, an example, its pin, who may call it.",
    description:
      "Shows all that is known of a tool: what it does, its parameters, a call to paste, what its server claims of it, " +
      "its pin, and which roles may call it. Nothing is called.",
  },
  args: {
    tool: {
      required: true,
      description: "Its name, as `toolway tools` lists it; or as `toolway call` takes it.",
      completes: "tool",
    },
  },
  options: { ...gatewayOptions, ...jsonOption },
  examples: [
    { line: "toolway inspect demo__add", note: "parameters, and a call to paste" },
    { line: "toolway inspect demo__add --json | jq .inputSchema", note: "its whole schema" },
  ],
  async handler(input, io) {
    const { demandTool, isDecided } = await import("../text/tool-list.js");
    const source = await gatewayFor(input, io);
    // Every server is started anyway, and what is waited for is said where that takes long.
    const until = (client: GatewayClient): Promise<boolean> => isDecided(input.tool, client, io.signal, () => {});
    return withGateway(source, io, { servers: true, until }, async ({ client }) => {
      const tool = await demandTool(input.tool, client, io.signal, (text) => note(io, text));
      const { server, ownName } = tool;
      const { pins, trusted = [] } = (await client.get("/pins", io.signal)) as PinsKnown;
      const pin = pins.find((one) => one.server === server && one.tool === ownName);
      const query = new URLSearchParams({ server, tool: ownName });
      const { access } = (await client.get(`/access?${query}`, io.signal)) as { access: readonly ToolAccess[] };
      const example = pasted(io, exampleCall(tool.name, tool.inputSchema));
      if (input.json) printJson(io, { ...tool, pin, access, example });
      else {
        const isTrusted = trusted.includes(server);
        const { toolSheet } = await import("../call/tool-sheet.js");
        print(io, toolSheet(shown({ tool, pin, isTrusted, access, example }, io.isTTY), io));
      }
      return Exit.ok;
    });
  },
});

interface PinsKnown {
  readonly pins: readonly PinLine[];
  /** Servers whose tools are not pinned. */
  readonly trusted?: readonly string[];
}
