// `toolway logs`: what servers wrote to stderr. What it does is in ../logs.

import { gatewayFor } from "../gateway/which.js";
import { defineCommand, gatewayOptions } from "../line/command.js";
import { rowsOf, USUAL_LIMIT } from "../line/page-limits.js";

/** More than all files of a server hold. */
const MAX_LINES = 1_000_000;

export const logs = defineCommand({
  metadata: {
    name: "logs",
    lasts: "-f",
    summary: "Shows what servers wrote to stderr.",
    description:
      "Shows what servers that are child processes wrote to stderr, without known secrets: the last lines of one, or of " +
      "all. They are kept in the state directory, 3 MiB for each server at most, and can be read whether a gateway runs or not.",
  },
  args: { server: { description: "Its name in the config. Default: all of them.", completes: "server" } },
  options: {
    follow: { short: "f", description: "Goes on with what is written from now on, until Ctrl-C." },
    lines: { short: "n", value: "COUNT", description: `So many of the last lines. Default: ${USUAL_LIMIT}.` },
    ...gatewayOptions,
    json: { description: "Prints one JSON object a line: server, time, text." },
  },
  examples: [
    { line: "toolway logs github", note: "the last lines of one server" },
    { line: "toolway logs -f", note: "all servers, as they write" },
    { line: "toolway logs github -n 500 --json | jq -r .text", note: "for scripts" },
  ],
  async handler(input, io) {
    const { server, follow, json } = input;
    const count = rowsOf("--lines", input.lines, USUAL_LIMIT, MAX_LINES);
    const source = await gatewayFor(input, io);
    const { showLogs } = await import("../logs/show.js");
    return showLogs({ source, server, count, follow, json }, io);
  },
});
