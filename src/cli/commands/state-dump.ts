// `toolway state dump`: what the gateway keeps on disk, as JSON lines. Operators read this, not the files.

import { visibleJson } from "../../runtime/visible.js";
import { gatewayFor } from "../gateway/which.js";
import { withGateway } from "../gateway/with-gateway.js";
import { defineCommand, gatewayOptions } from "../line/command.js";
import { Exit } from "../line/errors.js";
import { print } from "../line/io.js";

export const stateDump = defineCommand({
  metadata: {
    name: "state dump",
    summary: "Prints what the gateway keeps on disk, one JSON object a line.",
    description:
      "Prints what the gateway keeps on disk, one JSON object a line: lists as last seen, pins of tools, ids and hashes of tokens. " +
      "No token and no key is in it.",
  },
  args: {},
  options: { ...gatewayOptions, json: { description: "JSON lines are the only form; accepted for uniformity." } },
  examples: [{ line: "toolway state dump > state.jsonl", note: "for a look, or a bug report" }],
  async handler(input, io) {
    return withGateway(await gatewayFor(input, io), io, { servers: false }, async ({ client }) => {
      for await (const line of client.lines("/state/dump", io.signal)) {
        print(io, io.isTTY ? visibleJson(line) : line);
        // A store may be larger than memory; its reader sets the pace.
        if (io.stdout.writableNeedDrain) await new Promise((resolve) => io.stdout.once("drain", resolve));
      }
      return Exit.ok;
    });
  },
});
