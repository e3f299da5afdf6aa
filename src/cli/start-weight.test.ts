// What a start has to load, from the bundles in dist/: how long it takes is for the bench to say, what it grows by is
// seen here.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, expect, it } from "vitest";

const main = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));

beforeAll(() => {
  if (!existsSync(main)) throw new Error("These tests look at what is in dist/: run `npm run build` first.");
});

/** The file, and all that it cannot do without: modules, and the scripts that they stand for. */
function loads(file: string, seen = new Map<string, string>()): Map<string, string> {
  if (seen.has(file)) return seen;
  const text = readFileSync(file, "utf8");
  seen.set(file, text);
  if (file.endsWith(".cjs")) return seen;
  for (const [, path] of text.matchAll(/(?:from|import|new URL\()"(\.{1,2}\/[^"]+\.c?js)"/g))
    loads(join(dirname(file), path ?? ""), seen);
  return seen;
}

/** What each line of `toolway` loads. */
function program(): Map<string, string> {
  const files = loads(main);
  return loads(later(files, "process"), files);
}

/** The file of the bundle that `from` loads when it needs it. */
function later(from: ReadonlyMap<string, string>, name: string): string {
  for (const [file, text] of from) {
    const path = new RegExp(`[iI]mport\\("(\\.{1,2}/[^"]*/?${name}-[^"]+)"\\)`).exec(text)?.[1];
    if (path !== undefined) return join(dirname(file), path);
  }
  throw new Error(`Nothing loads ${name} when it is needed.`);
}

const kilobytes = (files: ReadonlyMap<string, string>) =>
  [...files.values()].reduce((sum, text) => sum + text.length, 0) / 1024;

// Somewhat more than there was when this was written: a new feature fits, a library that slipped in does not.
it("a verb that only asks loads little", () => {
  const files = program();
  loads(later(files, "running"), files);
  // The program, what loads scripts, and two of these with their modules (scripts/script-chunks.mjs).
  expect(files.size).toBeLessThanOrEqual(6);
  // Each verb brings its options and examples, some 2 kB; what it does is imported in its handler. A script says at each use
  // of Node's modules which one it means, and a module gives out what it has: with both it is a tenth more. That a gateway which is
  // there also answers, and what is said where it does not, came with 1; who has a port that is taken, and which entries a reload could
  // not use, with another.
  expect(kilobytes(files)).toBeLessThan(307);
  const text = [...files.values()].join("");
  for (const verbs of ["kept calls are asked of one", "mailboxes are asked of one"]) expect(text).not.toContain(verbs);
});

it("a gateway loads itself and its store, and no client, parser or search before they are used", () => {
  const files = program();
  loads(later(files, "adapter"), files);
  // The program, what verbs that ask need besides, what others share with a gateway, and the gateway.
  expect(files.size).toBeLessThanOrEqual(10);
  // Metrics, logins at servers and runs of agents came with some 15 kB each, the operator's page and the choice of a
  // store with a few; the last calls and the past, which every call is part of, with 10, the keys of the audit log with 5,
  // what several gateways have together with 12: following what others write, and writing by comparing; and reading, writing
  // and keeping what is long in turns with 3; recording calls, questions that wait for a person and metrics for a collector with
  // 14, of which the parts that every call meets are needed at once, and the doors to what other gateways have with 6;
  // handing over what other gateways go on with when this one stops, with 3; knowing plain answers in one walk, and what one
  // token's connections hold together, with 5; a server that runs at one of several gateways, with 13: it is a link like others,
  // chosen when a connection is opened; the look at whether a state was moved away, and the verbs that move it, with 4;
  // what the log said of each server, and what became of each kept write, with 3; large work in turns of the event loop, and what
  // a gateway says of its own when a server moves to another, with 6; words that many files read what others wrote with, with 2; what
  // values, subscriptions and questions take of the memory, and turns by time, with 2; what a gateway that leaves still answers for others,
  // and an engine that is there and says nothing, with 3; a write that is taken back on its way, and a server that keeps one session,
  // with 2; the bounds of lists, what a server's ups and downs are in fields, updates by who listens, and the age of all lists in one
  // walk, with 5; what gateways behind this one did not send, and bounds that say whose they are, with 4; as scripts all of it is a
  // tenth more.
  expect(kilobytes(files)).toBeLessThan(1_462);
  const text = [...files.values()].join("");
  for (const foreign of [
    "UND_ERR_",
    "CommanderError",
    "MiniSearch",
    "llhttp",
    "perMessageDeflate",
    "SocketClient",
    "code_verifier",
    "NatsConnectionImpl",
  ]) {
    const found = text.split(foreign).length - 1;
    // Our own code may know the name of an error, and no more.
    expect(found, foreign).toBeLessThan(5);
  }
});

/** Run in the program before its own code: when it tells that it listens, it says how much room there is for what is young. */
const TELL_YOUNG = `
const { getHeapSpaceStatistics } = require("node:v8");
const write = process.stdout.write;
process.stdout.write = function (text, ...more) {
  const young = getHeapSpaceStatistics().find(({ space_name }) => space_name === "new_space");
  if (String(text).includes("endpoint")) process.stderr.write("young: " + young.space_size + "\\n");
  return write.call(this, text, ...more);
};`;

/** The same, of the modules of Node's own that were loaded by then. */
const TELL_LOADED = `
const write = process.stdout.write;
process.stdout.write = function (text, ...more) {
  if (String(text).includes("endpoint")) process.stderr.write("loaded: " + process.moduleLoadList.join() + "\\n");
  return write.call(this, text, ...more);
};`;

it("a gateway listens before it loads what no start needs of Node: TLS, names and measures", async () => {
  const said = await atListening(TELL_LOADED, "loaded: ");
  const loaded = /loaded: (.*)/.exec(said)?.[1]?.split(",") ?? [];
  expect(loaded).toContain("NativeModule http");
  for (const name of ["tls", "https", "dns/promises", "perf_hooks"]) {
    expect(loaded, name).not.toContain(`NativeModule ${name}`);
  }
});

it("a gateway that has started has little room for what is young, as it began [bounded]", async () => {
  const said = await atListening(TELL_YOUNG, "young: ");
  // Two halves of one megabyte, on newer Node of two. V8 by itself comes to 8 MiB by then, and stays there.
  const young = Number(/young: (\d+)/.exec(said)?.[1]);
  expect(young, said).toBeLessThanOrEqual(4 * 1024 * 1024);
});

/** Starts a gateway with a server at an address, and resolves with what the probe in it says. */
async function atListening(probeText: string, awaited: string): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "toolway-young-"));
  const [probe, config] = [join(folder, "probe.cjs"), join(folder, "toolway.json")];
  writeFileSync(probe, probeText);
  writeFileSync(config, '{ "mcpServers": { "one": { "url": "http://127.0.0.1:9/mcp" } } }');
  const line = ["--require", probe, main, "serve", config, "--state", join(folder, "state")];
  const started = spawn(process.execPath, [...line, "--listen", "127.0.0.1:0", "--json"]);
  let said = "";
  started.stderr.on("data", (chunk: Buffer) => {
    said += chunk.toString();
    if (said.includes(awaited) && said.endsWith("\n")) started.kill();
  });
  await once(started, "exit");
  rmSync(folder, { recursive: true, force: true });
  return said;
}

// The bundler names files by what is in them, and what is joined for the programs is not joined for the library.
it("the programs and the library share no file, so that neither has a part of itself twice", () => {
  const reached = (file: string, seen = new Set<string>()): Set<string> => {
    if (seen.has(file)) return seen;
    seen.add(file);
    for (const [, path] of readFileSync(file, "utf8").matchAll(
      /(?:from|[iI]mport\(?|new URL\()"(\.{1,2}\/[^"]+\.c?js)"/g,
    ))
      reached(join(dirname(file), path ?? ""), seen);
    return seen;
  };
  const library = reached(join(dirname(main), "../index.js"));
  expect(library.size).toBeGreaterThan(1);
  expect([...reached(main)].filter((file) => library.has(file))).toEqual([]);
});
