import { connect, createServer } from "node:net";
import { PassThrough } from "node:stream";
import { afterEach, describe, expect, it } from "vitest";
import { hello, rpc, send, startRig, stopRigs, stream, until } from "../../../test/fixtures/endpoint/http.js";
import { note, question, TestService } from "../../../test/fixtures/endpoint/service.js";
import { listenOnLoopback } from "../../../test/fixtures/loopback.js";
import type { EndpointLimits } from "../session/limits.js";
import { createStdioEndpoint, type StdioEndpoint } from "./stdio.js";

afterEach(stopRigs);

const PRINCIPAL = { id: "local", role: "default" };

interface Pipe {
  readonly service: TestService;
  readonly endpoint: StdioEndpoint;
  readonly input: PassThrough;
  readonly output: PassThrough;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into whatever came
  readonly lines: any[];
  write(message: unknown): void;
}

function pipe(limits: Partial<EndpointLimits> = {}): Pipe {
  const service = new TestService();
  const input = new PassThrough();
  const output = new PassThrough();
  const lines: unknown[] = [];
  let rest = "";
  output.on("data", (chunk: Buffer) => {
    const parts = (rest + chunk.toString()).split("\n");
    rest = parts.pop() ?? "";
    for (const part of parts) lines.push(tryParse(part));
  });
  const endpoint = createStdioEndpoint({ service, input, output, principal: PRINCIPAL, limits });
  const write = (message: unknown) => {
    input.write(`${typeof message === "string" ? message : JSON.stringify(message)}\n`);
  };
  return { service, endpoint, input, output, lines, write };
}

function tryParse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return { broken: text };
  }
}

