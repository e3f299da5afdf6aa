// `toolway stop`: for one server of the gateway that runs.

import { defineCommand, gatewayOptions, jsonOption } from "../line/command.js";
import { actOnServer } from "./server-verb.js";

export const stop = defineCommand({
  metadata: {
    name: "stop",
    summary: "Stops a server; calls to it are refused until it is started.",
    description:
      "Stops a server of the running gateway. Its tools stay listed, and calls to them are refused until " +
      "`toolway start`, `toolway reload` or the gateway's next start.",
  },
  args: { server: { required: true, description: "Its name in the config.", completes: "server" } },
  options: { ...gatewayOptions, ...jsonOption },
  examples: [
    { line: "toolway stop github", note: "while it is being worked on" },
    { line: "toolway stop github --json", note: "in a script" },
  ],
  handler: (input, io) => actOnServer("stop", input, io),
});
