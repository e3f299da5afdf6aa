// `toolway mailbox list`, `show`, `dead`, `retry`, `drop` and `watch` as data. What they do is in ../mailbox/verbs.ts, which is
// loaded when one of them is run.

import { defineCommand, gatewayOptions, jsonOption } from "../line/command.js";
import { MAX_LIMIT, USUAL_LIMIT } from "../line/page-limits.js";

const verbs = () => import("../mailbox/verbs.js");

const pageOptions = {
  limit: { value: "COUNT", description: `So many at most, up to ${MAX_LIMIT}. Default: ${USUAL_LIMIT}.` },
  offset: { value: "COUNT", description: "Leaves out so many first." },
} as const;

const mailboxArg = {
  required: true,
  description: "The id of the token that it belongs to, or an address such as worker-1#mcp-x7.",
  completes: "mailbox",
} as const;

const fromOption = {
  from: { value: "ADDRESS", description: "Whose message is meant, where several senders use the same id." },
} as const;

const yesOption = { yes: { short: "y", description: "Does not ask first." } } as const;

export const mailboxList = defineCommand({
  metadata: {
    name: "mailbox list",
    isDefault: true,
    summary: "Lists the mailboxes in use: what waits, who is connected.",
    description:
      "Lists the mailboxes in use, the fullest first: messages that wait, messages that somebody is at, dead letters, the " +
      "age of the oldest message, and how many connections take from it. `toolway mailbox` alone does the same.",
  },
  args: {},
  options: { ...pageOptions, ...gatewayOptions, ...jsonOption },
  examples: [
    { line: "toolway mailbox", note: "all that are in use" },
    { line: "toolway mailbox list --json | jq '.mailboxes[] | select(.dead > 0)'", note: "where something failed" },
  ],
  handler: async (input, io) => (await verbs()).list(input, io),
});

export const mailboxShow = defineCommand({
  metadata: {
    name: "mailbox show",
    summary: "Lists the messages in a mailbox, without what they say.",
    description:
      "Lists the messages in a mailbox, the oldest first: id, sender, kind, size, age, when it ends by itself, and its " +
      "state. `waiting` was never begun, `leased` is somebody's now, `returned` was handed out and waits for whoever had " +
      "it. What messages say is not shown.",
  },
  args: { mailbox: mailboxArg },
  options: { ...pageOptions, ...gatewayOptions, ...jsonOption },
  examples: [
    { line: "toolway mailbox show studio", note: "what waits there" },
    { line: "toolway mailbox show studio --limit 1000 --json", note: "for scripts" },
  ],
  handler: async (input, io) => (await verbs()).show(input, io),
});

export const mailboxDead = defineCommand({
  metadata: {
    name: "mailbox dead",
    summary: "Lists the dead letters of a mailbox, with the reason.",
    description:
      "Lists the messages of a mailbox that failed five times, and those that ended in the hands of a machine that went " +
      "away, so that their outcome is unknown; the last first, with the reason. Their senders have been told. They are kept for 7 days, the last 1,000 of a mailbox.",
  },
  args: { mailbox: mailboxArg },
  options: { ...pageOptions, ...gatewayOptions, ...jsonOption },
  examples: [
    { line: "toolway mailbox dead studio", note: "what failed, and why" },
    { line: "toolway mailbox dead studio --json | jq -r '.deadLetters[].id'", note: "their ids" },
  ],
  handler: async (input, io) => (await verbs()).dead(input, io),
});

export const mailboxRetry = defineCommand({
  metadata: {
    name: "mailbox retry",
    summary: "Sends a dead letter again, under a new id.",
    description:
      "Sends a dead letter to its mailbox again. It may have had its effect before it failed, and its sender was told how " +
      "it ended: so it takes a new id, which no journal knows, and this asks first.",
  },
  args: { mailbox: mailboxArg, id: { required: true, description: "As `toolway mailbox dead` shows it." } },
  options: { ...fromOption, ...yesOption, ...gatewayOptions, ...jsonOption },
  examples: [
    { line: "toolway mailbox retry studio m-17", note: "asks first" },
    { line: "toolway mailbox retry studio m-17 --yes --json", note: "in a script" },
  ],
  handler: async (input, io) => (await verbs()).retry(input, io),
});

export const mailboxDrop = defineCommand({
  metadata: {
    name: "mailbox drop",
    summary: "Takes messages out of a mailbox for good.",
    description:
      "Takes one message, or all, out of a mailbox for good, dead letters too. Whoever waits for an answer to one is told " +
      'that it was "dropped by the operator", and whether it may have run; whoever is at it is told to stop. It asks first.',
  },
  args: { mailbox: mailboxArg, id: { description: "The id of the message or dead letter. For all: --all." } },
  options: {
    all: { description: "All messages of the mailbox, and its dead letters." },
    dead: { description: "Dead letters only." },
    ...fromOption,
    ...yesOption,
    ...gatewayOptions,
    ...jsonOption,
  },
  examples: [
    { line: "toolway mailbox drop studio m-17", note: "asks first" },
    { line: "toolway mailbox drop studio --all --dead --yes", note: "its dead letters" },
  ],
  handler: async (input, io) => (await verbs()).drop(input, io),
});

export const mailboxWatch = defineCommand({
  metadata: {
    name: "mailbox watch",
    lasts: true,
    summary: "Shows the counts of mailboxes as they change, until Ctrl-C.",
    description:
      "Shows how many messages wait and are worked at, how many failed, and who is connected: in a terminal one line that " +
      "is rewritten, piped a line for each change. It ends with Ctrl-C, and then with code 0.",
  },
  args: { mailbox: { description: "One mailbox. Default: all of them.", completes: "mailbox" } },
  options: { ...gatewayOptions, json: { description: "Prints one JSON object a line, for each change." } },
  examples: [
    { line: "toolway mailbox watch", note: "all of them, in one line" },
    { line: "toolway mailbox watch studio --json", note: "one, for a script" },
  ],
  handler: async (input, io) => (await verbs()).watch(input, io),
});

export const mailboxPair = defineCommand({
  metadata: {
    name: "mailbox pair",
    summary: "Makes a code of one use, with which somebody gets a token for a mailbox.",
    description:
      "Makes a code of one use, good for 10 minutes: whoever types it on another machine gets a token that sends to this " +
      "mailbox and opens nothing else. The broker's address stands before it, in one word. The mailbox is that of a token " +
      "of the role sharer.",
  },
  args: { mailbox: { ...mailboxArg, description: "The id of the sharer's token." } },
  options: {
    role: { value: "ROLE", description: "The role of the token that it gives. Default: default." },
    at: { value: "URL", description: "How others reach this broker, if not by the address that it listens on." },
    ...gatewayOptions,
    ...jsonOption,
  },
  examples: [
    { line: "toolway mailbox pair studio --role researcher", note: "prints 127.0.0.1:7440/ABCD-EFGH-JKMN" },
    { line: "toolway mailbox pair studio --at wss://broker.example.com", note: "behind a proxy" },
  ],
  handler: async (input, io) => (await import("../mailbox/pair.js")).pair(input, io),
});
