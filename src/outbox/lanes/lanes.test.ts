// What the lanes do in cases that are too rare for the seeds: before their start, with a credential that several servers
// share, and when a receipt goes whose lane waits for a person.

import { describe, expect, it } from "vitest";
import { ownToolName } from "../../contracts/names.js";
import type { OutboxTerms } from "../../contracts/outbox.js";
import type { KeptWrite } from "./lane.js";
import { Lanes } from "./lanes.js";
import { ENDED_MS, SHORT_WAIT_MS, SWEEP_MS } from "./limits.js";
import type { Result, Step } from "./step.js";
import type { WriteRecord } from "./write.js";

const WALL_MS = Date.UTC(2026, 0, 1);
const KEYLESS: OutboxTerms = {
  key: undefined,
  lane: { by: "principal" },
  maxAgeMs: 86_400_000,
  onUnknown: "hold",
  confirm: undefined,
  tells: false,
};

const KEYED: OutboxTerms = { ...KEYLESS, key: { in: "argument", path: ["request_id"] } };

function makeLanes(): Lanes {
  return new Lanes({
    random: () => 0.999,
    hasWaiters: () => false,
    limits: { maxWrites: 100, maxBytes: 1e6 },
    credentialOf: () => "one for all",
  });
}

function take(
  lanes: Lanes,
  id: string,
  server: string,
  lane: string | undefined,
  nowMs: number,
  terms = KEYLESS,
): KeptWrite {
  const accepted = lanes.accept(
    {
      id,
      server,
      tool: ownToolName("create_issue"),
      principal: { id: "anna", role: "agent" },
      lane,
      key: id,
      keyHash: id,
      argumentsHash: id,
      terms,
      era: "legacy",
      version: "2025-06-18",
      takenMs: WALL_MS,
      bytes: 10,
    },
    nowMs,
  );
  if (accepted.kind !== "taken") throw new Error(`It is ${accepted.kind}.`);
  lanes.committed(accepted.write, nowMs, WALL_MS);
  return accepted.write;
}

const sentIn = (steps: readonly Step[]) =>
  steps.filter((step) => step.do === "send").map(({ write }) => write.facts.id);

it("a write's life is bounded: the same reason in a row is one step with its times, and the oldest of many give way [bounded]", () => {
  const lanes = makeLanes();
  const write = take(lanes, "w1", "a", "lane", 0);
  for (let n = 0; n < 5; n++) write.becomes("queued", "away", WALL_MS + n);
  expect(write.life).toEqual([{ atMs: WALL_MS, state: "queued", why: "away", times: 5, lastMs: WALL_MS + 4 }]);
  for (let n = 0; n < 40; n++) write.becomes("queued", `${n} ${"x".repeat(1_000)}`, WALL_MS + n);
  expect(write.life).toHaveLength(12);
  expect(write.life?.every(({ why = "" }) => why.length <= 200)).toBe(true);
  expect(write.life?.at(-1)?.why).toMatch(/^39 /);
  expect(write.record(0, WALL_MS).life).toEqual(write.life);
});

it("what an earlier run of the program was sending is not sent again before the start has asked whether it may be [no-double-effect]", () => {
  const before = makeLanes();
  const write = take(before, "w1", "a", "lane", 0);
  expect(write.state).toBe("sending");
  const lanes = makeLanes();
  lanes.restore(write.sequence, write.record(0, WALL_MS), 0, WALL_MS);
  expect(sentIn(lanes.poke("a", 1, WALL_MS))).toEqual([]);
  expect(sentIn(lanes.wake(2, WALL_MS))).toEqual([]);
  expect(sentIn(lanes.start(3, WALL_MS))).toEqual([]);
  expect(lanes.get("w1")?.state).toBe("unknown");
});

it("servers that share a credential go on after its login, though one of them went away while it was tried [one-bad-server]", () => {
  const lanes = makeLanes();
  lanes.start(0, WALL_MS);
  const probe = take(lanes, "probe", "a", undefined, 0);
  const other = take(lanes, "other", "a", undefined, 0);
  lanes.result(probe, { kind: "login", why: "HTTP 401." }, 1, WALL_MS);
  const behind = take(lanes, "behind", "b", undefined, 2);
  expect(behind.state).toBe("queued");
  expect(sentIn(lanes.wake(10_000, WALL_MS))).toEqual(["probe"]);
  lanes.result(other, { kind: "not-sent", why: "Nothing listens there." }, 10_001, WALL_MS);
  lanes.result(probe, { kind: "answered", failed: false }, 10_002, WALL_MS);
  expect(sentIn(lanes.wake(20_000, WALL_MS))).toContain("behind");
});

