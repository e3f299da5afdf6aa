import { describe, expect, it } from "vitest";
import { TestClock } from "../../../test/fixtures/test-clock.js";
import type { Caller } from "../../contracts/caller.js";
import type { AgentCall } from "../../contracts/service.js";
import { Fault } from "../../protocol/errors.js";
import { parseMessage, type RequestMessage } from "../../protocol/message.js";
import { faultReply, type Reply, resultBytes } from "../../protocol/reply.js";
import { type CallRecord, emptyRecord } from "../call-record.js";
import type { CallRecorder } from "../call-recorder.js";
import { CallObserver } from "../observed-call.js";
import { type CallInfo, type FinishedSpan, OwnTracer } from "../traces.js";
import { otlpBody } from "./json.js";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT = "00f067aa0ba902b7";
const traceparent = `00-${TRACE}-${PARENT}-01`;

const info: CallInfo = { name: "tools/call read", params: undefined };

const ended = (over: Partial<CallRecord> = {}): CallRecord => ({
  ...emptyRecord(),
  method: "tools/call",
  server: "files",
  tool: "read",
  principal: { id: "ann", role: "dev" },
  agentEra: "modern",
  ...over,
});

function tracer(options: { sample?: number; random?: () => number } = {}) {
  const clock = new TestClock();
  const spans: FinishedSpan[] = [];
  const made = new OwnTracer({ sink: { end: (span) => spans.push(span) }, clock, ...options });
  return { clock, spans, tracer: made };
}

describe("a span", () => {
  it("is the child of what _meta names, before what a header names", () => {
    const { tracer: own, spans } = tracer();
    const params = { _meta: { traceparent, tracestate: "a=1" } };
    const headers = { traceparent: `00-${"a".repeat(32)}-${"b".repeat(16)}-01` };
    const span = own.begin({ ...info, params, headers });
    expect(span?.metaTraceparent).toMatch(new RegExp(`^00-${TRACE}-[0-9a-f]{16}-01$`));
    expect(span?.metaTraceparent).not.toContain(PARENT);
    expect(span?.metaTracestate).toBe("a=1");
    span?.end(ended());
    own.begin({ ...info, headers })?.end(ended());
    own.begin(info)?.end(ended());
    expect(spans.map(({ parent }) => parent?.spanId)).toEqual([PARENT, "b".repeat(16), undefined]);
    expect(spans[2]?.traceId).toMatch(/^[0-9a-f]{32}$/);
  });

  it("of a parent that cannot be read begins a trace, also where a header has a good one", () => {
    const { tracer: own, spans } = tracer();
    own
      .begin({ ...info, params: { _meta: { traceparent: `ff${traceparent.slice(2)}` } }, headers: { traceparent } })
      ?.end(ended());
    expect(spans[0]?.parent).toBeUndefined();
    expect(spans[0]?.traceId).not.toBe(TRACE);
  });

  it("is made where the parent is sampled; of roots, for the share that was asked for", () => {
    const { tracer: none } = tracer({ sample: 0 });
    expect(none.begin(info)).toBeUndefined();
    expect(none.begin({ ...info, params: { _meta: { traceparent } } })).toBeDefined();
    const { tracer: all } = tracer({ sample: 1, random: () => 0.999_999 });
    expect(all.begin(info)).toBeDefined();
    expect(all.begin({ ...info, params: { _meta: { traceparent: `${traceparent.slice(0, -2)}00` } } })).toBeUndefined();
    const { tracer: half } = tracer({ sample: 0.5, random: () => 0.5 });
    expect(half.begin(info)).toBeUndefined();
  });

  it("takes as long as the call did, although the clock was set meanwhile; ends once", () => {
    const { tracer: own, spans, clock } = tracer();
    const startMs = clock.wall();
    const span = own.begin(info);
    clock.advance(12.345);
    clock.jumpWall(-86_400_000);
    span?.end(ended());
    span?.end(ended({ outcome: "timeout" }));
    expect(spans).toHaveLength(1);
    expect(spans[0]).toMatchObject({ startMs, isFailed: false });
    expect((spans[0]?.endMs ?? 0) - startMs).toBeCloseTo(12.345, 3);
  });

  it("has ids of its own, none twice", () => {
    const { tracer: own, spans } = tracer();
    for (let i = 0; i < 5_000; i++) own.begin(info)?.end(ended());
    expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(5_000);
    expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(5_000);
  });
});

