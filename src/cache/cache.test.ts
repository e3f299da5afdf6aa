import { describe, expect, it } from "vitest";
import { kept, modern, setUp } from "../../test/fixtures/cache/calls.js";
import { lentPieces } from "../../test/fixtures/lent-pieces.js";
import { ownToolName } from "../contracts/names.js";
import { PiecedReply } from "../protocol/arrived.js";
import { Fault } from "../protocol/errors.js";
import { faultReply, type Reply } from "../protocol/reply.js";

describe("the cache", () => {
  it("[host-8] covers marked tools of either era and resources of modern servers, and nothing else", () => {
    const { cache } = setUp();
    expect(cache.covers("s", "tools/call", ownToolName("t"), true)).toBe(true);
    expect(cache.covers("s", "tools/call", ownToolName("t"), false)).toBe(true);
    expect(cache.covers("s", "resources/read", undefined, false)).toBe(false);
    expect(cache.covers("s", "tools/call", ownToolName("writes"), true)).toBe(false);
    expect(cache.covers("s", "resources/read", undefined, true)).toBe(true);
    expect(cache.covers("s", "prompts/get", undefined, true)).toBe(false);
    expect(cache.covers("s", "resources/subscribe", undefined, true)).toBe(false);
    expect(cache.covers("gone", "resources/read", undefined, true)).toBe(false);
    expect(cache.covers("gone", "tools/call", ownToolName("t"), true)).toBe(false);
  });
});

describe("what is kept", () => {
  it("is answered under the asker's id with the time that is left, until that is over", () => {
    const { ask, answer, sent, clock, cache } = setUp();
    const first = ask("ann");
    answer(kept(1));
    expect(first.answer).toMatchObject({ id: 1, result: { n: 1, ttlMs: 1000 } });
    clock.advance(400);
    expect(ask("bob").answer).toMatchObject({ id: 2, result: { n: 1, ttlMs: 600 } });
    clock.advance(600);
    const later = ask("bob");
    expect(later.answer).toBeUndefined();
    expect(sent).toHaveLength(1);
    expect(cache.statsOf("s")).toMatchObject({ hits: 1, misses: 2, coalesced: 0 });
    expect([...cache.stats().keys()]).toEqual(["s"]);
  });

  it("does not outlast a night in which the machine slept", () => {
    const { ask, answer, clock } = setUp();
    ask("ann");
    answer(kept(1, "public", 60_000));
    clock.jumpWall(8 * 3_600_000);
    expect(ask("ann").answer).toBeUndefined();
  });

  it("[host-8] is never given to another principal where it is private", () => {
    const { ask, answer } = setUp();
    ask("ann");
    answer(kept(1, "private"));
    const bob = ask("bob");
    expect(bob.answer).toBeUndefined();
    answer(kept(2, "private"));
    expect(bob.n).toBe(2);
    expect(ask("ann").n).toBe(1);
    expect(ask("bob").n).toBe(2);
  });

  it("is nothing of a retry with answers, which passes through", () => {
    const { ask, answer, sent } = setUp();
    ask("ann");
    answer(kept(1));
    for (const more of [{ inputResponses: {} }, { requestState: "s" }, { task: {} }]) {
      const retry = ask("ann", { name: "t", arguments: { a: 1 }, ...more });
      expect(sent).toHaveLength(1);
      answer(kept(2));
      expect(retry.n).toBe(2);
    }
    expect(ask("ann").n).toBe(1);
  });

  it.each<[string, Reply]>([
    ["a question", modern({ resultType: "input_required", ttlMs: 1000 })],
    ["a failed tool", modern({ isError: true, ttlMs: 1000 })],
    ["a fault", faultReply(new Fault("unavailable", "down"))],
    ["a reply without time left", modern({ n: 1, ttlMs: 0 })],
  ])("is never %s", (_what, reply) => {
    const { ask, answer, sent } = setUp();
    ask("ann");
    answer(reply);
    expect(ask("ann").answer).toBeUndefined();
    expect(sent).toHaveLength(1);
  });
});