describe("409", () => {
  const CONFLICT: Result = { kind: "conflict", why: "HTTP 409" };
  const met409After = (...results: readonly Result[]) => {
    let lanes = makeLanes();
    lanes.start(0, WALL_MS);
    let write = take(lanes, "w1", "a", "lane", 0, KEYED);
    let nowMs = 0;
    for (const result of [...results, CONFLICT]) {
      lanes.result(write, result, ++nowMs, WALL_MS);
      if (write.isOver) break;
      // Each try may be that of another run of the program.
      const record = JSON.parse(JSON.stringify(write.record(nowMs, WALL_MS))) as WriteRecord;
      lanes = makeLanes();
      lanes.restore(write.sequence, record, nowMs, WALL_MS);
      write = lanes.get("w1") as KeptWrite;
      nowMs += 3_600_000;
      lanes.start(nowMs, WALL_MS);
    }
    return write;
  };

  it("is an outcome where all tries before were answered with “not done”, or never left: the server has not had it", () => {
    expect(met409After().state).toBe("failed");
    expect(met409After({ kind: "not-done", why: "HTTP 429", retryAfterMs: 0 }).state).toBe("failed");
    const never: Result = { kind: "not-sent", why: "nothing listens there" };
    const notDone: Result = { kind: "not-done", why: "HTTP 503", retryAfterMs: 10 };
    expect(met409After(never, notDone, never, notDone)).toMatchObject({
      state: "failed",
      attempts: 3,
      why: "HTTP 409",
    });
  });

  it("of one that may have happened says that the first may still run, whatever was answered in between [unknown-is-said]", () => {
    const lost: Result = { kind: "maybe", why: "it went away" };
    const notDone: Result = { kind: "not-done", why: "HTTP 429", retryAfterMs: 0 };
    expect(met409After(lost).isOver).toBe(false);
    expect(met409After(notDone, lost, notDone).isOver).toBe(false);
  });

  it("of one that its agent took back while it was repeated leaves it unknown, and it is not sent again [no-double-effect]", () => {
    const lanes = makeLanes();
    lanes.start(0, WALL_MS);
    const write = take(lanes, "w1", "a", "lane", 0, KEYED);
    lanes.result(write, { kind: "maybe", why: "it went away" }, 1, WALL_MS);
    expect(sentIn(lanes.wake(3_600_000, WALL_MS))).toEqual(["w1"]);
    lanes.cancel(write, "enough", 3_600_001, WALL_MS);
    const steps = lanes.result(write, CONFLICT, 3_600_002, WALL_MS);
    expect(steps.map((step) => step.do)).toEqual(["save"]);
    expect(write.state).toBe("unknown");
  });
});

describe("a lane that waits for a person to say what became of a write", () => {
  function held(): { lanes: Lanes; unknown: KeptWrite } {
    const lanes = makeLanes();
    lanes.start(0, WALL_MS);
    const unknown = take(lanes, "w1", "a", "lane", 0);
    lanes.result(unknown, { kind: "maybe", why: "It went away." }, 1, WALL_MS);
    expect(unknown.state).toBe("unknown");
    return { lanes, unknown };
  }

  it("goes on when the operator drops that write: there is nothing left to say", () => {
    const { lanes, unknown } = held();
    take(lanes, "w2", "a", "lane", 10);
    expect(sentIn(lanes.wake(60_000, WALL_MS))).toEqual([]);
    const steps = lanes.drop(unknown, 60_001, WALL_MS);
    if (typeof steps === "string") throw new Error(steps);
    expect(steps.map((step) => [step.do, step.write.facts.id])).toEqual([
      ["forget", "w1"],
      ["send", "w2"],
    ]);
  });

  it("does not wait for a receipt that was forgotten with its time, and is not kept itself [bounded]", () => {
    const { lanes } = held();
    lanes.wake(ENDED_MS + SWEEP_MS, WALL_MS);
    lanes.wake(ENDED_MS + 3 * SWEEP_MS, WALL_MS);
    expect(lanes.get("w1")).toBeUndefined();
    expect([...lanes.lanes()]).toEqual([]);
  });
});

