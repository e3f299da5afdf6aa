// `toolway reload`: for one server of the gateway that runs.

import { defineCommand, gatewayOptions, jsonOption } from "../line/command.js";
import { actOnServer } from "./server-verb.js";

export const reload = defineCommand({
  metadata: {
    name: "reload",
    summary: "Starts a server anew, and forgives it its failures.",
    description:
      "Stops a server of the running gateway and starts it again, also one that was ejected after too many " +
      "restarts: its count of restarts and failures begins anew, and its cached results are dropped. Waits " +
      "until it is up; exits 1 when it does not come up. The config is read again by itself when it " +
      "changes.",
  },
  args: { server: { required: true, description: "Its name in the config.", completes: "server" } },
  options: { ...gatewayOptions, ...jsonOption },
  examples: [
    { line: "toolway reload github", note: "after its cause was fixed" },
    { line: "toolway reload github --json", note: "in a script" },
  ],
  handler: (input, io) => actOnServer("reload", input, io),
});