describe("the spans of a call [spans-by-convention]", () => {
  function observed(toolName: (server: string, tool: string) => string | undefined = (_, tool) => tool) {
    const { tracer: own, spans, clock } = tracer();
    const observer = new CallObserver({
      clock,
      tracer: own,
      eraOf: () => "modern",
      toolName,
      redact: (_, tool) => tool.replaceAll("hunter2", "[redacted]"),
      transportOf: () => "pipe",
    });
    const begin = (method = "tools/call", tool: string | undefined = "read") => {
      const text = `{"jsonrpc":"2.0","id":"an id","method":"${method}","params":{"name":"read"}}`;
      const message = parseMessage(text) as RequestMessage;
      const caller = {
        principal: { id: "ann", role: "dev" },
        era: "legacy",
        sessionKey: "the key",
        version: "2025-11-25",
      };
      const call = observer.observed({
        caller: caller as Caller,
        message,
        scope: undefined,
        reply: () => {},
        onCancel: undefined,
      });
      call.notes?.reaches("files", tool);
      return call;
    };
    return { spans, clock, begin };
  }
  const OK = resultBytes('{"content":[]}');

  it("are one for the agent and one below it for each sending, with the place that the server is told", () => {
    const { spans, clock, begin } = observed();
    const call = begin();
    clock.advance(2);
    call.notes?.sent(clock.now());
    const told = call.notes?.trace?.metaTraceparent;
    clock.advance(5);
    call.notes?.enter("returning");
    clock.advance(1);
    call.reply(OK);
    const [client, server] = spans;
    expect(told).toBe(`00-${server?.traceId}-${client?.spanId}-01`);
    expect(client).toMatchObject({ name: "tools/call read", kind: "client", parent: { spanId: server?.spanId } });
    expect(client?.attributes).toMatchObject({ "network.transport": "pipe", "gen_ai.operation.name": "execute_tool" });
    expect([client, server].map((one) => (one?.endMs ?? 0) - (one?.startMs ?? 0))).toEqual([5, 8]);
    expect(server).toMatchObject({ kind: "server", isFailed: false });
    expect(server?.attributes).toMatchObject({
      "jsonrpc.request.id": "an id",
      "mcp.protocol.version": "2025-11-25",
      "mcp.session.id": expect.stringMatching(/^[0-9a-f]{16}$/),
    });
    expect(JSON.stringify(spans)).not.toContain("the key");
  });

  it("are none below it for what was not sent, and two for a second attempt, of which the first says why", () => {
    const { spans, begin } = observed();
    begin().reply(OK);
    expect(spans.splice(0).map(({ kind }) => kind)).toEqual(["server"]);
    const call = begin();
    call.notes?.sent(0);
    const first = call.notes?.trace?.metaTraceparent;
    call.notes?.repeated("outcome_unknown");
    call.notes?.enter("starting");
    call.notes?.sent(0);
    expect(call.notes?.trace?.metaTraceparent).not.toBe(first);
    call.notes?.enter("returning");
    call.reply(OK);
    expect(spans.map(({ kind, attributes }) => [kind, attributes["error.type"]])).toEqual([
      ["client", "outcome_unknown"],
      ["client", undefined],
      ["server", undefined],
    ]);
    expect(spans[2]?.attributes["toolway.attempt"]).toBe(2);
  });

  it("are named by what is known alone: neither a method nor a tool that is made up is in a name", () => {
    const { spans, begin } = observed((_, tool) => (tool === "read" ? "read" : undefined));
    begin().reply(OK);
    begin("tools/call", "made-up").reply(OK);
    begin("prompts/get", undefined).reply(OK);
    begin("made/up", undefined).reply(OK);
    expect(spans.map(({ name }) => name)).toEqual(["tools/call read", "tools/call", "prompts/get", "_OTHER"]);
  });

  it("have no secret of a server that names a tool like it, and no more of a made-up name than is needed [secrets-unseen]", () => {
    const { spans, begin } = observed((_, tool) => (tool === "say-hunter2" ? "say-[redacted]" : undefined));
    for (const tool of ["say-hunter2", "unlisted-hunter2", "x".repeat(100_000)]) {
      const call = begin("tools/call", tool);
      call.notes?.sent(0);
      call.reply(OK);
    }
    begin(`made/${"up".repeat(100_000)}`).reply(OK);
    expect(spans.map(({ attributes }) => attributes["gen_ai.tool.name"])).toEqual([
      ...["say-[redacted]", "say-[redacted]", "unlisted-[redacted]", "unlisted-[redacted]"],
      ...["x".repeat(128), "x".repeat(128), "read"],
    ]);
    const body = otlpBody(spans, { serviceName: "s", version: "1", instanceId: "i" });
    expect(body).not.toContain("hunter2");
    expect(body.length).toBeLessThan(10_000);
  });

  it("name a failure by the code of the server, by tool_error or by our fault, and never by its message", () => {
    const { spans, begin } = observed();
    begin().reply({ kind: "error", error: { code: -32000, message: "a secret" } });
    begin().reply({ kind: "result", result: { isError: true } });
    begin().reply(faultReply(new Fault("outcome-unknown", "a secret")));
    begin().reply(faultReply(new Fault("cancelled", "a secret")));
    const types = spans.map(({ attributes, isFailed }) => [attributes["error.type"], isFailed]);
    expect(types).toEqual([
      ["-32000", true],
      ["tool_error", true],
      ["outcome_unknown", true],
      [undefined, false],
    ]);
    const body = otlpBody(spans, { serviceName: "s", version: "1", instanceId: "i" });
    expect(body).not.toContain("a secret");
    expect(body).not.toContain('"message"');
  });
});

