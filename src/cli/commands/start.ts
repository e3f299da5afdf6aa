// `toolway start`: for one server of the gateway that runs.

import { defineCommand, gatewayOptions, jsonOption } from "../line/command.js";
import { actOnServer } from "./server-verb.js";

export const start = defineCommand({
  metadata: {
    name: "start",
    summary: "Starts a server that was stopped.",
    description:
      "Starts a server of the running gateway that was stopped. Waits until it is up; exits 1 when it does " +
      "not come up.",
  },
  args: { server: { required: true, description: "Its name in the config.", completes: "server" } },
  options: { ...gatewayOptions, ...jsonOption },
  examples: [
    { line: "toolway start github", note: "again after toolway stop" },
    { line: "toolway start github --json", note: "in a script" },
  ],
  handler: (input, io) => actOnServer("start", input, io),
});
