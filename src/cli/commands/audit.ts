// `toolway audit`, which is `toolway audit search`, and `toolway audit verify`: the audit log of a gateway, and whether it is as it was written. Its files are
// read here, whether a gateway runs or not.

import { gatewayFor } from "../gateway/which.js";
import { defineCommand, gatewayOptions, jsonOption } from "../line/command.js";
import { USUAL_LIMIT } from "../line/page-limits.js";

const pathOption = {
  path: { value: "DIR", description: "The folder of the log, if it is not the one of this gateway." },
};

export const auditSearch = defineCommand({
  metadata: {
    name: "audit search",
    lasts: "-f",
    isDefault: true,
    summary: "Searches the audit log.",
    description:
      "Shows lines of the audit log, the newest first: calls, refusals, acts of operators. Whether it is as it was written " +
      "says `toolway audit verify`.",
  },
  args: {},
  options: {
    since: { value: "TIME", description: "From then on: 2026-01-31, 2026-01-31T12:00:00Z, or 2h, 7d ago." },
    until: { value: "TIME", description: "Until then." },
    server: { value: "NAME", description: "Those of this server.", completes: "server" },
    tool: { value: "NAME", description: "Those of this tool, by the server's own name of it." },
    principal: { value: "ID", description: "Those of this principal.", completes: "token" },
    outcome: {
      value: "WORD",
      description: "Those with this outcome: ok, timeout, denied …; `failed` for all that failed.",
    },
    operator: { description: "Acts of operators alone." },
    lines: { short: "n", value: "COUNT", description: `So many that fit. Default: ${USUAL_LIMIT}.` },
    follow: { short: "f", description: "Goes on with the lines from now on, until Ctrl-C." },
    csv: { description: "Prints a table for a spreadsheet." },
    ...pathOption,
    ...gatewayOptions,
    json: { description: "Prints one JSON object a line, as it stands in the log." },
  },
  examples: [
    { line: "toolway audit --since 24h --outcome failed", note: "what failed today" },
    { line: "toolway audit search --operator", note: "what operators did; `search` may be left out" },
    { line: "toolway audit --principal ann --csv -n 10000 > ann.csv", note: "for a spreadsheet" },
  ],
  async handler(input, io) {
    const { showAudit } = await import("../audit/show.js");
    return showAudit(input, await gatewayFor(input, io), io);
  },
});

export const auditVerify = defineCommand({
  metadata: {
    name: "audit verify",
    summary: "Says whether the audit log is as it was written.",
    description:
      "Follows the chain of the audit log from its first line to its last, and names the first that was changed, taken out or " +
      "put elsewhere. A running gateway says which line is the last; an anchor from elsewhere shows that the log was not made anew.",
  },
  args: {},
  options: {
    anchor: {
      value: "SEQ:HASH",
      description: "A line that was there, from a log that is kept elsewhere (`audit anchor` in it).",
      repeat: true,
    },
    ...pathOption,
    ...gatewayOptions,
    ...jsonOption,
  },
  examples: [
    { line: "toolway audit verify", note: "against the head that the running gateway keeps" },
    {
      line: "toolway audit verify --anchor 1024:ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0",
      note: "against an anchor",
    },
  ],
  async handler(input, io) {
    const { verify } = await import("../audit/show.js");
    return verify(input, await gatewayFor(input, io), io);
  },
});
