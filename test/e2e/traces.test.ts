// Calls as spans, end to end: an agent's trace context goes in, the server gets the gateway's, a collector gets the spans.

import { createServer } from "node:http";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { listenOnLoopback } from "../fixtures/loopback.js";
import { send } from "./eras.js";
import {
  type Gateway,
  type GatewayConfig,
  startGateway,
  startHttpFixture,
  stdioFixture,
  temporaryDirectory,
  until,
} from "./harness.js";
import { type HttpWire, lastOf, openHttpWire } from "./wire.js";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT = "00f067aa0ba902b7";
const traceparent = `00-${TRACE}-${PARENT}-01`;

interface OtlpSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly traceState?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: Readonly<Record<string, string | number>>;
  readonly status: { readonly code: number };
}

const closing: (() => void)[] = [];
afterAll(() => {
  for (const close of closing) close();
});

/** Takes what an OTLP exporter sends, and refuses what is not OTLP. */
async function startCollector() {
  const spans: OtlpSpan[] = [];
  const mistakes: string[] = [];
  const server = createServer((req, res) => {
    const chunks: Buffer[] = [];
    req.on("data", (chunk: Buffer) => chunks.push(chunk));
    req.on("end", () => {
      try {
        // Metrics have their own test.
        if (req.url === "/v1/metrics") return void res.end("{}");
        if (req.method !== "POST" || req.url !== "/v1/traces") throw new Error(`${req.method} ${req.url}`);
        if (req.headers["content-type"] !== "application/json") throw new Error("content-type");
        spans.push(...spansOf(Buffer.concat(chunks).toString()));
        res.end("{}");
      } catch (error) {
        mistakes.push(String(error));
        res.writeHead(400).end();
      }
    });
  });
  const port = await listenOnLoopback(server);
  closing.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return { spans, mistakes, url: `http://127.0.0.1:${port}/v1/traces` };
}

function spansOf(body: string): OtlpSpan[] {
  const { resourceSpans } = JSON.parse(body) as { resourceSpans: { scopeSpans: { spans: RawSpan[] }[] }[] };
  return resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans)).map(readSpan);
}

type RawSpan = Omit<OtlpSpan, "attributes"> & {
  attributes: { key: string; value: { stringValue?: string; intValue?: string } }[];
};

function readSpan(span: RawSpan): OtlpSpan {
  if (!/^[0-9a-f]{32}$/.test(span.traceId) || !/^[0-9a-f]{16}$/.test(span.spanId)) throw new Error("ids");
  if (!/^\d{19}$/.test(span.startTimeUnixNano) || !/^\d{19}$/.test(span.endTimeUnixNano)) throw new Error("times");
  const attributes = Object.fromEntries(
    span.attributes.map(({ key, value }) => [key, value.stringValue ?? Number(value.intValue)]),
  );
  return { ...span, attributes };
}

const servers = {
  echo: stdioFixture("fidelity"),
  modern: stdioFixture("fidelity", ["--era", "modern"]),
  crash: stdioFixture("crash"),
};

async function start(config: Partial<GatewayConfig> = {}) {
  const collector = await startCollector();
  const telemetry = { otlp: collector.url };
  const gateway = await startGateway({ mcpServers: servers, names: "prefixed", telemetry, ...config });
  return { gateway, ...collector, wire: await openHttpWire(gateway.url) };
}

let nextId = 1;

async function seenUp(wire: HttpWire): Promise<void> {
  const params = { name: "tracker__add_comment", arguments: { project: "p", title: "is it there?" } };
  await until("the tracker", async () =>
    lastOf(await wire.post(JSON.stringify({ jsonrpc: "2.0", id: nextId++, method: "tools/call", params }))).includes(
      '"result"',
    ),
  );
}

