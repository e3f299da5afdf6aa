// Meeting servers of both eras, over real pipes and sockets: what is sent, what is remembered, and what it costs.

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { afterEach, describe, expect, it, vi } from "vitest";
import { closeHttp, listenOnLoopback } from "../../../test/fixtures/loopback.js";
import { scripted } from "../../../test/fixtures/modern/scripted.js";
import { SUPERVISED } from "../../../test/fixtures/spec.js";
import { ownName } from "../../contracts/names.js";
import type { Target } from "../../contracts/server-spec.js";
import type { ServerIntro } from "../../contracts/upstream.js";
import type { JsonObject } from "../../protocol/jsonrpc.js";
import { requestText } from "../../protocol/message.js";
import type { Era } from "../../protocol/modern.js";
import type { replyText } from "../../protocol/reply.js";
import { Reaper } from "../../runtime/processes/reaper.js";
import { hashStateDir } from "../../runtime/processes/reaper-marker.js";
import { ServerDriver } from "../driver.js";
import { ask } from "../link/own-call.js";
import { linkMaker } from "../links.js";
import { ToolHeaders } from "../modern/tool-headers.js";
import { EVERY_CAPABILITY } from "./handshake.js";
import { type EraMemory, ProcessEras } from "./verdict.js";

/** Above what anything here takes on a busy machine; only reached where a test fails. */
const SOON = { timeout: 60_000, interval: 20 };

const cleanUp: (() => unknown)[] = [];
afterEach(async () => {
  for (const act of cleanUp.splice(0).reverse()) await act();
});

/** Remembers as the gateway does, and what it was told. */
class Told extends ProcessEras implements EraMemory {
  readonly puts: (Era | undefined)[] = [];

  override put(server: string, identity: string, era: Era | undefined): void {
    this.puts.push(era);
    super.put(server, identity, era);
  }
}

async function connect(target: Target, eras: EraMemory, connectTimeoutMs = 60_000) {
  const reaper = new Reaper({ stateHash: hashStateDir(`meeting ${process.pid}`), env: process.env });
  const intros: ServerIntro[] = [];
  const upstream = new ServerDriver(
    { name: "s", target, isolation: "shared", connectTimeoutMs, callTimeoutMs: 60_000, ...SUPERVISED },
    undefined,
    { clientInfo: { name: "test", version: "1" }, capabilities: EVERY_CAPABILITY },
    { now: () => performance.now(), random: Math.random, makeLink: linkMaker({ reaper, env: process.env }) },
    { onReady: (intro) => void intros.push(intro), onNotification: () => {}, onState: () => {} },
    { modern: { eras, toolHeaders: new ToolHeaders(), random: Math.random, onProblem: () => {} } },
  );
  const stop = async () => {
    await upstream.stop();
    await reaper.close();
  };
  cleanUp.push(stop);
  const who = async () => {
    const { result } = await ask(upstream, "tools/call", { name: "who", arguments: {} }, AbortSignal.timeout(100_000));
    return (result["content"] as { text: string }[])[0]?.text;
  };
  return { upstream, intros, who, stop };
}

