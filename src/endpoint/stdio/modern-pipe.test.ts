// Both eras on one pipe, message by message.

import { PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import { capabilities, hello, MODERN_META, rpc, until } from "../../../test/fixtures/endpoint/http.js";
import { note, TestService } from "../../../test/fixtures/endpoint/service.js";
import type { EndpointLimits } from "../session/limits.js";
import { createStdioEndpoint, type ExtraLines, type StdioEndpoint } from "./stdio.js";

const ID = "io.modelcontextprotocol/subscriptionId";

interface Pipe {
  readonly service: TestService;
  readonly endpoint: StdioEndpoint;
  readonly input: PassThrough;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into whatever came
  readonly lines: any[];
  write(message: unknown): void;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into whatever came
  answer(id: number | string): Promise<any>;
}

function pipe(limits: Partial<EndpointLimits> = {}, extraLines?: ExtraLines): Pipe {
  const service = new TestService();
  const input = new PassThrough();
  const output = new PassThrough();
  const lines: Pipe["lines"] = [];
  let rest = "";
  output.on("data", (chunk: Buffer) => {
    const parts = (rest + chunk.toString()).split("\n");
    rest = parts.pop() ?? "";
    for (const part of parts) lines.push(JSON.parse(part));
  });
  const principal = { id: "local", role: "default" };
  const endpoint = createStdioEndpoint({
    service,
    input,
    output,
    principal,
    limits,
    ...(extraLines && { extraLines }),
  });
  const find = (id: number | string) => lines.find((line) => line.id === id && line.method === undefined);
  return {
    service,
    endpoint,
    input,
    lines,
    write: (message) => void input.write(`${JSON.stringify(message)}\n`),
    async answer(id) {
      await until(() => find(id) !== undefined);
      return find(id);
    },
  };
}

const modern = (id: number | string, method: string, params: object = {}, meta: object = {}) =>
  rpc(id, method, { ...params, _meta: { ...MODERN_META, ...meta } });
const tool = (id: number | string, name: string, args: object = {}, meta: object = {}, params: object = {}) =>
  modern(id, "tools/call", { name, arguments: args, ...params }, meta);

describe("a modern agent over stdio", () => {
  it("discovers, calls and is refused without any handshake", async () => {
    const { write, answer, service } = pipe();
    write(modern(1, "server/discover"));
    write(rpc(2, "server/discover"));
    write(modern(3, "server/discover", {}, { "io.modelcontextprotocol/protocolVersion": "2031-01-01" }));
    write(tool(4, "echo", { a: 1 }));
    write(modern(5, "ping"));
    write(tool(6, "stream", { size: 100_000 }));
    write(modern(7, "tools/list", {}, { "io.modelcontextprotocol/clientCapabilities": undefined }));
    expect((await answer(1)).result).toMatchObject({ resultType: "complete", ttlMs: 0 });
    expect((await answer(2)).error.code).toBe(-32602);
    expect((await answer(3)).error).toMatchObject({ code: -32022, data: { requested: "2031-01-01" } });
    expect((await answer(4)).result).toMatchObject({ resultType: "complete", content: [{ text: '{"a":1}' }] });
    expect((await answer(5)).error.code).toBe(-32601);
    expect((await answer(6)).result.text).toHaveLength(100_000);
    expect((await answer(7)).error.code).toBe(-32602);
    expect(service.opened).toHaveLength(1);
  });

  it("has nothing of a long line taken where it is gone before that was read [bounded]", async () => {
    const { write, input, service, endpoint } = pipe();
    const nextTurn = () => new Promise((resolve) => setImmediate(resolve));
    write(tool(1, "hold", { x: "x".repeat(2_000_000) }));
    write(tool(2, "hold"));
    while (!input.isPaused()) await nextTurn();
    input.destroy();
    await endpoint.closed;
    for (let n = 0; n < 50; n++) await nextTurn();
    expect(service.held).toEqual([]);
  });

  it("shares the pipe with a legacy session", async () => {
    const { write, answer, service, lines } = pipe();
    write(hello("2025-11-25", { sampling: {} }));
    write({ jsonrpc: "2.0", method: "notifications/initialized" });
    write(rpc(1, "test/who"));
    write(tool(2, "who"));
    expect((await answer(1)).result).toEqual({ text: "local undefined 2025-11-25" });
    expect((await answer(2)).result.content[0].text).toBe("local undefined 2026-07-28");
    expect(service.opened.map(({ era }) => era)).toEqual(["legacy", "modern"]);
    const before = lines.length;
    for (const session of service.opened) session.notify(note("notifications/tools/list_changed"));
    await until(() => lines.length === before + 1);
    // The same question is a request to the one, and a result to the other.
    write(rpc(3, "test/sampling"));
    write(tool(4, "sampling", {}, capabilities({ sampling: {} })));
    expect((await answer(4)).result.resultType).toBe("input_required");
    expect(lines.filter((line) => line.method === "sampling/createMessage")).toHaveLength(1);
  });

  it("cancels requests by their ids, of either era", async () => {
    const { write, service, lines, answer } = pipe();
    const cancel = (requestId: number) =>
      write({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId, reason: `no ${requestId}` } });
    write(hello());
    write(rpc(1, "test/hold"));
    write(tool(2, "hold"));
    write(tool(2, "echo"));
    await until(() => service.held.length === 2);
    expect((await answer(2)).error.code).toBe(-32600);
    cancel(2);
    cancel(1);
    cancel(99);
    await until(() => service.cancelled.length === 2);
    expect(service.cancelled).toEqual(["no 2", "no 1"]);
    for (const held of service.held) held.reply({ kind: "result", result: {} });
    write(tool(3, "echo"));
    await answer(3);
    expect(lines.filter((line) => line.id === 1 || line.id === 2)).toHaveLength(1);
  });

  it("gets the questions of a server as a result, and the end of its call after the answers", async () => {
    const { write, answer } = pipe();
    const ask = { rounds: [[{ method: "elicitation/create", params: { message: "?" } }]] };
    const meta = capabilities({ elicitation: {} });
    write(tool(1, "rounds", ask, meta));
    const { inputRequests, requestState } = (await answer(1)).result;
    const [key = ""] = Object.keys(inputRequests);
    const accepted = { action: "accept", content: {} };
    write(tool(2, "rounds", ask, meta, { requestState: `${requestState}x`, inputResponses: { [key]: accepted } }));
    expect((await answer(2)).error.code).toBe(-32602);
    write(
      tool(3, "rounds", ask, { ...meta, progressToken: "p" }, { requestState, inputResponses: { [key]: accepted } }),
    );
    expect(JSON.parse((await answer(3)).result.content[0].text)).toEqual([accepted]);
  });

  it("carries several subscriptions, told apart by their ids, until they are cancelled or all is over", async () => {
    const { write, lines, service, input, endpoint, answer } = pipe();
    const filter = { toolsListChanged: true };
    write(modern("a", "subscriptions/listen", { notifications: filter }));
    write(modern("b", "subscriptions/listen", { notifications: { ...filter, resourceSubscriptions: ["test://a"] } }));
    await until(() => lines.length === 2);
    expect(lines.map(({ method, params }) => [method, params._meta[ID]])).toEqual([
      ["notifications/subscriptions/acknowledged", "a"],
      ["notifications/subscriptions/acknowledged", "b"],
    ]);
    service.opened[0]?.notify(note("notifications/tools/list_changed"));
    await until(() => lines.length === 4);
    expect(lines.slice(2).map(({ params }) => params._meta[ID])).toEqual(["a", "b"]);
    write({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: "a" } });
    write(tool(1, "echo"));
    await answer(1);
    service.opened[0]?.notify(note("notifications/tools/list_changed"));
    await until(() => lines.length === 6);
    expect(lines[5].params._meta[ID]).toBe("b");
    input.end();
    await endpoint.closed;
    expect(lines.at(-1)).toMatchObject({ id: "b", result: { resultType: "complete", _meta: { [ID]: "b" } } });
    expect(service.subscribed.get("test://a")?.size).toBe(0);
    expect(service.closed).toHaveLength(1);
  });
});

describe("another gateway over a stream", () => {
  it("is told at the end how many of its lines were taken, and not what became of calls that go on [placement-one]", async () => {
    const taken = (lines: number) => JSON.stringify({ taken: lines });
    const { write, input, lines, service, endpoint, answer } = pipe(
      {},
      {
        instead: (reply, id) => (reply.kind === "error" ? JSON.stringify({ moved: id }) : undefined),
        last: taken,
      },
    );
    write(tool(1, "echo", { text: "a" }));
    await answer(1);
    write(tool(2, "hold"));
    write(tool(3, "no such tool"));
    input.write("no message\n");
    await until(() => service.held.length === 1 && lines.length === 3);
    expect(lines[1]).toEqual({ moved: "3" });
    // A long line is read in turns, and those behind it wait for that: neither has been taken when it ends.
    write(tool(4, "hold", { text: "x".repeat(2 * 1024 * 1024) }));
    write(tool(5, "hold"));
    await endpoint.close();
    expect(lines.slice(3)).toEqual([{ taken: 4 }]);
    expect([service.held.length, service.cancelled.length]).toEqual([1, 1]);
  });
});
