import { describe, expect, it } from "vitest";
import { DONE as DONE_THERE, eachWorld, KEYED, TOOL, type World } from "../../../test/fixtures/outbox/world.js";
import type { EngineStatus } from "../../contracts/engine/engine.js";
import type { Partitions } from "../../contracts/engine/partitions.js";
import { type PeerAsk, PeerError, type Peers } from "../../contracts/engine/peers.js";
import { ownToolName } from "../../contracts/names.js";
import type { OutboxTerms } from "../../contracts/outbox.js";
import type { AgentCall } from "../../contracts/service.js";
import type { Store } from "../../contracts/store.js";
import { parseMessage, type RequestMessage } from "../../protocol/message.js";
import { type Reply, renderReply } from "../../protocol/reply.js";
import { type CallFacts, decodeReply, encodeReply, factsOf, frame, unframe } from "./passed-call.js";
import { PASS_TAKE, SharedOutbox } from "./shared-outbox.js";

const CONNECTED = { state: "connected", sinceMs: 0, nextTryMs: undefined } as EngineStatus;

interface Asked {
  readonly peer: string;
  readonly kind: string;
  readonly minted: string | undefined;
  readonly pass: string;
}

/** A gateway that owns nothing, and others that answer as they are told. It looks for an owner every `lookMs`. */
function world(answer: (asked: Asked, nth: number) => Promise<Uint8Array>, lookMs = 5) {
  let nowMs = 0;
  const owners = { now: "b" as string | undefined };
  const engine = { now: CONNECTED };
  const watchers = new Set<(status: EngineStatus) => void>();
  const asked: Asked[] = [];
  const done: string[] = [];
  const listeners = new Set<(partition: number) => void>();
  const partitions = {
    count: 4,
    of: () => 1,
    ownerOf: () => owners.now,
    mayAct: () => false,
    gateways: () => [],
    onChange(listener: (partition: number) => void) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  } as unknown as Partitions;
  const peers = {
    answer: () => () => {},
    async ask(peer: string, kind: string, body: Uint8Array, { signal }: PeerAsk) {
      const [head] = unframe<{ minted?: string; call?: { pass: string }; pass?: string }>(body);
      const one = { peer, kind, minted: head.minted, pass: head.call?.pass ?? head.pass ?? "" };
      asked.push(one);
      const given = new Promise<never>((_, reject) =>
        signal?.addEventListener("abort", () => reject(new PeerError("late", "No longer waited for."))),
      );
      return Promise.race([answer(one, asked.length), given]);
    },
  } as unknown as Peers;
  const outbox = new SharedOutbox({
    self: "a",
    partitions,
    peers,
    clock: { now: () => nowMs, wall: () => nowMs },
    status: () => engine.now,
    watch: (listener) => {
      watchers.add(listener);
      return () => watchers.delete(listener);
    },
    make: () => {
      throw new Error("It owns nothing.");
    },
    deliver: () => void done.push("delivered"),
    giveBack: () => void done.push("given back"),
    lookMs,
  });
  const message = parseMessage('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{}}}');
  const replied = new Promise<string>((resolve) => {
    call.reply = (reply: Reply) => resolve(reply.kind === "stream" ? "" : renderReply(reply, "7").toString());
  });
  function change(owner: string | undefined): void {
    owners.now = owner;
    for (const listener of [...listeners]) listener(1);
  }
  const take = () => expect(outbox.take(call, "s", ownToolName("t"))).toBe(true);
  call.message = message as RequestMessage;
  const pass = (ms: number) => {
    nowMs += ms;
  };
  const turn = (status: EngineStatus) => {
    engine.now = status;
    for (const watcher of [...watchers]) watcher(status);
  };
  return { asked, done, engine, turn, watchers, replied, take, change, pass };
}

const call = {
  caller: { principal: { id: "ann", role: "default" }, sessionKey: "k", era: "legacy", version: "1", capabilities: {} },
  scope: undefined,
  onCancel: undefined,
} as unknown as { -readonly [key in keyof AgentCall]: AgentCall[key] };

