// `toolway executor`: performs HTTP requests for a gateway, from inside a network that the gateway cannot reach.

import { planOf } from "../executor/plan.js";
import { dryRun, runExecutor } from "../executor/run.js";
import { defineCommand } from "../line/command.js";
import { drainMsOf, drainOption } from "../line/times.js";

export const executor = defineCommand({
  metadata: {
    name: "executor",
    lasts: true,
    summary: "Performs HTTP requests for a gateway, inside another network.",
    description:
      "Performs HTTP requests for a gateway, inside a network that the gateway cannot reach. The gateway dials it " +
      "(--listen), or it dials the gateway (--connect), as a firewall lets it. It reaches what --allow names and nothing " +
      "else. The token is taken from TOOLWAY_TOKEN: with --listen the one that gateways must show, with --connect one of " +
      "the gateway's, of the role executor. A gateway that cannot be reached is tried until it can. Ctrl-C and SIGTERM " +
      "end it: it takes nothing more, and the requests under way have 30 seconds (--drain); a second Ctrl-C does not wait.",
  },
  args: {},
  options: {
    listen: {
      value: "URL",
      description: "Where gateways connect, such as ws://127.0.0.1:7430. Port 0 is any free one.",
    },
    connect: {
      value: "URL",
      repeat: true,
      description: "The gateway to dial, such as wss://gateway.example.com/executors/office.",
    },
    allow: {
      value: "RULE",
      repeat: true,
      description:
        "What may be reached: a host, a pattern, an address or a range, each with a port or without: wiki.internal, " +
        "*.corp.example:443, 10.0.0.0/8.",
    },
    noAuth: { description: "Asks for no token, and shows none. With a loopback address only." },
    dryRun: {
      value: "URL",
      repeat: true,
      description:
        "Says whether a request to this URL would be made, and why; makes none. Exits 1 when one is refused.",
    },
    ...drainOption("How long requests under way have to end at a stop. Default: 30."),
    json: { description: "Prints what happens as lines of JSON, and a dry run as JSON, for scripts." },
  },
  examples: [
    {
      line: "toolway executor --connect wss://gateway.example.com/executors/office --allow wiki.internal",
      note: "behind a firewall: dials the gateway, and again when the connection is lost",
    },
    {
      line: "toolway executor --listen ws://127.0.0.1:7430 --allow wiki.internal:8080 --allow 10.0.0.0/8:443",
      note: "dialled by the gateway; a host with one port, and a range",
    },
    {
      line: "toolway executor --allow '*.corp.example' --dry-run https://wiki.corp.example/mcp",
      note: "may that be reached, and why?",
    },
  ],
  async handler(input, io) {
    const plan = planOf(input, io.env);
    const { json } = input;
    if (plan.kind === "dry-run") return dryRun(plan, { json }, io);
    return runExecutor(plan, { json, drainMs: drainMsOf(input.drain) }, io);
  },
});
