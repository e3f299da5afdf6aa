import fc from "fast-check";
import { describe, it } from "vitest";
import { histories } from "../../test/faults/length.js";
import { type Asked, kept, modern, setUp } from "../../test/fixtures/cache/calls.js";
import type { AgentCall } from "../contracts/service.js";
import { Fault } from "../protocol/errors.js";
import { faultReply, type Reply } from "../protocol/reply.js";

describe("for any history", () => {
  const owner = fc.constantFrom("ann", "bob", "eve");
  const step = fc.oneof(
    { weight: 6, arbitrary: fc.record({ do: fc.constant("ask" as const), owner, a: fc.nat(1) }) },
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constant("answer" as const),
        as: fc.constantFrom("public", "public", "private", "private", "once", "failed", "question", "fault"),
        which: fc.nat(5),
      }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("cancel" as const), which: fc.nat(30) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("invalidate" as const) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("wait" as const), ms: fc.constantFrom(0, 500, 1000) }) },
  );

  interface Made {
    readonly as: string;
    readonly owner: string;
    readonly params: string;
    readonly madeMs: number;
  }

  it("[host-8] [crossed-never] each call is answered once, with a reply to the same request that is for its owner", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const { ask, answer, sent, clock, cache } = setUp();
        const calls: Asked[] = [];
        const made: Made[] = [];
        const reply = (as: string): Reply => {
          const { caller, message } = sent[0] as AgentCall;
          const n = made.push({
            as,
            owner: caller.principal.id,
            params: JSON.stringify(message.params),
            madeMs: clock.now(),
          });
          if (as === "public" || as === "private") return kept(n, as);
          if (as === "once") return modern({ n, ttlMs: 0 });
          if (as === "failed") return modern({ n, isError: true, ttlMs: 1000 });
          if (as === "question") return modern({ n, resultType: "input_required", ttlMs: 1000 });
          return faultReply(new Fault("outcome-unknown", "gone"));
        };
        const answeredMs = new Map<Asked, number>();
        const note = () => {
          for (const call of calls) {
            if (call.replies.length > 1) throw new Error("answered twice");
            if (call.replies.length === 1 && !answeredMs.has(call)) answeredMs.set(call, clock.now());
          }
        };
        for (const one of steps) {
          if (one.do === "ask") {
            calls.push(ask(one.owner, { name: "t", arguments: { a: one.a } }));
          } else if (one.do === "answer" && sent.length > 0) {
            sent.unshift(...sent.splice(one.which % sent.length, 1));
            answer(reply(one.as));
          } else if (one.do === "cancel") calls[one.which]?.onCancel?.("enough");
          else if (one.do === "invalidate") cache.invalidate("s");
          else if (one.do === "wait") clock.advance(one.ms);
          note();
        }
        while (sent.length > 0) answer(reply("private"));
        note();
        const sharers = new Map<number, number>();
        for (const call of calls) {
          if (call.replies.length !== 1) throw new Error("not answered");
          const { n } = call;
          if (n === undefined) continue;
          sharers.set(n, (sharers.get(n) ?? 0) + 1);
          const { as, owner: theirs, params, madeMs } = made[n - 1] as Made;
          const mine = call.caller.principal.id;
          if (as !== "public" && theirs !== mine) throw new Error("another's");
          if (params !== JSON.stringify(call.message.params)) throw new Error("another request's");
          if ((answeredMs.get(call) ?? 0) >= madeMs + 1000) throw new Error("expired");
          if (sharers.get(n) !== 1 && as !== "public" && as !== "private") throw new Error("not to be shared");
        }
        const { hits, coalesced } = cache.statsOf("s");
        if (hits + coalesced > calls.length) throw new Error("miscounted");
      }),
      { numRuns: histories(2_000) },
    );
  });
});