describe("a server that is a child", () => {
  it("and modern needs one request as its handshake", async () => {
    const { target, log } = scripted("modern");
    const eras = new Told();
    const { who, intros } = await connect(target, eras);
    expect(await who()).toBe("modern");
    expect(log()).toEqual(["start", "server/discover", "tools/call"]);
    expect(intros).toMatchObject([{ era: "modern", version: "2026-07-28", serverInfo: { name: "scripted" } }]);
    expect(eras.puts).toEqual(["modern"]);
  });

  it("and legacy is discovered once, and not at its next start", async () => {
    const { target, log, became } = scripted("legacy");
    const eras = new Told();
    const first = await connect(target, eras);
    expect(await first.who()).toBe("legacy");
    expect(log()).toEqual(["start", "server/discover", "initialize", "notifications/initialized", "tools/call"]);
    await first.stop();
    became("legacy");
    const second = await connect(target, eras);
    expect(await second.who()).toBe("legacy");
    expect(log()).toEqual(["start", "initialize", "notifications/initialized", "tools/call"]);
    expect(eras.puts).toEqual(["legacy"]);
  });

  it("and dies of the discovery is started again for initialize, which is no restart and no failure", async () => {
    const { target, log } = scripted("dies");
    const eras = new Told();
    const { who, upstream } = await connect(target, eras);
    expect(await who()).toBe("legacy");
    expect(upstream.restarts).toBe(0);
    expect(upstream.lastFault).toBeUndefined();
    expect(log()).toEqual([
      "start",
      "server/discover",
      "start",
      "initialize",
      "notifications/initialized",
      "tools/call",
    ]);
    expect(eras.puts).toEqual(["legacy"]);
  });

  it("and silent on the discovery gets initialize on the same pipe, and the question is not in flight any more", async () => {
    const { target, log } = scripted("silent");
    const eras = new Told();
    const { who, upstream } = await connect(target, eras, 12_000);
    expect(await who()).toBe("legacy");
    expect(upstream.inFlight).toBe(0);
    expect(upstream.restarts).toBe(0);
    expect(log()).toEqual(["start", "server/discover", "initialize", "notifications/initialized", "tools/call"]);
    expect(eras.puts).toEqual(["legacy"]);
  });

  it("and modern but slow to start is not taken for an old one: its late answer counts", async () => {
    const { target, log } = scripted("slow 6000");
    const eras = new Told();
    const { who } = await connect(target, eras, 24_000);
    expect(await who()).toBe("modern");
    expect(log().filter((line) => line === "start")).toHaveLength(1);
    expect(eras.puts).toEqual(["modern"]);
  });

  it("may change its era between two starts, either way", async () => {
    const { target, became } = scripted("legacy");
    const eras = new Told();
    const first = await connect(target, eras);
    expect(await first.who()).toBe("legacy");
    await first.stop();
    became("modern");
    const second = await connect(target, eras);
    expect(await second.who()).toBe("modern");
    expect(second.upstream.restarts).toBe(0);
    await second.stop();
    became("legacy");
    const third = await connect(target, eras);
    expect(await third.who()).toBe("legacy");
    expect(eras.puts).toEqual(["legacy", undefined, "modern", "legacy"]);
  });
});

interface Seen {
  readonly method: string | undefined;
  readonly headers: IncomingMessage["headers"];
  readonly verb: string | undefined;
}

/** An HTTP server whose answers are the test's: status and body for each method of MCP. */
async function httpPeer(
  answer: (message: JsonObject) => { status: number; body?: unknown; type?: string } | undefined,
) {
  const seen: Seen[] = [];
  const server = createServer(async (req: IncomingMessage, res: ServerResponse) => {
    let text = "";
    for await (const chunk of req) text += String(chunk);
    const message = text === "" ? {} : (JSON.parse(text) as JsonObject);
    seen.push({ method: message["method"] as string | undefined, headers: req.headers, verb: req.method });
    if (req.method !== "POST") return void res.writeHead(405).end();
    if (message["id"] === undefined) return void res.writeHead(202).end();
    const said = answer(message);
    if (said === undefined) return;
    if (said.status === 0) return void res.destroy();
    const body = typeof said.body === "object" ? { jsonrpc: "2.0", id: message["id"], ...said.body } : said.body;
    res.writeHead(said.status, { "content-type": said.type ?? "application/json" });
    res.end(typeof body === "string" ? body : JSON.stringify(body ?? ""));
  });
  const port = await listenOnLoopback(server);
  cleanUp.push(() => {
    void closeHttp(server);
  });
  const target: Target = { kind: "http", url: `http://127.0.0.1:${port}/mcp`, headers: {} };
  return { target, seen };
}

const INITIALIZED = { protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo: { name: "old" } };
const old = ({ method }: JsonObject) => {
  if (method === "initialize") return { status: 200, body: { result: INITIALIZED } };
  if (method === "tools/call")
    return { status: 200, body: { result: { content: [{ type: "text", text: "legacy" }] } } };
  return undefined;
};
const DISCOVERED = { resultType: "complete", supportedVersions: ["2026-07-28"], capabilities: { tools: {} } };

