// The shape of src/, held by one test: which folder knows which, that no two know each other, that a name means one
// thing, and that nothing lies loose. A new edge between folders is added to the table in allowed-folders.ts, and thereby
// seen.

import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { ALLOWED } from "./allowed-folders.js";

const src = fileURLToPath(new URL("../src", import.meta.url));

/** Folders whose files do no I/O: they import nothing of Node, and are told the time. */
const PURE = ["contracts", "policy"];

interface Boundary {
  /** As it stands in ARCHITECTURE.md. */
  readonly sentence: string;
  readonly who: readonly string[];
  /** What of ours they may know, besides themselves; or what they must not. */
  readonly only?: readonly string[];
  readonly not?: readonly string[];
}

const STAGES = ["endpoint", "catalog", "policy", "cache", "upstream"];

/** Who must not know whom, whatever the table above says one day. A folder stands for those in it, too. */
const BOUNDARIES: readonly Boundary[] = [
  {
    sentence: "`runtime` does not know the rest of Toolway; `protocol` knows `runtime` alone.",
    who: ["runtime"],
    only: [],
  },
  {
    sentence: "`runtime` does not know the rest of Toolway; `protocol` knows `runtime` alone.",
    who: ["protocol"],
    only: ["runtime"],
  },
  {
    sentence: "`contracts` does not know who implements them: it knows `protocol` alone.",
    who: ["contracts"],
    only: ["protocol"],
  },
  ...STAGES.map((stage) => ({
    sentence:
      "A stage does not know another stage, nor the pipeline: `endpoint`, `catalog`, `policy`, `cache`, `upstream`.",
    who: [stage],
    not: ["pipeline", "gateway", ...STAGES.filter((other) => other !== stage)],
  })),
  {
    sentence: "The pipeline does not know a concrete server or endpoint: it knows `Servers`, `Upstream` and `Caller`.",
    who: ["pipeline"],
    not: ["upstream", "endpoint", "executor", "store", "config"],
  },
  {
    sentence: "The endpoint does not know where tokens and keys are kept, nor the config.",
    who: ["endpoint"],
    not: ["tokens", "store", "config"],
  },
  {
    sentence: "The modern era does not know the legacy one, nor a pipe.",
    who: ["endpoint/modern"],
    not: ["endpoint/legacy", "endpoint/stdio"],
  },
  {
    sentence: "A link does not know the connection that uses it, nor whether its server is started again.",
    who: ["upstream/link", "upstream/stdio", "upstream/http", "upstream/mailbox", "upstream/placed"],
    not: ["upstream/connection", "upstream/supervise", "upstream/lists", "upstream/modern"],
  },
  {
    sentence: "Supervision does not know transports and eras.",
    who: ["upstream/supervise"],
    not: [
      "upstream/connection",
      "upstream/stdio",
      "upstream/http",
      "upstream/mailbox",
      "upstream/era",
      "upstream/modern",
    ],
  },
  {
    sentence: "An executor does not know MCP, nor for what a request is made.",
    who: ["executor"],
    only: ["contracts", "runtime", "sockets"],
  },
  { sentence: "A socket does not know what its messages mean.", who: ["sockets"], only: ["runtime"] },
  { sentence: "The store does not know what is in it.", who: ["store"], only: ["contracts", "runtime"] },
  {
    sentence: "The log and the spans do not know the parts that they tell of.",
    who: ["observe"],
    only: ["contracts", "protocol", "runtime"],
  },
  {
    sentence: "The config does not know the parts that read it, nor the clients whose files it is like.",
    who: ["config"],
    only: ["contracts", "runtime"],
  },
  {
    sentence: "A gateway does not know who embeds it: neither `host` nor `cli` nor `agents`.",
    who: ["gateway"],
    not: ["host", "cli", "agents"],
  },
  {
    sentence:
      "A host does not know the servers behind its gateway: when they start, and for how long, is decided there.",
    who: ["host"],
    not: ["upstream", "pipeline", "catalog", "cache", "tokens", "store"],
  },
  {
    sentence: "A command of the CLI does not know the store, nor the stages that decide: it asks a gateway.",
    who: ["cli"],
    not: ["store", "tokens", "pipeline", "endpoint", "catalog", "policy", "cache"],
  },
  {
    sentence: "An upstream does not know agents, nor who they are. It knows `Caller`.",
    who: ["upstream"],
    not: ["endpoint", "pipeline", "tokens", "gateway"],
  },
  { sentence: "The cache does not know policy: whoever asks it was let through.", who: ["cache"], not: ["policy"] },
  {
    sentence:
      "The gateway does not know what an executor may reach; a link does not know whether its requests go through one.",
    who: ["gateway"],
    not: ["executor/allow", "executor/http", "executor/server"],
  },
  {
    sentence:
      "The gateway does not know what an executor may reach; a link does not know whether its requests go through one.",
    who: ["upstream"],
    not: ["executor/allow", "executor/http", "executor/server", "executor/client", "executor/group", "executor/passed"],
  },
];

