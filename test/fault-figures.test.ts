// The figures of docs/faults.md stand in the tests that its rows name: a bound that is changed there is changed here, or told.

import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));

/** The rows of the table: what is done, its figure, the short one, and the test. */
const ROWS = readFileSync(join(root, "docs/faults.md"), "utf8")
  .split("\n")
  .filter((line) => line.startsWith("|"))
  .slice(2)
  .map((line) => line.split("|").map((cell) => cell.trim()))
  .map(([, fault = "", whole = "", short = "", test = ""]) => ({
    said: [fault, whole, short],
    name: test.slice(1, -1),
  }));

/** What a test works out of several numbers, or counts. */
const WORKED_OUT: Readonly<Record<string, readonly number[]>> = {
  // The limit of 10 s and its slack.
  connections: [16],
  // Five servers with 5,000 calls each.
  "ten-servers": [25_000],
  // Five bodies at their limit, and 16 MiB.
  attacks: [96],
  // A share of 0.25.
  "page-load": [25],
  // Three parts, 20 kills each; 50 calls of two sorts.
  "mailbox-kills": [60, 100],
  // Those of its list, and one of the caller.
  "mailbox-points": [10],
  "outbox-points": [7],
  // A version.
  "engine-cluster": [2.1],
};

const SCALES: Readonly<Record<string, readonly number[]>> = {
  s: [1_000],
  min: [60_000],
  kB: [1_000],
  MB: [1_000_000],
  KiB: [1_024],
  MiB: [1_024 ** 2],
};

function numberOf(text: string): number {
  return Number(text.replace(/[_,]/g, ""));
}

/** The test, and what it has from files beside it. */
function sourceOf(path: string): string {
  const text = readFileSync(path, "utf8");
  const beside = [...text.matchAll(/from "(\.\/[\w-]+)\.js"/g)].map(([, file]) => join(dirname(path), `${file}.ts`));
  return [text, ...beside.filter((file) => existsSync(file)).map((file) => readFileSync(file, "utf8"))].join("\n");
}

/** The numbers of a source, and of its figures the products of two: so many servers with so many crashes each. */
function numbersIn(source: string): Set<number> {
  const all = new Set([...source.matchAll(/(?<![\w.$-])\d[\d_]*(?:\.\d+)?/g)].map(([text]) => numberOf(text)));
  const figures = [...source.matchAll(/figure\(([\d_]+), ([\d_]+)\)/g)];
  for (const side of [1, 2]) {
    const one = figures.map((figure) => numberOf(figure[side] ?? ""));
    one.forEach((first, n) => {
      for (const second of one.slice(n + 1)) all.add(first * second);
    });
  }
  return all;
}

it.each(ROWS)("the figures of a row of $name are those of its test [documents-true]", ({ said, name }) => {
  const there = numbersIn(sourceOf(join(root, "test/faults", `${name}.test.ts`)));
  for (const one of WORKED_OUT[name] ?? []) there.add(one);
  const missing = said.flatMap((text) =>
    [...text.matchAll(/(?<![\w.-])(\d[\d,]*(?:\.\d+)?)(?: (ms|s|min|[kM]B|[KM]iB)\b)?/g)]
      .filter(([, number = "", unit = ""]) =>
        [1, ...(SCALES[unit] ?? [])].every((scale) => !there.has(numberOf(number) * scale)),
      )
      .map(([figure]) => figure),
  );
  expect(missing).toEqual([]);
});