describe("identical calls at the same time", () => {
  it("[host-8] of one principal go to the server once, each answered under its own id", () => {
    const { ask, answer, sent, cache } = setUp();
    const calls = [ask("ann"), ask("ann"), ask("ann")];
    const other = ask("ann", { name: "t", arguments: { a: 2 } });
    expect(sent).toHaveLength(2);
    answer(kept(1, "private"));
    expect(calls.map((call) => call.answer)).toMatchObject([
      { id: 1, result: { n: 1 } },
      { id: 2, result: { n: 1 } },
      { id: 3, result: { n: 1 } },
    ]);
    expect(other.answer).toBeUndefined();
    expect(cache.statsOf("s")).toMatchObject({ misses: 2, coalesced: 2, hits: 0 });
  });

  it("are each answered in their own time, though the first has been written long before [crossed-never]", () => {
    const { ask, answer } = setUp();
    const [first, second] = [ask("ann"), ask("ann")];
    const { pieces } = lentPieces();
    const reply = new PiecedReply(pieces, { idStart: 22, idEnd: 23 }, "modern");
    const before = reply.bytes.toString();
    answer(new PiecedReply(pieces, { idStart: 22, idEnd: 23 }, "modern"));
    const [own, other] = [first.replies[0], second.replies[0]] as [PiecedReply, PiecedReply];
    own.under("0");
    own.written();
    expect(Buffer.concat(other.under("0")).toString()).toBe(before);
  });

  it("carry the notes of the first, by which its span and its attempts are told of", () => {
    const { ask, sent } = setUp();
    const call = ask("ann");
    expect(sent[0]?.notes).toBe(call.notes);
    expect(call.notes).toBeDefined();
  });

  it("of two principals wait for each other only where replies have been for everybody", () => {
    const { ask, answer, sent, clock } = setUp();
    ask("ann");
    ask("bob");
    expect(sent).toHaveLength(2);
    answer(kept(1));
    answer(kept(2));
    clock.advance(2000);
    const [ann, bob] = [ask("ann"), ask("bob")];
    expect(sent).toHaveLength(1);
    answer(kept(3));
    expect([ann.n, bob.n]).toEqual([3, 3]);
  });

  it("[host-8] do not share a reply that turns out to be private, whoever waited for it", () => {
    const { ask, answer, sent, clock } = setUp();
    ask("ann");
    answer(kept(1));
    clock.advance(2000);
    const [ann, bob, annToo, bobToo, eve] = [ask("ann"), ask("bob"), ask("ann"), ask("bob"), ask("eve")];
    expect(sent).toHaveLength(1);
    answer(kept(2, "private"));
    expect([ann.n, annToo.n, bob.n, bobToo.n, eve.n]).toEqual([2, 2, undefined, undefined, undefined]);
    // Bob's two wait for one reply of their own.
    expect(sent).toHaveLength(2);
    answer(kept(3, "private"));
    answer(kept(4, "private"));
    expect([bob.n, bobToo.n, eve.n]).toEqual([3, 3, 4]);
  });

  it.each<[string, Reply]>([
    ["fails", faultReply(new Fault("outcome-unknown", "gone"))],
    ["is a question", modern({ resultType: "input_required" })],
    ["is a failed tool", modern({ isError: true, ttlMs: 1000 })],
    ["is for one call only", modern({ n: 1, ttlMs: 0 })],
  ])("are sent themselves when the first one %s", (_what, reply) => {
    const { ask, answer, sent } = setUp();
    const [first, second, third] = [ask("ann"), ask("ann"), ask("ann")];
    answer(reply);
    expect(first.answer).toBeDefined();
    expect([second.answer, third.answer]).toEqual([undefined, undefined]);
    expect(sent).toHaveLength(2);
    answer(kept(2));
    answer(kept(3));
    expect([second.n, third.n]).toEqual([2, 3]);
  });

  it("do not wait for each other where replies are for one call only", () => {
    const { ask, answer, sent, clock } = setUp();
    ask("ann");
    answer(modern({ n: 1, ttlMs: 0 }));
    ask("ann");
    ask("ann");
    expect(sent).toHaveLength(2);
    // Once they are good for more again, they do.
    answer(kept(2, "private"));
    answer(kept(3, "private"));
    clock.advance(2000);
    ask("ann");
    ask("ann");
    expect(sent).toHaveLength(1);
  });

  it("go on when the first is cancelled: the next takes its place", () => {
    const { ask, answer, sent, cancelled } = setUp();
    const [first, second, third] = [ask("ann"), ask("ann"), ask("ann")];
    first.onCancel?.("enough");
    expect(first.answer?.error?.message).toBe("enough");
    expect(cancelled).toHaveLength(1);
    expect(sent).toHaveLength(1);
    expect([second.answer, third.answer]).toEqual([undefined, undefined]);
    second.onCancel?.(undefined);
    expect(sent).toHaveLength(1);
    answer(kept(1));
    expect(third.n).toBe(1);
    expect(third.onCancel).toBeUndefined();
    expect(ask("ann").n).toBe(1);
  });

  it("go on when one that waits is cancelled, which ends that one alone", () => {
    const { ask, answer, sent, cancelled } = setUp();
    const [first, second, third] = [ask("ann"), ask("ann"), ask("ann")];
    second.onCancel?.("enough");
    expect(second.answer?.error?.message).toBe("enough");
    expect(cancelled).toHaveLength(0);
    answer(kept(1));
    expect([first.n, third.n]).toEqual([1, 1]);
    expect(second.replies).toHaveLength(1);
    expect(sent).toHaveLength(0);
  });

  it("[bounded] wait for one reply up to a number, and are sent beyond it", () => {
    const { ask, answer, sent } = setUp();
    const calls = Array.from({ length: 1_500 }, () => ask("ann"));
    expect(sent.length).toBe(500);
    while (sent.length > 0) answer(kept(1));
    expect(calls.every((call) => call.n === 1)).toBe(true);
  });

  it("that cannot be sent are refused to whoever asks, and to those that waited", () => {
    const { ask, answer, sent, refuse } = setUp();
    refuse(new Fault("unavailable", "no such server"));
    expect(() => ask("ann")).toThrow("no such server");
    refuse(undefined);
    const [first, second] = [ask("ann"), ask("ann")];
    expect(sent).toHaveLength(1);
    refuse(new Fault("unavailable", "gone by now"));
    answer(faultReply(new Fault("outcome-unknown", "gone")));
    expect(first.answer?.error?.message).toBe("gone");
    expect(second.answer?.error?.message).toBe("gone by now");
  });
});