interface Unsaid {
  /** As it stands in ARCHITECTURE.md. */
  readonly sentence: string;
  /** Beginnings of paths. */
  readonly who: readonly string[];
  /** What their texts do not have. */
  readonly never: RegExp;
}

const TIME = /\bDate\b|\bperformance\b|systemClock|set(?:Timeout|Interval|Immediate)\b/;

/** What shows in the text of a file where its imports do not tell. */
const UNSAID: readonly Unsaid[] = [
  {
    sentence:
      "The legacy endpoint does not know how a request is answered: no list, read or call of MCP is named there.",
    who: ["endpoint/legacy/"],
    never: /"(?:tools|prompts|resources|completion|tasks)\/(?!subscribe|unsubscribe)[a-z/]+"/,
  },
  {
    sentence: "The catalog does not know who is asking. It is handed a view.",
    who: ["catalog/"],
    never: /contracts\/caller|\bPrincipal\b/,
  },
  {
    sentence: "Policy does not know aliases. It sees servers and their own tool names; the types keep them apart.",
    who: ["policy/"],
    never: /ExposedName/,
  },
  {
    sentence: "The line from endpoint to upstream knows nothing of parked calls and of rounds.",
    who: ["pipeline/", "catalog/", "policy/", "cache/"],
    never: /\bparked\b|input_required/,
  },
  {
    sentence: "Supervision, policy and the cache do not know the time: they are told, or handed a clock.",
    who: ["upstream/supervise/", "policy/", "cache/"],
    never: TIME,
  },
  {
    sentence: "The rules of roles and a program's guard do not know each other; either may deny.",
    who: ["policy/policy.ts", "policy/menus.ts", "policy/pattern.ts"],
    never: /guard/i,
  },
  {
    sentence: "The rules of roles and a program's guard do not know each other; either may deny.",
    who: ["policy/guard.ts"],
    never: /^import (?!type)[^;]*policy\.js"/m,
  },
  {
    sentence: "A command of the CLI does not know how to exit: it returns a code.",
    who: ["cli/"],
    never: /process\.(?:exit\(|exitCode\b|abort\()/,
  },
];
/** The program itself, which ends with what a command returned. */
const ENDS_THE_PROCESS = "cli/process.ts";

/** Held by the test of PURE. */
const PURITY =
  "`policy` and `contracts` do not know Node: no clock, no file, no socket; of streams between gateways they know the types.";
/** What these say of streams is types alone. */
const TYPES_OF_NODE = ["contracts/engine"];

/** A folder is read at a glance up to here; the verbs of the command line are a list that anybody can read. */
const MAX_FILES = 16;
const LONG_LISTS = ["cli/commands"];
/** Past this, a file is looked at again: it probably has two jobs. */
const MAX_LINES = 600;

/** Errors of the language and of Node. */
const BUILT_IN = Object.getOwnPropertyNames(globalThis).filter((name) => {
  const value: unknown = Reflect.get(globalThis, name);
  return value === Error || (typeof value === "function" && value.prototype instanceof Error);
});

/** What may extend one of these. All else that is thrown on purpose is an ExpectedError, so that a verb that ends by it says what to do. */
const BARE_ERRORS: Readonly<Record<string, string>> = {
  ExpectedError: "the base of the others",
  BadParams: "the demo is a program by itself; it answers with it",
  PeerError: "contracts know no runtime; whoever asks another gateway makes of it what it means there",
  RefusedPlace: "a TypeError as of any fetch: by it the SDK tells what could not be asked from what is not there",
  ServerError: "a server's answer to a request of ours, with a number for a code",
  Stopped: "a signal, which is the reason of an abort",
  Wrong: "never leaves its file",
};

interface SourceFile {
  readonly path: string;
  readonly folder: string;
  readonly text: string;
}

function filesIn(folder: string, which: RegExp): SourceFile[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((path) => which.test(path))
    .map((path) => ({ path, folder: dirname(path), text: readFileSync(join(folder, path), "utf8") }));
}

const files = filesIn(src, /(?<!\.test)\.ts$/);
const dashboard = join(src, "../dashboard");
const pageFiles = filesIn(dashboard, /\.tsx?$/);

/** What the page knows of src/. A page is small, and asks a gateway for what it knows. */
const PAGE_KNOWS = ["contracts/", "runtime/visible.js", "runtime/words/", "runtime/network/loopback.js"];
const PAGE =
  "The page does not know the gateway: of `src/` it knows `contracts`, `runtime/visible`, `runtime/words` and `runtime/network/loopback`.";

const IMPORT = /^(?:import|export)\b[^;"]*?\bfrom "([^"]+)"|^import "([^"]+)"|\bimport\("([^"]+)"\)/gm;

function importsOf({ text }: SourceFile): string[] {
  return [...text.matchAll(IMPORT)].map(([, from, bare, late]) => from ?? bare ?? late ?? "");
}

/** Folder → folder → the files that import. */
function edges(): Map<string, Map<string, string[]>> {
  const found = new Map<string, Map<string, string[]>>();
  for (const file of files) {
    const out = found.get(file.folder) ?? new Map<string, string[]>();
    found.set(file.folder, out);
    for (const from of importsOf(file)) {
      if (!from.startsWith(".")) continue;
      const folder = dirname(relative(src, normalize(join(src, file.folder, from))));
      if (folder !== file.folder) out.set(folder, [...(out.get(folder) ?? []), file.path]);
    }
  }
  return found;
}

const graph = edges();
const foldersOf = (line: string) => new Set(line.split(" ").filter(Boolean));
const allowed = new Map(Object.entries(ALLOWED).map(([folder, line]) => [folder, foldersOf(line)]));

describe("the folders of src/", () => {
  it("know only what the table allows", () => {
    const strangers = [...graph].flatMap(([folder, out]) =>
      [...out]
        .filter(([to]) => allowed.get(folder)?.has(to) !== true)
        .map(([to, by]) => `${folder} → ${to} (${by.join(", ")})`),
    );
    expect(strangers).toEqual([]);
  });

  it("have a line in the table, which names no folder that they do not use", () => {
    const stale = [...allowed].flatMap(([folder, to]) =>
      [...to].filter((one) => graph.get(folder)?.has(one) !== true).map((one) => `${folder} → ${one}`),
    );
    expect(stale).toEqual([]);
    expect([...graph.keys()].filter((folder) => !allowed.has(folder))).toEqual([]);
  });

  it("have no cycle, types included", () => {
    const done = new Set<string>();
    const cycles: string[] = [];
    const visit = (folder: string, path: readonly string[]): void => {
      if (path.includes(folder)) cycles.push([...path.slice(path.indexOf(folder)), folder].join(" → "));
      else if (!done.has(folder)) {
        for (const next of graph.get(folder)?.keys() ?? []) visit(next, [...path, folder]);
        done.add(folder);
      }
    };
    for (const folder of graph.keys()) visit(folder, []);
    expect(cycles).toEqual([]);
  });

  it("hold no more files than a reader can take in", () => {
    const counts = countByFolder();
    const full = [...counts].filter(([folder, count]) => count > MAX_FILES && !LONG_LISTS.includes(folder));
    expect(full).toEqual([]);
  });

  it.each(BOUNDARIES)("$sentence ($who)", ({ who, only, not }) => {
    const within = (folder: string, parts: readonly string[]) =>
      parts.some((part) => folder === part || folder.startsWith(`${part}/`));
    const strangers = [...graph]
      .filter(([folder]) => within(folder, who))
      .flatMap(([folder, out]) => [...out.keys()].map((to) => ({ folder, to })))
      .filter(({ to }) => !within(to, who) && (only === undefined ? within(to, not ?? []) : !within(to, only)))
      .map(({ folder, to }) => `${folder} → ${to}`);
    expect(strangers).toEqual([]);
  });

  it.each(UNSAID)("$sentence ($who)", ({ who, never }) => {
    const read = files.filter(({ path }) => path !== ENDS_THE_PROCESS && who.some((part) => path.startsWith(part)));
    expect(read.length).toBeGreaterThan(0);
    expect(read.filter(({ text }) => never.test(text)).map(({ path }) => path)).toEqual([]);
  });

  it("have their boundaries in ARCHITECTURE.md, in the same words, and no others", () => {
    const text = readFileSync(join(src, "../ARCHITECTURE.md"), "utf8").replace(/\n {2,}/g, " ");
    const part = text.slice(text.indexOf("## What the parts do not know"), text.indexOf("## What always holds"));
    const told = new Set([...part.matchAll(/^- (.*)$/gm)].map(([, sentence = ""]) => sentence));
    expect(told).toEqual(new Set([...[...BOUNDARIES, ...UNSAID].map(({ sentence }) => sentence), PURITY, PAGE]));
  });

  it("stand in the code map of ARCHITECTURE.md, each once: by a row of its own, or by its name in the row of the one that it is in", () => {
    const text = readFileSync(join(src, "../ARCHITECTURE.md"), "utf8");
    const map = text.slice(text.indexOf("## Code map"), text.indexOf("## Words"));
    const rows = [...map.matchAll(/^\| (`src[^|]*) \|(.*)\|$/gm)].map(([, who = "", what = ""]) => ({
      who: [...who.matchAll(/`src\/([^`]+)`/g)].map(([, folder = ""]) => folder),
      what,
    }));
    const own = rows.flatMap(({ who }) => who);
    const missing = [...graph.keys()].filter((folder) => {
      if (folder === "." || own.includes(folder)) return false;
      const [leaf = "", parent] = [folder.slice(folder.lastIndexOf("/") + 1), dirname(folder)];
      return !rows.some(({ who, what }) => who.includes(parent) && what.includes(`\`${leaf}\``));
    });
    expect(missing).toEqual([]);
    expect(own).toHaveLength(new Set(own).size);
    const parents = [...graph.keys()].flatMap((folder) => [folder, dirname(folder)]);
    expect(own.filter((folder) => !parents.includes(folder))).toEqual([]);
  });

  it("are unknown to the page, but for contracts and how it shows names and addresses", () => {
    const strangers = pageFiles.flatMap(({ path, folder, text }) =>
      importsOf({ path, folder, text })
        .filter((from) => from.startsWith("."))
        .map((from) => relative(src, normalize(join(dashboard, folder, from))))
        .filter((from) => !from.startsWith("../dashboard/") && !PAGE_KNOWS.some((run) => from.startsWith(run)))
        .map((from) => `${path} → ${from}`),
    );
    expect(strangers).toEqual([]);
  });

  it("leave the root to index.ts", () => {
    expect(files.filter(({ folder }) => folder === ".").map(({ path }) => path)).toEqual(["index.ts"]);
  });

  it.each(PURE)("%s imports nothing of Node", (folder) => {
    const users = files
      .filter((file) => `${file.folder}/`.startsWith(`${folder}/`))
      .filter((file) => {
        const isTyped = TYPES_OF_NODE.includes(file.folder);
        const text = isTyped ? file.text.replace(/^import type [^;]*;$/gm, "") : file.text;
        return importsOf({ ...file, text }).some((from) => from.startsWith("node:"));
      })
      .map(({ path }) => path);
    expect(users).toEqual([]);
  });
});

describe("the files of src/", () => {
  it("are not longer than one job, nor are the page's and the tests", () => {
    const all = [...filesIn(src, /\.ts$/), ...pageFiles, ...filesIn(join(src, "../test"), /\.tsx?$/)];
    expect(all.filter(({ text }) => text.split("\n").length > MAX_LINES).map(({ path }) => path)).toEqual([]);
  });

  // Node 22 and 24 send the last chunk of such a response before what was corked.
  it("end no response while it is corked", () => {
    const wrong = files.filter(({ text }) =>
      [...text.matchAll(/\.cork\(\)[\s\S]*?\.uncork\(\)/g)].some(([corked]) => /\.end\(/.test(corked)),
    );
    expect(wrong.map(({ path }) => path)).toEqual([]);
  });

  it.each([
    [
      "an object of JSON",
      /typeof (\w+) === "object" && \1 !== null && !Array\.isArray\(\1\)/,
      "runtime/words/json-object.ts",
    ],
    ["the name of a header", /\/\^\[!#\$%&'\*\+\.\^_`\|~0-9A-Za-z-\]\+\$\//, "runtime/network/headers.ts"],
    ["the value of a header", /\[\^?\\t\\x20-\\x7e\\x80-\\xff\]/, "runtime/network/headers.ts"],
  ])("ask one place what is %s, but for the demo, which is a program by itself", (_, own, place) => {
    const askers = [...files, ...pageFiles].filter(({ text, path }) => own.test(text) && path !== "demo/server.ts");
    expect(askers.map(({ path }) => path)).toEqual([place]);
  });

  it("ask one function what is loopback, and the page does too", () => {
    const own = /127\(?\\\.|(?:[=!]== |(?:starts|ends)With\()"\.?localhost"/;
    const askers = [...files, ...pageFiles].filter(({ text }) => own.test(text)).map(({ path }) => path);
    expect(askers).toEqual(["runtime/network/loopback.ts"]);
  });

  it("decide nothing in contracts: what runs there brands names, and is one error", () => {
    const runs = files
      .filter(({ path }) => path.startsWith("contracts/"))
      .flatMap(({ text }) =>
        [...text.matchAll(/^export (?:function|(?:abstract )?class) (\w+)/gm)].map(([, name]) => name),
      );
    expect(new Set(runs)).toEqual(new Set(["PeerError", "exposedName", "ownName", "ownToolName"]));
  });

  it("throw expected errors, but for those that are named here", () => {
    const extending = new RegExp(`class (\\w+)(?:<[^{]*>)? extends (?:${BUILT_IN.join("|")})\\b`, "g");
    expect(BUILT_IN).toEqual(expect.arrayContaining(["Error", "TypeError", "AggregateError", "DOMException"]));
    const bare = files.flatMap(({ text }) => [...text.matchAll(extending)].map(([, name]) => name));
    expect(new Set(bare)).toEqual(new Set(Object.keys(BARE_ERRORS)));
  });

  it("know errors of ours by their classes, never by strings of their names", () => {
    const errors = files.flatMap(({ text }) =>
      [...text.matchAll(/class (\w+) extends \w*Error\b/g)].map(([, name]) => name),
    );
    const asked = files.flatMap(({ path, text }) =>
      [...text.matchAll(/\bname (?:===|!==) "(\w+)"/g)].map(([, name]) => ({ path, name })),
    );
    expect(asked.filter(({ name }) => errors.includes(name))).toEqual([]);
  });

  it("give a type's name to one type, and the page does not give it to another", () => {
    const owners = new Map<string, string[]>();
    for (const { path, text } of [...files, ...pageFiles]) {
      for (const [, name = ""] of text.matchAll(
        /^export (?:declare )?(?:abstract )?(?:interface|type|class|enum) (\w+)/gm,
      )) {
        owners.set(name, [...(owners.get(name) ?? []), path]);
      }
    }
    const doubled = [...owners].filter(([, paths]) => paths.length > 1).map(([name, paths]) => `${name}: ${paths}`);
    expect(doubled).toEqual([]);
  });
});

function countByFolder(): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { folder } of files) counts.set(folder, (counts.get(folder) ?? 0) + 1);
  return counts;
}
