import { describe, expect, it, vi } from "vitest";
import type { Caller } from "../../contracts/caller.js";
import { ownName } from "../../contracts/names.js";
import type { UpstreamCall } from "../../contracts/upstream.js";
import { Fault } from "../../protocol/errors.js";
import type { JsonObject } from "../../protocol/jsonrpc.js";
import { parseMessage, type RequestMessage, type ResponseMessage, withChanges } from "../../protocol/message.js";
import { faultReply, type Reply, renderReply, resultBytes } from "../../protocol/reply.js";
import { InputRounds } from "./rounds.js";

/** Above what anything here takes on a busy machine; only reached where a test fails. */
const SOON = { timeout: 60_000, interval: 20 };

type Answer = (request: RequestMessage, signal: AbortSignal) => Promise<JsonObject>;

function setUp(answer: Answer, options: { method?: string; era?: "legacy" | "modern" } = {}) {
  const sent: { text: string; leg: UpstreamCall }[] = [];
  const cancelled: string[] = [];
  let id = 0;
  const rounds = new InputRounds({
    send: (leg) => void sent.push({ text: leg.render(++id), leg }),
    cancel: (leg, reason) => {
      cancelled.push(String(reason));
      leg.reply(faultReply(new Fault("cancelled", "taken back")));
    },
  });
  const replies: JsonObject[] = [];
  const faults: (Fault | undefined)[] = [];
  const told: JsonObject[] = [];
  const caller: Caller = {
    principal: { id: "p", role: "default" },
    sessionKey: "s",
    era: options.era ?? "legacy",
    logLevel: undefined,
    setLogLevel: () => {},
    version: "2025-11-25",
    capabilities: {},
    clientInfo: {},
    notify: ({ text }) => {
      if (replies.length > 0) throw new Error("A call that has ended was told something.");
      told.push(JSON.parse(text) as JsonObject);
    },
    ask: async (request, signal) =>
      parseMessage(JSON.stringify({ jsonrpc: "2.0", id: 9, ...(await answer(request, signal)) })) as ResponseMessage,
  };
  const call: UpstreamCall = {
    caller,
    method: options.method ?? "tools/call",
    subject: ownName("t"),
    params: { name: "t", arguments: { n: 1 }, x: 1 },
    progressToken: undefined,
    render: (one, changes) =>
      withChanges(
        parseMessage(
          `{"jsonrpc":"2.0","id":${one},"method":"tools/call","params":{"name":"t","arguments":{"n":1.0},"x":1}}`,
        ),
        changes ?? {},
      ),
    reply: (reply: Reply) => {
      if (reply.kind === "error") faults.push(reply.fault);
      if (reply.kind !== "stream") replies.push(JSON.parse(renderReply(reply, '"me"').toString()) as JsonObject);
    },
  };
  const taken = rounds.send(call);
  const nextLeg = async (count: number) => {
    await vi.waitFor(() => expect(sent).toHaveLength(count), SOON);
    return sent[count - 1] as { text: string; leg: UpstreamCall };
  };
  return { rounds, call, taken, sent, told, replies, faults, cancelled, nextLeg };
}

const asks = (inputRequests: unknown, requestState?: string) =>
  resultBytes(JSON.stringify({ resultType: "input_required", inputRequests, requestState }));
const elicit = { method: "elicitation/create", params: { message: "Who?", requestedSchema: {} } };
const done = resultBytes('{"resultType":"complete","content":[]}');

