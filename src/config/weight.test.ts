import { readFileSync } from "node:fs";
import { expect, it } from "vitest";

/** Every module that importing `name` loads at run time: our own files, and packages by name. */
function loads(file: URL, seen = new Set<string>()): Set<string> {
  if (seen.has(file.href)) return seen;
  seen.add(file.href);
  const text = readFileSync(file, "utf8");
  for (const [, from] of text.matchAll(/^(?:import|export) (?!type )[^;]*?from "([^"]+)";/gms)) {
    if (from?.startsWith(".")) loads(new URL(from.replace(/\.js$/, ".ts"), file), seen);
    else if (from !== undefined) seen.add(from);
  }
  return seen;
}

const packagesOf = (path: string) =>
  [...loads(new URL(`../${path}.ts`, import.meta.url))].filter((one) => !/^(?:file|node):/.test(one));

// Every start reads a config, and a schema library takes a tenth of a second to load.
it("reading a config loads the parser of its text, and no other package", () => {
  expect(packagesOf("config/load")).toEqual(["jsonc-parser"]);
});

it.each(["config/config", "config/edit/watch", "agents/import/clients", "config/mistakes", "config/json-schema"])(
  "%s loads no package",
  (name) => {
    expect(packagesOf(name)).toEqual([]);
  },
);
