// `toolway ps`: the gateways of this user that run.

import { runningGateway } from "../gateway/port.js";
import { addressOf } from "../gateway/which.js";
import { defineCommand, jsonOption } from "../line/command.js";
import { Exit } from "../line/errors.js";
import { hinted, print, printJson, shortPath, shown } from "../line/io.js";
import { fittedTable, heading, longDuration, styleOf } from "../text/print.js";

export const ps = defineCommand({
  metadata: {
    name: "ps",
    summary: "Lists the gateways that run.",
    description:
      "Lists the gateways of this user that run, also those that a client started by `toolway stdio`. Other verbs mean " +
      "one of them by --config FILE, or --state DIR.",
  },
  args: {},
  options: { ...jsonOption },
  examples: [
    { line: "toolway ps", note: "process, config, address, since when" },
    { line: "toolway ps --json | jq -r '.[].stateDir'", note: "in a script" },
  ],
  async handler(input, io) {
    const gateways = await (await runningGateway()).list(io);
    if (input.json) {
      printJson(
        io,
        gateways.map(({ pid, config = null, endpoint = null, startedAt, stateDir }) => ({
          pid,
          config,
          endpoint,
          startedAt,
          stateDir,
        })),
      );
      return Exit.ok;
    }
    if (gateways.length === 0) {
      print(io, hinted(io, "No gateway runs. `toolway serve` starts one."));
      return Exit.ok;
    }
    const style = styleOf(io);
    const rows = gateways.map((gateway) => [
      style.bold(String(gateway.pid)),
      gateway.config === undefined
        ? `(${gateway.builtIn ?? "built-in demo"})`
        : shown(shortPath(io, gateway.config), io.isTTY),
      addressOf(gateway) ?? "(stdio)",
      longDuration(Math.max(0, Date.now() - Date.parse(gateway.startedAt))),
      shown(shortPath(io, gateway.stateDir), io.isTTY),
    ]);
    print(
      io,
      fittedTable([heading(style, ["PID", "CONFIG", "ENDPOINT", "UP", "STATE"]), ...rows], io, {
        whole: ["PID", "ENDPOINT"],
      }),
    );
    return Exit.ok;
  },
});
