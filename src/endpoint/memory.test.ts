// What the endpoint does where there is no room for what agents send or do not read, over real sockets and pipes.

import { connect, type Socket } from "node:net";
import { PassThrough } from "node:stream";
import { afterEach, describe, expect, it } from "vitest";
import {
  BASE,
  begin,
  modern,
  rpc,
  type Sent,
  send,
  startRig,
  stopRigs,
  until,
} from "../../test/fixtures/endpoint/http.js";
import { TestService } from "../../test/fixtures/endpoint/service.js";
import { HeldBytes } from "../runtime/memory/held-bytes.js";
import { KIB, MIB } from "../runtime/sizes.js";
import { createStdioEndpoint } from "./stdio/stdio.js";

const sockets: Socket[] = [];

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await stopRigs();
});

/** A request as it goes over the wire. */
function wire({ headers = {}, body }: Sent): string {
  const text = JSON.stringify(body);
  const all = Object.entries({ host: "127.0.0.1", ...BASE, ...headers, "content-length": text.length });
  return `POST /mcp HTTP/1.1\r\n${all.map(([name, value]) => `${name}: ${String(value)}\r\n`).join("")}\r\n${text}`;
}

/** Sends texts as they are, on one connection. */
function dial(port: number, text: string): { socket: Socket; closed: boolean } {
  const one = { socket: connect(port, "127.0.0.1"), closed: false };
  sockets.push(one.socket);
  one.socket.on("error", () => {});
  one.socket.on("close", () => (one.closed = true));
  one.socket.write(text);
  return one;
}

const padded = (id: number | string, method: string, bytes: number) => rpc(id, method, { x: "x".repeat(bytes) });
const modernHold = (id: number) => modern(id, "test/hold");

describe("requests that are kept", () => {
  it("are counted however small they are, until they are answered [bounded]", async () => {
    const held = new HeldBytes(MIB);
    const { url, service } = await startRig({ held });
    const headers = await begin(url);
    expect(held.used).toBe(0);
    const answers = [1, 2].map((id) => send(url, { body: rpc(id, "test/hold"), headers }));
    answers.push(send(url, modernHold(3)));
    await until(() => service.held.length === 3);
    const bytes = [rpc(1, "test/hold"), rpc(2, "test/hold"), modernHold(3).body].map((body) => JSON.stringify(body));
    expect(held.used).toBe(3 * bytes.join("").length);
    for (const call of service.held) call.reply({ kind: "result", result: {} });
    await Promise.all(answers);
    await until(() => held.used === 0);
  });

  it("are refused with 503 where there is no room, and a cancellation is taken all the same [bounded]", async () => {
    const held = new HeldBytes(MIB);
    const { url, service } = await startRig({ held });
    const headers = await begin(url);
    const waiting = send(url, { body: padded(1, "test/hold", 200 * KIB), headers });
    await until(() => service.held.length === 1);
    const other = held.holder("alice");
    expect(other.hold(held.most - held.used)).toBe(true);
    for (const sent of [{ body: rpc(7, "test/hold"), headers }, modernHold(7)]) {
      const { status, headers: answered, json } = await send(url, sent);
      expect([status, answered["retry-after"], json.id]).toEqual([503, "10", 7]);
      // A connection is memory too.
      expect(answered.connection).toBe("close");
      expect(json.error.message).toContain("limits.heldBytes");
    }
    const bob = await begin(url, { headers: { authorization: "Bearer token-b" } });
    expect((await send(url, { body: rpc(7, "ping"), headers: bob })).status).toBe(200);
    const body = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 1 } };
    expect((await send(url, { body, headers })).status).toBe(202);
    await waiting;
    other.release();
    expect(held.used).toBe(0);
  });

  it("are refused with 413 where there would never be room [bounded]", async () => {
    const held = new HeldBytes(MIB);
    const { url } = await startRig({ held });
    const headers = await begin(url);
    // Three quarters of the limit, of which a body is counted three times.
    const { status, headers: answered, json } = await send(url, { body: padded(1, "ping", 256 * KIB), headers });
    expect([status, answered["retry-after"]]).toEqual([413, undefined]);
    expect(json.error.message).toContain("never room for more than 262144 at once");
    const chunked = { ...headers, "transfer-encoding": "chunked" };
    expect((await send(url, { body: padded(1, "ping", 256 * KIB), headers: chunked })).status).toBe(413);
    expect((await send(url, { body: padded(1, "ping", 250 * KIB), headers })).status).toBe(200);
    expect(held.used).toBe(0);
  });

  it("over stdio are refused by their ids, and cancellations are taken [bounded]", async () => {
    const held = new HeldBytes(MIB);
    const service = new TestService();
    const [input, output] = [new PassThrough(), new PassThrough()];
    let said = "";
    output.on("data", (chunk: Buffer) => (said += chunk.toString()));
    const principal = { id: "local", role: "default" };
    const endpoint = createStdioEndpoint({ service, input, output, principal, held });
    const write = (message: object) => input.write(`${JSON.stringify(message)}\n`);
    const lines = () => said.split("\n").filter((line) => line !== "");
    write(rpc(0, "initialize", { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: {} }));
    await until(() => lines().length === 1);
    write(padded("waits", "test/hold", 100));
    await until(() => service.held.length === 1);
    expect(held.used).toBe(3 * JSON.stringify(padded("waits", "test/hold", 100)).length);
    const other = held.holder("local");
    other.hold(held.most - held.used);
    write(rpc("refused", "ping"));
    write(modernHold(9).body as object);
    await until(() => lines().length === 3);
    expect(lines().map((line) => (JSON.parse(line) as { id: unknown }).id)).toEqual([0, "refused", 9]);
    expect(lines()[1]).toContain("limits.heldBytes");
    write({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: "waits" } });
    await until(() => service.cancelled.length === 1);
    other.release();
    expect(held.used).toBe(0);
    await endpoint.close();
  });
});

