// `toolway status`: the gateway and its servers at a glance.

import type { GatewayStatus } from "../../contracts/status.js";
import { gatewayFor } from "../gateway/which.js";
import { withGateway } from "../gateway/with-gateway.js";
import { defineCommand, gatewayOptions, jsonOption } from "../line/command.js";
import { Exit } from "../line/errors.js";
import { print, printJson, shown } from "../line/io.js";
import { statusText } from "../text/status.js";

export const status = defineCommand({
  metadata: {
    name: "status",
    summary: "Shows the gateway and the state of its servers.",
    description:
      "Shows the gateway and the state of its servers. Where none runs, it starts the servers once and says how that " +
      "went; `toolway doctor` says more.",
  },
  args: {},
  options: { ...gatewayOptions, ...jsonOption },
  examples: [
    { line: "toolway status", note: "servers, tools, errors" },
    { line: "toolway status --json | jq '.servers[] | select(.state != \"ready\")'", note: "what is not well" },
  ],
  async handler(input, io) {
    const source = await gatewayFor(input, io, { orBroker: true });
    return withGateway(source, io, { servers: true, tellsConfig: true }, async ({ client, running }) => {
      const found = (await client.get("/status", io.signal)) as GatewayStatus;
      if (input.json) {
        printJson(io, { running, ...found });
        return Exit.ok;
      }
      print(io, statusText(shown(found, io.isTTY), running, io, Date.now()));
      return Exit.ok;
    });
  },
});
