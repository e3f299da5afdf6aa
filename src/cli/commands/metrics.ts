// `toolway metrics`: the counters and gauges of a running gateway, as text that Prometheus reads.

import { isObject } from "../../protocol/jsonrpc.js";
import { demandGateway } from "../gateway/which.js";
import { defineCommand, gatewayOptions, jsonOption } from "../line/command.js";
import { Exit } from "../line/errors.js";
import { print, printJson } from "../line/io.js";

export const metrics = defineCommand({
  metadata: {
    name: "metrics",
    summary: "Prints counters and gauges of a running gateway.",
    description:
      "Prints what is counted of calls, servers, mailboxes and the process, as Prometheus reads it. No principal, " +
      "argument or address is in it. Two calls within a second give the same text.",
  },
  args: {},
  options: {
    openmetrics: { description: "In the OpenMetrics form, which ends with `# EOF`." },
    ...gatewayOptions,
    ...jsonOption,
  },
  examples: [
    { line: "toolway metrics", note: "all of them" },
    {
      line: "toolway metrics > toolway.prom.new && mv toolway.prom.new /var/lib/node_exporter/toolway.prom",
      note: "for the textfile collector of Prometheus' node exporter",
    },
  ],
  async handler(input, io) {
    const client = await demandGateway(input, io);
    const format = input.json ? "json" : input.openmetrics ? "openmetrics" : "prometheus";
    const answer = await client.get(`/metrics?format=${format}`, io.signal);
    const text = isObject(answer) ? String(answer["text"]) : "";
    if (input.json) printJson(io, JSON.parse(text));
    else print(io, text.trimEnd());
    return Exit.ok;
  },
});