const DONE = encodeReply({ kind: "result", result: { n: 1 } }, false);

describe("a call that is passed to the gateway that keeps its server's writes", () => {
  it("is passed again under the same key, to whoever is the owner by then, when the answer was lost [engine-outbox] [no-double-effect]", async () => {
    const { asked, replied, take, change, done } = world(async (_, nth) => {
      if (nth > 1) return DONE;
      // It died with the question in its hands.
      queueMicrotask(() => change("c"));
      throw new PeerError("late", "It said nothing.");
    });
    take();
    expect(await replied).toBe('{"jsonrpc":"2.0","id":7,"result":{"n":1}}');
    expect(asked.map(({ peer }) => peer)).toEqual(["b", "c"]);
    expect(asked[0]?.minted).toMatch(/^[\w-]{22}$/);
    expect(asked[1]?.minted).toBe(asked[0]?.minted);
    expect(done).toEqual([]);
  });

  it("waits for an owner, and is passed on when there is one [engine-outbox]", async () => {
    const { asked, replied, take, change } = world(async (_, nth) => {
      if (nth > 2) return DONE;
      queueMicrotask(() => change(nth === 1 ? "c" : "d"));
      if (nth === 1) throw new PeerError("away", "Nobody is there.");
      return frame({ kind: "not-owner" });
    });
    take();
    expect(await replied).toContain('"result"');
    expect(asked.map(({ peer }) => peer)).toEqual(["b", "c", "d"]);
  });

  it("is refused and given back where nobody had it in hand in time, and unknown where somebody may have it [engine-outbox] [unknown-is-said]", async () => {
    const away = world(async () => {
      away.pass(60_000);
      throw new PeerError("away", "Nobody is there.");
    });
    away.take();
    expect(await away.replied).toContain("Not sent, and not queued");
    expect(away.done).toEqual(["given back"]);
    const large = world(async () => {
      throw new PeerError("large", "Gateways ask each other at most 16 MiB.");
    });
    large.take();
    expect(await large.replied).toContain("Not sent, and not queued: Gateways ask each other at most 16 MiB.");
    expect([large.asked.length, large.done]).toEqual([1, ["given back"]]);
    const late = world(async () => {
      late.pass(60_000);
      throw new PeerError("late", "It said nothing.");
    });
    late.take();
    expect(await late.replied).toContain("Whether it was queued is unknown");
    expect(late.done).toEqual([]);
  });

  it("is refused as soon as it is known that the engine has no room for whoever would have it in hand [engine-away] [engine-outbox]", async () => {
    const full = "The engine has no room: maximum bytes exceeded. Give its stream or account more.";
    const without = { ...CONNECTED, full } as EngineStatus;
    const nobody = world(async () => DONE);
    nobody.change(undefined);
    nobody.engine.now = without;
    nobody.take();
    expect(await nobody.replied).toContain(`Not sent, and not queued: ${full}`);
    expect([nobody.asked, nobody.done]).toEqual([[], ["given back"]]);
    // Its lease is over, and nobody can say so in the engine.
    const silent = world(async () => frame({ kind: "not-owner" }));
    silent.take();
    await expect.poll(() => silent.asked.length).toBeGreaterThan(0);
    silent.engine.now = without;
    expect(await silent.replied).toContain(`Not sent, and not queued: ${full}`);
    expect(silent.done).toEqual(["given back"]);
    // Whoever may still act knows keys, and says by itself what it cannot write.
    const acting = world(async () => DONE);
    acting.engine.now = without;
    acting.take();
    expect(await acting.replied).toContain('"result"');
    // The same where nobody leads the engine.
    const led = world(async () => DONE);
    led.change(undefined);
    led.engine.now = { ...CONNECTED, mute: { sinceMs: 0, why: "It tells nothing." } } as EngineStatus;
    led.take();
    expect(await led.replied).toContain("Not sent, and not queued: It tells nothing.");
    // What may have been taken before is not called refused.
    const late = world(async (_, nth) => {
      if (nth > 1) return frame({ kind: "not-owner" });
      queueMicrotask(() => late.change("c"));
      throw new PeerError("late", "It said nothing.");
    });
    late.engine.now = without;
    late.take();
    expect(await late.replied).toContain(`Whether it was queued is unknown: ${full}`);
    expect(late.done).toEqual([]);
  });

  it("is refused at once, with the time of the next try, where the engine has been away for longer than a switch of nodes takes [engine-away] [engine-outbox]", async () => {
    for (const state of ["away", "refused"] as const) {
      const gone = world(async () => {
        throw new PeerError("away", "The engine is away.");
      });
      gone.pass(10_000);
      gone.engine.now = { state, sinceMs: 1_000, nextTryMs: 11_500 } as EngineStatus;
      gone.take();
      expect(await gone.replied).toContain(
        "Not sent, and not queued: there is no connection to the engine that this server's writes are kept in. The next try to reach it is in 1.5 s.",
      );
      expect([gone.asked, gone.done]).toEqual([[], ["given back"]]);
    }
  });

  it("waits while a connection that was lost may be back in a moment, and no longer [engine-away] [engine-outbox] [takeover]", async () => {
    const isAway = { state: "away", sinceMs: 0, nextTryMs: 7_000 } as EngineStatus;
    const lost = async () => {
      throw new PeerError("away", "The engine is away.");
    };
    const back = world(async (_, nth) => (nth > 1 ? DONE : lost()), 600_000);
    back.engine.now = isAway;
    back.pass(1_000);
    back.take();
    await expect.poll(() => back.asked.length).toBe(1);
    back.engine.now = CONNECTED;
    back.change("b");
    expect(await back.replied).toContain('"result"');
    const stays = world(lost);
    stays.engine.now = isAway;
    stays.take();
    await expect.poll(() => stays.asked.length).toBeGreaterThan(0);
    expect(stays.done).toEqual([]);
    stays.pass(6_000);
    expect(await stays.replied).toContain("The next try to reach it is in 1.0 s.");
    expect(stays.done).toEqual(["given back"]);
  });

  it("is passed again under its key, and not waited for, where the connection broke while it was asked for [engine-away] [engine-outbox] [no-double-effect]", async () => {
    // The owner's answer went out while nobody was there to hear it.
    const lost = world((_, nth) => (nth > 1 ? DONE : new Promise(() => {})));
    lost.take();
    await expect.poll(() => lost.asked.length).toBe(1);
    lost.turn({ state: "away", sinceMs: 0, nextTryMs: 100 } as EngineStatus);
    lost.turn(CONNECTED);
    expect(await lost.replied).toContain('"result"');
    expect(lost.asked[1]).toEqual(lost.asked[0]);
    expect([lost.done, lost.watchers.size]).toEqual([[], 0]);
  });

  it("is unknown, and not refused, where it was asked for before the engine went away, as soon as that is known to last [engine-away] [unknown-is-said]", async () => {
    const late = world((_, nth) =>
      nth > 1 ? Promise.reject(new PeerError("away", "The engine is away.")) : new Promise(() => {}),
    );
    late.take();
    await expect.poll(() => late.asked.length).toBe(1);
    late.turn({ state: "away", sinceMs: 0, nextTryMs: 8_000 } as EngineStatus);
    await expect.poll(() => late.asked.length).toBeGreaterThan(1);
    late.pass(7_000);
    expect(await late.replied).toMatch(/Whether it was queued is unknown: .* The next try to reach it is in 1\.0 s\./);
    expect(late.done).toEqual([]);
  });

  it("goes its way where the owner does not keep it, and is charged where the owner says that it cost something [engine-outbox]", async () => {
    const plain = world(async () => frame({ kind: "not-kept" }));
    plain.take();
    await expect.poll(() => plain.done).toEqual(["delivered"]);
    const known = world(async () => encodeReply({ kind: "result", result: {} }, true));
    known.take();
    await known.replied;
    expect(known.done).toEqual(["given back"]);
  });

  it("is not sent beside what an owner that did not answer may have kept: that is unknown [engine-outbox] [no-double-effect] [unknown-is-said]", async () => {
    const { asked, replied, take, change, done } = world(async (_, nth) => {
      if (nth > 1) return frame({ kind: "not-kept" });
      queueMicrotask(() => change("c"));
      throw new PeerError("late", "It said nothing.");
    });
    take();
    expect(await replied).toContain("Ask for your receipts");
    expect(asked.map(({ peer }) => peer)).toEqual(["b", "c"]);
    expect(done).toEqual([]);
  });

  it("is taken back at the gateway that it was passed to [engine-outbox]", async () => {
    let end = (_: Uint8Array) => {};
    const { asked, replied, take } = world(async ({ kind }) => {
      if (kind === "outbox.cancel") {
        end(await encodeReply({ kind: "error", error: { code: -32000, message: "taken back" } }, true));
        return frame({});
      }
      return new Promise<Uint8Array>((resolve) => {
        end = resolve;
      });
    });
    take();
    await expect.poll(() => asked.length).toBe(1);
    call.onCancel?.("enough");
    expect(await replied).toContain("taken back");
    expect(asked[1]).toMatchObject({ peer: "b", kind: "outbox.cancel", pass: asked[0]?.pass });
  });

  it("is not passed again, nor taken, when its agent took it back and the connection broke then: its owner is told, and it is unknown [engine-outbox] [no-double-effect] [unknown-is-said]", async () => {
    const { asked, replied, take, turn, done } = world(async ({ kind }) =>
      kind === "outbox.cancel" ? frame({}) : new Promise<Uint8Array>(() => {}),
    );
    take();
    await expect.poll(() => asked.length).toBe(1);
    turn({ ...CONNECTED, state: "away" });
    call.onCancel?.("enough");
    await expect.poll(() => asked.length).toBe(2);
    turn(CONNECTED);
    expect(await replied).toContain("Whether it was queued is unknown: its agent took it back");
    // Once when it was taken back, which may not have come through, and once when it could be told.
    expect(asked.map(({ kind }) => kind)).toEqual([PASS_TAKE, "outbox.cancel", "outbox.cancel"]);
    expect(done).toEqual([]);
  });

  it.each([
    ["that the call is none of what it keeps", async () => frame({ kind: "not-kept" })],
    ["that it is not its owner any more", async () => frame({ kind: "not-owner" })],
    ["that it is not there", () => Promise.reject(new PeerError("away", "Nobody is there."))],
  ])(
    "is not sent, and given back, where its agent took it back and the answer is %s [engine-outbox]",
    async (_what, answer) => {
      let end = () => {};
      const waited = new Promise<void>((resolve) => {
        end = resolve;
      });
      const { asked, replied, take, done } = world(async ({ kind }) => {
        if (kind === "outbox.cancel") return frame({});
        await waited;
        return answer();
      });
      take();
      await expect.poll(() => asked.length).toBe(1);
      call.onCancel?.("enough");
      end();
      expect(await replied).toContain("enough. It was not sent.");
      expect(asked.map(({ kind }) => kind)).toEqual([PASS_TAKE, "outbox.cancel"]);
      expect(done).toEqual(["given back"]);
    },
  );
});

