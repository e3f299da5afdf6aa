import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { TestClock } from "../../../test/fixtures/test-clock.js";
import { until } from "../../../test/fixtures/wait.js";
import type { MailboxCall } from "../../contracts/mailbox.js";
import type { Store } from "../../contracts/store.js";
import { SILENT } from "../../observe/log.js";
import { Fault } from "../../protocol/errors.js";
import { makeMessage, type RequestMessage } from "../../protocol/message.js";
import { openStore } from "../../store/local/store.js";
import { BrokerLost, BrokerRefusal } from "../peer/broker-error.js";
import type { BrokerLine, Delivery, LineEvents } from "../peer/line.js";
import { Journal } from "./journal.js";
import { KEPT_AFTER_END_MS } from "./journal-entry.js";
import { TICK_MS } from "./limits.js";
import { Sharer, type SharerOptions } from "./sharer.js";

let dir: string;
let store: Store;
let clock: TestClock;
let sharers: Sharer[] = [];

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), "toolway-sharer-"));
  store = await openStore({ dir });
  clock = new TestClock();
});
afterEach(async () => {
  for (const sharer of sharers) await sharer.stop();
  sharers = [];
  await store.close();
  rmSync(dir, { recursive: true, force: true });
});

/** A broker's end of a line, which the test plays. */
class FakeLine implements BrokerLine {
  readonly address = "studio";
  readonly role = "sharer";
  readonly waiting = 0;
  readonly deliveries: Delivery[] = [];
  readonly refused: Delivery[] = [];
  /** So many deliveries are not taken. */
  refusals = 0;
  readonly acked: string[] = [];
  readonly released: string[] = [];
  readonly extended: string[] = [];
  readonly repeatables: string[] = [];
  readonly lives: { to: string; id: string | undefined; body: string }[] = [];
  granted = 0;
  /** What `extend` says is ours no more. */
  readonly gone = new Set<string>();
  isLost = false;
  catchingUp: Promise<void> = Promise.resolve();

  readonly events: LineEvents;

  constructor(events: LineEvents) {
    this.events = events;
  }

  async deliver(delivery: Delivery): Promise<void> {
    if (this.isLost) throw new BrokerLost("lost");
    if (this.refusals > 0) {
      this.refusals--;
      this.refused.push(delivery);
      throw new BrokerRefusal("no room");
    }
    this.deliveries.push(delivery);
  }
  ack({ id }: { id: string }): void {
    this.acked.push(id);
  }
  release({ id }: { id: string }): void {
    this.released.push(id);
  }
  async extend(names: readonly { id: string; from: string }[]) {
    this.extended.push(...names.map(({ id }) => id));
    return names.filter(({ id }) => !this.gone.has(id));
  }
  repeatable({ id }: { id: string }): void {
    this.repeatables.push(id);
  }
  caughtUp(): Promise<void> {
    return this.catchingUp;
  }
  credit(messages: number): void {
    this.granted += messages;
  }
  async cancel(): Promise<boolean> {
    return false;
  }
  live(to: string, id: string | undefined, body: string): boolean {
    this.lives.push({ to, id, body });
    return true;
  }
  watch(): void {}
  pair(): Promise<never> {
    return Promise.reject(new BrokerRefusal("no pairing here"));
  }
  close(): void {
    this.lose("closed");
  }

  lose(why = "cut"): void {
    if (this.isLost) return;
    this.isLost = true;
    this.events.onClose(why, false);
  }

  send(id: string, leftMs = 60_000): void {
    this.events.onMessage({
      id,
      from: "worker-1#mcp-x7",
      role: "dev",
      kind: "mcp_request",
      body: JSON.stringify({ id }),
      correlationId: undefined,
      requestCorrelationId: undefined,
      leftMs,
      repeated: false,
    });
  }
}

const message = makeMessage({ jsonrpc: "2.0", id: 1, method: "tools/call" }) as RequestMessage;
const start = (mayRepeat = false) => ({ server: "s", tool: "t", message, mayRepeat });
const text = (json: string) => ({ kind: "body", json }) as const;

