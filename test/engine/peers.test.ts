// Questions between gateways over a real nats-server.

import { randomBytes } from "node:crypto";
import { connect, createServer, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Peers } from "../../src/contracts/engine/peers.js";
import { type Engine, openEngine } from "../../src/store/nats/connection.js";
import { openPeers } from "../../src/store/nats/peers.js";
import { listenOnLoopback } from "../fixtures/loopback.js";
import { type Nats, NO_NATS, natsPrograms, startNats } from "../fixtures/nats.js";
import { sleep, until } from "../fixtures/wait.js";

const title = natsPrograms.length === 0 ? `gateways that ask each other, ${NO_NATS}` : "gateways that ask each other";
const KEY = randomBytes(32);

describe.skipIf(natsPrograms.length === 0)(title, () => {
  let nats: Nats;
  const engines: Engine[] = [];
  let a: Peers;
  let b: Peers;

  beforeAll(async () => {
    nats = await startNats();
    a = await peers("a");
    b = await peers("b");
  });
  afterAll(async () => {
    for (const engine of engines) await engine.close();
  });

  async function engine(ports = nats.nodes.map(({ port }) => port)): Promise<Engine> {
    const nodes = ports.map((port) => ({ host: "127.0.0.1", port }));
    const rest = { tls: undefined, auth: undefined, monitor: undefined, replicas: 1, prefix: "tw" };
    const opened = await openEngine({ ...rest, nodes, key: { from: "env", name: "KEY" } }, { env: { KEY: "unused" } });
    engines.push(opened);
    return opened;
  }

  async function peers(self: string, key: Uint8Array = KEY): Promise<Peers> {
    return openPeers({ engine: await engine(), prefix: "tw", self, key });
  }

  it("get an answer, however long it or the question is, byte for byte [peers-answer]", async () => {
    b.answer("echo", async (from, body) => Buffer.concat([Buffer.from(from), body]));
    for (const size of [0, 10, 256 * 1024, 256 * 1024 + 1, 3_000_000]) {
      const body = randomBytes(size);
      const answer = await a.ask("b", "echo", body, { timeoutMs: 10_000 });
      expect(Buffer.compare(answer, Buffer.concat([Buffer.from("a"), body]))).toBe(0);
    }
  });

  it("get an answer that was there while the gateway which gives it had lost its connection [peers-answer]", async () => {
    const lines = new Set<Socket>();
    let isCut = false;
    const way = createServer((near) => {
      if (isCut) return void near.destroy();
      const far = connect(nats.nodes[0]?.port ?? 0, "127.0.0.1");
      for (const [one, other] of [
        [near, far],
        [far, near],
      ] as const) {
        lines.add(one);
        one.on("error", () => {});
        one.pipe(other);
        one.on("close", () => other.destroy());
      }
    });
    const port = await listenOnLoopback(way);
    const behind = await engine([port]);
    let watching = 0;
    const watched = {
      connection: behind.connection,
      get status() {
        return behind.status;
      },
      watch(listener: Parameters<Engine["watch"]>[0]) {
        const end = behind.watch(listener);
        watching++;
        return () => {
          watching--;
          end();
        };
      },
    };
    const d = await openPeers({ engine: watched, prefix: "tw", self: "d", key: KEY });
    let answer = (_: Uint8Array) => {};
    let isAsked = false;
    d.answer("later", () => {
      isAsked = true;
      return new Promise((resolve) => {
        answer = resolve;
      });
    });
    const asked = a.ask("d", "later", new Uint8Array(0), { timeoutMs: 30_000 });
    await until("the question", () => isAsked);
    isCut = true;
    for (const line of lines) line.destroy();
    await until("the loss", () => behind.status.state === "away");
    answer(Buffer.from("late"));
    await sleep(100);
    isCut = false;
    expect(Buffer.from(await asked).toString()).toBe("late");
    await until("the connection", () => behind.status.state === "connected");
    // Nor does such a wait hold up the end of the program.
    const given = new AbortController();
    isAsked = false;
    const left = a.ask("d", "later", new Uint8Array(0), { timeoutMs: 30_000, signal: given.signal });
    await until("the question", () => isAsked);
    isCut = true;
    for (const line of lines) line.destroy();
    await until("the loss", () => behind.status.state === "away");
    const before = watching;
    answer(Buffer.from("late"));
    await until("the wait", () => watching > before);
    await d.close();
    await until("its end", () => watching === before, 2_000);
    given.abort();
    await expect(left).rejects.toMatchObject({ code: "late" });
    await behind.close();
    way.close();
  });

  it("have streams both ways that come whole, and end with an error when a gateway is gone [peers-answer]", async () => {
    b.accept("pipe", (stream) => {
      stream.on("error", () => {});
      stream.pipe(stream);
    });
    const sent = randomBytes(3_000_000);
    const stream = await a.connect("b", "pipe");
    stream.end(sent);
    const parts: Buffer[] = [];
    for await (const part of stream) parts.push(part as Buffer);
    expect(Buffer.compare(Buffer.concat(parts), sent)).toBe(0);
    const short = await peers("short");
    short.accept("pipe", (one) => one.on("error", () => {}));
    const cut = await a.connect("short", "pipe");
    let error: unknown;
    cut.on("error", (one) => {
      error = one;
    });
    await short.close();
    await until("the end of the stream", () => error !== undefined);
    expect(error).toMatchObject({ code: "late" });
    await expect(a.connect("nobody", "pipe")).rejects.toMatchObject({ code: "away" });
  });

  it("are told at once where nobody of that name is there, or nobody knows what is asked [peers-answer]", async () => {
    const body = Buffer.from("x");
    await expect(a.ask("nobody", "echo", body, { timeoutMs: 600_000 })).rejects.toMatchObject({ code: "away" });
    await expect(a.ask("b", "unheard", body, { timeoutMs: 600_000 })).rejects.toMatchObject({
      code: "away",
      message: 'Gateway b knows no "unheard": it was not begun.',
    });
  });

  it("are told that the outcome is unknown where no answer comes, and in the other's words why it could not [peers-answer]", async () => {
    let begun = 0;
    b.answer("silent", () => {
      begun++;
      return new Promise(() => {});
    });
    b.answer("refuses", async () => {
      throw new Error("The disk is full.");
    });
    const body = Buffer.from("x");
    await expect(a.ask("b", "silent", body, { timeoutMs: 50 })).rejects.toMatchObject({ code: "late" });
    const given = new AbortController();
    const asked = a.ask("b", "silent", body, { timeoutMs: 600_000, signal: given.signal });
    await until("it to be begun", () => begun === 2);
    given.abort();
    await expect(asked).rejects.toMatchObject({ code: "late" });
    await expect(a.ask("b", "refuses", body, { timeoutMs: 5_000 })).rejects.toMatchObject({
      code: "failed",
      message: "The disk is full.",
    });
    // It was done: nobody may take it for refused.
    b.answer("says too much", async () => new Uint8Array(17 * 1024 * 1024));
    await expect(a.ask("b", "says too much", body, { timeoutMs: 5_000 })).rejects.toMatchObject({
      code: "late",
      message: "The answer is too long for what is under way.",
    });
  });

  it("have room for others while questions that nobody waits for any more are still under way [bounded]", async () => {
    let begun = 0;
    b.answer("waits", () => {
      begun++;
      return new Promise(() => {});
    });
    b.answer("echo", async (_, body) => body);
    const body = Buffer.from("x");
    const given = Array.from({ length: 1_024 }, () => new AbortController());
    const asked = given.map(({ signal }) =>
      a.ask("b", "waits", body, { timeoutMs: 120_000, signal }).catch((error: { code: string }) => error.code),
    );
    await until("them to be begun", () => begun === asked.length);
    await expect(a.ask("b", "echo", body, { timeoutMs: 5_000 })).rejects.toMatchObject({ code: "busy" });
    for (const one of given) one.abort();
    expect(new Set(await Promise.all(asked))).toEqual(new Set(["late"]));
    expect(Buffer.from(await a.ask("b", "echo", body, { timeoutMs: 5_000 })).toString()).toBe("x");
  });

  it("show nothing of what they say to whoever reads the engine's traffic, and answer nobody without the key [engine-sealed]", async () => {
    const heard: Buffer[] = [];
    const spy = await engine();
    spy.connection.subscribe(">", {
      callback: (_, message) => {
        heard.push(Buffer.from(message.data));
      },
    });
    await spy.connection.flush();
    b.answer("echo", async (_, body) => body);
    const secret = "a-secret-argument";
    await a.ask("b", "echo", Buffer.from(secret), { timeoutMs: 5_000 });
    await until("both messages", () => heard.length >= 2);
    for (const one of heard) expect(one.includes(secret) || one.includes("echo")).toBe(false);
    const stranger = await peers("c", randomBytes(32));
    await expect(stranger.ask("b", "echo", Buffer.from("x"), { timeoutMs: 200 })).rejects.toMatchObject({
      code: "late",
    });
    // What was said to one is of no use at another, nor is anything that is changed.
    const [question] = heard as [Buffer];
    const again = (bytes: Uint8Array, to: string) => spy.connection.request(`tw.peer.${to}`, bytes, { timeout: 200 });
    await expect(again(question, "a")).rejects.toMatchObject({ name: "TimeoutError" });
    await expect(again(Buffer.concat([question.subarray(0, -1), Buffer.from([0, 1])]), "b")).rejects.toMatchObject({
      name: "TimeoutError",
    });
  });
});