describe("a legacy agent over stdio", () => {
  it("has one session from initialize on", async () => {
    const { service, lines, write, input, endpoint } = pipe();
    write(rpc("d", "server/discover"));
    write(rpc("l", "tools/list"));
    write(rpc("p", "ping"));
    write(hello("2025-06-18", { sampling: {} }));
    await until(() => lines.length === 4);
    expect(lines.map((line) => line.error?.code ?? Object.keys(line.result))).toEqual([
      -32602,
      -32600,
      [],
      ["protocolVersion", "capabilities", "serverInfo", "instructions"],
    ]);
    expect(service.opened).toHaveLength(0);
    write({ jsonrpc: "2.0", method: "notifications/initialized" });
    await until(() => service.opened.length === 1);
    service.opened[0]?.notify(note("notifications/tools/list_changed"));
    write(rpc(1, "test/sampling"));
    await until(() => lines.length === 6);
    write({ jsonrpc: "2.0", id: lines[5].id, result: { ok: 1 } });
    await until(() => lines.length === 7);
    expect(lines[6]).toMatchObject({ id: 1, result: { text: '{"ok":1}' } });
    write(rpc(2, "test/hold"));
    await until(() => service.held.length === 1);
    write({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 2 } });
    await until(() => service.cancelled.length === 1);
    write(rpc(3, "test/later", { ms: 100 }));
    input.end();
    await endpoint.closed;
    expect(lines.at(-1)).toMatchObject({ id: 3 });
    expect(service.closed).toHaveLength(1);
  });

  it("gets a tool's output as its server gives it, where it says that it takes that", async () => {
    for (const takesAnyOutput of [true, undefined] as const) {
      const service = new TestService();
      const input = new PassThrough();
      const more = takesAnyOutput === undefined ? {} : { takesAnyOutput };
      createStdioEndpoint({ service, input, output: new PassThrough(), principal: PRINCIPAL, ...more });
      input.write(`${JSON.stringify(hello())}\n${JSON.stringify(rpc(1, "test/hold"))}\n`);
      await until(() => service.held.length === 1);
      expect(service.held[0]?.caller.takesAnyOutput).toBe(takesAnyOutput);
    }
  });

  it("answers nothing more once its input has ended, though what it called for may end [bounded]", async () => {
    const { service, lines, write, input, endpoint } = pipe();
    write(hello("2025-06-18", { sampling: {} }));
    write(rpc(1, "test/sampling"));
    write(rpc(2, "test/hold"));
    await until(() => lines.some(({ method }) => method === "sampling/createMessage") && service.held.length === 1);
    input.end();
    await until(() => service.unanswered.length === 1);
    expect(service.unanswered[0]).toMatchObject({ code: "closing", message: expect.stringContaining("has gone") });
    // One that is asked after that is no better off.
    const late = service.held[0]?.caller.ask(question("sampling/createMessage"), new AbortController().signal);
    await expect(late).rejects.toMatchObject({ code: "closing" });
    service.held[0]?.reply({ kind: "result", result: { held: true } });
    await endpoint.closed;
    expect(lines.at(-1)).toMatchObject({ id: 2, result: { held: true } });
  });

  it("is told what is wrong with a message, and can go on [bounded]", async () => {
    const { lines, write } = pipe({ bodyBytes: 1000, depth: 10 });
    write(hello("2025-03-26"));
    write("{no json");
    write("[]");
    write('{"jsonrpc":"2.0"}');
    write(`"${"x".repeat(5000)}"`);
    write("[".repeat(50));
    write("");
    write([rpc(1, "test/echo"), rpc(2, "test/later"), { jsonrpc: "2.0", method: "notifications/x" }]);
    write(rpc(3, "ping"));
    await until(() => lines.length === 8);
    expect(lines.slice(1, 6).map((line) => [line.id, line.error.code])).toEqual([
      [null, -32700],
      [null, -32600],
      [null, -32600],
      [null, -31006],
      [null, -32600],
    ]);
    expect(lines[6]).toMatchObject({ id: 3 });
    expect(lines[7].map((reply: { id: unknown }) => reply.id)).toEqual([1, 2]);
  });

  it("has its long lines read in turns, and nothing behind one overtakes it [bounded]", async () => {
    const { input, lines, service, endpoint } = pipe();
    const long = (id: number) => rpc(id, "ping", { x: "é".repeat(1_000_000) });
    const deep = `${"[".repeat(1_500_000)}`;
    const sent = [
      hello(),
      long(1),
      rpc(2, "ping"),
      deep,
      rpc(3, "ping"),
      long(4),
      rpc(5, "ping"),
      "",
      rpc(6, "test/echo"),
    ];
    // All in one chunk, and the end of the input right behind it.
    input.end(sent.map((message) => `${typeof message === "string" ? message : JSON.stringify(message)}\n`).join(""));
    let turns = 0;
    while (lines.length < 2) {
      await new Promise((resolve) => setImmediate(resolve));
      turns++;
    }
    expect(turns).toBeGreaterThan(5);
    await endpoint.closed;
    expect(lines.map(({ id }) => id)).toEqual([0, 1, 2, null, 3, 4, 5, 6]);
    expect(lines[3].error.message).toContain("nested deeper");
    expect(service.closed).toHaveLength(1);
  });

  it("gets large replies apart from what comes meanwhile, and is told when one broke off", async () => {
    const { lines, write, service } = pipe();
    write(hello());
    write(rpc(1, "test/stream", { size: 3_000_000 }));
    write(rpc(2, "test/echo"));
    write(rpc(3, "test/pretty"));
    await until(() => lines.length === 4);
    expect(lines.map((line) => line.id)).toEqual([0, 1, 2, 3]);
    expect(lines[1].result.text).toHaveLength(3_000_000);
    write(rpc(4, "test/torn"));
    await until(() => lines.length === 6);
    expect(lines[4].broken).toBeDefined();
    expect(lines[5]).toMatchObject({ id: 4, error: { data: { fault: "outcome-unknown" } } });
    write(rpc(5, "test/hold"));
    await until(() => service.held.length === 1);
    write(hello());
    await until(() => lines.length === 8);
    expect(lines[6]).toMatchObject({ id: 5, error: { data: { fault: "closing" } } });
  });

  it("has no more requests taken in while it does not read [bounded]", async () => {
    const { input, output, write, service } = pipe({ slowReaderBytes: 100_000 });
    output.pause();
    write(hello());
    for (let id = 1; id <= 200; id++) write(rpc(id, "test/large", { size: 10_000 }));
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(output.writableLength + output.readableLength).toBeLessThan(600_000);
    expect(input.isPaused()).toBe(true);
    for (let i = 0; i < 1000; i++) service.opened[0]?.notify(note("notifications/message", { data: "x".repeat(1000) }));
    expect(output.writableLength + output.readableLength).toBeLessThan(600_000);
    output.resume();
    await until(() => !input.isPaused() && input.readableLength === 0);
  });

  it("may be at a socket, and its calls are cancelled when it is gone", async () => {
    const service = new TestService();
    const server = createServer((socket) => {
      createStdioEndpoint({ service, input: socket, output: socket, principal: PRINCIPAL });
    });
    const port = await listenOnLoopback(server);
    const socket = connect(port, "127.0.0.1");
    let text = "";
    socket.on("data", (chunk) => {
      text += chunk.toString();
    });
    socket.write(`${JSON.stringify(hello())}\n${JSON.stringify(rpc(1, "test/hold"))}\n`);
    await until(() => service.held.length === 1);
    await until(() => text.includes("protocolVersion"));
    socket.destroy();
    await until(() => service.closed.length === 1);
    expect(service.cancelled).toHaveLength(1);
    server.close();
  });
});

describe("the old HTTP+SSE transport", () => {
  it("answers on its stream, to its own principal only [crossed-never]", async () => {
    const { url, service, endpoint } = await startRig();
    const root = url.slice(0, -4);
    const events = await stream(`${root}/sse`, { method: "GET" });
    await until(() => events.events.length === 1);
    expect(events.events[0]?.event).toBe("endpoint");
    const address = `${root}${events.events[0]?.data}`;
    events.events.shift();
    expect((await send(address, { body: hello("2024-11-05", { roots: {} }) })).status).toBe(202);
    await until(() => events.messages.length === 1);
    expect(events.messages[0].result.protocolVersion).toBe("2024-11-05");
    await send(address, { body: { jsonrpc: "2.0", method: "notifications/initialized" } });
    await send(address, { body: rpc(1, "test/progress") });
    await until(() => events.messages.length === 5);
    expect(events.messages.at(-1)).toMatchObject({ id: 1, result: { text: "done" } });
    const bob = { authorization: "Bearer token-b" };
    expect((await send(address, { body: rpc(2, "ping"), headers: bob })).status).toBe(404);
    expect((await send(address, { body: rpc(2, "ping"), headers: { authorization: undefined } })).status).toBe(401);
    expect(endpoint.stats()).toMatchObject({ sessions: 1, streams: 1 });
    events.cut();
    await until(() => service.closed.length === 1);
    expect((await send(address, { body: rpc(2, "ping") })).status).toBe(404);
  });
});
