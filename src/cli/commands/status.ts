// `toolway status`: the gateway and its servers at a glance.

import type { GatewayStatus } from "../../contracts/status.js";
import { gatewayFor } from "../gateway/which.js";
import { withGateway } from "../gateway/with-gateway.js";
import { defineCommand, gatewayOptions, jsonOption } from "../line/command.js";
import { Exit } from "../line/errors.js";
import { print, printJson, shown } from "../line/io.js";
import { isWell, statusText } from "../text/status.js";

export const status = defineCommand({
  metadata: {
    name: "status",
    summary: "Shows the gateway and the state of its servers.",
    description:
      "Shows the gateway and the state of its servers. Where none runs, it starts the servers once and says how that " +
      "went; `toolway doctor` says more. Exits 1, with --json too, where something is wrong that it shows: a server is misconfigured, " +
      "down, ejected, waiting for its executor, or held back by its breaker; the last edit of the config, of one entry of it or the new certificate " +
      "was not applied; what has to be kept cannot be written; the engine cannot be reached; a broker refused what is shared. Servers that " +
      "are idle, starting or stopped are well, and so is what waits for a person: a changed tool, a login.",
  },
  args: {},
  options: { ...gatewayOptions, ...jsonOption },
  examples: [
    { line: "toolway status", note: "servers, tools, errors" },
    { line: "toolway status > /dev/null || echo 'something is wrong'", note: "in a script" },
    { line: "toolway status --json | jq '.servers[] | select(.state != \"ready\")'", note: "what is not well" },
  ],
  async handler(input, io) {
    const source = await gatewayFor(input, io, { orBroker: true });
    return withGateway(source, io, { servers: true, tellsConfig: true }, async ({ client, running }) => {
      const found = (await client.get("/status", io.signal)) as GatewayStatus;
      if (input.json) {
        printJson(io, { running, ...found });
      } else print(io, statusText(shown(found, io.isTTY), running, io, Date.now()));
      return isWell(found) ? Exit.ok : Exit.failure;
    });
  },
});
