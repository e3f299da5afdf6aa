// A streamed answer under every order of data, credit, full connections and ends; no sockets, no clock.

import { ok, strictEqual } from "node:assert";
import fc from "fast-check";
import { expect, test } from "vitest";
import { histories } from "../../../test/faults/length.js";
import { failure } from "../http/failure.js";
import type { CheckedRequest, HttpRequests } from "../http/requests.js";
import { readFrame } from "../wire/frame.js";
import { MAX_DELTA_BYTES } from "../wire/limits.js";
import type { BodyDelta } from "../wire/protocol.js";
import type { RequestHandle } from "../wire/types.js";
import { type Answer, type AnswerOwner, BufferedAnswer, type RoomWaiter, SendQueue } from "./answer.js";
import { DeltaAnswer } from "./delta-answer.js";

const REQUEST: CheckedRequest = {
  method: "GET",
  url: new URL("http://host/"),
  headers: [],
  body: undefined,
  timeoutMs: undefined,
  redirect: "follow",
};

/** Stands for the session: keeps what is sent, and is full when told so. */
class FakeOwner implements AnswerOwner {
  isFull: boolean = false;
  readonly sent: (string | Buffer)[] = [];
  readonly line = new SendQueue(() => this.isFull);
  total = 0;
  left = 0;

  send(frame: string | Buffer): void {
    this.sent.push(frame);
  }
  waitForRoom(waiter: RoomWaiter): void {
    this.line.join(waiter);
  }
  collected(by: number): number {
    this.total += by;
    return this.total;
  }
  forbidden(): void {}
  leave(_answer: Answer): void {
    this.left++;
  }

  get deltas(): BodyDelta[] {
    return this.sent.flatMap((frame) => {
      const read = readFrame(Buffer.from(frame));
      return read.kind === "delta" ? [read.delta] : [];
    });
  }
  get bytes(): Buffer {
    return Buffer.concat(this.deltas.map(({ data }) => data));
  }
}

/** Stands for the HTTP request: knows whether it may hand out data. */
class FakeRequest implements RequestHandle {
  isPaused: boolean = false;
  isAborted: boolean = false;
  onResume: () => void = () => {};
  pause(): void {
    this.isPaused = true;
  }
  resume(): void {
    this.isPaused = false;
    this.onResume();
  }
  abort(): void {
    this.isAborted = true;
  }
}

function begun<A extends Answer>(answer: A): { answer: A; run: FakeRequest } {
  const run = new FakeRequest();
  answer.begin({ start: () => run } as unknown as HttpRequests, REQUEST);
  return { answer, run };
}

/** Every byte tells its place. */
function source(from: number, length: number): Buffer {
  return Buffer.from(Array.from({ length }, (_, i) => ((from + i) * 31 + ((from + i) >> 8)) & 0xff));
}

type Step =
  | { readonly kind: "data"; readonly bytes: number; readonly late: boolean }
  | { readonly kind: "credit"; readonly bytes: number }
  | { readonly kind: "full" }
  | { readonly kind: "room" };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant("data"), bytes: fc.integer({ min: 1, max: 400 }), late: fc.boolean() }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("credit"), bytes: fc.integer({ min: 1, max: 500 }) }) },
  fc.record({ kind: fc.constant("full") }),
  fc.record({ kind: fc.constant("room") }),
);

test("[exec-1] an answer stays within the credit and brings every byte once, in order, with one end behind it", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 600 }),
      fc.array(step, { maxLength: 60 }),
      fc.boolean(),
      (window, steps, breaks) => {
        const owner = new FakeOwner();
        const { answer, run } = begun(new DeltaAnswer(owner, 1, "s", undefined, window));
        answer.onHead(200, []);
        let granted = window;
        let given = 0;
        for (const one of steps) {
          if (one.kind === "data") {
            // A run that was paused may have one more piece on its way.
            if (run.isPaused && !one.late) continue;
            answer.onData(source(given, one.bytes));
            given += one.bytes;
          } else if (one.kind === "credit") {
            granted += one.bytes;
            answer.grant(one.bytes);
          } else if (one.kind === "full") {
            owner.isFull = true;
          } else {
            owner.isFull = false;
            owner.line.wake();
          }
          const sent = owner.bytes.length;
          // node:assert, because so many expect()s would take most of the time.
          ok(sent <= granted);
          // Never stands still for nothing: with credit and room all is sent, and the server may send more.
          if (!owner.isFull && sent < granted && !inLine(answer)) {
            strictEqual(sent, given);
            strictEqual(run.isPaused, false);
          }
        }
        if (breaks) answer.onFailure(failure("ECONNRESET", "it broke", true));
        else answer.onEnd();
        owner.isFull = false;
        owner.line.wake();
        answer.grant(given + 1);
        expect(owner.bytes.equals(source(0, given))).toBe(true);
        const { deltas } = owner;
        expect(deltas.map(({ seq }) => seq)).toEqual(deltas.map((_, i) => i + 1));
        expect(deltas.filter(({ done }) => done)).toHaveLength(1);
        expect(deltas.at(-1)).toMatchObject({
          done: true,
          error: breaks ? expect.stringContaining("broke") : undefined,
        });
        expect(owner.left).toBe(1);
        expect(run.isAborted).toBe(false);
      },
    ),
    { numRuns: histories(3_000) },
  );
});

