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
const cited = new Set(
  files.flatMap((file) => {
    const text = readFileSync(new URL(file, root), "utf8");
    // In the name of a test: it("…", it(`…`, it.each(…)("…", describe("…".
    return [
      ...text.matchAll(/(?:it|test|describe)[^\n]*?["'`][^\n]*?\[([a-z]+(?:-[a-z]+)*)\](?: \[[a-z-]+\])*["'`]/g),
    ].map((match) => match[1] as string);
  }),
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
