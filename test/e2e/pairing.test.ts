// Pairing with a real broker: a code that a sharer gets over its line becomes a token over HTTP.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { statSync } from "node:fs";
import { afterAll, beforeAll, expect, it } from "vitest";
import { pairWord, readPairWord } from "../../src/mailbox/pairing/code-text.js";
import { keepWorker, keptWorkers } from "../../src/mailbox/pairing/kept-workers.js";
import { redeemCode } from "../../src/mailbox/pairing/redeem.js";
import { openLine } from "../../src/mailbox/peer/line.js";
import { BareClient, closeBareClients } from "../fixtures/mailbox/bare-client.js";
import { cli, root, temporaryDirectory, until } from "./harness.js";
import { createToken, runCli } from "./operator.js";

let broker: ChildProcess;
let url: string;
let studioToken: string;
let state: string;

beforeAll(async () => {
  state = await temporaryDirectory();
  broker = spawn(process.execPath, [cli, "broker", "--listen", "127.0.0.1:0", "--state", state, "--json"], {
    cwd: root,
  });
  const [line] = (await once(broker.stdout as NodeJS.ReadableStream, "data")) as [Buffer];
  url = (JSON.parse(line.toString()) as { broker: string }).broker;
  studioToken = await createToken({ stateDir: state }, "studio", "sharer");
});
afterAll(() => {
  closeBareClients();
  broker.kill();
});

/** From the first line typed to the first call: as long as people wait gladly for something new. */
const FIRST_CALL_MS = 120_000;

const NO_EVENTS = { onMessage() {}, onLive() {}, onCancel() {}, onPresence() {}, onDrain() {}, onClose() {} };
const signal = new AbortController().signal;

async function newWord(role?: string): Promise<string> {
  const line = await openLine({ url, token: studioToken, address: "studio", kinds: ["mcp_request"] }, NO_EVENTS);
  try {
    const { code, expiresInMs } = await line.pair(role);
    expect(expiresInMs).toBe(600_000);
    return pairWord(url, code);
  } finally {
    line.close();
  }
}

function redeem(word: string) {
  const read = readPairWord(word);
  if (read === undefined) throw new Error(`${word} is no word`);
  return redeemCode(read, { name: "laptop", signal });
}

/** A POST by hand. */
async function post(body: string, headers: Record<string, string> = { "content-type": "application/json" }) {
  const response = await fetch(`${url.replace("ws", "http")}/mailboxes/pair`, { method: "POST", headers, body });
  await response.text();
  return response.status;
}

it("gives a token that sends to the sharer's mailbox, once, and opens nothing else", async () => {
  const word = await newWord("researcher");
  const { id, token, mailbox } = await redeem(word.toLowerCase());
  expect(mailbox).toBe("studio");
  expect(id).toMatch(/^laptop-[0-9a-f]{8}$/);
  const worker = await BareClient.connect(url, id, token);
  worker.deliver("studio", "m-1");
  expect(await worker.next("delivered", "error")).toMatchObject({ kind: "delivered" });
  worker.deliver("attic", "m-2");
  expect(await worker.next("delivered", "error")).toMatchObject({ kind: "error" });
  const studio = await BareClient.connect(url, "studio", studioToken);
  studio.send({ kind: "subscribe" });
  expect(await studio.message()).toMatchObject({ from: { session_id: id, role: "researcher" } });
  const asAgent = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const tools = await fetch(`${url.replace("ws", "http")}/mcp`, { method: "POST", headers: asAgent, body: "{}" });
  // There are none at a broker, and it says where they are.
  expect([tools.status, await tools.text()]).toEqual([404, expect.stringContaining("toolway join --broker")]);
  await expect(redeem(word)).rejects.toThrow(/wrong, used or too old.*toolway mailbox pair MAILBOX/);
});

it("is a word at the broker and a token at the other machine, by the command line alone", async () => {
  const home = await temporaryDirectory();
  const word = (await runCli("mailbox", "pair", "studio", "--role", "researcher", "--state", state)).out.trim();
  expect(word).toMatch(/^127\.0\.0\.1:\d+\/[0-9A-Z]{4}-[0-9A-Z]{4}-[0-9A-Z]{4}$/);
  const before = process.env["XDG_STATE_HOME"];
  process.env["XDG_STATE_HOME"] = home;
  const ran = await runCli("token", "redeem", word, "--json").finally(() => {
    if (before === undefined) delete process.env["XDG_STATE_HOME"];
    else process.env["XDG_STATE_HOME"] = before;
  });
  const { id, token, mailbox, broker: at, file } = JSON.parse(ran.out) as Record<string, string>;
  expect([mailbox, at]).toEqual(["studio", url]);
  expect(file?.startsWith(home)).toBe(true);
  const worker = await BareClient.connect(url, id ?? "", token ?? "");
  worker.deliver("studio", "m-3");
  expect(await worker.next("delivered", "error")).toMatchObject({ kind: "delivered" });
  expect(await runCli("mailbox", "pair", "stduio", "--state", state)).toMatchObject({ code: 2, out: "" });
  expect(await runCli("token", "redeem", "ABCD-EFGH-JKMN")).toMatchObject({ code: 2, out: "" });
});

