// A gateway's second start uses what V8 made of the scripts at its first; and whatever has become of that, it starts.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";

const main = fileURLToPath(new URL("../../../dist/cli/main.js", import.meta.url));
const home = mkdtempSync(join(tmpdir(), "toolway-kept-"));
const code = join(home, "toolway", "code");
const [probe, config] = [join(home, "probe.cjs"), join(home, "toolway.json")];

/** Run in the program before its own code: says of each script whether V8's code was there for it and good. */
const TELL_SCRIPTS = `
const vm = require("node:vm");
const { Script } = vm;
vm.Script = class extends Script {
  constructor(source, options) {
    super(source, options);
    const verdict = options.cachedData === undefined ? "new" : this.cachedDataRejected ? "refused" : "kept";
    process.stderr.write("script " + verdict + "\\n");
  }
};`;

beforeAll(() => {
  if (!existsSync(main)) throw new Error("These tests look at what is in dist/: run `npm run build` first.");
  writeFileSync(probe, TELL_SCRIPTS);
  writeFileSync(config, '{ "mcpServers": {} }');
});

afterAll(() => rmSync(home, { recursive: true, force: true }));

/** Starts a gateway, until it listens and `isDone`. Returns what became of its scripts. */
async function start(isDone: () => boolean, env: Readonly<Record<string, string>> = {}): Promise<string[]> {
  const line = ["--require", probe, main, "serve", config, "--state", join(home, "state"), "--listen", "127.0.0.1:0"];
  const child = spawn(process.execPath, [...line, "--json"], { env: { ...process.env, XDG_STATE_HOME: home, ...env } });
  let said = "";
  child.stderr.on("data", (chunk: Buffer) => {
    said += chunk.toString();
  });
  let isListening = false;
  child.stdout.on("data", () => {
    isListening = true;
  });
  const exited = once(child, "exit");
  while (child.exitCode === null && !(isListening && isDone())) await new Promise((done) => setTimeout(done, 20));
  expect(isListening, said).toBe(true);
  child.kill();
  await exited;
  return [...said.matchAll(/^script (\w+)$/gm)].map(([, verdict]) => verdict ?? "");
}

const isAlone = (names: readonly string[]) => names.every((name) => name.endsWith(".code"));
const files = () => (existsSync(code) ? readdirSync(code) : []);
/** The program, what verbs that ask need, what is shared, the gateway, and LMDB. */
const SCRIPTS = 5;

it("the second start of a gateway has the code of all its scripts from the first, and one that is damaged is made anew", async () => {
  expect(await start(() => true, { NODE_DISABLE_COMPILE_CACHE: "1" })).toEqual(Array(SCRIPTS).fill("new"));
  expect(files()).toEqual([]);
  const isKept = () => files().length === SCRIPTS && isAlone(files());
  expect(await start(isKept)).toEqual(Array(SCRIPTS).fill("new"));
  expect(await start(() => true)).toEqual(Array(SCRIPTS).fill("kept"));
  for (const name of files()) writeFileSync(join(code, name), "nothing that V8 made");
  expect(await start(() => true)).toEqual(Array(SCRIPTS).fill("new"));
  rmSync(code, { recursive: true });
  writeFileSync(code, "a file is in the way");
  chmodSync(code, 0o400);
  expect(await start(() => true)).toEqual(Array(SCRIPTS).fill("new"));
}, 90_000);
