import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { ListKind, UpstreamCall } from "../../contracts/upstream.js";
import { Fault } from "../../protocol/errors.js";
import type { JsonObject } from "../../protocol/jsonrpc.js";
import { faultReply, type Reply, resultBytes } from "../../protocol/reply.js";
import { ServerListen } from "./listen.js";

const ALL = {
  tools: { listChanged: true },
  prompts: { listChanged: true },
  resources: { listChanged: true, subscribe: true },
};

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function setUp(capabilities: JsonObject = ALL) {
  const sent: { id: number; filter: JsonObject; call: UpstreamCall }[] = [];
  const cancelled: number[] = [];
  const missed: ListKind[][] = [];
  const problems: string[] = [];
  const listen = new ServerListen(capabilities, {
    direct: {
      send: (call) => {
        const id = sent.length + 1;
        const { params } = JSON.parse(call.render(id)) as { params: { notifications: JsonObject } };
        sent.push({ id, filter: params.notifications, call });
      },
      cancel: (call) => {
        cancelled.push(sent.findIndex((one) => one.call === call) + 1);
        call.reply(faultReply(new Fault("cancelled", "Taken back.")));
      },
    },
    now: () => Date.now(),
    random: () => 0,
    onMissed: (kinds) => void missed.push([...kinds]),
    onProblem: (text) => void problems.push(text),
  });
  listen.start();
  const acknowledge = (id: number, filter = sent[id - 1]?.filter) => listen.acknowledged(id, filter);
  /** The call, and what it was answered with so far. */
  const subscribe = (uri: string) => {
    const replies: Reply[] = [];
    const call = { reply: (reply: Reply) => void replies.push(reply) } as unknown as UpstreamCall;
    listen.subscribe(uri, call);
    return { call, replies };
  };
  return { listen, subscribe, sent, cancelled, missed, problems, acknowledge };
}

