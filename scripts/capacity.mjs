// `npm run capacity`: what a number of agents and mailboxes needs (bench/report/capacity.mjs). Measures nothing: it reads what the
// bench printed.
//
//   npm run bench machines memory mailbox -- --no-peers      writes bench/out/latest.json
//   npm run capacity -- --agents 1000000
//   npm run capacity -- --page                               what is recorded, into docs/scale.md

import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { A_MILLION, capacityText, fillCapacity } from "../bench/report/capacity.mjs";

const at = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));
const LATEST = at("bench/out/latest.json");
const RECORDED = at("bench/recorded/node20.json");
const PAGE = at("docs/scale.md");
const NUMBERS = Object.keys(A_MILLION);
const OPTIONS = {
  /** Results of the bench; those of several runs are taken together. */
  from: { type: "string", multiple: true, default: [LATEST] },
  page: { type: "boolean", default: false },
  help: { type: "boolean", default: false },
  ...Object.fromEntries(NUMBERS.map((name) => [name, { type: "string", default: String(A_MILLION[name]) }])),
};

const { values } = parseArgs({ options: OPTIONS });
if (values.help) {
  const options = NUMBERS.map((name) => `[--${name} N]`).join(" ");
  process.stdout.write(
    `npm run capacity -- [--from FILE]… ${options}\nnpm run capacity -- --page\n\n` +
      "Reads what `npm run bench machines memory mailbox` wrote. --kept, --open and --connected are hundredths.\n" +
      "--page writes what follows from the recorded run into docs/scale.md.\n",
  );
} else {
  try {
    if (values.page) {
      const page = readFileSync(PAGE, "utf8");
      writeFileSync(PAGE, fillCapacity(page, resultsIn(RECORDED)));
    } else {
      const input = Object.fromEntries(NUMBERS.map((name) => [name, number(name, values[name])]));
      process.stdout.write(capacityText(values.from.map(resultsIn), input));
    }
  } catch (error) {
    const isMissing = error.code === "ENOENT";
    const why = isMissing
      ? `There is no ${error.path}: run npm run bench machines memory mailbox first.`
      : error.message;
    process.stderr.write(`capacity: ${why}\n`);
    process.exitCode = 2;
  }
}

function resultsIn(file) {
  return JSON.parse(readFileSync(file, "utf8"));
}

function number(name, text) {
  const value = Number(text);
  if (!Number.isFinite(value) || value < 0) throw new Error(`--${name} takes a number; this is "${text}".`);
  return value;
}
