// The command line of the bench: what it understands, and its help. Pure.

import { parseArgs } from "node:util";

/** Odd, so that the median is a round that happened. */
const ROUNDS = 7;
const QUICK_ROUNDS = 3;
/** Of the calls that a workload would make. */
const QUICK_SHARE = 0.3;

export const help = (workloads, targets) => `Measures the gateway against bare limits and against its peers. Linux only.

  npm run bench                                   everything
  npm run bench -- small list                     the workloads whose names begin so
  npm run bench -- small-http --targets toolway,pass-through
  npm run bench -- --quick --no-peers             a first look, in a few minutes
  npm run bench -- --check                        compares the ratios with those recorded; exit code 1 if worse
  npm run bench -- --record                       records this run; what did not run stays as it was recorded

  --targets NAMES   only these, separated by commas
  --no-peers        leaves out the peers, and installs nothing
  --rounds N        rounds of each workload (${ROUNDS})
  --calls N         calls of each target in a round, in place of the workload's own number
  --quick           ${QUICK_ROUNDS} rounds, fewer calls
  --json FILE       writes the results there too
  --out DIR         where latest.json and latest.svg are written (bench/out)
  --list            names the workloads and the targets
  --help            this text

TOOLWAY_BEFORE=FILE in the environment names the cli/main.js of an older build: it is measured in turns with this one.

Workloads:
${workloads.map(({ name, summary }) => `  ${name.padEnd(16)}  ${summary}`).join("\n")}

Targets: ${targets.map(({ name }) => name).join(", ")}, and the peers.

What counts is the CPU time that a target's process tree takes for one call, as a ratio to the limit in the same round;
times and calls a second depend on the machine. Where others work on it too, start it with a priority of its own
(\`nice -n -20\`), or the rounds differ too much. Every answer is checked, and a wrong one ends the run.
`;

/** @param {string[]} argv */
export function readOptions(argv) {
  const { values, positionals } = parseArgs({
    args: argv,
    allowPositionals: true,
    options: {
      targets: { type: "string" },
      "no-peers": { type: "boolean", default: false },
      rounds: { type: "string" },
      calls: { type: "string" },
      quick: { type: "boolean", default: false },
      json: { type: "string" },
      out: { type: "string" },
      check: { type: "boolean", default: false },
      record: { type: "boolean", default: false },
      list: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  const { quick, json, out, check, record, list } = values;
  return {
    workloads: positionals,
    targets: values.targets?.split(","),
    peers: !values["no-peers"],
    rounds: number("--rounds", values.rounds) ?? (quick ? QUICK_ROUNDS : ROUNDS),
    calls: number("--calls", values.calls),
    share: quick ? QUICK_SHARE : 1,
    quick,
    json,
    out,
    check,
    record,
    list,
    help: values.help,
  };
}

function number(option, text) {
  if (text === undefined) return undefined;
  if (!/^[1-9]\d*$/.test(text)) throw new Error(`${option} takes a whole number above 0, not "${text}".`);
  return Number(text);
}