function inLine(waiter: RoomWaiter): boolean {
  return waiter.inLine;
}

test("[exec-1] a piece beyond the credit that meets a full connection goes on when there is room", () => {
  const owner = new FakeOwner();
  const { answer, run } = begun(new DeltaAnswer(owner, 1, "s", undefined, 100));
  answer.onHead(200, []);
  owner.isFull = true;
  answer.onData(source(0, 150));
  expect([owner.bytes.length, run.isPaused]).toEqual([0, true]);
  owner.isFull = false;
  owner.line.wake();
  // More than half of its credit was left: no reader would have granted any more.
  expect(owner.bytes.length).toBe(100);
});

test("a cancel at any point silences the answer and closes the connection to the server", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 20 }), fc.boolean(), (steps, answered) => {
      const owner = new FakeOwner();
      const { answer, run } = begun(new DeltaAnswer(owner, 1, "s", undefined, 300));
      if (answered) answer.onHead(200, []);
      let given = 0;
      for (const one of answered ? steps : []) {
        if (one.kind === "data") answer.onData(source(given, one.bytes));
        if (one.kind === "data") given += one.bytes;
        if (one.kind === "full") owner.isFull = true;
      }
      const before = owner.sent.length;
      answer.cancel();
      expect(run.isAborted).toBe(true);
      owner.isFull = false;
      owner.line.wake();
      answer.grant(100_000);
      answer.onData(source(0, 10));
      answer.onEnd();
      answer.cancel();
      expect(owner.sent.length).toBe(answered ? before : before + 1);
      if (!answered) expect(String(owner.sent.at(-1))).toContain('"cancelled"');
      expect(owner.left).toBe(1);
    }),
    { numRuns: histories(2_000) },
  );
});

test("a large piece is split, an empty one is not sent", () => {
  const owner = new FakeOwner();
  const { answer } = begun(new DeltaAnswer(owner, 1, "s", undefined, Number.POSITIVE_INFINITY));
  answer.onHead(200, []);
  const large = Buffer.alloc(2 * MAX_DELTA_BYTES + 5, "x");
  answer.onData(large);
  answer.onData(Buffer.alloc(0));
  answer.onEnd();
  expect(owner.deltas.map(({ data }) => data.length)).toEqual([MAX_DELTA_BYTES, MAX_DELTA_BYTES, 5, 0]);
});

test("[exec-1] room is shared in turn: none of many streams has it twice before each has had it once", () => {
  const owner = new FakeOwner();
  const order: number[] = [];
  const answers = Array.from({ length: 40 }, (_, i) => {
    const { answer, run } = begun(new DeltaAnswer(owner, i, `s${i}`, undefined, 1_000_000));
    // There is room for one: whoever gets it fills the connection again.
    run.onResume = () => {
      order.push(i);
      owner.isFull = true;
    };
    answer.onHead(200, []);
    return answer;
  });
  owner.isFull = true;
  for (const answer of answers) answer.onData(source(0, 10));
  for (let i = 0; i < 3 * answers.length; i++) {
    owner.isFull = false;
    owner.line.wake();
    answers[order.at(-1) as number]?.onData(source(0, 10));
  }
  const once = answers.map((_, i) => i);
  expect(order).toEqual([...once, ...once, ...once]);
});

test("more waiters than are woken at once all have their turn, also after the queue was cleared once", async () => {
  const owner = new FakeOwner();
  for (let round = 0; round < 2; round++) {
    owner.isFull = true;
    const runs = Array.from({ length: 200 }, (_, i) => {
      const { answer, run } = begun(new DeltaAnswer(owner, i, `s${i}`, undefined, 1_000));
      answer.onHead(200, []);
      answer.onData(source(0, 10));
      return run;
    });
    owner.isFull = false;
    owner.line.wake();
    expect(runs.filter(({ isPaused }) => isPaused).length).toBeGreaterThan(0);
    if (round === 0) owner.line.clear();
    else await expect.poll(() => runs.filter(({ isPaused }) => isPaused).length).toBe(0);
  }
});

test("a body in one message waits for room as well", () => {
  const owner = new FakeOwner();
  const { answer, run } = begun(new BufferedAnswer(owner, "w", "w", undefined));
  answer.onHead(200, []);
  owner.isFull = true;
  answer.onData(Buffer.from("one"));
  expect(run.isPaused).toBe(true);
  owner.isFull = false;
  owner.line.wake();
  expect(run.isPaused).toBe(false);
  owner.isFull = true;
  answer.onData(Buffer.from("two"));
  answer.onEnd();
  expect(owner.sent).toEqual([]);
  owner.isFull = false;
  owner.line.wake();
  const body = Buffer.from("onetwo").toString("base64");
  expect(JSON.parse(String(owner.sent[0]))).toEqual({
    id: "w",
    result: { status: 200, headers: [], bodyBase64: body },
  });
  expect([owner.total, owner.left]).toEqual([0, 1]);
});
