// Each goal of the bench that docs/performance.md shows as missed has a sentence there on where its time goes. A sentence
// names its goals in a comment that readers do not see.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const page = readFileSync(fileURLToPath(new URL("../../docs/performance.md", import.meta.url)), "utf8");
const [, section = ""] = page.split("### Where the rest of a missed goal goes\n");

/** `| goal | at most | measured | missed |` */
const rows = [...page.matchAll(/^\| (.+?) \| [^|]+ \| [^|]+ \| (met|missed|not measured) \|$/gm)];
const goals = rows.map(([, goal = ""]) => goal);
const missed = rows.filter(([, , outcome]) => outcome === "missed").map(([, goal = ""]) => goal);

/** A part of the name is enough, so that one sentence can be for several goals. */
const named = section
  .split(/^- \*\*/m)
  .slice(1)
  .flatMap((point) => /<!-- goals: (.+) -->/.exec(point)?.[1]?.split("; ") ?? []);

it("each missed goal has a sentence that says where its time goes, or that nobody looked [documents-true]", () => {
  expect(missed.length).toBeGreaterThan(0);
  expect(missed.filter((goal) => !named.some((part) => goal.includes(part)))).toEqual([]);
});

it("no such sentence is for a goal that the tables do not have [documents-true]", () => {
  expect(named.filter((part) => !goals.some((goal) => goal.includes(part)))).toEqual([]);
});