describe("after a change", () => {
  it("list_changed, reload and stop drop what is kept and what is under way", () => {
    const { ask, answer, sent, cache } = setUp();
    ask("ann");
    answer(kept(1));
    cache.invalidate("s", "tools");
    const before = [ask("ann"), ask("ann")];
    cache.invalidate("s");
    const after = ask("ann");
    expect(sent).toHaveLength(2);
    answer(kept(2));
    expect(before.map((call) => call.n)).toEqual([2, 2]);
    expect(after.answer).toBeUndefined();
    answer(kept(3));
    expect(ask("ann").n).toBe(3);
  });

  it("resources/updated drops that resource", () => {
    const { readResource, answer, sent, cache } = setUp();
    for (const uri of ["file:///a", "file:///b"]) {
      readResource("ann", uri);
      answer(kept(1));
    }
    cache.invalidate("s", { uri: "file:///a" });
    expect(readResource("ann", "file:///b").n).toBe(1);
    expect(readResource("ann", "file:///a").answer).toBeUndefined();
    expect(sent).toHaveLength(1);
  });

  it("a tool that is no longer marked is not served, nor is a server that is gone", () => {
    const { ask, answer, sent, cache } = setUp(["t", "u"]);
    ask("ann");
    answer(kept(1));
    const underway = ask("ann", { name: "t", arguments: { a: 2 } });
    cache.setServer("s", new Set([ownToolName("u")]));
    expect(cache.covers("s", "tools/call", ownToolName("t"), true)).toBe(false);
    expect(cache.statsOf("s").entries).toBe(0);
    answer(kept(2));
    expect(underway.n).toBe(2);
    expect(cache.statsOf("s").entries).toBe(0);
    cache.removeServer("s");
    ask("ann", { name: "u" }, "u");
    expect(sent).toHaveLength(1);
    answer(kept(3));
    expect(cache.stats().size).toBe(0);
  });
});