describe("a call of a legacy agent to a modern server", () => {
  it("is repeated under a new id with all answers and the state as it was written", async () => {
    const asked: string[] = [];
    const { sent, replies, nextLeg } = setUp(async ({ method }) => {
      asked.push(method);
      return { result: method === "roots/list" ? { roots: [] } : { action: "accept", content: { a: "b" } } };
    });
    const state = String.raw`{"requestState":"aé\/\u0041","resultType":"input_required","inputRequests":{"one":${JSON.stringify(elicit)},"two":{"method":"roots/list"}}}`;
    sent[0]?.leg.reply(resultBytes(state));
    const { text, leg } = await nextLeg(2);
    expect(new Set(asked)).toEqual(new Set(["elicitation/create", "roots/list"]));
    expect(text).toContain(String.raw`"requestState":"aé\/\u0041"`);
    expect(text).toContain('"arguments":{"n":1.0}');
    expect(JSON.parse(text)).toMatchObject({
      id: 2,
      params: {
        name: "t",
        inputResponses: { one: { action: "accept", content: { a: "b" } }, two: { roots: [] } },
      },
    });
    leg.reply(done);
    expect(replies).toEqual([{ jsonrpc: "2.0", id: "me", result: { resultType: "complete", content: [] } }]);
  });

  it("goes on over several rounds, each with its own answers and state only", async () => {
    const { sent, replies, nextLeg } = setUp(async () => ({ result: { action: "accept" } }));
    sent[0]?.leg.reply(asks({ a: elicit }, "first"));
    (await nextLeg(2)).leg.reply(asks({ b: elicit }));
    const { text, leg } = await nextLeg(3);
    const { params } = JSON.parse(text) as { params: JsonObject };
    expect(Object.keys(params["inputResponses"] as JsonObject)).toEqual(["b"]);
    expect(params).not.toHaveProperty("requestState");
    leg.reply(done);
    expect(replies).toHaveLength(1);
  });

  it("is given up after ten rounds", async () => {
    const { sent, replies, faults, nextLeg } = setUp(async () => ({ result: { action: "accept" } }));
    sent[0]?.leg.reply(asks({ a: elicit }));
    for (let leg = 2; leg <= 11; leg++) (await nextLeg(leg)).leg.reply(asks({ a: elicit }));
    await vi.waitFor(() => expect(replies).toMatchObject([{ error: { code: -31006 } }]), SOON);
    // The server has had it: whoever decides by that must know.
    expect(faults[0]?.wire).toEqual({ left: true });
    expect(sent).toHaveLength(11);
  });

  it("is simply repeated where the server has only a state", async () => {
    const { sent, nextLeg } = setUp(async () => ({ result: {} }));
    sent[0]?.leg.reply(asks(undefined, "later"));
    const { text } = await nextLeg(2);
    expect(JSON.parse(text)).toMatchObject({ params: { requestState: "later" } });
    expect(text).not.toContain("inputResponses");
  });

  it("cancels a question that its agent answers with an error, cannot be asked or leaves open: nobody said no [eras-meet]", async () => {
    const outcomes: Answer[] = [
      async () => ({ error: { code: -32602, message: "no such mode" } }),
      async () => Promise.reject(new Fault("no-caller", "no elicitation")),
      async () => Promise.reject(new Fault("timeout", "nobody answered")),
      async () => ({ result: { action: "decline" } }),
    ];
    let at = 0;
    const { sent, nextLeg } = setUp((request, signal) => (outcomes[at++] as Answer)(request, signal));
    sent[0]?.leg.reply(asks({ a: elicit, b: elicit, c: elicit, d: elicit }));
    const cancel = { action: "cancel" };
    expect(JSON.parse((await nextLeg(2)).text)).toMatchObject({
      params: { inputResponses: { a: cancel, b: cancel, c: cancel, d: { action: "decline" } } },
    });
  });

  it("ends with the agent's own error where the server repeats what the agent answered with it [eras-meet]", async () => {
    const error = { code: -32602, message: "no such mode", data: { mode: "form" } };
    const other = { method: "elicitation/create", params: { message: "Something simpler?", requestedSchema: {} } };
    let asked = 0;
    const { sent, replies, nextLeg } = setUp(async () =>
      asked++ === 0 ? { error } : { result: { action: "accept" } },
    );
    sent[0]?.leg.reply(asks({ a: elicit }));
    // Another question under the same key is asked.
    (await nextLeg(2)).leg.reply(asks({ a: other }));
    (await nextLeg(3)).leg.reply(asks({ again: elicit }));
    await vi.waitFor(() => expect(replies).toEqual([{ jsonrpc: "2.0", id: "me", error }]), SOON);
    expect([asked, sent.length]).toEqual([2, 3]);
  });

  it("ends where the server repeats what its agent cannot be asked [eras-meet]", async () => {
    const { sent, replies, nextLeg } = setUp(() => Promise.reject(new Fault("no-caller", "no elicitation")));
    sent[0]?.leg.reply(asks({ a: elicit }));
    (await nextLeg(2)).leg.reply(asks({ a: elicit }));
    await vi.waitFor(() => expect(replies).toMatchObject([{ error: { message: "no elicitation" } }]), SOON);
  });

  it("fails where sampling or roots are refused: there is no result that says no", async () => {
    const { sent, replies } = setUp(async () => ({ error: { code: -1, message: "User rejected" } }));
    sent[0]?.leg.reply(asks({ a: { method: "sampling/createMessage", params: {} } }));
    await vi.waitFor(
      () =>
        expect(replies).toMatchObject([{ error: { code: -31010, message: expect.stringContaining("User rejected") } }]),
      SOON,
    );
    expect(sent).toHaveLength(1);
  });

  it("fails on an input request that nobody knows", async () => {
    const { sent, replies } = setUp(async () => ({ result: {} }));
    sent[0]?.leg.reply(asks({ a: { method: "tools/call", params: {} } }));
    await vi.waitFor(() => expect(replies).toMatchObject([{ error: { code: -31005 } }]), SOON);
  });

  it("names a URL elicitation, which the legacy era wants", async () => {
    const asked: RequestMessage[] = [];
    const { sent, nextLeg } = setUp(async (request) => {
      asked.push(request);
      return { result: { action: "accept" } };
    });
    sent[0]?.leg.reply(
      asks({
        a: { method: "elicitation/create", params: { mode: "url", url: "https://example.com/", message: "Go" } },
      }),
    );
    await nextLeg(2);
    expect(asked[0]?.params).toMatchObject({
      mode: "url",
      url: "https://example.com/",
      elicitationId: expect.any(String),
    });
  });

  it("completes a page when the server goes on, and keeps its name while the server asks for it again [eras-meet]", async () => {
    const asked: RequestMessage[] = [];
    const { sent, told, replies, nextLeg } = setUp(async (request) => {
      asked.push(request);
      return { result: { action: request.params?.["message"] === "No" ? "decline" : "accept" } };
    });
    const page = (message: string) => ({
      method: "elicitation/create",
      params: { mode: "url", url: "https://example.com/", message },
    });
    const idOf = (at: number) => asked[at]?.params?.["elicitationId"];
    sent[0]?.leg.reply(asks({ a: page("Go"), b: page("No") }));
    (await nextLeg(2)).leg.reply(asks({ a: page("Go") }));
    const third = await nextLeg(3);
    expect(idOf(2)).toBe(idOf(0));
    expect(told).toEqual([]);
    third.leg.reply(asks({ c: page("And there") }));
    const complete = (id: unknown) => ({
      jsonrpc: "2.0",
      method: "notifications/elicitation/complete",
      params: { elicitationId: id },
    });
    const last = await nextLeg(4);
    expect(told).toEqual([complete(idOf(0))]);
    last.leg.reply(done);
    expect(told).toEqual([complete(idOf(0)), complete(idOf(3))]);
    expect([idOf(0), idOf(1), idOf(3)].every((id) => typeof id === "string")).toBe(true);
    expect(new Set([idOf(0), idOf(1), idOf(3)]).size).toBe(3);
    expect(replies).toHaveLength(1);
  });

  it("can be cancelled in flight, and while its agent is asked", async () => {
    const inFlight = setUp(async () => ({ result: {} }));
    expect(inFlight.rounds.waiting).toBe(0);
    inFlight.rounds.cancel(inFlight.call, "why");
    expect(inFlight.cancelled).toEqual(["why"]);
    expect(inFlight.replies).toMatchObject([{ error: { code: -31008 } }]);

    let aborted = false;
    const asking = setUp(
      (_request, signal) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener("abort", () => {
            aborted = true;
            reject(signal.reason as Error);
          });
        }),
    );
    asking.sent[0]?.leg.reply(asks({ a: elicit }));
    expect(asking.rounds.waiting).toBe(1);
    asking.rounds.cancel(asking.call, undefined);
    expect(asking.replies).toMatchObject([{ error: { code: -31008 } }]);
    expect(aborted).toBe(true);
    expect(asking.rounds.waiting).toBe(0);
    await new Promise((resolve) => setImmediate(resolve));
    expect(asking.sent).toHaveLength(1);
    expect(asking.replies).toHaveLength(1);
  });

  it("is answered when the connection ends while its agent is asked", () => {
    const { sent, rounds, replies } = setUp(() => new Promise(() => {}));
    sent[0]?.leg.reply(asks({ a: elicit }));
    rounds.end(new Fault("outcome-unknown", "gone"));
    expect(replies).toMatchObject([{ error: { code: -31003 } }]);
  });

  it("passes on a result that only mentions input_required", () => {
    const { sent, replies } = setUp(async () => ({ result: {} }));
    sent[0]?.leg.reply(resultBytes('{"content":[{"type":"text","text":"\\"input_required\\""}],"x":"input_required"}'));
    expect(replies).toHaveLength(1);
  });
});

describe("other calls", () => {
  it("of modern agents, and of methods that have no rounds, are not taken", () => {
    expect(setUp(async () => ({}), { era: "modern" }).taken).toBe(false);
    expect(setUp(async () => ({}), { method: "completion/complete" }).taken).toBe(false);
  });
});