it("is for sharers, and gives no role that opens more than a mailbox", async () => {
  const { id, token } = await redeem(await newWord());
  const worker = await BareClient.connect(url, id, token, { version: 1 });
  worker.send({ kind: "pair" });
  expect(await worker.next("error", "pair")).toMatchObject({ kind: "error", of: "pair" });
  await expect(newWord("sharer")).rejects.toThrow(/gives no token of the role "sharer"/);
  await expect(newWord("executor")).rejects.toThrow(/gives no token/);
});

it("keeps what it got where only this user reads it", async () => {
  const folder = await temporaryDirectory();
  const worker = { broker: url, id: "laptop-1", token: "tw_x", mailbox: "studio" };
  const path = keepWorker(folder, worker);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  keepWorker(folder, { ...worker, token: "tw_y" });
  keepWorker(folder, { ...worker, broker: "wss://other" });
  expect(keptWorkers(folder, "studio", `${url}/`)).toEqual([{ ...worker, token: "tw_y" }]);
  expect(keptWorkers(folder, "studio")).toHaveLength(2);
  expect(keptWorkers(folder, "attic")).toEqual([]);
});

it("is a word that `share --pair` prints, at a broker of its own and at another one", async () => {
  const home = await temporaryDirectory();
  const used = async (line: readonly string[], token: string) => {
    const env = { ...process.env, XDG_STATE_HOME: home, TOOLWAY_TOKEN: token };
    const sharer = spawn(process.execPath, [cli, "share", "--pair", "--json", "--role", "dev", ...line], {
      cwd: home,
      env,
    });
    let out = "";
    sharer.stdout.on("data", (chunk: Buffer) => {
      out += chunk.toString();
    });
    try {
      const word = await until("the word", () => /"pair":"([^"]+)"/.exec(out)?.[1]);
      const { broker: at, id, token: own, mailbox } = await redeem(word);
      const worker = await BareClient.connect(at, id, own);
      worker.send({ kind: "subscribe" });
      worker.deliver(mailbox, "m-1", { op: "call", tool: "echo", arguments: { text: "hello" } });
      expect(JSON.stringify((await worker.message())["body"])).toContain("hello");
      return { at, mailbox };
    } finally {
      sharer.kill("SIGTERM");
      await once(sharer, "exit");
    }
  };
  const own = await used(["--as", "attic", "--listen", "127.0.0.1:0"], "");
  expect(own.mailbox).toBe("attic");
  expect(own.at).not.toBe(url);
  expect(await used(["--as", "studio", "--broker", url], studioToken)).toEqual({ at: url, mailbox: "studio" });
});

it("lets `join --pair` use the tools, and after it `join --from` with the token that was kept", async () => {
  const [here, there] = [await temporaryDirectory(), await temporaryDirectory()];
  const start = (home: string, ...words: string[]) => {
    const env = { ...process.env, XDG_STATE_HOME: home, TOOLWAY_TOKEN: "" };
    const child = spawn(process.execPath, [cli, ...words, "--json"], { cwd: home, env });
    const told = { out: "" };
    child.stdout.on("data", (chunk: Buffer) => {
      told.out += chunk.toString();
    });
    const end = async () => {
      child.kill("SIGTERM");
      await once(child, "exit");
    };
    return { told, end };
  };
  const startedMs = performance.now();
  const sharer = start(here, "share", "--pair", "--as", "attic", "--listen", "127.0.0.1:0");
  try {
    const word = await until("the word", () => /"pair":"([^"]+)"/.exec(sharer.told.out)?.[1]);
    for (const how of [
      ["--pair", word],
      ["--from", "attic"],
    ]) {
      const worker = start(there, "join", ...how, "--listen", "127.0.0.1:0");
      try {
        const line = await until("where it listens", () => /\{.*"endpoint".*\}/.exec(worker.told.out)?.[0]);
        const { stateDir } = JSON.parse(line) as { stateDir: string };
        const called = await until("the call to go through", async () => {
          const ran = await runCli("call", "echo", "--arg", "text=hello", "--state", stateDir);
          return ran.code === 0 ? ran.out : undefined;
        });
        expect(called).toContain("hello");
        // The first call, from two terminals with nothing in them.
        if (how[0] === "--pair") expect(performance.now() - startedMs).toBeLessThan(FIRST_CALL_MS);
      } finally {
        await worker.end();
      }
    }
  } finally {
    await sharer.end();
  }
});

it("refuses foreign pages, other bodies and long ones, and pauses after five wrong codes [bounded]", async () => {
  const json = { "content-type": "application/json" };
  expect(await post('{"code":"ABCD-EFGH-JKMN"}', { ...json, origin: "https://page.example" })).toBe(403);
  expect(await post('{"code":"ABCD-EFGH-JKMN"}', { "content-type": "text/plain" })).toBe(415);
  expect(await post("{")).toBe(400);
  expect(await post(JSON.stringify({ code: "x".repeat(2_000) }))).toBe(413);
  const word = await newWord();
  const told: number[] = [];
  while (told.length < 7) told.push(await post('{"code":"ABCD-EFGH-JKMN"}'));
  const wrong = told.filter((status) => status === 403).length;
  // Five within a minute. The first test has tried one, which counts where that is no longer ago.
  expect(wrong).toBeGreaterThanOrEqual(4);
  expect(wrong).toBeLessThanOrEqual(5);
  expect(told.slice(wrong)).toEqual(Array.from({ length: 7 - wrong }, () => 429));
  await expect(redeem(word)).rejects.toThrow(/Too many wrong codes were tried. Try again in \d+ s/);
});