describe("a call that is passed here", () => {
  let kept: World;
  let store: Store;
  eachWorld((one, on) => {
    kept = one;
    store = on;
  });

  const owner = async () => {
    let onTake = async (body: Uint8Array) => body;
    const answer: Peers["answer"] = (kind, act) => {
      if (kind === PASS_TAKE) onTake = async (body) => act("a", body);
      return () => {};
    };
    const outbox = new SharedOutbox({
      self: "c",
      partitions: { of: () => 1, mayAct: () => true, gateways: () => [] } as unknown as Partitions,
      peers: { answer } as unknown as Peers,
      clock: { now: () => 0, wall: () => 0 },
      status: () => CONNECTED,
      watch: () => () => {},
      make: () => ({ outbox: kept.outbox, operations: kept.operations }),
      targetOf: () => "ours",
      deliver: () => {},
      giveBack: () => {},
    });
    await outbox.taken(1, store);
    type Head = { minted: string; target: string; terms?: OutboxTerms; call?: CallFacts };
    return async (passed: AgentCall, head: Head) => {
      const whole = { server: "tracker", tool: TOOL, call: factsOf(passed), ...head };
      return decodeReply(await onTake(frame(whole)));
    };
  };

  it("is one call however often it is passed, and each time gets its answer [engine-outbox] [no-double-effect]", async () => {
    const takeAs = await owner();
    const { call: passed } = kept.make({ title: "a" });
    const body = { minted: "minted", target: "ours", call: factsOf(passed) };
    const answers = [takeAs(passed, body), takeAs(passed, body)];
    await kept.rest();
    expect(kept.sent).toHaveLength(1);
    await kept.answer(DONE_THERE);
    // One that comes after the answer is known by its key.
    answers.push(takeAs(passed, body));
    for (const answer of await Promise.all(answers)) expect(answer).toMatchObject({ kind: "replied" });
    expect([kept.records.length, kept.sent.length, kept.givenBack]).toEqual([1, 1, 1]);
  });

  it("joins the write that an owner before kept under its key where its server's name means another, and is kept under no other [engine-entries] [no-double-effect]", async () => {
    const takeAs = await owner();
    const { call: passed } = kept.make({ title: "a" });
    const take = (minted: string) => takeAs(passed, { minted, target: "theirs" });
    // As the owner before us took it.
    kept.outbox.take(passed, "tracker", TOOL, { minted: "minted" });
    await kept.rest();
    await kept.answer(DONE_THERE);
    expect(await take("minted")).toMatchObject({ kind: "replied" });
    expect(kept.givenBack).toBe(1);
    expect(await take("another")).toEqual({ kind: "not-kept" });
    expect(kept.records).toHaveLength(1);
    expect(kept.sent).toHaveLength(1);
  });

  it("joins it where the config has no outbox for the tool any more, by the terms of whoever passed it on [engine-outbox] [no-double-effect]", async () => {
    const takeAs = await owner();
    const { call: passed } = kept.make({ title: "a", request_id: "its own" });
    kept.outbox.take(passed, "tracker", TOOL, { minted: "minted" });
    await kept.rest();
    await kept.answer(DONE_THERE);
    kept.terms = undefined;
    const again = { minted: "another", target: "ours", terms: KEYED };
    expect(await takeAs(passed, again)).toMatchObject({ kind: "replied" });
    expect(kept.givenBack).toBe(1);
    const { call: other } = kept.make({ title: "b", request_id: "another" });
    expect(await takeAs(other, again)).toEqual({ kind: "not-kept" });
    expect([kept.records.length, kept.sent.length]).toEqual([1, 1]);
  });
});