describe("the outcome", () => {
  const message = parseMessage(
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read"}}',
  ) as RequestMessage;
  const bytes = (json: string): Reply => ({ kind: "bytes", bytes: Buffer.from(json), idStart: 6, idEnd: 7 });

  it.each<[string, Reply]>([
    ["ok", resultBytes('{"content":[]}')],
    ["ok", { kind: "result", result: { content: [] } }],
    [
      "ok",
      bytes('{"id":1,"jsonrpc":"2.0","result":{"content":[{"type":"text","text":"\\"error\\" \\"isError\\":true"}]}}'),
    ],
    ["ok", bytes('{"id":1,"jsonrpc":"2.0","result":{"isError":false}}')],
    ["tool-error", bytes('{"id":1,"jsonrpc":"2.0","result":{"content":[],"isError":true}}')],
    ["tool-error", { kind: "result", result: { isError: true } }],
    ["rpc-error", bytes('{"id":1,"jsonrpc":"2.0","error":{"code":-32602,"message":"no"}}')],
    ["rpc-error", { kind: "error", error: { code: -32602, message: "no" } }],
    ["outcome-unknown", faultReply(new Fault("outcome-unknown", "gone"))],
    ["cancelled", faultReply(new Fault("cancelled", "taken back"))],
  ])("%s is told from the reply, which goes on unchanged", (outcome, reply) => {
    const { tracer: own, spans, clock } = tracer();
    const replies: Reply[] = [];
    const outer = {
      caller: { principal: { id: "ann", role: "dev" }, era: "legacy", version: "", sessionKey: "" } as Caller,
      message,
      scope: "s",
      reply: (r: Reply) => replies.push(r),
      onCancel: undefined,
    };
    const call = new CallObserver({ clock, tracer: own, eraOf: () => "modern" }).observed(outer);
    expect(call.message).toBe(message);
    call.notes?.reaches("files", "read");
    expect(call.notes?.trace?.metaTraceparent).toMatch(/^00-/);
    call.reply(reply);
    expect(replies).toEqual([reply]);
    expect(spans[0]?.attributes).toMatchObject({ "toolway.outcome": outcome, "toolway.era": "modern" });
  });
});

describe("a kept write that goes out without its agent", () => {
  function delivered(_meta: object | undefined) {
    const { tracer: own, spans, clock } = tracer({ random: () => 0 });
    const observer = new CallObserver({ clock, tracer: own, eraOf: () => "legacy", toolName: (_, tool) => tool });
    let records = 0;
    const recorder = { next: () => void records++ } as unknown as CallRecorder;
    observer.setRecorder(recorder);
    const text = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "t", _meta } });
    const replies: Reply[] = [];
    const outer = {
      caller: { principal: { id: "ann", role: "dev" }, era: "legacy", sessionKey: "", version: "" } as Caller,
      message: parseMessage(text) as RequestMessage,
      scope: undefined,
      earlyTrial: "always" as const,
      messageKey: { id: "m" } as AgentCall["messageKey"],
      reply: (reply: Reply) => void replies.push(reply),
      onCancel: undefined,
    };
    const call = observer.delivered(outer, "tracker", "create");
    return { call, outer, spans, replies, records: () => records, observer };
  }

  it("is one span for each sending, below that of its call, and no record [spans-by-convention]", () => {
    const { call, outer, spans, replies, records, observer } = delivered({ traceparent, tracestate: "a=1" });
    expect([call.earlyTrial, call.messageKey]).toEqual([outer.earlyTrial, outer.messageKey]);
    call.notes?.sent(0);
    const sent = call.notes?.trace?.metaTraceparent;
    call.reply(faultReply(new Fault("unavailable", "away")));
    expect(replies).toHaveLength(1);
    expect(spans).toMatchObject([
      { kind: "client", name: "tools/call create", traceId: TRACE, parent: { spanId: PARENT }, isFailed: true },
    ]);
    expect(sent).toContain(spans[0]?.spanId);
    expect(spans[0]?.attributes).toMatchObject({ "toolway.server": "tracker", "error.type": "unavailable" });
    expect([records(), [...observer.underWay()]]).toEqual([0, []]);
  });

  it("is no span where nothing was sent", () => {
    const { call, spans } = delivered({ traceparent });
    call.reply(faultReply(new Fault("unavailable", "its breaker is open")));
    expect(spans).toEqual([]);
  });

  it.each([
    ["that was not traced", undefined],
    ["whose parent is not sampled", { traceparent: traceparent.replace(/01$/, "00") }],
  ])("goes as it is for a call %s", (_, meta) => {
    const { call, outer } = delivered(meta);
    expect(call).toBe(outer);
  });

  it("is its agent's call where that waits for it", () => {
    const { call, observer } = delivered({ traceparent });
    expect(observer.delivered(call, "tracker", "create")).toBe(call);
  });
});