describe("a server over HTTP", () => {
  it("and modern gets headers on every request, no session and no GET", async () => {
    const { target, seen } = await httpPeer(({ method }) => ({
      status: 200,
      body: { result: method === "server/discover" ? DISCOVERED : { content: [{ type: "text", text: "modern" }] } },
    }));
    const { who } = await connect(target, new Told());
    expect(await who()).toBe("modern");
    expect(seen.map(({ verb, method }) => `${verb} ${method}`)).toEqual(["POST server/discover", "POST tools/call"]);
    expect(seen[1]?.headers).toMatchObject({
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": "tools/call",
      "mcp-name": "who",
    });
    for (const { headers } of seen) expect(headers).not.toHaveProperty("mcp-session-id");
  });

  const legacy: [string, { status: number; body?: unknown; type?: string }][] = [
    ["400 with a page", { status: 400, body: "<html>", type: "text/html" }],
    [
      "400 and an error without an id",
      { status: 400, body: { id: null, error: { code: -32000, message: "no session" } } },
    ],
    ["404", { status: 404, body: "nothing here", type: "text/plain" }],
    ["406", { status: 406, body: { error: { code: -32000, message: "Not Acceptable" } } }],
    ["200 and an error", { status: 200, body: { error: { code: -32601, message: "Method not found" } } }],
    ["200 and a page", { status: 200, body: "<html>", type: "text/html" }],
    [
      "-32022 of a server that speaks older versions",
      {
        status: 400,
        body: { error: { code: -32022, message: "v", data: { supported: ["2025-11-25"], requested: "2026-07-28" } } },
      },
    ],
  ];
  it.each(legacy)("is legacy by %s, and remembered so", async (_, said) => {
    const { target, seen } = await httpPeer((message) =>
      message["method"] === "server/discover" ? said : old(message),
    );
    const eras = new Told();
    const { who, stop } = await connect(target, eras);
    expect(await who()).toBe("legacy");
    expect(eras.puts).toEqual(["legacy"]);
    await stop();
    seen.length = 0;
    const again = await connect(target, eras);
    expect(await again.who()).toBe("legacy");
    expect(seen[0]?.method).toBe("initialize");
  });

  const undecided: [string, { status: number; body?: unknown } | undefined][] = [
    ["500", { status: 500, body: { error: { code: -32603, message: "oops" } } }],
    ["503", { status: 503, body: "busy" }],
    ["silence", undefined],
  ];
  it.each(undecided)(
    "is not judged by %s: initialize is tried, and nothing is remembered",
    async (_, said) => {
      const { target } = await httpPeer((message) => (message["method"] === "server/discover" ? said : old(message)));
      const eras = new Told();
      const { who } = await connect(target, eras);
      expect(await who()).toBe("legacy");
      expect(eras.puts).toEqual([]);
    },
    30_000,
  );

  it.each([401, 403])(
    "is not judged by %s: that is what the call says, and initialize is not tried",
    async (status) => {
      const { target, seen } = await httpPeer(() => ({
        status,
        body: { error: { code: -32601, message: "who are you" } },
      }));
      const eras = new Told();
      const { who } = await connect(target, eras);
      await expect(who()).rejects.toMatchObject({ code: "unauthorized" });
      expect(seen.map(({ method }) => method)).toEqual(["server/discover"]);
      expect(eras.puts).toEqual([]);
    },
  );

  it("that breaks off at the discovery is not discovered twice", async () => {
    const { target, seen } = await httpPeer((message) =>
      message["method"] === "server/discover" ? { status: 0 } : old(message),
    );
    const eras = new Told();
    const { who } = await connect(target, eras);
    await expect(who()).rejects.toMatchObject({ code: "unavailable" });
    expect(await who()).toBe("legacy");
    expect(seen.map(({ method }) => method)).toContain("initialize");
    expect(seen.filter(({ method }) => method === "server/discover")).toHaveLength(1);
  });

  it("is not judged where nobody listens", async () => {
    const eras = new Told();
    const { who } = await connect({ kind: "http", url: "http://127.0.0.1:9/mcp", headers: {} }, eras);
    await expect(who()).rejects.toMatchObject({ code: "unavailable" });
    expect(eras.puts).toEqual([]);
  });

  it("that is modern and refuses our headers gets no initialize, and the error says so", async () => {
    const body = { id: null, error: { code: -32020, message: "Header mismatch: Mcp-Method" } };
    const { target, seen } = await httpPeer(() => ({ status: 400, body }));
    const { who } = await connect(target, new Told());
    await expect(who()).rejects.toThrow(/Header mismatch: Mcp-Method/);
    expect(new Set(seen.map(({ method }) => method))).toEqual(new Set(["server/discover"]));
  });

  it("that was legacy and is modern now is discovered, and the old verdict dropped", async () => {
    let modern = false;
    const { target, seen } = await httpPeer((message) => {
      if (!modern) return message["method"] === "server/discover" ? { status: 400, body: "?" } : old(message);
      if (message["method"] === "initialize") {
        return { status: 400, body: { id: null, error: { code: -32020, message: "Missing Mcp-Method" } } };
      }
      const call = { content: [{ type: "text", text: "modern" }] };
      return { status: 200, body: { result: message["method"] === "server/discover" ? DISCOVERED : call } };
    });
    const eras = new Told();
    const first = await connect(target, eras);
    expect(await first.who()).toBe("legacy");
    await first.stop();
    modern = true;
    seen.length = 0;
    const second = await connect(target, eras);
    expect(await second.who()).toBe("modern");
    expect(eras.puts).toEqual(["legacy", undefined, "modern"]);
    expect(seen.map(({ method }) => method)).toEqual(["initialize", "server/discover", "tools/call"]);
  });
});

