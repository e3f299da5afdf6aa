// A call from the page, over the talk that a gateway would serve.

import type { Duplex } from "node:stream";
import { describe, expect, it } from "vitest";
import { until } from "../../../test/fixtures/wait.js";
import type { TryLine } from "../../contracts/control/tries.js";
import { tryRoutes } from "./tries.js";

interface Said {
  readonly id?: number;
  readonly method?: string;
  readonly params?: Record<string, unknown>;
  readonly result?: unknown;
}

/** A gateway that hears all that is said, and says what the test wants. */
function gateway() {
  const heard: Said[] = [];
  let wire: Duplex | undefined;
  let end = () => {};
  const say = (message: object) => wire?.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  const routes = tryRoutes((input) => {
    wire = input;
    input.on("data", (chunk: Buffer) => {
      for (const line of chunk.toString().trim().split("\n")) {
        const message = JSON.parse(line) as Said;
        heard.push(message);
        if (message.method === "initialize") say({ id: message.id, result: { protocolVersion: "2025-11-25" } });
      }
    });
    return new Promise((done) => {
      end = done;
      input.once("end", () => done());
    });
  });
  const call = (body: unknown, signal = new AbortController().signal) => {
    const answer = routes["POST /try"]?.({ params: {}, query: new URLSearchParams(), body, signal });
    return (answer as { source: AsyncIterableIterator<TryLine> }).source;
  };
  const answer = (body: unknown) =>
    routes["POST /try/answer"]?.({
      params: {},
      query: new URLSearchParams(),
      body,
      signal: new AbortController().signal,
    });
  const called = () => until("the call to be made", () => heard.some(({ method }) => method === "tools/call"));
  return { heard, say, call, answer, called, end: () => end() };
}

const ADD = { server: "s", tool: "s__add", arguments: { a: 1 } };

describe("a call from the page", () => {
  it("tells its progress, its questions and its result, and hears the answers", async () => {
    const { heard, say, call, answer, called } = gateway();
    const lines = call(ADD);
    expect((await lines.next()).value).toEqual({ id: 1 });
    await called();
    expect(heard.find(({ method }) => method === "tools/call")?.params).toMatchObject({
      name: "s__add",
      arguments: { a: 1 },
      _meta: { progressToken: 1 },
    });
    say({ method: "notifications/progress", params: { progressToken: 1, progress: 1, total: 2, message: "half" } });
    expect((await lines.next()).value).toEqual({ progress: { progress: 1, total: 2, message: "half" } });
    say({ id: "q", method: "elicitation/create", params: { message: "Sure?", requestedSchema: { type: "object" } } });
    expect((await lines.next()).value).toEqual({ question: { id: "q", message: "Sure?", schema: { type: "object" } } });
    expect(() => answer({ id: 1, question: "other", action: "accept" })).toThrow("Nobody waits");
    expect(() => answer({ id: 1, question: "q", action: "rm" })).toThrow("accept, decline or cancel");
    answer({ id: 1, question: "q", action: "accept", content: { yes: true } });
    await until("the answer", () => heard.some(({ result }) => result !== undefined));
    expect(heard.at(-1)).toMatchObject({ id: "q", result: { action: "accept", content: { yes: true } } });
    say({ id: 2, result: { content: [] } });
    expect((await lines.next()).value).toEqual({ result: { content: [] } });
    expect((await lines.next()).done).toBe(true);
    expect(() => answer({ id: 1, question: "q", action: "accept" })).toThrow("has ended");
  });

  it("is taken back where the page has gone, and says so where the gateway has", async () => {
    const { heard, call, called, end } = gateway();
    const gone = new AbortController();
    const lines = call(ADD, gone.signal);
    await lines.next();
    await called();
    gone.abort();
    expect((await lines.next()).done).toBe(true);
    await until("the call to be cancelled", () => heard.some(({ method }) => method === "notifications/cancelled"));
    const other = call(ADD);
    await other.next();
    end();
    expect((await other.next()).value).toMatchObject({ error: { message: "The gateway ended the call." } });
  });

  it("is one of few, its unread progress is bounded, and what is no call is refused [bounded]", async () => {
    const { say, call, called } = gateway();
    for (const wrong of [undefined, {}, { ...ADD, arguments: [] }, { ...ADD, server: 1 }]) {
      expect(() => call(wrong)).toThrow();
    }
    const lines = call(ADD);
    await called();
    for (let n = 0; n < 1_000; n++) say({ method: "notifications/progress", params: { progress: n } });
    say({ id: 2, result: {} });
    let count = 0;
    let last: unknown;
    for await (const line of lines) {
      count++;
      last = line;
    }
    expect(count).toBeLessThanOrEqual(256);
    expect(last).toEqual({ result: {} });
    for (let n = 0; n < 16; n++) call(ADD);
    expect(() => call(ADD)).toThrow("16 calls");
  });
});
