// docs/protocol.md says of each cell which test shows it: those tests have to exist, and each cell has to name one.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { root } from "./harness.js";

const page = readFileSync(join(root, "docs/protocol.md"), "utf8");
const rows = page
  .split("\n")
  .filter((line) => line.startsWith("| ") && !line.startsWith("| |"))
  .map((line) =>
    line
      .slice(1, -1)
      .split(/(?<!\\)\|/)
      .map((cell) => cell.trim()),
  );
const named = [...page.matchAll(/^- ([A-Z]\d+) `([^`]+)`: "(.+)"$/gm)].map(([, code, file, name]) => ({
  code,
  file,
  name,
}));

it("every cell of the table names a test", () => {
  expect(rows.length).toBeGreaterThan(20);
  const codes = new Set(named.map(({ code }) => code));
  for (const [feature, ...cells] of rows) {
    expect(cells, feature).toHaveLength(4);
    for (const cell of cells) {
      if (cell === "–") continue;
      expect(cell, feature).toMatch(/^(carried|changed|refused) \(/);
      const used = [...cell.matchAll(/[A-Z]\d+(?=[,)])/g)].map(([code]) => code);
      expect(used.length, `${feature}: ${cell}`).toBeGreaterThan(0);
      for (const code of used) expect(codes, `${feature}: ${cell}`).toContain(code);
    }
  }
});

it("every test that is named exists, and is used", () => {
  const table = rows.flat().join(" ");
  for (const { code = "", file = "", name = "" } of named) {
    const text = readFileSync(join(root, "test/e2e", file), "utf8");
    expect(text, `${code} in ${file}`).toMatch(
      new RegExp(`\\b(it|it\\.each\\([\\s\\S]*?\\))\\(\\s*"${name.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&")}"`),
    );
    expect(table, code).toContain(code);
  }
});
