import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { configJsonSchemaText, keyTables, withKeyTables } from "./json-schema.js";

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");
const REGENERATE = "it is stale: run `npm run schema` and commit what it writes";

it("schema/toolway.schema.json is what the schema says", () => {
  expect(read("schema/toolway.schema.json") === configJsonSchemaText(), REGENERATE).toBe(true);
});

it("docs/config.md has the tables that the schema gives", () => {
  const docs = read("docs/config.md");
  expect(withKeyTables(docs) === docs, REGENERATE).toBe(true);
  for (const name of Object.keys(keyTables())) expect(docs).toContain(`<!-- keys:${name} -->`);
  expect(docs).not.toContain("no table");
});

it("every key has its meaning", () => {
  for (const table of Object.values(keyTables())) expect(table).not.toMatch(/\| *\|$/m);
});
