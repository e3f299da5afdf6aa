// An agent on stdio and the gateways it is joined to, one after another: both ends are played over pipes in memory.

import { Duplex, PassThrough } from "node:stream";
import { expect, it, vi } from "vitest";
import type { JsonObject } from "../../protocol/jsonrpc.js";
import { joinGateway } from "./stdio-join.js";

/** Above what anything here takes on a busy machine; only reached where a test fails. */
const SOON = { timeout: 60_000, interval: 20 };

class Gateway {
  readonly heard: JsonObject[] = [];
  readonly #toAgent = new PassThrough();
  readonly socket: Duplex;

  constructor() {
    const fromAgent = new PassThrough();
    this.socket = Duplex.from({ writable: fromAgent, readable: this.#toAgent });
    let rest = "";
    fromAgent.on("data", (chunk: Buffer) => {
      const lines = (rest + chunk.toString()).split("\n");
      rest = lines.pop() ?? "";
      this.heard.push(...lines.map((line) => JSON.parse(line) as JsonObject));
    });
  }

  says(message: object): void {
    this.#toAgent.write(`${JSON.stringify(message)}\n`);
  }

  saysRaw(...parts: (string | Buffer)[]): void {
    for (const part of parts) this.#toAgent.write(part);
  }

  ids(): unknown[] {
    return this.heard.map(({ id, method }) => id ?? method);
  }

  dies(): void {
    this.socket.destroy();
  }
}

function join() {
  const [input, output] = [new PassThrough(), new PassThrough()];
  const abort = new AbortController();
  const gateways: Gateway[] = [];
  const waiting: ((gateway: Gateway) => void)[] = [];
  const got: JsonObject[] = [];
  let rest = "";
  output.on("data", (chunk: Buffer) => {
    const lines = (rest + chunk.toString()).split("\n");
    rest = lines.pop() ?? "";
    got.push(...lines.map((line) => JSON.parse(line) as JsonObject));
  });
  const done = joinGateway({
    input,
    output,
    signal: abort.signal,
    connect: () => new Promise<Gateway>((resolve) => waiting.push(resolve)).then(({ socket }) => socket),
  });
  /** A gateway is there, or there again. */
  const next = async (): Promise<Gateway> => {
    await isAlone();
    const gateway = new Gateway();
    gateways.push(gateway);
    waiting.shift()?.(gateway);
    return gateway;
  };
  const say = (message: object) => void input.write(`${JSON.stringify(message)}\n`);
  const answers = () => got.map(({ id, result, error }) => [id, (error as JsonObject)?.["code"] ?? result]);
  const isAlone = () => vi.waitFor(() => expect(waiting.length).toBeGreaterThan(0), SOON);
  return { input, output, abort, done, next, isAlone, say, got, answers };
}

const request = (id: unknown, method = "tools/call") => ({ jsonrpc: "2.0", id, method });
const INITIALIZE = { ...request(0, "initialize"), params: { protocolVersion: "2025-11-25" } };
const INITIALIZED = { jsonrpc: "2.0", method: "notifications/initialized" };

async function begun() {
  const joined = join();
  const first = await joined.next();
  joined.say(INITIALIZE);
  await vi.waitFor(() => expect(first.ids()).toEqual([0]), SOON);
  first.says({ jsonrpc: "2.0", id: 0, result: {} });
  joined.say(INITIALIZED);
  await vi.waitFor(() => expect(first.heard).toHaveLength(2), SOON);
  await vi.waitFor(() => expect(joined.got).toHaveLength(1), SOON);
  joined.got.length = 0;
  return { ...joined, first };
}

it("carries lines both ways, and ends with the agent's input once the gateway has answered", async () => {
  const { first, say, answers, input, done } = await begun();
  say(request("a"));
  await vi.waitFor(() => expect(first.ids().at(-1)).toBe("a"), SOON);
  input.end();
  first.says({ jsonrpc: "2.0", id: "a", result: "late" });
  await vi.waitFor(() => expect(answers()).toEqual([["a", "late"]]), SOON);
  first.dies();
  await done;
});

it("answers what was in flight when the gateway went, and begins the session anew unseen [restart-unseen]", async () => {
  const { first, say, answers, got, next } = await begun();
  for (const id of [1, "two", 3]) say(request(id));
  await vi.waitFor(() => expect(first.ids()).toHaveLength(5), SOON);
  first.says({ result: {}, id: 3, jsonrpc: "2.0" });
  await vi.waitFor(() => expect(answers()).toHaveLength(1), SOON);
  first.dies();
  await vi.waitFor(() => expect(answers()).toHaveLength(3), SOON);
  expect(answers().slice(1)).toEqual([
    [1, -31003],
    ["two", -31003],
  ]);
  // Meanwhile the agent goes on; this waits.
  say(request(4));
  const second = await next();
  await vi.waitFor(() => expect(second.heard).toHaveLength(1), SOON);
  expect(second.heard[0]).toMatchObject({ method: "initialize", params: INITIALIZE.params });
  second.says({ jsonrpc: "2.0", id: second.heard[0]?.["id"], result: {} });
  await vi.waitFor(() => expect(second.ids().slice(1)).toEqual(["notifications/initialized", 4]), SOON);
  second.says({ jsonrpc: "2.0", id: 4, result: "here" });
  await vi.waitFor(() => expect(answers().at(-1)).toEqual([4, "here"]), SOON);
  expect(got).toHaveLength(4);
});

it("counts neither what was taken back nor what a batch brought as lost twice or never", async () => {
  const { first, say, answers, next } = await begun();
  say(request(1));
  say({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 1 } });
  say([request(2), request(3), { jsonrpc: "2.0", method: "notifications/x" }]);
  await vi.waitFor(() => expect(first.heard).toHaveLength(5), SOON);
  first.dies();
  await next();
  expect(answers()).toEqual([
    [2, -31003],
    [3, -31003],
  ]);
});

it("survives a gateway that breaks off while the session is begun anew", async () => {
  const { first, say, answers, next } = await begun();
  first.dies();
  const second = await next();
  await vi.waitFor(() => expect(second.heard).toHaveLength(1), SOON);
  second.socket.destroy(new Error("ECONNRESET"));
  say(request(5));
  const third = await next();
  await vi.waitFor(() => expect(third.heard).toHaveLength(1), SOON);
  third.says({ jsonrpc: "2.0", id: third.heard[0]?.["id"], result: {} });
  await vi.waitFor(() => expect(third.ids().at(-1)).toBe(5), SOON);
  third.says({ jsonrpc: "2.0", id: 5, result: "here" });
  await vi.waitFor(() => expect(answers()).toEqual([[5, "here"]]), SOON);
});

it("answers what cannot wait, and what cannot be passed on [bounded]", async () => {
  const { first, say, input, answers, next, isAlone } = await begun();
  first.dies();
  await isAlone();
  const blob = "x".repeat(6 * 1024 * 1024);
  for (const id of [1, 2, 3]) say({ ...request(id), params: { blob } });
  await vi.waitFor(() => expect(answers()).toEqual([[3, -31006]]), SOON);
  const second = await next();
  await vi.waitFor(() => expect(second.heard).toHaveLength(1), SOON);
  second.says({ jsonrpc: "2.0", id: second.heard[0]?.["id"], result: {} });
  await vi.waitFor(() => expect(second.ids().slice(2)).toEqual([1, 2]), SOON);
  const huge = Buffer.alloc(33 * 1024 * 1024, 0x20);
  second.saysRaw('{"jsonrpc":"2.0","id":1,"result":{', huge, huge, "}}\n");
  second.saysRaw('{"result":{', huge, huge, '},"id":2}\n');
  await vi.waitFor(
    () =>
      expect(answers().slice(1)).toEqual([
        [1, -31006],
        [2, -31006],
      ]),
    SOON,
  );
  input.write(huge);
  input.write(huge);
  input.write("\n");
  await vi.waitFor(() => expect(answers().at(-1)).toEqual([null, -31006]), SOON);
});

it("does not read on from a gateway while the agent does not [bounded]", async () => {
  const { first, output } = await begun();
  output.pause();
  const line = `{"jsonrpc":"2.0","method":"notifications/x","params":{"blob":"${"x".repeat(60_000)}"}}\n`;
  for (let i = 0; i < 400; i++) first.saysRaw(line);
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(output.writableLength + output.readableLength).toBeLessThan(4 * 1024 * 1024);
  output.resume();
  first.says({ jsonrpc: "2.0", method: "notifications/last" });
  await vi.waitFor(() => expect(output.readableLength).toBe(0), SOON);
});

it("ends at once when it is told to", async () => {
  const { say, abort, done } = await begun();
  say(request(1));
  abort.abort();
  await done;
});
