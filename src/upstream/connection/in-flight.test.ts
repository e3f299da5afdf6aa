// How long a call may take, and the order in which calls are looked at and end.

import { beforeEach, describe, expect, it } from "vitest";
import { histories } from "../../../test/faults/length.js";
import { seeded } from "../../../test/faults/random.js";
import {
  Agent,
  begin,
  CALL_MS,
  clearStage,
  connect,
  settled,
  stage,
  TestCall,
} from "../../../test/fixtures/links/played.js";
import { SUPERVISED } from "../../../test/fixtures/spec.js";
import type { Ticket } from "../link/link.js";

beforeEach(clearStage);

const SEEDS = histories(2_000);
const STEPS = 40;

/** One call as the rules have it: its time, and how many questions it waits for. */
interface Model {
  readonly call: TestCall & { readonly ticket: Ticket };
  readonly session: string;
  readonly ceilingMs: number;
  dueMs: number;
  questions: number;
  over: boolean;
}

/** A history on one connection, beside which the rules are kept by hand. */
async function liveThrough(seed: number): Promise<void> {
  clearStage();
  const random = seeded(seed);
  const connection = connect();
  const agents = ["ada", "bob"].map((name) => new Agent(name));
  const models: Model[] = [];
  const open: { readonly agent: Agent; readonly at: number; readonly of: Model[] }[] = [];
  const running = () => models.filter(({ over }) => !over);
  const look = () => {
    connection.expire(stage.nowMs);
    for (const model of running()) {
      if ((model.questions > 0 ? model.ceilingMs : model.dueMs) <= stage.nowMs) model.over = true;
    }
  };
  for (let step = 0; step < STEPS; step++) {
    const one = running()[random.int(running().length)];
    const agent = random.pick(agents);
    switch (random.int(6)) {
      case 0:
      case 1: {
        const ceilingMs = stage.nowMs + SUPERVISED.supervision.callCeilingMs;
        const call = begin(connection, agent);
        const { sessionKey: session } = agent;
        models.push({ call, session, ceilingMs, dueMs: stage.nowMs + CALL_MS, questions: 0, over: false });
        break;
      }
      case 2: {
        if (one === undefined) break;
        const asked = agents.find(({ sessionKey }) => sessionKey === one.session) as Agent;
        const alone = running().every(({ session }) => session === one.session);
        const cancelled = models.some(({ over, session }) => over && session !== one.session);
        const byTicket = random.chance(0.5) || !alone || cancelled;
        stage.link.asks(`q${step}`, byTicket ? one.call.ticket : undefined);
        const of = byTicket ? [one] : running().filter(({ session }) => session === one.session);
        for (const model of of) model.questions++;
        open.push({ agent: asked, at: asked.asked.length - 1, of });
        break;
      }
      case 3: {
        const [question] = open.splice(random.int(open.length), 1);
        if (question === undefined) break;
        const { agent: asked, at, of } = question;
        if (random.chance(0.5)) asked.asked[at]?.answer({});
        else asked.asked[at]?.refuse();
        await settled();
        for (const model of of) {
          if (--model.questions === 0) model.dueMs = Math.min(stage.nowMs + CALL_MS, model.ceilingMs);
        }
        break;
      }
      case 4:
        if (one === undefined) break;
        if (random.chance(0.5)) connection.cancel(one.call, undefined);
        else stage.link.answers(one.call.ticket.id);
        one.over = true;
        break;
      default:
        stage.nowMs += random.chance(0.05) ? SUPERVISED.supervision.callCeilingMs : random.int(CALL_MS);
        look();
    }
    const ended = models.map(({ call }) => call.replies.length);
    const expected = models.map(({ over }) => (over ? 1 : 0));
    // Looked at only where it differs: so many expect()s would take most of the time.
    if (String(ended) !== String(expected)) expect(ended, `seed ${seed}, step ${step}`).toEqual(expected);
  }
  await connection.close();
}