it("a write that its agent took back and its server refused goes out again when an operator says so, and is not withdrawn", () => {
  const lanes = makeLanes();
  lanes.start(0, WALL_MS);
  const write = take(lanes, "w1", "a", "lane", 0);
  expect(lanes.cancel(write, "enough", 1, WALL_MS).kind).toBe("sending");
  lanes.result(write, { kind: "answered", failed: true }, 2, WALL_MS);
  expect(write.state).toBe("failed");
  expect(sentIn(lanes.retry(write, 3, WALL_MS) as Step[])).toEqual(["w1"]);
  expect(write.takenBack).toBe(false);
});

describe("lanes whose server lost their writes", () => {
  const LOST: Result = { kind: "maybe", why: "it went away" };
  const DONE: Result = { kind: "answered", failed: false };
  const startedLanes = () => {
    const lanes = makeLanes();
    lanes.start(0, WALL_MS);
    return lanes;
  };
  const lose = (lanes: Lanes, ids: readonly string[]) => {
    const writes = ids.map((id) => take(lanes, id, "a", `lane ${id}`, 0, KEYED));
    for (const write of writes) lanes.result(write, LOST, 100, WALL_MS);
    return writes;
  };

  it("are tried as soon as it answers others: one of them first, and the rest when that has succeeded", () => {
    const lanes = startedLanes();
    const [first] = lose(lanes, ["w1", "w2", "w3"]);
    expect(sentIn(lanes.wake(110, WALL_MS))).toEqual([]);
    expect(sentIn(lanes.answers("a", 110, WALL_MS))).toEqual(["w1"]);
    expect(sentIn(lanes.answers("a", 120, WALL_MS))).toEqual([]);
    expect(sentIn(lanes.result(first as KeptWrite, DONE, 130, WALL_MS))).toEqual(["w2", "w3"]);
  });

  it("wait on where that one is lost too, and a wait after one that was cut short in vain is not cut short", () => {
    const lanes = startedLanes();
    const [first] = lose(lanes, ["w1"]);
    expect(sentIn(lanes.answers("a", 110, WALL_MS))).toEqual(["w1"]);
    lanes.result(first as KeptWrite, LOST, 120, WALL_MS);
    expect(sentIn(lanes.answers("a", 130, WALL_MS))).toEqual([]);
    const dueMs = 120 + SHORT_WAIT_MS;
    expect(sentIn(lanes.wake(dueMs, WALL_MS))).toEqual(["w1"]);
    lanes.result(first as KeptWrite, LOST, dueMs, WALL_MS);
    expect(sentIn(lanes.answers("a", dueMs + 1, WALL_MS))).toEqual(["w1"]);
  });

  it("are left alone for as long as the server itself asked for, whatever it answers others", () => {
    const lanes = startedLanes();
    const write = take(lanes, "w1", "a", "lane", 0);
    lanes.result(write, { kind: "not-done", why: "HTTP 429", retryAfterMs: 60_000 }, 100, WALL_MS);
    expect(sentIn(lanes.answers("a", 200, WALL_MS))).toEqual([]);
    expect(sentIn(lanes.wake(60_099, WALL_MS))).toEqual([]);
    expect(sentIn(lanes.wake(60_100, WALL_MS))).toEqual(["w1"]);
  });

  it("are tried one at a time, with a wait between, where the one that tries whether it is there is lost as well", () => {
    const lanes = startedLanes();
    for (const id of ["w1", "w2", "w3"]) {
      const write = take(lanes, id, "a", `lane ${id}`, 0, KEYED);
      lanes.result(write, { kind: "not-sent", why: "nothing listens there" }, 10, WALL_MS);
    }
    const dueMs = lanes.nextWakeMs;
    expect(sentIn(lanes.wake(dueMs, WALL_MS))).toEqual(["w1"]);
    expect(sentIn(lanes.result(lanes.get("w1") as KeptWrite, LOST, dueMs + 5, WALL_MS))).toEqual([]);
    expect(lanes.nextWakeMs).toBeGreaterThan(dueMs + 5);
  });

  it("wait as long as the breaker says that it holds them back", () => {
    const lanes = startedLanes();
    const write = take(lanes, "w1", "a", "lane", 0);
    lanes.result(write, { kind: "not-sent", why: "held back", heldForMs: 1_700.2 }, 100, WALL_MS);
    expect(lanes.nextWakeMs).toBe(1_801);
  });
});
