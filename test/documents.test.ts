// What the documents say is checked against the program and the repository: paths, links, commands, options, keys of
// the config, figures, and what is in the package.

import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { commands } from "../src/cli/commands/index.js";
import { parseLine } from "../src/cli/parser.js";
import { parseConfig } from "../src/config/load.js";
import { ENTRY_KEYS, TOP_KEYS } from "../src/config/schema.js";
import { heldIo } from "./fixtures/held-io.js";
import { anchors, codeBlocks, codeSpans, links, toolwayLines } from "./fixtures/markdown.js";

const root = fileURLToPath(new URL("..", import.meta.url));
const read = (path: string) => readFileSync(join(root, path), "utf8");

const DOCUMENTS = [
  "README.md",
  "ARCHITECTURE.md",
  "CONTRIBUTING.md",
  "SECURITY.md",
  "CHANGELOG.md",
  "examples/README.md",
  "test/conformance/README.md",
  ...readdirSync(join(root, "docs"))
    .filter((file) => file.endsWith(".md"))
    .map((file) => `docs/${file}`),
];

/** What commands make, and no clone has. */
const MADE = "bench/out/";

/** Half an hour of reading. In twice as much nobody finds what they do not know already. */
const MAX_MAP_BYTES = 36 * 1024;

/** Anything that begins at one of the repository's own folders, in commands too. */
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

/** Where a link of a document leads, from the root. */
const target = (document: string, path: string) =>
  path === "" ? document : normalize(join(dirname(document), path)).replace(/\/$/, "");

describe("a document", () => {
  it.each(DOCUMENTS)("names paths that exist: %s [documents-true]", (document) => {
    const text = read(document);
    const linked = links(text).map(({ path }) => target(document, path));
    const named = [...text.matchAll(NAMED)].map(([, path = ""]) => path.replace(/\/$/, ""));
    const missing = [...linked, ...named].filter((path) => !path.startsWith(MADE) && !exists(path));
    expect(missing).toEqual([]);
  });

  it.each(DOCUMENTS)("links to parts that exist: %s [documents-true]", (document) => {
    const missing = links(read(document)).filter(({ path, part }) => {
      const to = target(document, path);
      return part !== undefined && to.endsWith(".md") && !anchors(read(to)).has(part);
    });
    expect(missing).toEqual([]);
  });

  it.each(DOCUMENTS)("shows command lines that the program takes: %s [documents-true]", async (document) => {
    const refused: string[] = [];
    for (const { language, text } of codeBlocks(read(document))) {
      if (!["", "sh", "console", "bash"].includes(language)) continue;
      for (const words of toolwayLines(text)) {
        // The usage of a command, as in docs/cli.md, has its words in brackets.
        if (words.some((word) => word.startsWith("[")) || words.includes("…")) continue;
        const { io, err } = heldIo();
        if ((await parseLine(words, io)) === 2) refused.push(`toolway ${words.join(" ")}: ${err().split("\n")[0]}`);
      }
    }
    expect(refused).toEqual([]);
  });

  it.each(DOCUMENTS)("names commands and options that there are: %s [documents-true]", (document) => {
    const unknown = codeSpans(read(document)).flatMap((span) => unknownWords(span));
    expect(unknown).toEqual([]);
  });

  it.each(DOCUMENTS)("shows keys of the config that there are: %s [documents-true]", (document) => {
    const wrong = codeBlocks(read(document))
      .filter(({ language }) => language === "jsonc")
      .flatMap(({ text, line }) => mistakesIn(text).map((mistake) => `${document}:${line}: ${mistake}`));
    expect(wrong).toEqual([]);
  });
});

const NAMES = commands.map(({ metadata }) => metadata.name);
const GROUPS = new Set(NAMES.flatMap((name) => (name.includes(" ") ? [name.split(" ")[0] ?? ""] : [])));
/** Options of the program itself. */
const GLOBAL = ["--help", "--version", "-h", "-V"];