describe("a call that waits in its link", () => {
  it.each(["place", "handshake", "credential"] as const)(
    "for its %s was not sent, however it ends [unknown-is-said]",
    async (what) => {
      const connection = connect();
      const calls = ["ada", "bob", "cem", "eve"].map((name) => begin(connection, new Agent(name)));
      for (const { ticket } of calls) ticket.waitsFor = what;
      const [cancelled, late, left, again] = calls;
      if (cancelled === undefined || late === undefined || left === undefined || again === undefined) throw new Error();
      // An earlier round of it reached the server.
      Object.assign(again, { wasSent: true });
      connection.cancel(cancelled, undefined);
      expect(cancelled.replies).toMatchObject([{ fault: { code: "cancelled", wire: { left: false } } }]);
      left.ticket.waitsFor = undefined;
      stage.nowMs = CALL_MS - 1;
      const fresh = begin(connection, new Agent("dan"));
      fresh.ticket.waitsFor = what;
      stage.nowMs = CALL_MS;
      // The breaker is told of the one that left.
      expect(connection.expire(stage.nowMs)).toHaveLength(1);
      expect(late.replies).toMatchObject([
        { fault: { code: "limit", message: expect.stringContaining("was not sent."), wire: undefined } },
      ]);
      const unknown = expect.stringContaining("was not sent again. Whether the call took effect is unknown.");
      expect(again.replies).toMatchObject([{ fault: { code: "limit", message: unknown, wire: { left: true } } }]);
      expect(left.replies).toMatchObject([{ fault: { code: "timeout" } }]);
      await connection.close();
      expect([stage.unsent, fresh.replies]).toEqual([[fresh], []]);
    },
  );
});

describe("the time of a call", () => {
  it("does not run while its agent is being asked, and runs anew after the answer", async () => {
    const connection = connect();
    const ada = new Agent("ada");
    const call = begin(connection, ada);
    const other = begin(connection, new Agent("bob"));
    stage.link.asks(1, call.ticket);
    for (let i = 0; i < 20; i++) {
      stage.nowMs += CALL_MS / 4;
      connection.expire(stage.nowMs);
    }
    expect(call.replies).toEqual([]);
    // Another session's call has its own time.
    expect(await other.answer()).toMatchObject({ error: { code: -31004 } });
    ada.asked[0]?.answer({});
    await settled();
    stage.nowMs += CALL_MS / 2;
    connection.expire(stage.nowMs);
    expect(call.replies).toEqual([]);
    stage.nowMs += CALL_MS;
    connection.expire(stage.nowMs);
    expect(await call.answer()).toMatchObject({ error: { code: -31004 } });
  });

  it("does not stand still for a question that another call of its session waits for [bounded]", async () => {
    const connection = connect();
    const ada = new Agent("ada");
    const [asking, beside] = [begin(connection, ada), begin(connection, ada)];
    stage.link.asks("over HTTP", asking.ticket);
    stage.link.asks("on a pipe");
    // On a pipe it may be about either of the two; what comes after it has nothing to do with it.
    const later = begin(connection, ada);
    ada.asked[1]?.answer({});
    await settled();
    stage.nowMs += CALL_MS;
    connection.expire(stage.nowMs);
    expect([asking, beside, later].map(({ replies }) => replies.length)).toEqual([0, 1, 1]);
  });

  it.each(["answered", "refused", "taken back"])("goes on when its question is %s", async (how) => {
    const connection = connect();
    const ada = new Agent("ada");
    const call = begin(connection, ada);
    stage.link.asks("q");
    stage.nowMs += 50 * CALL_MS;
    connection.expire(stage.nowMs);
    expect(call.replies).toEqual([]);
    if (how === "answered") ada.asked[0]?.answer({});
    else if (how === "refused") ada.asked[0]?.refuse();
    else stage.link.says({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: "q" } });
    await settled();
    stage.nowMs += CALL_MS;
    connection.expire(stage.nowMs);
    expect(await call.answer()).toMatchObject({ error: { code: -31004 } });
  });

  it("ends at its ceiling, whatever is asked, and the agent is asked no longer [bounded]", async () => {
    const connection = connect();
    const ada = new Agent("ada");
    const call = begin(connection, ada);
    stage.link.asks("q");
    stage.nowMs = SUPERVISED.supervision.callCeilingMs;
    connection.expire(stage.nowMs);
    expect(JSON.stringify(await call.answer())).toContain("in spite of all questions");
    expect(ada.asked[0]?.signal.aborted).toBe(true);
    expect(stage.link.answerTo("q")).toMatchObject({ error: { message: expect.stringContaining("has ended") } });
    await settled();
    expect(stage.link.sent.filter(({ id }) => id === "q")).toHaveLength(1);
  });

  it("is kept in thousands of histories of questions, answers and cancellations [bounded]", async () => {
    for (let seed = 1; seed <= SEEDS; seed++) await liveThrough(seed);
  });

  it("is moved on by progress that the agent asked for, and by no other", () => {
    const connection = connect();
    const asked = begin(connection, new Agent("ada"), "1");
    const silent = begin(connection, new Agent("bob"));
    stage.nowMs += CALL_MS - 1;
    for (const { ticket } of [asked, silent]) {
      const params = { progressToken: ticket.id, progress: 1 };
      stage.link.says({ jsonrpc: "2.0", method: "notifications/progress", params });
    }
    stage.nowMs += 1;
    connection.expire(stage.nowMs);
    expect([asked.replies.length, silent.replies.length]).toEqual([0, 1]);
  });

  it("is extended by each progress, but not past its ceiling", async () => {
    const connection = connect();
    const ada = new Agent("ada");
    const call = begin(connection, ada, '"token"');
    const { callCeilingMs } = SUPERVISED.supervision;
    const params = { progressToken: call.ticket.id, progress: 1 };
    while (stage.nowMs + CALL_MS < callCeilingMs) {
      stage.nowMs += CALL_MS - 1;
      stage.link.says({ jsonrpc: "2.0", method: "notifications/progress", params });
      expect(connection.expire(stage.nowMs)).toBeUndefined();
    }
    stage.nowMs = callCeilingMs;
    stage.link.says({ jsonrpc: "2.0", method: "notifications/progress", params });
    expect(connection.expire(stage.nowMs)).toEqual([{ tool: "tool", startedMs: 0 }]);
    expect(JSON.stringify(await call.answer())).toContain("in spite of all progress");
  });
});