describe("what comes back for a call that was passed on", () => {
  it("is still known for the gateway's own words, a receipt, or for a server's, which a legacy agent is told otherwise [engine-outbox] [eras-meet]", async () => {
    const receipt = { content: [], structuredContent: { queued: true, receipt: "p1_r" } };
    const own = decodeReply(await encodeReply({ kind: "result", result: receipt }, false));
    expect(own).toEqual({ kind: "replied", isGivenBack: false, reply: { kind: "result", result: receipt } });
    const answered = decodeReply(await encodeReply(DONE_THERE, false));
    expect(answered).toMatchObject({ kind: "replied", reply: { kind: "bytes" } });
  });

  it("is read as ever by a gateway that knows no such difference, and from one [engine-outbox]", async () => {
    const [head, bytes] = unframe<Record<string, number>>(
      await encodeReply({ kind: "result", result: { n: 1 } }, false),
    );
    const { isOwn: _, ...older } = head;
    expect(bytes.toString("utf8", head["idStart"], head["idEnd"])).toBe("0");
    const { reply } = decodeReply(frame(older, bytes)) as { reply: Extract<Reply, { kind: "bytes" }> };
    expect(reply.kind).toBe("bytes");
    expect(renderReply(reply, "7").toString()).toBe('{"jsonrpc":"2.0","id":7,"result":{"n":1}}');
  });
});