async function sharing(more: Partial<SharerOptions> = {}) {
  const lines: FakeLine[] = [];
  const calls: MailboxCall[] = [];
  const told: [string, string][] = [];
  const journal = await Journal.open({ store, clock });
  const sharer = new Sharer({
    broker: "ws://broker",
    as: "studio",
    token: undefined,
    service: { serve: (call) => void calls.push(call), notified: (who, body) => void told.push([who.id, body]) },
    journal,
    clock,
    log: SILENT,
    random: () => 0,
    dial: async (_options, events) => {
      const line = new FakeLine(events);
      lines.push(line);
      return line;
    },
    ...more,
  });
  sharers.push(sharer);
  sharer.start();
  const line = async (count = 1): Promise<FakeLine> => {
    await until(() => lines.length >= count && sharer.state.state === "connected");
    return lines[count - 1] as FakeLine;
  };
  const call = async (count = 1): Promise<MailboxCall> => {
    await until(() => calls.length >= count);
    return calls[count - 1] as MailboxCall;
  };
  return { sharer, line, call, calls, lines, told };
}

describe("a sharer", () => {
  it("logs once why its broker is away, however often that is dialled in vain [told-why]", async () => {
    const lines: string[] = [];
    const fakes: FakeLine[] = [];
    let dials = 0;
    await sharing({
      log: { ...SILENT, warn: (text, fields) => void lines.push(`${text}: ${fields?.["why"]}`) },
      dial: async (_options, events) => {
        dials++;
        if (dials > 1 && dials < 7) throw new BrokerLost(dials < 5 ? "nothing listens there" : "no such host");
        const line = new FakeLine(events);
        fakes.push(line);
        return line;
      },
    });
    await until(() => fakes.length === 1);
    fakes[0]?.lose();
    await until(() => fakes.length === 2);
    expect(lines).toEqual([
      "the line to the broker has ended: cut",
      "the broker was dialled in vain; it goes on: nothing listens there",
      "the broker was dialled in vain; it goes on: no such host",
    ]);
  });

  it("takes 64 calls at once, and one more for each that was answered [bounded]", async () => {
    const { line, call } = await sharing();
    const one = await line();
    expect(one.granted).toBe(64);
    one.send("m-1");
    (await call()).reply(text('{"result":1}'));
    await until(() => one.granted === 65);
    expect(one.deliveries).toMatchObject([
      {
        to: "worker-1#mcp-x7",
        kind: "mcp_reply",
        correlationId: "m-1",
        body: '{"result":1}',
        acknowledges: { id: "m-1", from: "worker-1#mcp-x7" },
      },
    ]);
  });

  it("says of a call that ran that its outcome is unknown where the broker does not take its reply, each time that the message comes [unknown-is-said]", async () => {
    const { sharer, line, call, calls } = await sharing();
    const one = await line();
    const said = () => JSON.parse(one.deliveries.at(-1)?.body ?? "{}") as { outcome?: string; result?: string };
    one.send("m-1");
    const running = await call();
    await running.begin(start());
    one.refusals = 1;
    running.reply(text('{"result":"once"}'));
    await until(() => one.deliveries.length === 1);
    expect(said().outcome).toBe("unknown");
    // From the journal, by a call that itself was never begun.
    one.refusals = 1;
    one.send("m-1");
    await until(() => one.deliveries.length === 2);
    expect(said().outcome).toBe("unknown");
    one.send("m-1");
    await until(() => one.deliveries.length === 3);
    expect(said()).toEqual({ result: "once" });
    one.send("m-2");
    const read = await call(2);
    await read.begin(start(true));
    one.refusals = 1;
    read.reply(text('{"result":"read"}'));
    await until(() => one.deliveries.length === 4);
    expect(said().outcome).toBe("unknown");
    one.send("m-3");
    one.refusals = 1;
    (await call(3)).reply(text('{"error":"no such tool"}'));
    await until(() => one.deliveries.length === 5);
    expect(said().outcome).toBe("not run");
    await until(() => sharer.counts.running === 0);
    expect([calls.length, one.acked]).toEqual([3, []]);
  });

  it("keeps a message whose reply the broker takes in no form, and answers it when it comes again [ack-is-durable]", async () => {
    const { sharer, line, call, calls } = await sharing();
    const one = await line();
    one.send("m-1");
    const running = await call();
    await running.begin(start());
    one.refusals = 2;
    running.reply(text('{"result":"once"}'));
    await until(() => one.refused.length === 2 && sharer.counts.running === 0);
    await new Promise((done) => setImmediate(done));
    // It is this journal's until its lease has run out: nobody else may have it, and it is not finished.
    expect([one.acked, one.released, one.deliveries]).toEqual([[], [], []]);
    one.send("m-1");
    await until(() => one.deliveries.length === 1);
    expect(one.deliveries[0]).toMatchObject({ body: '{"result":"once"}', acknowledges: { id: "m-1" } });
    expect(calls).toHaveLength(1);
    // What was taken back before it began must not run when it comes again.
    one.send("m-2");
    await call(2);
    one.refusals = 2;
    one.events.onCancel("m-2", "worker-1#mcp-x7");
    await until(() => one.acked.length === 1);
    expect(one.acked).toEqual(["m-2"]);
  });

  it("takes as many at once as its config says [bounded]", async () => {
    const { line, call } = await sharing({ calls: 2 });
    const one = await line();
    expect(one.granted).toBe(2);
    one.send("m-1");
    (await call()).reply(text('{"result":1}'));
    await until(() => one.granted === 3);
  });

  it("asks for another in place of a call that the broker gave to somebody else before it began [bounded]", async () => {
    const { sharer, line, call } = await sharing();
    const one = await line();
    one.send("m-1");
    await call();
    one.gone.add("m-1");
    clock.advance(10_001);
    await until(() => sharer.counts.running === 0);
    expect(one.granted).toBe(65);
  });

  it("passes on what an agent tells a server by a live frame", async () => {
    const { line, told } = await sharing();
    const one = await line();
    const body = '{"op":"notification","message":{"jsonrpc":"2.0","method":"notifications/mood","params":{"n":1e3}}}';
    one.events.onLive({ from: "worker-1#mcp-x7", role: "dev", correlationId: undefined, body });
    expect(told).toEqual([["mailbox/worker-1", body]]);
  });

  it("tells the broker of a call that it begins and that may run twice, on the next line too, and of no other [no-double-effect]", async () => {
    const { line, call } = await sharing();
    const first = await line();
    for (const id of ["read", "write", "waits"]) first.send(id);
    await (await call()).begin(start(true));
    await (await call(2)).begin(start());
    await call(3);
    expect(first.repeatables).toEqual(["read"]);
    first.lose();
    const second = await line(2);
    for (const id of ["read", "write", "waits"]) second.send(id);
    expect(second.repeatables).toEqual(["read"]);
  });

  it("answers a call that was running when its line was lost on the next one, once [no-double-effect]", async () => {
    const { line, call, calls } = await sharing();
    const first = await line();
    first.send("m-1");
    const running = await call();
    await running.begin(start());
    first.lose();
    const second = await line(2);
    second.send("m-1");
    running.reply(text('{"result":"once"}'));
    await until(() => second.deliveries.length === 1);
    second.send("m-1");
    await until(() => second.deliveries.length === 2);
    expect(second.deliveries.map(({ id, body }) => [id, body])).toEqual([
      [second.deliveries[0]?.id, '{"result":"once"}'],
      [second.deliveries[0]?.id, '{"result":"once"}'],
    ]);
    expect(calls).toHaveLength(1);
    expect(first.deliveries).toEqual([]);
  });

  it("answers a message that comes again before it is told that its reply is with the broker [no-double-effect]", async () => {
    const { sharer, line, call, calls } = await sharing();
    const one = await line();
    const told: (() => void)[] = [];
    const deliver = one.deliver.bind(one);
    one.deliver = async (delivery) => {
      await deliver(delivery);
      await new Promise<void>((resolve) => told.push(resolve));
    };
    one.send("m-1");
    const running = await call();
    await running.begin(start());
    running.reply(text('{"result":"once"}'));
    await until(() => told.length === 1);
    // The broker has handed the reply out, and its sender repeats the call.
    one.send("m-1");
    told[0]?.();
    await until(() => told.length === 2);
    told[1]?.();
    await until(() => sharer.counts.running === 0);
    expect(one.deliveries.map(({ body, acknowledges }) => [body, acknowledges?.id])).toEqual([
      ['{"result":"once"}', "m-1"],
      ['{"result":"once"}', "m-1"],
    ]);
    expect(calls).toHaveLength(1);
    // Both were handed out by credit, which is given back.
    expect(one.granted).toBe(64 + 2);
  });

  it("gives back what may have waited in its socket while it slept, until it has caught up, and begins none of it", async () => {
    const { line, call, calls } = await sharing();
    const one = await line();
    one.send("begun");
    const begun = await call();
    await begun.begin(start());
    one.send("taken", 2_000);
    const taken = await call(2);
    let answer = () => {};
    one.catchingUp = new Promise((resolve) => {
      answer = resolve;
    });
    clock.jumpWall(5_000);
    // It may be over by now, whatever time it says that it has left.
    one.send("waited", 2_000);
    expect(one.released).toEqual(["waited"]);
    expect(one.granted).toBe(65);
    // What is running here stays here.
    one.send("begun");
    one.send("also waited");
    expect(one.released).toEqual(["waited", "also waited"]);
    await expect(taken.begin(start())).rejects.toThrow("Not run");
    answer();
    await one.catchingUp;
    await until(() => {
      one.send("again");
      return calls.length > 2;
    });
    expect(calls).toHaveLength(3);
    begun.reply(text('{"result":"once"}'));
    await until(() => one.deliveries.some(({ correlationId }) => correlationId === "begun"));
    expect(one.deliveries.find(({ correlationId }) => correlationId === "taken")?.body).toContain('"not run"');
  });

  it("asks the broker before it starts a tool after a sleep, and does not start what is another's by then", async () => {
    const { line, call, calls } = await sharing();
    const one = await line();
    one.send("kept");
    await (await call()).begin(start(true));
    expect(one.extended).toEqual([]);
    // The calendar went on while the steady clock stood still: the machine slept.
    clock.jumpWall(20_000);
    await (await call()).begin(start(true));
    expect(one.extended).toContain("kept");
    await until(() => {
      // Until it has caught up, it gives back what comes.
      one.send("lost");
      return calls.length > 1;
    });
    const lost = await call(2);
    one.gone.add("lost");
    clock.jumpWall(20_000);
    await expect(lost.begin(start())).rejects.toThrow("no longer with this sharer");
    lost.reply(text("{}"));
    expect(one.deliveries).toEqual([]);
  });

  it("cancels what its sender took back or whose deadline has passed, says what is known, and drops the late reply", async () => {
    const { sharer, line, call } = await sharing();
    const one = await line();
    const reasons: (string | undefined)[] = [];
    one.send("taken");
    const taken = await call();
    taken.onCancel = (reason) => reasons.push(reason);
    one.events.onCancel("taken", "worker-1#mcp-x7");
    one.send("slow", 1_000);
    const slow = await call(2);
    slow.onCancel = (reason) => reasons.push(reason);
    await slow.begin(start());
    clock.advance(1_001);
    await until(() => one.deliveries.length === 2);
    expect(one.deliveries.map(({ body }) => JSON.parse(body) as unknown)).toMatchObject([
      { outcome: "not run", code: "cancelled" },
      { outcome: "unknown", code: "timeout" },
    ]);
    expect(reasons).toHaveLength(2);
    slow.reply(text("{}"));
    expect(sharer.counts.late).toBe(1);
    expect(one.deliveries).toHaveLength(2);
    // Another's cancel of the same id is nobody's.
    one.send("mine");
    await call(3);
    one.events.onCancel("mine", "worker-2");
    expect(sharer.counts.running).toBe(1);
  });

  it("tells who asks a person about a call that it was taken back, and does not run it", async () => {
    const signals: AbortSignal[] = [];
    const { line, call } = await sharing({
      ask: (_principal, _start, _leftMs, unwanted) => {
        const signal = unwanted();
        signals.push(signal);
        return new Promise((_, reject) => {
          signal.addEventListener("abort", () => reject(new Fault("cancelled", "It was withdrawn.")));
        });
      },
    });
    const one = await line();
    one.send("taken");
    const begun = (await call()).begin(start());
    expect(signals.map(({ aborted }) => aborted)).toEqual([false]);
    one.events.onCancel("taken", "worker-1#mcp-x7");
    await expect(begun).rejects.toThrow("It was withdrawn.");
    await until(() => one.deliveries.length === 1);
    expect(JSON.parse(one.deliveries[0]?.body ?? "")).toMatchObject({ outcome: "not run", code: "cancelled" });
  });

  it("keeps a large reply, and gives it in pieces to whoever asked for it and to nobody else", async () => {
    const { line, call } = await sharing();
    const one = await line();
    one.send("m-1");
    const bytes = Buffer.from(JSON.stringify({ jsonrpc: "2.0", id: 1, result: randomBytes(200_000).toString("hex") }));
    (await call()).reply({ kind: "response", bytes });
    await until(() => one.deliveries.length === 1);
    expect(JSON.parse(one.deliveries[0]?.body ?? "")).toMatchObject({ large: { bytes: bytes.length } });
    const draw = (from: string, offset: number) => {
      const body = JSON.stringify({ op: "draw", offset, bytes: 65_536 });
      one.events.onLive({ from, role: "dev", correlationId: "m-1", body });
      return JSON.parse(one.lives.at(-1)?.body ?? "") as { data?: string; error?: string };
    };
    const parts: Buffer[] = [];
    for (let at = 0; at < bytes.length; at += parts.at(-1)?.length ?? bytes.length) {
      parts.push(Buffer.from(draw("worker-1#mcp-x7", at).data ?? "", "base64"));
    }
    expect(Buffer.concat(parts).equals(bytes)).toBe(true);
    expect(draw("worker-2", 0).error).toBeDefined();
  });

  it("gives back what was not begun when it stops, and takes nothing new [drain]", async () => {
    const { sharer, line, call } = await sharing();
    const one = await line();
    one.send("waiting");
    await call();
    await sharer.drain(0);
    one.send("new");
    expect(one.released).toEqual(["waiting", "new"]);
  });

  it("forgets what is over as fast as a busy hour brings it, and looks for it once a minute else [bounded]", async () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    try {
      const { sharer, line } = await sharing();
      await line();
      const { journal } = sharer;
      const endMs = journal.now() + 1_000;
      for (let from = 0; from < 3_500; from += 500) {
        await Promise.all(
          Array.from({ length: 500 }, (_, n) =>
            journal.start({ key: `k-${from + n}`, owner: "w", digest: "digest", endMs }, "t"),
          ),
        );
      }
      const sweep = vi.spyOn(journal, "sweep");
      clock.advance(1_000 + KEPT_AFTER_END_MS + 1);
      for (const [n, left] of [2_500, 1_500, 500, 0].entries()) {
        vi.advanceTimersByTime(TICK_MS);
        await sweep.mock.results[n]?.value;
        expect(journal.used.entries).toBe(left);
      }
      vi.advanceTimersByTime(4 * TICK_MS);
      expect(sweep).toHaveBeenCalledTimes(4);
    } finally {
      vi.useRealTimers();
    }
  });

  it("drains no longer once it is stopped [drain]", async () => {
    const { sharer, line, call } = await sharing();
    (await line()).send("running");
    await (await call()).begin(start());
    const drained = sharer.drain(60_000);
    await sharer.stop();
    await drained;
    expect(sharer.state.state).toBe("stopped");
  });

  it("stops in the middle of a dial and of a wait, and dials no more", async () => {
    let dials = 0;
    const dialling = await sharing({
      dial: ({ signal }) => {
        dials++;
        return new Promise((_, reject) => signal?.addEventListener("abort", () => reject(new BrokerLost("stopped"))));
      },
    });
    await until(() => dials === 1);
    await dialling.sharer.stop();
    const waiting = await sharing({
      random: () => 0.99,
      dial: async () => {
        dials++;
        throw new BrokerLost("nobody there");
      },
    });
    await until(() => waiting.sharer.state.state === "waiting");
    const before = dials;
    await waiting.sharer.stop();
    expect(waiting.sharer.state.state).toBe("stopped");
    expect(dials).toBe(before);
  });

  it("stops within its pause, and not when that is over", async () => {
    // Nothing is ever due: whoever waited for the pause would wait for ever.
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval"] });
    try {
      const states: string[] = [];
      const { sharer } = await sharing({
        random: () => 0.99,
        onState: ({ state }) => void states.push(state),
        dial: async () => {
          throw new BrokerLost("nobody there");
        },
      });
      for (let turn = 0; turn < 100 && states.at(-1) !== "waiting"; turn++) await new Promise(setImmediate);
      expect(states).toEqual(["dialling", "waiting"]);
      await sharer.stop();
      expect(states).toEqual(["dialling", "waiting", "stopped"]);
    } finally {
      vi.useRealTimers();
    }
  });

  it("does not dial again where the broker refused it", async () => {
    let dials = 0;
    const { sharer } = await sharing({
      dial: async () => {
        dials++;
        throw new BrokerRefusal("no such token", true);
      },
    });
    await sharer.ended;
    expect(sharer.state).toEqual({ state: "refused", why: "no such token" });
    expect(dials).toBe(1);
  });
});
