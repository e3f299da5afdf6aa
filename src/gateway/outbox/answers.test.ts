// What a server may answer to a kept write, over real HTTP, one kind after the other: what the agent is told, and whether the
// write goes out again, under a key and without one.

import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { createGateway, type Gateway } from "../../index.js";
import type { JsonObject } from "../../protocol/jsonrpc.js";

const SOON = { timeout: 30_000, interval: 20 };
/** Beyond what a double holds. */
const LONG = "9007199254740993";

interface Answering {
  readonly response: ServerResponse;
  readonly id: unknown;
  readonly result: string;
}

type Act = (answering: Answering) => void;

const status = (code: number, headers: Record<string, string> = {}, body = "no"): Act => {
  return ({ response }) => response.writeHead(code, { "content-type": "text/plain", ...headers }).end(body);
};
const sse = (text: string, isCut = false): Act => {
  return ({ response, id, result }) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(text.replace("REPLY", `data: {"jsonrpc":"2.0","id":${id},"result":${result}}\n\n`), () =>
      isCut ? response.destroy() : response.end(),
    );
  };
};
const json = (reply: (answering: Answering) => string, code = 200): Act => {
  return (answering) =>
    answering.response.writeHead(code, { "content-type": "application/json" }).end(reply(answering));
};
const done = json(({ id, result }) => `{"jsonrpc":"2.0","id":${id},"result":${result}}`);
const failed = json(({ id }) => `{"jsonrpc":"2.0","id":${id},"result":{"content":[],"isError":true}}`);
const rpcError = (code: number) =>
  json(({ id }) => `{"jsonrpc":"2.0","id":${id},"error":{"code":-32602,"message":"no such project"}}`, code);

/** Sent once and over as `end`; or sent again, and done by that: `keyless` where the server knows no keys. */
interface Case {
  readonly what: string;
  readonly act: Act;
  readonly keyed: "done" | "failed" | "again";
  readonly keyless: "done" | "failed" | "again" | "unknown";
  /** What its agent reads of the server's own words. */
  readonly told?: string;
}

const outcome = (what: string, act: Act, end: "done" | "failed", told: string): Case => {
  return { what, act, keyed: end, keyless: end, told };
};
const notDone = (what: string, act: Act): Case => ({ what, act, keyed: "again", keyless: "again" });
const maybe = (what: string, act: Act): Case => ({ what, act, keyed: "again", keyless: "unknown" });

const RESULT = `"structuredContent":{"issue":${LONG}}`;
const ERROR = '"error":{"code":-32602,"message":"no such project"}';
const NOW = { "retry-after": "0" };
const CASES: readonly Case[] = [
  outcome("a result", done, "done", RESULT),
  outcome("a result over SSE", sse("REPLY"), "done", RESULT),
  outcome(
    "a result over SSE, after a comment and a notification",
    sse(`: hello\n\ndata: {"jsonrpc":"2.0","method":"x/y"}\n\nREPLY`),
    "done",
    RESULT,
  ),
  outcome("a result that says isError", failed, "failed", '"isError":true'),
  outcome("an error of JSON-RPC", rpcError(200), "failed", ERROR),
  outcome("an error of JSON-RPC under 400", rpcError(400), "failed", ERROR),
  outcome("an error of JSON-RPC under 500", rpcError(500), "failed", ERROR),
  outcome("409 on a first send", status(409), "failed", "HTTP 409"),
  outcome("422", status(422), "failed", "HTTP 422"),
  notDone("425", status(425, NOW)),
  notDone("429", status(429, NOW)),
  notDone("503 with Retry-After", status(503, NOW)),
  maybe("408", status(408)),
  maybe("500", status(500)),
  maybe("502", status(502)),
  maybe("503 without Retry-After", status(503)),
  maybe("504", status(504)),
  maybe("599", status(599)),
  maybe("200 that is no reply", status(200)),
  maybe("SSE that ends without the reply", sse(": nothing\n\n")),
  maybe("SSE that is cut in the reply", sse('data: {"jsonrpc":"2.0","id"', true)),
  maybe("a connection that is cut", ({ response }) => response.destroy()),
];

class Scripted {
  /** What the first send of a write meets, and what later ones meet. */
  act: Act = done;
  later: Act = done;
  onCancelled: () => void = () => {};
  readonly sends = new Map<string, number>();
  readonly #server: Server;

