// `toolway state dump`: what the gateway keeps on disk, as JSON lines. Operators read this, not the files. `toolway state move` and
// `toolway state unmark`: what a gateway keeps goes from disk into an engine, or back.

import { visibleJson } from "../../runtime/visible.js";
import { gatewayFor } from "../gateway/which.js";
import { withGateway } from "../gateway/with-gateway.js";
import { configArg, defineCommand, folderOption, gatewayOptions, jsonOption } from "../line/command.js";
import { Exit } from "../line/errors.js";
import { print } from "../line/io.js";

const PLACES = ["engine", "local"] as const;
const state = folderOption("The state directory, if it is not the usual one of the config.");

export const stateDump = defineCommand({
  metadata: {
    name: "state dump",
    summary: "Prints what the gateway keeps on disk, one JSON object a line.",
    description:
      "Prints what the gateway keeps on disk, one JSON object a line: lists as last seen, pins of tools, ids and hashes of tokens. " +
      "No token and no key is in it.",
  },
  args: {},
  options: { ...gatewayOptions, json: { description: "JSON lines are the only form; accepted for uniformity." } },
  examples: [{ line: "toolway state dump > state.jsonl", note: "for a look, or a bug report" }],
  async handler(input, io) {
    return withGateway(await gatewayFor(input, io), io, { servers: false }, async ({ client }) => {
      for await (const line of client.lines("/state/dump", io.signal)) {
        print(io, io.isTTY ? visibleJson(line) : line);
        // A store may be larger than memory; its reader sets the pace.
        if (io.stdout.writableNeedDrain) await new Promise((resolve) => io.stdout.once("drain", resolve));
      }
      return Exit.ok;
    });
  },
});

export const stateMove = defineCommand({
  metadata: {
    name: "state move",
    summary: "Moves what a gateway keeps into an engine, or back to a disk.",
    description:
      'Copies all that gateways share between the state directory and the "engine" of the config: tokens, sessions, pins, contexts, ' +
      "logins, tasks, known lists, kept writes with their receipts, messages and dead letters of mailboxes. Nothing may run on either. " +
      "Counts and hashes of each kind are compared at the end; then the source is marked, and nothing starts on it any more " +
      "(`toolway state unmark`). Cut off in the middle, it is run again and goes on. What is at the target and differs stops it " +
      "before anything is written. Exits 1 where something is not moved. docs/scale.md.",
  },
  args: { config: configArg('The config, with its "engine".') },
  options: {
    to: { value: "WHERE", description: "Where it is moved to.", choices: PLACES },
    state,
    dryRun: { description: "Counts and compares, and writes nothing." },
    ...jsonOption,
  },
  examples: [
    { line: "toolway state move --to engine --dry-run", note: "how much there is, and what stands in the way" },
    { line: "toolway state move --to engine", note: "then start gateways with this config" },
    { line: "toolway state move --to local --state /srv/toolway", note: "back onto one machine's disk" },
  ],
  async handler(input, io) {
    return (await import("../state/verbs.js")).runMove(input, io);
  },
});

export const stateUnmark = defineCommand({
  metadata: {
    name: "state unmark",
    summary: "Lets a state that was moved elsewhere be used again.",
    description:
      "Takes away the mark that `toolway state move` left on the source, or on a target that it did not finish. Gateways start on it " +
      "again, with what was there when it was moved: writes and messages that are still queued in it are sent from there too, a second time " +
      "where the target has sent them. It asks first.",
  },
  args: { config: configArg("The config, as for serve.") },
  options: {
    of: { value: "WHERE", description: "Which of the two, where both are marked.", choices: PLACES },
    state,
    yes: { description: "Does not ask.", short: "y" },
    ...jsonOption,
  },
  examples: [
    { line: "toolway state unmark", note: "of the config's state directory, or of its engine" },
    { line: "toolway state unmark --of engine --yes", note: "in a script" },
  ],
  async handler(input, io) {
    return (await import("../state/verbs.js")).runUnmark(input, io);
  },
});
