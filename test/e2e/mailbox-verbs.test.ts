// The operator's verbs about mailboxes, beside a real broker, with clients that know the frames alone.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { afterAll, beforeAll, expect, it } from "vitest";
import { BareClient, closeBareClients } from "../fixtures/mailbox/bare-client.js";
import { cli, root, temporaryDirectory, until } from "./harness.js";
import { freshId, runCli, statusOfAll } from "./operator.js";

let broker: ChildProcess;
let url: string;
let state: string;
const tokens: Record<string, string> = {};

beforeAll(async () => {
  state = await temporaryDirectory();
  broker = spawn(process.execPath, [cli, "broker", "--listen", "127.0.0.1:0", "--state", state, "--json"], {
    cwd: root,
  });
  const [line] = (await once(broker.stdout as NodeJS.ReadableStream, "data")) as [Buffer];
  url = (JSON.parse(line.toString()) as { broker: string }).broker;
  const make = async (id: string, ...more: string[]) => {
    tokens[id] = (await toolway("token", "create", "--id", id, ...more)).out.trim();
  };
  await Promise.all([make("studio", "--role", "sharer"), make("worker-1", "--role", "dev", "--may-send-to", "studio")]);
});
afterAll(() => {
  closeBareClients();
  broker.kill();
});

const toolway = (...words: string[]) => runCli(...words, "--state", state);
const connect = (id: string) => BareClient.connect(url, id, tokens[id] ?? "", { version: 1 });

async function json<T>(...words: string[]): Promise<T> {
  const { code, out, err } = await toolway(...words, "--json");
  expect([code, err]).toEqual([0, ""]);
  return JSON.parse(out) as T;
}

it("show what waits and what failed, send it again, and drop it with an answer to its sender [status-true]", async () => {
  const worker = await connect("worker-1");
  worker.send({ kind: "subscribe" });
  worker.send({ kind: "credit", messages: 10 });
  for (const id of ["m-1", "m-2"]) {
    worker.deliver("studio", id, { secret: "the body" });
    await worker.next("delivered");
  }
  const list = await json<{ mailboxes: { mailbox: string; waiting: number }[] }>("mailbox", "list");
  expect(list.mailboxes[0]).toMatchObject({ mailbox: "studio", waiting: 2, leased: 0, dead: 0, connections: 0 });
  const shown = await toolway("mailbox", "show", "studio");
  expect(shown.out).toMatch(/m-1 +worker-1 +mcp_request .* waiting +0\n/);
  expect(shown.out).not.toContain("the body");

  const studio = await connect("studio");
  studio.send({ kind: "subscribe" });
  studio.send({ kind: "credit", messages: 100 });
  for (let failed = 0; failed < 5; ) {
    const { id } = await studio.message();
    if (id !== "m-1") continue;
    failed++;
    studio.send({ kind: "release", id, from: "worker-1", failed: true, reason: "no brush" });
  }
  const told = await worker.message();
  expect(told["correlation_id"]).toBe("m-1");
  worker.send({ kind: "ack", id: told.id, from: "studio" });
  expect((await toolway("mailbox", "dead", "studio")).out).toMatch(/m-1 +worker-1 .*no brush/);
  const { id } = await json<{ id: string }>("mailbox", "retry", "studio", "m-1", "--yes");
  expect((await studio.message()).id).toBe(id);

  expect(await json("mailbox", "drop", "studio", "m-2", "--yes")).toMatchObject({ messages: 1 });
  const dropped = await worker.message();
  expect(dropped["body"]).toMatchObject({ error: expect.stringContaining("dropped by the operator") });
  worker.send({ kind: "ack", id: dropped.id, from: "studio" });
  await until("the answers to be taken", async () => {
    const { mailboxes } = await statusOfAll({ stateDir: state });
    return mailboxes?.waiting === 0;
  });
  const taken = await json<typeof list>("mailbox", "list");
  expect(taken.mailboxes.find(({ mailbox }) => mailbox === "worker-1")?.waiting).toBe(0);
  const { out } = await toolway("status");
  expect(out).toMatch(
    /mailboxes +\d+ mailboxes in use; 0 waiting, 1 leased, 0 dead letters; 2 connections; the oldest/,
  );
  const typo = await toolway("mailbox", "show", "studoi");
  expect(typo.code).toBe(2);
  expect(typo.err).toContain("Did you mean studio?");
});

it("watch counts until Ctrl-C, which is 0", async () => {
  const watch = spawn(process.execPath, [cli, "mailbox", "watch", "studio", "--state", state, "--json"], { cwd: root });
  let out = "";
  watch.stdout.on("data", (chunk: Buffer) => {
    out += chunk.toString();
  });
  await until("the first line", () => out.includes("\n"));
  const before = JSON.parse(out.trim()) as { waiting: number; leased: number };
  const worker = await connect("worker-1");
  worker.deliver("studio", "m-3");
  await worker.next("delivered");
  const total = before.waiting + before.leased;
  await until("the line of the change", () => {
    const { waiting, leased } = JSON.parse(out.trim().split("\n").at(-1) ?? "") as { waiting: number; leased: number };
    return waiting + leased === total + 1;
  });
  watch.kill("SIGINT");
  expect((await once(watch, "exit"))[0]).toBe(0);
});

it("rotate a token: whoever is in stays, and both secrets let in until the old one is revoked [token-ends]", async () => {
  const before = await connect("worker-1");
  const { out } = await toolway("token", "rotate", "worker-1");
  const after = await BareClient.connect(url, "worker-1", out.trim());
  const still = await connect("worker-1");
  before.deliver("studio", "m-4");
  expect(await before.next("delivered", "error")).toMatchObject({ kind: "delivered" });
  expect((await toolway("token", "list")).out).toMatch(/worker-1 .*old secret until \d\d/);
  await toolway("token", "revoke", "worker-1");
  for (const client of [before, after, still]) await expect(client.next("nothing")).rejects.toThrow("ended");
});

/** With a token that ends soon. On a busy machine that may be before a process and a connection are there: then it has longer. */
async function connectBriefly(): Promise<BareClient> {
  for (let leftMs = 3_000; ; leftMs *= 2) {
    const id = freshId("brief");
    const soon = new Date(Date.now() + leftMs).toISOString();
    const made = await toolway(
      "token",
      "create",
      "--id",
      id,
      "--role",
      "dev",
      "--may-send-to",
      "studio",
      "--expires",
      soon,
    );
    const came = await BareClient.connect(url, id, made.out.trim()).catch((error: Error) => error);
    if (came instanceof BareClient) return came;
    if (leftMs > 30_000) throw new Error(`${made.err}${came.message}`);
  }
}

it("a token that expires ends the sockets of its mailbox soon after, and nobody else's [token-ends]", async () => {
  const brief = await connectBriefly();
  const studio = await connect("studio");
  await expect(brief.next("nothing")).rejects.toThrow("ended");
  studio.send({ kind: "nonsense" });
  expect(await studio.next("error")).toMatchObject({ reason: expect.stringContaining("no frame of the kind") });
});