describe("listening to a modern server", () => {
  it("asks for what the server's capabilities allow", () => {
    expect(setUp().sent.map(({ filter }) => filter)).toEqual([
      { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true },
    ]);
    expect(setUp({ tools: { listChanged: true }, resources: {} }).sent[0]?.filter).toEqual({ toolsListChanged: true });
    expect(setUp({ tools: {} }).sent).toEqual([]);
  });

  it("hears what was acknowledged, and says what was not", () => {
    const { listen, acknowledge, problems } = setUp();
    expect(listen.hears("tools")).toBe(false);
    acknowledge(1, { toolsListChanged: true, resourcesListChanged: true });
    expect(listen.hears("tools")).toBe(true);
    expect(listen.hears("resourceTemplates")).toBe(true);
    expect(listen.hears("prompts")).toBe(false);
    expect(problems).toEqual([expect.stringContaining("promptsListChanged")]);
  });

  it("is renewed once for many subscriptions; the old one ends when the new one is acknowledged", async () => {
    const { listen, subscribe, sent, cancelled, acknowledge } = setUp();
    acknowledge(1);
    for (let i = 0; i < 50; i++) subscribe(`file:///${i}`);
    await vi.advanceTimersByTimeAsync(100);
    expect(sent).toHaveLength(2);
    expect(sent[1]?.filter["resourceSubscriptions"]).toHaveLength(50);
    expect(cancelled).toEqual([]);
    acknowledge(2);
    expect(cancelled).toEqual([1]);
    listen.unsubscribe("file:///0");
    listen.unsubscribe("file:///not there");
    await vi.advanceTimersByTimeAsync(100);
    expect(sent[2]?.filter["resourceSubscriptions"]).toHaveLength(49);
    expect(listen.inFlight).toBe(2);
    acknowledge(3);
    await vi.advanceTimersByTimeAsync(120_000);
    expect(sent).toHaveLength(3);
  });

  it("takes up what changed while it was being renewed", async () => {
    const { listen, subscribe, sent, acknowledge } = setUp({ resources: { subscribe: true } });
    subscribe("a:1");
    await vi.advanceTimersByTimeAsync(100);
    subscribe("a:2");
    await vi.advanceTimersByTimeAsync(100);
    expect(sent).toHaveLength(1);
    acknowledge(1);
    await vi.advanceTimersByTimeAsync(100);
    expect(sent[1]?.filter).toEqual({ resourceSubscriptions: ["a:1", "a:2"] });
    acknowledge(2);
    listen.unsubscribe("a:1");
    listen.unsubscribe("a:2");
    await vi.advanceTimersByTimeAsync(100);
    expect(sent).toHaveLength(2);
    expect(listen.inFlight).toBe(0);
  });

  it("is opened again after it ended, at growing distances, and what was missed is said", async () => {
    const { listen, sent, missed, acknowledge } = setUp();
    acknowledge(1);
    expect(missed).toEqual([]);
    sent[0]?.call.reply(resultBytes('{"resultType":"complete"}'));
    expect(listen.hears("tools")).toBe(false);
    await vi.advanceTimersByTimeAsync(600);
    expect(sent).toHaveLength(2);
    for (let at = 2; at < 6; at++) {
      sent[at - 1]?.call.reply(faultReply(new Fault("unavailable", "down")));
      await vi.advanceTimersByTimeAsync(500 * 2 ** (at - 1) - 10);
      expect(sent).toHaveLength(at);
      await vi.advanceTimersByTimeAsync(20);
      expect(sent).toHaveLength(at + 1);
    }
    acknowledge(6);
    expect(missed).toEqual([["tools", "prompts", "resources", "resourceTemplates"]]);
  });

  it("says that a list was read too early to hear of changes", () => {
    const { listen, missed, acknowledge } = setUp();
    listen.wasRead();
    acknowledge(1);
    listen.wasRead();
    expect(missed).toHaveLength(1);
  });

  it("is opened again where the server cancels it, or never acknowledges", async () => {
    const { listen, sent, cancelled, acknowledge } = setUp();
    acknowledge(1);
    expect(listen.endedByServer(7)).toBe(false);
    expect(listen.endedByServer(1)).toBe(true);
    await vi.advanceTimersByTimeAsync(600);
    expect(sent).toHaveLength(2);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(cancelled).toEqual([1, 2]);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(sent.length).toBeGreaterThan(2);
  });

  it("is given up where the server does not know it, and when it is stopped", async () => {
    const refused = setUp();
    refused.sent[0]?.call.reply({ kind: "error", error: { code: -32601, message: "Method not found" } });
    await vi.advanceTimersByTimeAsync(600_000);
    expect(refused.sent).toHaveLength(1);
    expect(refused.problems).toEqual([expect.stringContaining("subscriptions/listen")]);

    const stopped = setUp();
    stopped.acknowledge(1);
    stopped.listen.stop();
    stopped.sent[0]?.call.reply(faultReply(new Fault("unavailable", "stopped")));
    stopped.subscribe("a:1");
    await vi.advanceTimersByTimeAsync(600_000);
    expect(stopped.sent).toHaveLength(1);
  });

  const SUBSCRIBED = [{ kind: "result", result: {} }];
  const failed = (code: string) => [
    expect.objectContaining({ kind: "error", fault: expect.objectContaining({ code }) }),
  ];

  it("answers a subscription when the server has it, and not before [eras-meet]", async () => {
    const { subscribe, listen, acknowledge } = setUp();
    acknowledge(1);
    const [one, left] = [subscribe("a:1"), subscribe("a:left")];
    await vi.advanceTimersByTimeAsync(100);
    const late = subscribe("a:late");
    expect([one.replies, left.replies, late.replies]).toEqual([[], [], []]);
    expect(listen.waiting).toBe(3);
    acknowledge(2, { resourceSubscriptions: ["a:1"] });
    expect(one.replies).toEqual(SUBSCRIBED);
    expect(left.replies).toEqual(failed("not-found"));
    expect(late.replies).toEqual([]);
    await vi.advanceTimersByTimeAsync(100);
    acknowledge(3);
    expect(late.replies).toEqual(SUBSCRIBED);
    // What the server tells of already needs no further word.
    expect(subscribe("a:1").replies).toEqual(SUBSCRIBED);
    expect(listen.waiting).toBe(0);
  });

  it("holds no subscription up for a server that does not listen [bounded]", async () => {
    const { subscribe, listen, sent } = setUp();
    const silent = subscribe("a:1");
    await vi.advanceTimersByTimeAsync(9_900);
    expect(silent.replies).toEqual([]);
    await vi.advanceTimersByTimeAsync(200);
    expect(silent.replies).toEqual(SUBSCRIBED);
    expect(subscribe("a:2").replies).toEqual(SUBSCRIBED);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(sent[1]?.filter["resourceSubscriptions"]).toEqual(["a:1", "a:2"]);
    const [taken, lost] = [subscribe("a:3"), subscribe("a:4")];
    expect(listen.cancel(taken.call, new Fault("cancelled", "x"))).toBe(true);
    listen.end(new Fault("outcome-unknown", "gone"));
    expect([taken.replies, lost.replies]).toEqual([failed("cancelled"), failed("outcome-unknown")]);

    const refused = setUp();
    const waits = refused.subscribe("a:1");
    refused.sent[0]?.call.reply({ kind: "error", error: { code: -32601, message: "Method not found" } });
    expect([waits.replies, refused.subscribe("a:2").replies]).toEqual([failed("not-found"), failed("not-found")]);
  });
});
