// `toolway asks list` and `toolway asks answer`: calls of shared tools that wait for a person's word.

import type { AsksAnswer } from "../../contracts/control/asks.js";
import { demandGateway } from "../gateway/which.js";
import { defineCommand, gatewayOptions, jsonOption } from "../line/command.js";
import { Exit, usageError } from "../line/errors.js";
import { note, print, printJson, shown } from "../line/io.js";
import { askRow } from "../mailbox/ask-row.js";
import { fittedTable, heading, styleOf } from "../text/print.js";

const ANSWERS = ["yes", "no", "always"];

export const asksList = defineCommand({
  metadata: {
    name: "asks list",
    isDefault: true,
    summary: "Lists calls that wait for a person's word.",
    description:
      'Lists calls of tools with "ask": true in the config that agents elsewhere make by a mailbox, and that wait for a ' +
      "person because nobody sits at the terminal of `toolway share`. What nobody answers within a minute is not run. " +
      "`toolway asks` alone does the same.",
  },
  args: {},
  options: { ...gatewayOptions, ...jsonOption },
  examples: [{ line: "toolway asks list", note: "who wants what, with which arguments, and how long they wait" }],
  async handler(input, io) {
    const client = await demandGateway(input, io);
    const { asks } = (await client.get("/asks", io.signal)) as AsksAnswer;
    if (input.json) {
      printJson(io, asks);
      return Exit.ok;
    }
    if (asks.length === 0) {
      note(io, "Nobody waits for an answer.");
      return Exit.ok;
    }
    const rows = shown(asks, io.isTTY).map((ask) => askRow(ask, Date.now()));
    print(
      io,
      fittedTable([heading(styleOf(io), ["ID", "WHO", "TOOL", "LEFT", "ARGUMENTS"]), ...rows], io, {
        whole: ["ID", "TOOL", "LEFT"],
      }),
    );
    note(io, `\`toolway asks answer ${asks[0]?.id} yes\` lets it run.`);
    return Exit.ok;
  },
});

export const asksAnswer = defineCommand({
  metadata: {
    name: "asks answer",
    summary: "Lets a call that waits run, or not.",
    description:
      "Answers a question of `toolway asks list`. `always` lets this worker call this tool without a question until the gateway ends.",
  },
  args: {
    id: { description: "The number of the question.", required: true },
    answer: { description: `One of ${ANSWERS.join(", ")}.`, required: true, completes: ANSWERS },
  },
  options: { ...gatewayOptions, ...jsonOption },
  examples: [
    { line: "toolway asks answer 3 yes", note: "it runs, this once" },
    { line: "toolway asks answer 3 no", note: "its agent is told that you said no" },
  ],
  async handler(input, io) {
    const { id, answer } = input;
    if (!/^\d{1,15}$/.test(id)) throw usageError(`${id} is no number of a question: \`toolway asks\` lists them.`);
    if (!ANSWERS.includes(answer)) throw usageError(`${answer}: expected ${ANSWERS.join(", ")}.`);
    const client = await demandGateway(input, io);
    await client.post(`/asks/${id}`, { answer }, io.signal);
    if (input.json) printJson(io, { id: Number(id), answer });
    else print(io, answer === "no" ? "It is not run." : "It runs.");
    return Exit.ok;
  },
});