describe("bodies that have not come whole", () => {
  it("are counted from their first piece on, until they end or their connection does [bounded]", async () => {
    const held = new HeldBytes(MIB);
    const { url, port } = await startRig({ held });
    const headers = await begin(url);
    const request = wire({ body: rpc(1, "ping"), headers });
    const one = dial(port, request.slice(0, -10));
    await until(() => held.used > 0);
    expect(held.used).toBe(JSON.stringify(rpc(1, "ping")).length - 10);
    one.socket.write(request.slice(-10));
    await until(() => held.used === 0);
    const two = dial(port, request.slice(0, -1));
    await until(() => held.used > 0);
    two.socket.destroy();
    await until(() => held.used === 0);
  });
});

describe("answers that wait behind another of their connection", () => {
  it("are counted, and let go with the connection; what they asked for is cancelled [bounded]", async () => {
    const held = new HeldBytes(MIB);
    const { port, service } = await startRig({ held });
    const one = dial(port, [1, 2, 3].map((id) => wire(modernHold(id))).join(""));
    await until(() => service.held.length === 3);
    const requests = held.used;
    service.held[1]?.reply({ kind: "result", result: { x: "x".repeat(10_000) } });
    await until(() => held.used > requests + 20_000);
    one.socket.destroy();
    await until(() => service.cancelled.length === 2);
    await until(() => held.used === 0);
  });

  it("end their connection where there is no room for them [bounded]", async () => {
    const held = new HeldBytes(MIB);
    const { port, service } = await startRig({ held });
    const one = dial(port, [1, 2, 3].map((id) => wire(modernHold(id))).join(""));
    await until(() => service.held.length === 3);
    const other = held.holder("alice");
    other.hold(held.most - held.used);
    service.held[1]?.reply({ kind: "result", result: { x: "x".repeat(10_000) } });
    await until(() => one.closed);
    other.release();
    await until(() => held.used === 0);
  });
});
