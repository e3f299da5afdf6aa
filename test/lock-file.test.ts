import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";

interface Entry {
  readonly version?: string;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

const REPOSITORY = path.join(import.meta.dirname, "..");
const FOLDER = "node_modules/";

function entries(): Readonly<Record<string, Entry>> {
  const lock = JSON.parse(readFileSync(path.join(REPOSITORY, "package-lock.json"), "utf8")) as {
    packages: Record<string, Entry>;
  };
  return lock.packages;
}

/** Where Node would look for a package, from the one that asks for it up to the root. */
function* places(asker: string, name: string): Generator<string> {
  let from = asker;
  while (from !== "") {
    yield `${from}/${FOLDER}${name}`;
    from = from.slice(0, Math.max(0, from.lastIndexOf(`/${FOLDER}`)));
  }
  yield FOLDER + name;
}

describe("the lock file", () => {
  it("has an entry for the native part of each platform, without which `npm ci` stops and a macOS machine has no linter", () => {
    const all = entries();
    const missing: string[] = [];
    let seen = 0;
    for (const [asker, { optionalDependencies = {} }] of Object.entries(all)) {
      for (const [name, version] of Object.entries(optionalDependencies)) {
        seen += 1;
        if (![...places(asker, name)].some((place) => all[place] !== undefined))
          missing.push(`${name} ${version}, of ${asker}`);
      }
    }
    expect(seen).toBeGreaterThan(50);
    expect(missing).toEqual([]);
  });
});