/** What a mention such as `toolway pins diff <server>` names and the program does not have. */
function unknownWords(span: string): string[] {
  const words = /^(?:npx )?toolway ([a-z_-].*)$/.exec(span)?.[1]?.split(" ");
  if (words === undefined) return [];
  const [first = "", second = ""] = words;
  if (GLOBAL.includes(first) || first === "help") return [];
  const name = NAMES.includes(`${first} ${second}`) ? `${first} ${second}` : first;
  const command = commands.find(({ metadata }) => metadata.name === name);
  if (command === undefined && !GROUPS.has(name)) return [`toolway ${name}`];
  const known = [...GLOBAL, "--config", ...Object.values(command?.options ?? {}).map(({ flag }) => flag)];
  return words
    .filter((word) => word.startsWith("--") && word.length > 2 && !known.includes(word.replace(/[=,.;].*$/, "")))
    .map((word) => `toolway ${name} ${word}`);
}

it("texts and comments of the code name commands and options that there are [documents-true]", () => {
  // Other tests run beside this one, and what they wrote may have gone since the folders were read.
  const files = everything.filter(
    (path) => /^(?:src|test|scripts|bench)\/.*\.(?:ts|mjs)$/.test(path) && existsSync(join(root, path)),
  );
  const wrong = files.flatMap((path) => {
    const spans = [...read(path).matchAll(/\\?`(toolway [a-z][^`\n\\$]*)\\?`/g)].map(([, span = ""]) => span);
    const unknown = spans.flatMap(unknownWords);
    return unknown.map((one) => `${path}: ${one}`);
  });
  expect(wrong).toEqual([]);
});

it("receipts look as real ones do [documents-true]", () => {
  const named =
    /(?:toolway outbox (?:show|retry|drop|resolve) |"receipt": "|toolway__receipt", "arguments": \{ "id": "|\bReceipt )([\w-]+…?)/g;
  const said = DOCUMENTS.flatMap((path) => [...read(path).matchAll(named)].map(([, id = ""]) => id)).filter((id) =>
    /\d|…/.test(id),
  );
  expect(said.length).toBeGreaterThan(6);
  // 16 random bytes in base64url, of which the first are shown.
  expect(said.filter((id) => !/^(?=.*[A-Z])(?=.*[g-z])\w{8}…$/.test(id))).toEqual([]);
});

/** A block may be a whole config, some of its keys, some servers, or some keys of an entry. */
function mistakesIn(text: string): string[] {
  const whole = text.trim().startsWith("{") ? text : `{ ${text.replaceAll("…", "")} }`;
  const env = new Proxy(
    {},
    { get: () => "x", has: () => true, getOwnPropertyDescriptor: () => ({ value: "x", configurable: true }) },
  );
  const check = (config: string): string[] => {
    try {
      const { warnings } = parseConfig(config, { path: "/x/toolway.json", env, home: "/x" });
      // A few keys by themselves lack the servers that they are about.
      return warnings.filter((warning) => !/no servers in this config|no server of this config matches/.test(warning));
    } catch (error) {
      return (error as Error).message.split("\n");
    }
  };
  const keys = topKeys(whole);
  if (keys.some((key) => TOP_KEYS.includes(key))) return check(whole);
  if (keys.every((key) => ENTRY_KEYS.includes(key))) return check(`{ "mcpServers": { "x": ${withTarget(whole)} } }`);
  return check(`{ "mcpServers": ${whole} }`);
}

/** By where they stand: the text may have comments. */
function topKeys(text: string): string[] {
  const plain = text.replace(/("(?:[^"\\]|\\.)*")|\/\/[^\n]*/g, (_, string: string | undefined) => string ?? "");
  let depth = 0;
  const keys: string[] = [];
  for (const [token, key] of plain.matchAll(/"((?:[^"\\]|\\.)*)"\s*:|"(?:[^"\\]|\\.)*"|[{}[\]]/g)) {
    if (token === "{" || token === "[") depth++;
    else if (token === "}" || token === "]") depth--;
    else if (depth === 1 && key !== undefined) keys.push(key);
  }
  return keys;
}

/** Keys alone make no server. */
function withTarget(entry: string): string {
  return /"(?:command|url|httpUrl|serverUrl)"/.test(entry) ? entry : entry.replace("{", '{ "command": "x", ');
}

it("the figures of docs/performance.md are those of the bench's record [documents-true]", async () => {
  // @ts-expect-error the bench has no types
  const { fillDoc } = (await import("../bench/report/doc.mjs")) as { fillDoc(text: string, results: object): string };
  const page = read("docs/performance.md");
  for (const file of readdirSync(join(root, "bench/recorded"))) {
    expect(fillDoc(page, JSON.parse(read(`bench/recorded/${file}`)) as object) === page, file).toBe(true);
  }
});

it("the costs of docs/scale.md, and what a million needs by them, are those of the bench's record [documents-true]", async () => {
  // @ts-expect-error the bench has no types
  const { fillCapacity } = (await import("../bench/report/capacity.mjs")) as {
    fillCapacity(page: string, results: object): string;
  };
  const page = read("docs/scale.md");
  for (const file of readdirSync(join(root, "bench/recorded"))) {
    const filled = fillCapacity(page, JSON.parse(read(`bench/recorded/${file}`)) as object);
    expect(filled === page, `${file}: npm run capacity -- --page`).toBe(true);
  }
});

/** npm reads all of the folder, so that it fails where something is built or goes meanwhile: asked within a test, it is asked again. */
function packedFiles(): string[] {
  const args = ["pack", "--dry-run", "--json", "--ignore-scripts"];
  const told = execFileSync("npm", args, { cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  const [pack] = JSON.parse(told) as { files: { path: string }[] }[];
  return pack?.files.map(({ path }) => path) ?? [];
}

it("the majors of Node that documents call tested are those that the tests run on [documents-true]", async () => {
  // A specifier that is no literal leaves the types of the plain JavaScript to this line.
  const file: string = "../scripts/node-versions.mjs";
  const { TESTED_MAJORS } = (await import(file)) as { readonly TESTED_MAJORS: readonly number[] };
  const tested = `${TESTED_MAJORS.slice(0, -1).join(", ")} and ${TESTED_MAJORS.at(-1)}`;
  const lists = DOCUMENTS.filter((document) => document !== "CHANGELOG.md").flatMap((document) =>
    [...read(document).matchAll(/\bNode (\d+(?:, \d+)* and \d+)/g)].map(([, majors]) => ({ document, majors })),
  );
  expect(lists.map(({ document }) => document)).toEqual(expect.arrayContaining(["README.md", "docs/faults.md"]));
  expect(lists.filter(({ majors }) => majors !== tested)).toEqual([]);
  const { engines } = JSON.parse(read("package.json")) as { readonly engines: { readonly node: string } };
  expect(engines.node).toMatch(new RegExp(`^>=${TESTED_MAJORS[0]}\\.`));
});

describe("the package", () => {
  it("has what its documents link to [documents-true]", () => {
    const packed = packedFiles();
    const documents = packed.filter((path) => path.endsWith(".md"));
    expect(documents).toContain("README.md");
    const has = (path: string) => packed.some((file) => file === path || file.startsWith(`${path}/`));
    const missing = documents.flatMap((document) =>
      links(read(document))
        .map(({ path }) => target(document, path))
        .filter((path) => !has(path))
        .map((path) => `${document} → ${path}`),
    );
    expect(missing).toEqual([]);
  });

  it("names where the project lives, or SECURITY.md says that there is no public address yet, and not both [documents-true]", () => {
    const names = Object.keys(JSON.parse(read("package.json")) as object);
    const named = ["repository", "homepage", "bugs"].filter((name) => names.includes(name));
    expect(named).toHaveLength(read("SECURITY.md").includes("has no public address yet") ? 0 : 3);
  });
});

it("ARCHITECTURE.md is no longer than what a newcomer reads before a first change; reasons have a page of their own", () => {
  expect(Buffer.byteLength(read("ARCHITECTURE.md"))).toBeLessThan(MAX_MAP_BYTES);
});

it.each(DOCUMENTS)("%s has no marks of a merge in it", (document) => {
  expect(read(document)).not.toMatch(/^(?:<{7}|={7}$|>{7})/m);
});
