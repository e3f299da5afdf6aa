// `toolway calls`: the last calls of a running gateway, and how long they waited for what.

import type { CallsAnswer } from "../../contracts/control/calls.js";
import { demandGateway } from "../gateway/which.js";
import { defineCommand, gatewayOptions } from "../line/command.js";
import { Exit, usageError } from "../line/errors.js";
import { note, pauseBetweenLooks, print } from "../line/io.js";
import { rowsOf, USUAL_LIMIT } from "../line/page-limits.js";

/** As many as a gateway keeps. */
const MAX_CALLS = 5_000;
/** Often enough to watch. */
const LOOK_MS = 500;

export const calls = defineCommand({
  metadata: {
    name: "calls",
    lasts: "-f",
    summary: "Shows the last calls of a running gateway.",
    description:
      "Shows the last calls of a running gateway, the newest at the end: when, whose, which tool, what came of it, and how " +
      "long it took and waited for what; then those that are under way. The last 5000 are kept in memory. No argument and no " +
      "result is in it.",
  },
  args: {},
  options: {
    follow: { short: "f", description: "Goes on with the calls from now on, until Ctrl-C." },
    lines: { short: "n", value: "COUNT", description: `So many of the last that fit. Default: ${USUAL_LIMIT}.` },
    server: { value: "NAME", description: "Those of this server.", completes: "server" },
    tool: { value: "NAME", description: "Those of this tool, by the server's own name of it." },
    principal: { value: "ID", description: "Those of this principal.", completes: "token" },
    failed: { description: "Those that failed." },
    outcome: { value: "WORD", description: "Those with this outcome: ok, timeout, denied …" },
    mended: {
      value: "HOW",
      description: "Those whose agents did not have to notice something.",
      choices: ["restart", "token", "menu"],
    },
    slowest: { description: "Those that took longest, the longest first." },
    slower: { value: "TIME", description: "Those that took longer: 500ms, 2s." },
    ...gatewayOptions,
    json: { description: "Prints one JSON object a line." },
  },
  examples: [
    { line: "toolway calls --failed", note: "what went wrong lately" },
    { line: "toolway calls -f --slower 500ms", note: "slow ones, as they come" },
  ],
  async handler(input, io) {
    const query = new URLSearchParams();
    for (const key of ["server", "tool", "principal", "outcome", "mended"] as const) {
      const value = input[key];
      if (value !== undefined) query.set(key, value);
    }
    if (input.failed) query.set("failed", "true");
    if (input.slower !== undefined) query.set("slowerMs", String(milliseconds(input.slower)));
    if (input.slowest) query.set("slowest", "true");
    if (input.slowest && input.follow) throw usageError("--slowest has no meaning beside --follow.");
    const count = rowsOf("--lines", input.lines, USUAL_LIMIT, MAX_CALLS);
    query.set("limit", String(count));
    const client = await demandGateway(input, io);
    const { lineOf, lineUnderWay } = await import("../text/calls.js");
    let isFirst = true;
    for (;;) {
      const { calls, underWay, last } = (await client.get(`/calls?${query}`, io.signal)) as CallsAnswer;
      for (const call of calls) print(io, input.json ? JSON.stringify(call) : lineOf(call, io));
      if (isFirst) for (const call of underWay) print(io, input.json ? JSON.stringify(call) : lineUnderWay(call, io));
      if (isFirst && !input.json && calls.length + underWay.length === 0) {
        note(io, last === 0 ? "Nothing was called yet." : "None of the calls that are kept fits.");
      }
      if (!input.follow) return Exit.ok;
      isFirst = false;
      query.set("after", String(last));
      query.set("limit", String(MAX_CALLS));
      await pauseBetweenLooks(io, LOOK_MS);
      if (io.signal.aborted) return Exit.ok;
    }
  },
});

function milliseconds(text: string): number {
  const match = /^(\d+(?:\.\d+)?)(ms|s)?$/.exec(text);
  if (match === null) throw usageError(`--slower ${text}: expected a time such as 500ms or 2s.`);
  return Number(match[1]) * (match[2] === "s" ? 1_000 : 1);
}
