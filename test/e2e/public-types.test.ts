// What a program compiles against: the declarations that index.d.ts reaches need no package but Node's own types. All
// others are bundled or the store's engine, so their types are not there, or not fit for every program.

import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { expect, it } from "vitest";
import { cli } from "./harness.js";

const dist = dirname(dirname(cli));
const COMMENT = /\/\*[\s\S]*?\*\/|^\s*\/\/.*/gm;
const IMPORTED = /(?:\bfrom|\bimport\(|^import)\s*"([^"]+)"/gm;

it("the public types import nothing but Node's", () => {
  const foreign: string[] = [];
  const seen = new Set<string>();
  const visit = (file: string): void => {
    if (seen.has(file)) return;
    seen.add(file);
    for (const [, name = ""] of readFileSync(file, "utf8").replace(COMMENT, "").matchAll(IMPORTED)) {
      if (name.startsWith(".")) visit(join(dirname(file), name.replace(/\.js$/, ".d.ts")));
      else if (!name.startsWith("node:")) foreign.push(`${relative(dist, file)}: ${name}`);
    }
  };
  expect(existsSync(join(dist, "index.d.ts"))).toBe(true);
  visit(join(dist, "index.d.ts"));
  expect(seen.size).toBeGreaterThan(20);
  expect(foreign).toEqual([]);
});