  constructor() {
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        const text = Buffer.concat(chunks).toString();
        const message = request.method === "POST" ? (JSON.parse(text) as JsonObject) : {};
        const { id, method, params } = message;
        if (method === "notifications/cancelled") this.onCancelled();
        if (id === undefined) return void response.writeHead(request.method === "POST" ? 202 : 405).end();
        if (method !== "tools/call") {
          const answer = { jsonrpc: "2.0", id, ...hello(method) };
          return void response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer));
        }
        const { n } = (params as { arguments: { n: string } }).arguments;
        const sends = (this.sends.get(n) ?? 0) + 1;
        this.sends.set(n, sends);
        const result = `{"content":[{"type":"text","text":"${n}"}],"structuredContent":{"issue":${LONG}}}`;
        (sends === 1 ? this.act : this.later)({ response, id, result });
      });
    });
  }

  async listen(): Promise<number> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return (this.#server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

function hello(method: unknown): JsonObject {
  const serverInfo = { name: "tracker", version: "1" };
  if (method === "initialize") {
    return { result: { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo } };
  }
  const tools = ["keyed", "keyless"].map((name) => ({ name, inputSchema: { type: "object" } }));
  return method === "tools/list" ? { result: { tools } } : { error: { code: -32601, message: "no such method" } };
}

describe("a server that answers a kept write with", () => {
  const server = new Scripted();
  const stateDir = mkdtempSync(join(tmpdir(), "toolway-answers-"));
  let gateway: Gateway;
  let url: string;
  let session: string;
  let ids = 0;
  const logged: string[] = [];

  beforeAll(async () => {
    const port = await server.listen();
    const tools = {
      keyed: { outbox: { key: "arguments.request_id", lane: false, tells: false } },
      keyless: { outbox: { lane: false, tells: false } },
    };
    const tracker = { type: "http", url: `http://127.0.0.1:${port}/mcp`, tools, breaker: { failures: 1_000 } };
    const note = (text: string) => void logged.push(text);
    const log = { debug: note, info: note, warn: note, error: note };
    gateway = await createGateway({ mcpServers: { tracker } } as never, { stateDir, noAuth: true, log });
    ({ url } = await gateway.listen({ port: 0 }));
    const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "test", version: "1" } };
    session = (await post("initialize", params)).session ?? "";
    await vi.waitFor(async () => expect((await post("tools/list", {})).text).toContain("keyless"), SOON);
  });
  afterAll(async () => {
    await gateway.close({ drainMs: 0 });
    await server.close();
    rmSync(stateDir, { recursive: true, force: true });
  });

  async function post(method: string, params: object): Promise<{ text: string; session: string | null }> {
    const headers = {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...(session === undefined ? {} : { "mcp-session-id": session }),
    };
    const body = JSON.stringify({ jsonrpc: "2.0", id: ++ids, method, params });
    const answer = await fetch(url, { method: "POST", headers, body });
    return { text: await answer.text(), session: answer.headers.get("mcp-session-id") };
  }

  async function notify(method: string, params: object): Promise<void> {
    const headers = {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-session-id": session,
    };
    await fetch(url, { method: "POST", headers, body: JSON.stringify({ jsonrpc: "2.0", method, params }) });
  }

  const call = (tool: string, n: string) =>
    post("tools/call", {
      name: `tracker__${tool}`,
      arguments: { n },
      _meta: { "toolway/idempotencyKey": n },
    });

  const receipt = async (n: string) => {
    const { text } = await post("tools/call", { name: "toolway__receipt", arguments: { limit: 100 } });
    const all = (
      JSON.parse(text.slice(text.indexOf("{"))) as { result: { structuredContent: { receipts: JsonObject[] } } }
    ).result.structuredContent.receipts;
    return all.find(({ idempotencyKey }) => idempotencyKey === n);
  };

  it.each(CASES.flatMap((one) => (["keyed", "keyless"] as const).map((tool) => [one.what, tool, one] as const)))(
    "%s: the %s write is classified by it alone [unknown-is-said] [no-double-effect] [agent-4] [agent-7]",
    async (_what, tool, { act, told, ...expected }) => {
      const n = `write-${ids}`;
      server.act = act;
      const { text } = await call(tool, n);
      if (told !== undefined) expect(text).toContain(told);
      const end = expected[tool];
      const state = end === "again" ? "done" : end;
      await expect.poll(async () => (await receipt(n))?.["state"], SOON).toBe(state);
      expect(server.sends.get(n)).toBe(end === "again" ? 2 : 1);
      if (state !== "done") return;
      // By its key, and by its receipt, the result comes back as it was written.
      expect((await call(tool, n)).text).toContain(`"structuredContent":{"issue":${LONG}}`);
      const { text: shown } = await post("tools/call", {
        name: "toolway__receipt",
        arguments: { id: (await receipt(n))?.["receipt"] },
      });
      expect(shown).toContain(
        `"result":{"content":[{"type":"text","text":"${n}"}],"structuredContent":{"issue":${LONG}}}`,
      );
      expect(server.sends.get(n)).toBe(end === "again" ? 2 : 1);
    },
    60_000,
  );

  it("429, and then 409: under its key too that is the end of it, since nothing was done before [unknown-is-said]", async () => {
    const n = `write-${ids}`;
    server.act = status(429, NOW);
    server.later = status(409);
    try {
      await call("keyed", n);
      await expect.poll(async () => (await receipt(n))?.["state"], SOON).toBe("failed");
    } finally {
      server.later = done;
    }
    expect(server.sends.get(n)).toBe(2);
    expect(await receipt(n)).toMatchObject({ why: expect.stringContaining("HTTP 409") });
  }, 60_000);

  it("what was asked for, though its agent took it back meanwhile: the write is done, and its receipt has the result [unknown-is-said]", async () => {
    const n = `write-${ids}`;
    let answering: Answering | undefined;
    server.act = (one) => {
      answering = one;
    };
    const id = ids + 1;
    const calling = call("keyed", n).catch(() => undefined);
    await expect.poll(() => answering !== undefined, SOON).toBe(true);
    server.onCancelled = () => answering !== undefined && done(answering);
    try {
      await notify("notifications/cancelled", { requestId: id });
      await expect.poll(async () => (await receipt(n))?.["state"], SOON).toBe("done");
    } finally {
      server.onCancelled = () => {};
    }
    expect((await call("keyed", n)).text).toContain(RESULT);
    expect(server.sends.get(n)).toBe(1);
    await calling;
  }, 60_000);

  it("words of its own: the receipt has them, and the log has not, since they may repeat the arguments", async () => {
    const n = `word-${ids}`;
    server.act = status(500, {}, `no place for ${n}`);
    await call("keyless", n);
    await expect.poll(async () => (await receipt(n))?.["state"], SOON).toBe("unknown");
    expect((await receipt(n))?.["why"]).toContain(`It said: no place for ${n}`);
    const id = String((await receipt(n))?.["receipt"]);
    const lines = logged.filter((line) => line.startsWith("outbox: ") && line.includes(id));
    expect(lines).toEqual([expect.stringMatching(/has an unknown outcome: .* failed \(HTTP 500\)\.$/)]);
  });
});