describe("a server over HTTP that is replaced while it is connected", () => {
  const refusals: [string, { status: number; body: unknown }][] = [
    [
      "an error without an id",
      { status: 400, body: { id: null, error: { code: -32000, message: "not initialized" } } },
    ],
    ["a status", { status: 404, body: "Not found" }],
  ];
  it.each(refusals)("by a legacy one is discovered again after %s", async (_, refusal) => {
    let modern = true;
    let initialized = false;
    const { target } = await httpPeer((message) => {
      const { method } = message;
      if (modern) {
        const call = { content: [{ type: "text", text: "modern" }] };
        return { status: 200, body: { result: method === "server/discover" ? DISCOVERED : call } };
      }
      initialized ||= method === "initialize";
      return initialized ? old(message) : refusal;
    });
    const eras = new Told();
    const { who } = await connect(target, eras);
    expect(await who()).toBe("modern");
    modern = false;
    await expect(who()).rejects.toThrow();
    await vi.waitFor(async () => expect(await who()).toBe("legacy"), SOON);
    expect(eras.puts).toEqual(["modern", undefined, "legacy"]);
  });

  it("is not taken for replaced after one odd refusal", async () => {
    let odd = false;
    const { target, seen } = await httpPeer(({ method }) => {
      if (odd && method === "tools/call") return { status: 404, body: "a proxy's whim" };
      const call = { content: [{ type: "text", text: "modern" }] };
      return { status: 200, body: { result: method === "server/discover" ? DISCOVERED : call } };
    });
    const eras = new Told();
    const { who } = await connect(target, eras);
    expect(await who()).toBe("modern");
    odd = true;
    await expect(who()).rejects.toThrow();
    await vi.waitFor(() => expect(seen.filter(({ method }) => method === "server/discover")).toHaveLength(2), SOON);
    odd = false;
    expect(await who()).toBe("modern");
    expect(eras.puts).toEqual(["modern"]);
  });
});

describe("replies of a modern server", () => {
  it("are marked so", async () => {
    const { target } = await httpPeer(({ method }) => ({
      status: 200,
      body: { result: method === "server/discover" ? DISCOVERED : { content: [] } },
    }));
    const { upstream } = await connect(target, new Told());
    const reply = await new Promise<Parameters<typeof replyText>[0]>((resolve) => {
      upstream.send({
        caller: undefined,
        method: "tools/call",
        subject: ownName("x"),
        params: { name: "x" },
        progressToken: undefined,
        render: (id, changes) => requestText(id, "tools/call", { name: "x" }, changes),
        reply: resolve,
      });
    });
    expect(reply).toMatchObject({ kind: "bytes", era: "modern" });
  });
});