/** The request as the server got it, by its tool that says so. */
async function seenBy(wire: HttpWire, tool: string, meta?: object, headers: Record<string, string> = {}) {
  const params = { name: tool, arguments: {}, ...(meta === undefined ? {} : { _meta: meta }) };
  const request = { jsonrpc: "2.0", id: nextId++, method: "tools/call", params };
  const answer = await until(tool, async () => {
    const text = lastOf(await wire.post(JSON.stringify(request), headers));
    return text.includes('"error"') ? undefined : text;
  });
  const { result } = JSON.parse(answer) as { result: { content: { text: string }[] } };
  const text = result.content[0]?.text ?? "";
  return { text, meta: (JSON.parse(text) as { params: { _meta?: Record<string, unknown> } }).params._meta };
}

/** That of what the server got. */
const sendingOf = (spans: readonly OtlpSpan[], sent: unknown) =>
  until("the span in the collector", () => spans.find(({ spanId }) => String(sent).includes(spanId)));

/** That of the call, which is above it. */
const spanOf = async (spans: readonly OtlpSpan[], sent: unknown) => {
  const { parentSpanId } = await sendingOf(spans, sent);
  return until("the span above it", () => spans.find(({ spanId }) => spanId === parentSpanId));
};

describe("with a collector", () => {
  it("a call is the child of what _meta names, and the parent of what the server does [spans-by-convention]", async () => {
    const { wire, spans, mistakes } = await start();
    const before = Date.now();
    const meta = { traceparent, tracestate: "vendor=1", baggage: "user=7", progressToken: "p" };
    const seen = await seenBy(wire, "echo__echo_raw", meta);
    expect(seen.meta).toMatchObject({ tracestate: "vendor=1", baggage: "user=7" });
    expect(seen.meta?.["traceparent"]).toMatch(new RegExp(`^00-${TRACE}-[0-9a-f]{16}-01$`));
    const span = await spanOf(spans, seen.meta?.["traceparent"]);
    expect(span).toMatchObject({
      traceId: TRACE,
      parentSpanId: PARENT,
      traceState: "vendor=1",
      name: "tools/call echo_raw",
      kind: 2,
      status: { code: 0 },
    });
    const sending = await sendingOf(spans, seen.meta?.["traceparent"]);
    expect(sending).toMatchObject({ name: "tools/call echo_raw", kind: 3, traceId: TRACE, status: { code: 0 } });
    expect(sending.attributes).toMatchObject({ "network.transport": "pipe", "toolway.server": "echo" });
    expect(span.attributes).toEqual({
      "mcp.method.name": "tools/call",
      "gen_ai.operation.name": "execute_tool",
      "mcp.protocol.version": expect.stringMatching(/^20/),
      "mcp.session.id": expect.stringMatching(/^[0-9a-f]{16}$/),
      "jsonrpc.request.id": expect.stringMatching(/^\d+$/),
      "toolway.server": "echo",
      "toolway.tool": "echo_raw",
      "gen_ai.tool.name": "echo_raw",
      "toolway.era": "legacy",
      "toolway.agent.era": "legacy",
      "toolway.role": expect.any(String),
      "toolway.cache": "off",
      "toolway.attempt": 1,
      "toolway.outcome": "ok",
    });
    const [startMs, endMs] = [span.startTimeUnixNano, span.endTimeUnixNano].map((nanos) => Number(nanos) / 1e6);
    expect(startMs).toBeGreaterThanOrEqual(before - 1);
    expect(endMs).toBeGreaterThanOrEqual(startMs as number);
    expect(endMs).toBeLessThanOrEqual(Date.now() + 1);
    expect(mistakes).toEqual([]);
  });

  it("a call without a parent begins a trace; one that cannot be read is no parent", async () => {
    const { wire, spans } = await start();
    const sent: unknown[] = [];
    for (const meta of [
      undefined,
      {},
      { traceparent: `ff-${TRACE}-${PARENT}-01`, tracestate: "a=1" },
      { traceparent: `00-${"0".repeat(32)}-${PARENT}-01` },
      { traceparent: `00-${TRACE}-${"0".repeat(16)}-01` },
      { traceparent: "nonsense" },
      { traceparent: 7 },
    ]) {
      const seen = await seenBy(wire, "echo__echo_raw", meta);
      expect(seen.meta?.["traceparent"]).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
      expect(seen.meta?.["tracestate"] ?? "").toBe("");
      sent.push(seen.meta?.["traceparent"]);
    }
    for (const one of sent) {
      const span = await spanOf(spans, one);
      expect(span.parentSpanId).toBeUndefined();
      expect(span.traceId).not.toBe(TRACE);
    }
  });

  it("a write that is kept and delivered later has a span for each sending, below that of its call, over a kill of the gateway too [spans-by-convention]", async () => {
    const files = ["--ledger", join(await temporaryDirectory(), "ledger.jsonl")];
    const server = await startHttpFixture("tracker", files);
    const tools = { create_issue: { outbox: { key: "arguments.request_id" } } };
    const tracker = { ...server.entry, tools };
    const { gateway, wire, spans, mistakes } = await start({ mcpServers: { tracker } });
    const queue = async (title: string, meta: object | undefined, over = wire) => {
      const params = {
        name: "tracker__create_issue",
        arguments: { project: "p", title },
        ...(meta && { _meta: meta }),
      };
      const request = { jsonrpc: "2.0", id: nextId++, method: "tools/call", params };
      return until(`"${title}" to be queued`, async () => {
        const text = lastOf(await over.post(JSON.stringify(request)));
        return text.includes('"queued":true') ? text : undefined;
      });
    };
    await seenUp(wire);
    await server.kill();
    await queue("begins a trace", undefined);
    const call = await until("the span of the call", () =>
      spans.find(({ kind, name }) => kind === 2 && / create_issue/.test(name)),
    );
    const back = await startHttpFixture("tracker", files, server.port);
    const below = (traceId: string) => spans.filter(({ kind, traceId: of }) => kind === 3 && of === traceId);
    const endedAt = BigInt(call.endTimeUnixNano);
    await until("its delivery", () =>
      below(call.traceId).some(({ status, startTimeUnixNano: at }) => status.code === 0 && BigInt(at) > endedAt),
    );
    for (const { parentSpanId } of below(call.traceId)) expect(parentSpanId).toBe(call.spanId);
    expect(spans.filter(({ kind, traceId }) => kind === 2 && traceId === call.traceId)).toHaveLength(1);

    await back.kill();
    await queue("is in one", { traceparent });
    await gateway.stop("SIGKILL");
    await startHttpFixture("tracker", files, server.port);
    await gateway.again();
    const last = await until("its delivery by the next", () => below(TRACE).find(({ status }) => status.code === 0));
    expect(last.parentSpanId).not.toBe(PARENT);
    expect(mistakes).toEqual([]);
  });

  it("the header of an HTTP request is the parent where _meta has none", async () => {
    const { wire, spans } = await start();
    const header = { traceparent, tracestate: "h=1" };
    const seen = await seenBy(wire, "echo__echo_raw", undefined, header);
    expect(seen.meta).toMatchObject({ tracestate: "h=1" });
    expect(await spanOf(spans, seen.meta?.["traceparent"])).toMatchObject({ traceId: TRACE, parentSpanId: PARENT });
    const own = { traceparent: `00-${"a".repeat(32)}-${"b".repeat(16)}-01` };
    const other = await seenBy(wire, "echo__echo_raw", own, header);
    expect(await spanOf(spans, other.meta?.["traceparent"])).toMatchObject({ parentSpanId: "b".repeat(16) });
  });

  it("a parent that is not sampled is passed on as it is, and makes no span", async () => {
    const { wire, gateway, spans } = await start();
    const unsampled = `00-${TRACE}-${PARENT}-00`;
    const seen = await seenBy(wire, "echo__echo_raw", { traceparent: unsampled });
    expect(seen.meta).toEqual({ traceparent: unsampled });
    const traced = await seenBy(wire, "echo__echo_raw");
    await spanOf(spans, traced.meta?.["traceparent"]);
    await gateway.stop();
    expect(spans.filter(({ traceId }) => traceId === TRACE)).toEqual([]);
  });

  it("a call of a modern agent, and one to a modern server, have a span too", async () => {
    const { gateway, wire, spans } = await start();
    const seen = await seenBy(wire, "modern__echo_raw", { traceparent });
    const span = await spanOf(spans, seen.meta?.["traceparent"]);
    expect(span).toMatchObject({ parentSpanId: PARENT });
    expect(span.attributes).toMatchObject({ "toolway.era": "modern", "toolway.agent.era": "legacy" });
    for (const server of ["modern", "echo"]) {
      const params = { name: `${server}__echo_raw`, arguments: {} };
      const { reply } = await send(gateway.url, { method: "tools/call", params, meta: { traceparent } });
      const answer = JSON.stringify(reply);
      expect(answer).toContain(`00-${TRACE}-`);
      expect(answer).not.toContain(PARENT);
    }
    const ofModern = await until("both spans", () => {
      const found = spans.filter(({ attributes }) => attributes["toolway.agent.era"] === "modern");
      return found.length === 2 && found;
    });
    expect(ofModern.map(({ attributes }) => attributes["toolway.era"]).sort()).toEqual(["legacy", "modern"]);
  });

  it("a span says what came of a call (errors, deaths, refusals), and no secret", async () => {
    const { gateway, wire, spans } = await start({ roles: { default: { deny: ["crash/pid"] } } });
    await seenBy(wire, "echo__echo_raw");
    const call = (name: string, args: object = {}) =>
      wire.send(
        JSON.stringify({ jsonrpc: "2.0", id: nextId++, method: "tools/call", params: { name, arguments: args } }),
      );
    const answer = (body: string) => ({ template: `{"jsonrpc":"2.0","id":@ID@,${body}}` });
    await call("echo__answer", answer('"result":{"content":[{"type":"text","text":"s3cret"}],"isError":true}'));
    await call("echo__answer", answer('"error":{"code":-32000,"message":"s3cret"}'));
    await until("the other server", async () => !lastOf(await call("crash__crash_after")).includes('"error"'));
    await call("crash__crash");
    await call("crash__pid");
    // What is on its way is delivered before the end.
    await gateway.stop();
    const outcomes = spans.map(({ attributes }) => attributes["toolway.outcome"]);
    expect(outcomes).toEqual(expect.arrayContaining(["ok", "tool-error", "rpc-error", "outcome-unknown", "denied"]));
    expect(JSON.stringify(spans)).not.toContain("s3cret");
    // The refused one was not sent, and has no sending below it.
    const denied = spans.find(({ attributes }) => attributes["toolway.outcome"] === "denied");
    expect(spans.filter(({ parentSpanId }) => parentSpanId === denied?.spanId)).toEqual([]);
    const died = spans.find(({ attributes }) => attributes["toolway.outcome"] === "outcome-unknown");
    expect(died).toMatchObject({ status: { code: 2 }, attributes: { "error.type": "outcome_unknown" } });
  });
});

describe("without a collector", () => {
  const echo = { mcpServers: { echo: servers.echo }, names: "prefixed" };

  it("_meta goes on as it came, trace context and all", async () => {
    const gateway: Gateway = await startGateway(echo);
    const wire = await openHttpWire(gateway.url);
    const meta = { traceparent: "nonsense", tracestate: "a=1", baggage: "b" };
    expect((await seenBy(wire, "echo__echo_raw", meta, { traceparent })).meta).toEqual(meta);
    expect((await seenBy(wire, "echo__echo_raw", undefined, { traceparent })).meta).toBeUndefined();
  });

  it("that could be reached, calls work as ever, and the gateway stops in time", async () => {
    const gateway = await startGateway({ ...echo, telemetry: { otlp: "http://127.0.0.1:1/v1/traces" } });
    const wire = await openHttpWire(gateway.url);
    for (let i = 0; i < 20; i++) await seenBy(wire, "echo__echo_raw");
    await until("the log", () => gateway.log().includes("the collector cannot be reached"));
    await gateway.stop();
    expect(gateway.log()).toContain("[ended: 0]");
  });
});
