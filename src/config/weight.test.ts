import { readFileSync } from "node:fs";
import { expect, it } from "vitest";

/** Every module that importing `name` loads at run time: our own files, and packages by name. */
function loads(name: string, seen = new Set<string>()): Set<string> {
  if (seen.has(name)) return seen;
  seen.add(name);
  const text = readFileSync(new URL(name.replace(/\.js$/, ".ts"), import.meta.url), "utf8");
  for (const [, from] of text.matchAll(/^(?:import|export) (?!type )[^;]*?from "([^"]+)";/gms)) {
    if (from?.startsWith("./")) loads(from, seen);
    else if (from !== undefined) seen.add(from);
  }
  return seen;
}

// zod takes a tenth of a second to load; commands that only look at files do without it.
it.each(["config", "watch", "diff", "clients", "import", "mistakes"])("%s does not load zod", (name) => {
  expect([...loads(`./${name}.js`)]).not.toContain("zod");
});

it("load does", () => {
  expect([...loads("./load.js")]).toContain("zod");
});
