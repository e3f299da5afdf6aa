// `toolway outbox list`, `show`, `retry`, `drop`, `resolve`, `hold`, `release` and `watch` as data. What they do is in
// ../outbox/verbs.ts, which is loaded when one of them is run.

import { defineCommand, gatewayOptions, jsonOption } from "../line/command.js";
import { MAX_LIMIT, USUAL_LIMIT } from "../line/page-limits.js";

const verbs = () => import("../outbox/verbs.js");

const STATES = ["queued", "sending", "done", "failed", "unknown", "expired", "cancelled"] as const;

const idArg = {
  required: true,
  description: "The id of the receipt, as `toolway outbox list` shows it.",
  completes: "receipt",
} as const;
const yesOption = { yes: { short: "y", description: "Does not ask first." } } as const;
const serverArg = {
  required: true,
  description: "The server, by its name in the config.",
  completes: "server",
} as const;
const laneOption = {
  lane: {
    value: "LANE",
    description: "One lane, as `toolway outbox list --lanes` shows it. Default: all of the server.",
  },
} as const;

export const outboxList = defineCommand({
  metadata: {
    name: "outbox list",
    isDefault: true,
    summary: "Lists the calls that are kept, and why they wait.",
    description:
      "Lists the calls that are kept, the newest first: state, server, tool, whose it is, age, tries, and why it waits or " +
      "how it ended. Ended ones are kept for 7 days. What calls say is not shown. `toolway outbox` alone does the same.",
  },
  args: {},
  options: {
    server: { value: "SERVER", description: "Those of one server.", completes: "server" },
    principal: { value: "ID", description: "Those of one principal.", completes: "token" },
    only: { value: "STATE", description: "Those in one state.", choices: STATES },
    lanes: { description: "Lists the lanes instead: how many wait in each, and what holds it." },
    limit: { value: "COUNT", description: `So many at most, up to ${MAX_LIMIT}. Default: ${USUAL_LIMIT}.` },
    ...gatewayOptions,
    ...jsonOption,
  },
  examples: [
    { line: "toolway outbox", note: "what is kept" },
    { line: "toolway outbox list --only unknown --json | jq -r '.writes[].id'", note: "what a person has to settle" },
  ],
  handler: async (input, io) => (await verbs()).list(input, io),
});

export const outboxShow = defineCommand({
  metadata: {
    name: "outbox show",
    summary: "Shows one kept call: its state, why, and its result.",
    description:
      "Shows all that is known of one kept call: state, lane, key, tries, when it is tried next, what holds it, and the " +
      "server's result or error once there is one. Its arguments are not shown.",
  },
  args: { id: idArg },
  options: { ...gatewayOptions, ...jsonOption },
  examples: [{ line: "toolway outbox show q7Zk3nWd…", note: "one receipt" }],
  handler: async (input, io) => (await verbs()).show(input, io),
});

export const outboxRetry = defineCommand({
  metadata: {
    name: "outbox retry",
    summary: "Tries a failed, expired or held call again.",
    description:
      "Puts a call that failed, expired or is held back to its place in its lane. One whose outcome is unknown is settled " +
      "by `toolway outbox resolve`.",
  },
  args: { id: idArg },
  options: { ...gatewayOptions, ...jsonOption },
  examples: [{ line: "toolway outbox retry q7Zk3nWd…", note: "after the cause was mended" }],
  handler: async (input, io) => (await verbs()).retry(input, io),
});

export const outboxDrop = defineCommand({
  metadata: {
    name: "outbox drop",
    summary: "Takes a kept call out for good.",
    description:
      "Takes a call that is not being sent out of the outbox for good. Where it was queued, its receipt says cancelled. One " +
      "that has ended is forgotten with its receipt and its key: the same key is a new call then. It asks first.",
  },
  args: { id: idArg },
  options: { ...yesOption, ...gatewayOptions, ...jsonOption },
  examples: [{ line: "toolway outbox drop q7Zk3nWd… --yes", note: "in a script" }],
  handler: async (input, io) => (await verbs()).drop(input, io),
});

export const outboxResolve = defineCommand({
  metadata: {
    name: "outbox resolve",
    summary: "Says how a call of unknown outcome ended.",
    description:
      "Settles a call of which nobody knows whether it took effect: look at the server, then say --done, --failed, or " +
      "--again to send it once more, which asks first.",
  },
  args: { id: idArg },
  options: {
    done: { description: "It took effect." },
    failed: { description: "It did not." },
    again: { description: "It did not, and is to be sent again." },
    ...yesOption,
    ...gatewayOptions,
    ...jsonOption,
  },
  examples: [{ line: "toolway outbox resolve q7Zk3nWd… --done", note: "the issue is there" }],
  handler: async (input, io) => (await verbs()).resolve(input, io),
});

export const outboxHold = defineCommand({
  metadata: {
    name: "outbox hold",
    summary: "Delivers nothing of a server, or of one lane, until it is released.",
    description:
      "Delivers nothing of a server, or of one of its lanes, until `toolway outbox release`, also after a restart of the " +
      "gateway. New calls are kept behind the others.",
  },
  args: { server: serverArg },
  options: { ...laneOption, ...gatewayOptions, ...jsonOption },
  examples: [{ line: "toolway outbox hold tracker", note: "before work at the server" }],
  handler: async (input, io) => (await verbs()).hold(input, io),
});

export const outboxRelease = defineCommand({
  metadata: {
    name: "outbox release",
    summary: "Lets what was held go on.",
    description: "Lets the lanes of a server that were held, by an operator or for one, go on.",
  },
  args: { server: serverArg },
  options: { ...laneOption, ...gatewayOptions, ...jsonOption },
  examples: [{ line: "toolway outbox release tracker", note: "all its lanes" }],
  handler: async (input, io) => (await verbs()).release(input, io),
});

export const outboxWatch = defineCommand({
  metadata: {
    name: "outbox watch",
    lasts: true,
    summary: "Shows what waits as it changes, until Ctrl-C.",
    description:
      "Shows how many calls wait, the age of the oldest, and what is on hold: in a terminal one line that is rewritten, " +
      "piped a line for each change. It ends with Ctrl-C, and then with code 0.",
  },
  args: {},
  options: { ...gatewayOptions, json: { description: "Prints one JSON object a line, for each change." } },
  examples: [{ line: "toolway outbox watch", note: "while a server comes back" }],
  handler: async (input, io) => (await verbs()).watch(input, io),
});
