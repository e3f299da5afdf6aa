import { expect, it } from "vitest";
import { ownName } from "../../contracts/names.js";
import type { UpstreamCall } from "../../contracts/upstream.js";
import { Fault } from "../../protocol/errors.js";
import { faultReply, type Reply } from "../../protocol/reply.js";
import { Breaker, OverdueFault } from "./breaker.js";
import { BreakerTrial } from "./breaker-trial.js";

const RESULT: Reply = { kind: "result", result: {} };

function setUp() {
  const time = { nowMs: 0 };
  const breaker = new Breaker({ failures: 1, openMs: 100 });
  let outcomes = 0;
  const trial = new BreakerTrial(
    "files",
    breaker,
    () => time.nowMs,
    () => void outcomes++,
  );
  breaker.faulted(0, 0);
  expect(breaker.circuit).toBe("open");
  return { time, breaker, trial, outcomes: () => outcomes };
}

function callOf(): UpstreamCall & { readonly replies: Reply[] } {
  const replies: Reply[] = [];
  const reply = (one: Reply) => void replies.push(one);
  return {
    caller: undefined,
    method: "tools/call",
    subject: ownName("read"),
    params: { name: "read" },
    progressToken: "7",
    render: (id) => `call ${id}`,
    reply,
    replies,
  };
}

it("an open breaker refuses calls until its time is over, and says when that is", () => {
  const { trial, outcomes } = setUp();
  const call = callOf();
  expect(trial.admit(call)).toBeUndefined();
  expect(call.replies).toMatchObject([{ kind: "error", fault: { data: { state: "open", nextTryInMs: 100 } } }]);
  expect(outcomes()).toBe(0);
});

it("the one call that is tried looks like the agent's own, and closes the breaker when it is answered", () => {
  const { time, breaker, trial, outcomes } = setUp();
  time.nowMs = 100;
  const [call, next] = [callOf(), callOf()];
  const sent = trial.admit(call);
  expect(sent).toMatchObject({ method: "tools/call", subject: "read", progressToken: "7" });
  expect(sent?.render(3)).toBe("call 3");
  // Whoever cancels the agent's call cancels the one that was sent.
  expect(trial.sent(call)).toBe(sent);
  expect(trial.admit(next)).toBeUndefined();
  expect(next.replies).toMatchObject([{ fault: { data: { state: "half-open" } } }]);
  sent?.reply(RESULT);
  expect(call.replies).toEqual([RESULT]);
  expect([breaker.circuit, outcomes()]).toEqual(["closed", 1]);
  expect(trial.sent(call)).toBe(call);
});

it.each([
  ["opens the breaker for its whole time where it meets a fault", "timeout", 200],
  ["leaves its place to the next call where it says nothing of the server", "cancelled", 100],
] as const)("the one call that is tried %s", (_what, code, dueMs) => {
  const { time, breaker, trial } = setUp();
  time.nowMs = 100;
  trial.admit(callOf())?.reply(faultReply(new Fault(code, "It ended.")));
  expect([breaker.circuit, breaker.nextTryInMs(100)]).toEqual(["open", dueMs - 100]);
});

it.each([
  ["opens the breaker where the server is gone", true, 100],
  ["decides nothing where it answers a ping", false, 0],
] as const)("the one call that is tried and whose time is over %s [host-5]", (_what, isGone, waitMs) => {
  const { time, breaker, trial, outcomes } = setUp();
  time.nowMs = 100;
  const call = callOf();
  trial.admit(call)?.reply(faultReply(new OverdueFault("It took too long.")));
  expect(call.replies).toHaveLength(1);
  // Until the ping is answered or not, nobody else is tried.
  expect([breaker.circuit, outcomes(), trial.admit(callOf())]).toEqual(["half-open", 0, undefined]);
  trial.pinged(isGone);
  expect([breaker.circuit, breaker.nextTryInMs(100), outcomes()]).toEqual(["open", waitMs, 1]);
  trial.pinged(true);
  expect(outcomes()).toBe(1);
});
