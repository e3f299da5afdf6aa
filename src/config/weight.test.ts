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

const packagesOf = (name: string) => [...loads(`./${name}.js`)].filter((one) => !/^(?:\.|node:)/.test(one));

// Every start reads a config, and a schema library takes a tenth of a second to load.
it("reading a config loads the parser of its text, and no other package", () => {
  expect(packagesOf("load")).toEqual(["jsonc-parser"]);
});

it.each(["config", "watch", "clients", "mistakes", "json-schema"])("%s loads no package", (name) => {
  expect(packagesOf(name)).toEqual([]);
});
