// Every promise that is made has a test that cites it, and no test cites one that does not exist.

import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { PROMISES } from "./promises.js";

const root = new URL("..", import.meta.url);
const files = ["src", "test"].flatMap((folder) =>
  readdirSync(new URL(`${folder}/`, root), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".test.ts"))
    .map((file) => `${folder}/${file}`),
);
/** In the name of a test, before its words or after them: it("[bounded] …", describe("… [bounded] [host-8]". */
const NAMED = /\b(?:it|test|describe)\b|^\s*\]\)\(/;
const IDS = /(?<=["'`])(?:\[[a-z]+(?:-[a-z0-9]+)*\] )+|(?: \[[a-z]+(?:-[a-z0-9]+)*\])+(?=["'`])/g;
const cited = new Set(
  files
    .flatMap((file) => readFileSync(new URL(file, root), "utf8").split("\n"))
    .filter((line) => NAMED.test(line))
    .flatMap((line) => line.match(IDS) ?? [])
    .flatMap((ids) => ids.match(/[a-z0-9-]+/g) ?? []),
);

describe("promises", () => {
  it.each(PROMISES.filter(({ status }) => status === "made"))("$id is cited by a test", ({ id }) => {
    expect(cited).toContain(id);
  });

  it("no test cites an unknown promise", () => {
    const known = new Set(PROMISES.map(({ id }) => id));
    expect([...cited].filter((id) => !known.has(id))).toEqual([]);
  });
});