it("calls that are lost with their connection end in the order in which they were sent", async () => {
  const connection = connect();
  const ended: number[] = [];
  // More than the first table holds, so that the order is not the table's by chance.
  const sent = Array.from({ length: 40 }, (_, i) => i);
  for (const i of sent) {
    connection.send(Object.assign(new TestCall(new Agent("ada")), { reply: () => void ended.push(i) }));
  }
  await connection.close();
  expect(ended).toEqual(sent);
});

it("an agent's call that ends is counted, for its server and for all of them, and one of the gateway's own is not [menu-current]", async () => {
  const connection = connect();
  for (const caller of [new Agent("ada"), new Agent("bob"), undefined]) begin(connection, caller);
  expect(stage.calls).toEqual({ ended: 0, listEvents: { count: 0 } });
  await connection.close();
  expect(stage.calls).toEqual({ ended: 2, listEvents: { count: 2 } });
});

describe("calls in flight", () => {
  const agentOf = (id: string) => Object.assign(new Agent(id), { principal: { id, role: "default" } });
  /** How many of `count` calls are taken. */
  const taken = (connection: ReturnType<typeof connect>, agent: Agent | undefined, count: number) => {
    const calls = Array.from({ length: count }, () => new TestCall(agent));
    for (const call of calls) connection.send(call);
    return calls.filter(({ replies }) => replies.length === 0);
  };

  it("are one principal's up to three quarters of 10,000, and others have the rest [bounded]", async () => {
    const connection = connect();
    const [ada, bob] = [agentOf("ada"), agentOf("bob")];
    const own = taken(connection, ada, 8_000);
    expect(own.length).toBe(7_500);
    const refused = new TestCall(ada);
    connection.send(refused);
    const { error } = (await refused.answer()) as { error: { code: number; message: string } };
    expect(error.code).toBe(-31006);
    expect(error.message).toContain('has 7500 calls of "ada" in flight; this one was not sent.');
    expect(taken(connection, bob, 3_000).length).toBe(1_875);
    // A place that is free again is first of use to those who have less.
    for (const call of own.slice(0, 100)) connection.cancel(call, "enough");
    expect(taken(connection, bob, 500).length).toBe(75);
    expect(taken(connection, agentOf("eve"), 1).length).toBe(1);
    // What the gateway itself asks is nobody's.
    expect(taken(connection, undefined, 5).length).toBe(5);
    await connection.close();
    expect(connection.inFlight).toBe(0);
  });
});
