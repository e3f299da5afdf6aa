// The documents that lead through the repository name files and folders that exist.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));

const DOCUMENTS = [
  "README.md",
  "ARCHITECTURE.md",
  "CONTRIBUTING.md",
  "SECURITY.md",
  "test/conformance/README.md",
  ...readdirSync(join(root, "docs"))
    .filter((file) => file.endsWith(".md"))
    .map((file) => `docs/${file}`),
];

/** What commands make, and no clone has. */
const MADE = "bench/out/";

/** `[text](path)` and `[text](path#part)`, but no addresses of the web. */
const LINK = /\]\((?![a-z]+:)([^)#\s]+)(?:#[^)]*)?\)/g;
/** Anything else that begins at one of the repository's own folders, in commands too. */
const NAMED = /(?<![\w./-])((?:src|test|docs|scripts|bench|examples|schema|\.ci|\.github)\/[\w./<>*{},-]*[\w>*/])/g;

/** Paths that a name stands for: a star and `<word>` stand for anything within one folder, two stars for folders too. */
function exists(path: string): boolean {
  if (!/[*<{]/.test(path)) return existsSync(join(root, path));
  const pattern = path
    .replace(/[.+^$()|[\]\\]/g, "\\$&")
    .replace(/<[^>]*>/g, "*")
    .replace(/\{([^}]*)\}/g, (_, words: string) => `(?:${words.replaceAll(",", "|")})`)
    .replace(/\*\*\/|\*/g, (stars) => (stars === "*" ? "[^/]*" : "(?:.*/)?"));
  const whole = new RegExp(`^${pattern}$`);
  return everything.some((one) => whole.test(one));
}

const everything = ["src", "test", "docs", "scripts", "bench", "examples", "schema", ".ci", ".github"].flatMap(
  (folder) => readdirSync(join(root, folder), { recursive: true, encoding: "utf8" }).map((path) => join(folder, path)),
);

describe("a document", () => {
  it.each(DOCUMENTS)("names paths that exist: %s", (document) => {
    const text = readFileSync(join(root, document), "utf8");
    const links = [...text.matchAll(LINK)].map(([, path = ""]) => normalize(join(dirname(document), path)));
    const named = [...text.matchAll(NAMED)].map(([, path = ""]) => path.replace(/\/$/, ""));
    const missing = [...links, ...named].filter((path) => !path.startsWith(MADE) && !exists(path));
    expect(missing).toEqual([]);
  });
});