describe("OTLP", () => {
  it("has ids, times as strings of nanoseconds, attributes by type, and a status", () => {
    const { tracer: own, spans, clock } = tracer();
    const span = own.begin({ ...info, params: { _meta: { traceparent, tracestate: "a=1" } } });
    clock.advance(1.5);
    span?.end(ended({ cache: "miss", attempt: 2, era: "legacy", outcome: "timeout", version: "2026-07-28", id: 7 }));
    const body = JSON.parse(otlpBody(spans, { serviceName: "s", version: "1", instanceId: "i" }));
    expect(body).toEqual({
      resourceSpans: [
        {
          resource: {
            attributes: [
              { key: "service.name", value: { stringValue: "s" } },
              { key: "service.version", value: { stringValue: "1" } },
              { key: "service.instance.id", value: { stringValue: "i" } },
            ],
          },
          scopeSpans: [
            {
              scope: { name: "toolway", version: "1" },
              spans: [
                {
                  traceId: TRACE,
                  spanId: spans[0]?.spanId,
                  parentSpanId: PARENT,
                  traceState: "a=1",
                  flags: 0x301,
                  name: "tools/call read",
                  kind: 2,
                  startTimeUnixNano: "1700000000000000000",
                  endTimeUnixNano: "1700000000001500000",
                  attributes: [
                    { key: "mcp.method.name", value: { stringValue: "tools/call" } },
                    { key: "gen_ai.operation.name", value: { stringValue: "execute_tool" } },
                    { key: "toolway.tool", value: { stringValue: "read" } },
                    { key: "gen_ai.tool.name", value: { stringValue: "read" } },
                    { key: "mcp.protocol.version", value: { stringValue: "2026-07-28" } },
                    { key: "jsonrpc.request.id", value: { stringValue: "7" } },
                    { key: "toolway.server", value: { stringValue: "files" } },
                    { key: "toolway.era", value: { stringValue: "legacy" } },
                    { key: "toolway.agent.era", value: { stringValue: "modern" } },
                    { key: "toolway.role", value: { stringValue: "dev" } },
                    { key: "toolway.cache", value: { stringValue: "miss" } },
                    { key: "toolway.attempt", value: { intValue: "2" } },
                    { key: "toolway.outcome", value: { stringValue: "timeout" } },
                    { key: "error.type", value: { stringValue: "timeout" } },
                  ],
                  status: { code: 2 },
                },
              ],
            },
          ],
        },
      ],
    });
  });

  it("is JSON whatever names and states hold", () => {
    const { tracer: own, spans } = tracer();
    const odd = 'a"b\\c\n\u2028\ud800</script>';
    own
      .begin({ ...info, name: odd, params: { _meta: { traceparent, tracestate: 'a="1"\\' } } })
      ?.end(ended({ tool: odd }));
    own.begin(info)?.end(ended());
    const body = JSON.parse(otlpBody(spans, { serviceName: odd, version: "1", instanceId: "i" }));
    const [{ resource, scopeSpans }] = body.resourceSpans;
    expect(resource.attributes[0].value.stringValue).toBe(odd);
    const [first, second] = scopeSpans[0].spans;
    expect(first.name).toBe(odd);
    expect(first.attributes).toContainEqual({ key: "toolway.tool", value: { stringValue: odd } });
    expect(first.traceState).toBe(spans[0]?.parent?.tracestate);
    expect(second).not.toHaveProperty("parentSpanId");
    expect(second.status).toEqual({ code: 0 });
  });
});
