import { deepStrictEqual, strictEqual } from "node:assert";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { histories } from "../../test/faults/length.js";
import { KIB, MIB } from "../runtime/sizes.js";
import { type Carrier, Channel } from "./channel.js";
import { ACK_BYTES, ACK_MESSAGES, MAX_BACKLOG_BYTES, MAX_UNACKED_BYTES, MESSAGE_COST_BYTES } from "./limits.js";

type Events = Parameters<Carrier["attach"]>[0];

/** One end of a connection that keeps what is sent until it is carried over, or lost. */
class End implements Carrier {
  readonly sent: (string | Buffer)[] = [];
  events: Events | undefined;
  waiting = 0;

  send(frame: string | Buffer): void {
    this.sent.push(frame);
  }

  attach(events: Events): void {
    this.events = events;
  }
}

/** One party: a channel, what it was told, and what it was given to send. */
class Party {
  readonly said: string[] = [];
  readonly heard: string[] = [];
  rooms = 0;
  losses = 0;
  end: End | undefined;
  readonly channel = new Channel({
    onMessage: (bytes) => void this.heard.push(name(bytes)),
    onRoom: () => {
      this.rooms++;
    },
    onLost: () => {
      this.losses++;
    },
  });

  say(bytes: number): void {
    const text = `#${this.said.length};`;
    this.said.push(text);
    this.channel.send(bytes <= text.length ? text : Buffer.concat([Buffer.from(text), FILLING], Math.max(bytes, 1)));
  }

  /** A megabyte, always the same one: what is measured is how much is kept. */
  sayMegabyte(): void {
    this.said.push("#;");
    this.channel.send(MEGABYTE);
  }

  /** The first message that the peer has not said that it has. */
  get acked(): number {
    for (let n = 0; n <= this.said.length; n++) if (this.channel.canResume(n)) return n;
    throw new Error("It could not go on from anywhere.");
  }
}

const FILLING = Buffer.alloc(2 * MIB, ".");
const MEGABYTE = Buffer.alloc(1 * MIB, "#;");
const name = (bytes: Buffer): string => bytes.toString("latin1", 0, bytes.indexOf(";") + 1);

/** Carries up to `count` messages from one end to the other. */
function carry(from: Party, to: Party, count: number): void {
  for (let i = 0; i < count; i++) {
    const frame = from.end?.sent.shift();
    if (frame === undefined) return;
    to.end?.events?.onMessage(typeof frame === "string" ? Buffer.from(frame) : frame);
  }
}

function connected(): { client: Party; executor: Party } {
  const client = new Party();
  const executor = new Party();
  for (const party of [client, executor]) {
    party.end = new End();
    party.channel.openLasting(party.end, 0);
  }
  return { client, executor };
}

/** All that is under way is lost; `told` is who hears of it now. The others go on writing into nothing. */
function cut(parties: readonly Party[], told: readonly Party[]): void {
  const closing = told.map((party) => party.end);
  for (const party of parties) party.end = undefined;
  for (const end of closing) end?.events?.onClose("cut");
}

/** The next socket, as the handshake has it: both say how far they are, and nothing more is read of the one before. */
function reconnect(client: Party, executor: Party, between: () => void): void {
  client.channel.detach();
  const clientHas = client.channel.received;
  executor.channel.detach();
  const executorHas = executor.channel.received;
  strictEqual(executor.channel.canResume(clientHas), true);
  strictEqual(client.channel.canResume(executorHas), true);
  client.end = new End();
  executor.end = new End();
  client.channel.openLasting(client.end, executorHas);
  // What the executor says meanwhile waits for the client's `initialized`.
  between();
  executor.channel.openLasting(executor.end, clientHas);
}

function finish(client: Party, executor: Party): void {
  for (let i = 0; i < 10 && (client.end?.sent.length ?? 0) + (executor.end?.sent.length ?? 0) > 0; i++) {
    carry(client, executor, Number.POSITIVE_INFINITY);
    carry(executor, client, Number.POSITIVE_INFINITY);
  }
}

const who = fc.constantFrom("client", "executor");
const size = fc.oneof(fc.nat(100), fc.nat(64 * KIB), fc.constantFrom(ACK_BYTES, 1 * MIB, 2 * MIB));
const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constant("say" as const), who, size, times: fc.integer({ min: 1, max: 80 }) }),
  },
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constant("carry" as const), who, count: fc.integer({ min: 1, max: 200 }) }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("cut" as const), told: fc.subarray(["client", "executor"]) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("reconnect" as const), who, between: fc.nat(3) }) },
);

describe("a conversation", () => {
  it("[exec-4] brings each message once, in order, both ways, whatever the cuts lose", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const parties = connected();
        const { client, executor } = parties;
        const of = (one: string): Party => (one === "client" ? client : executor);
        for (const one of steps) {
          if (one.do === "say") {
            // Large ones seldom: what is not acknowledged is kept.
            const times = one.size > 64 * KIB ? 1 : one.times;
            for (let i = 0; i < times; i++) of(one.who).say(one.size);
          } else if (one.do === "carry") {
            carry(of(one.who), of(one.who) === client ? executor : client, one.count);
          } else if (one.do === "cut") {
            cut([client, executor], one.told.map(of));
          } else {
            reconnect(client, executor, () => {
              for (let i = 0; i < one.between; i++) of(one.who).say(10);
            });
          }
          // node:assert, because so many expect()s would take most of the time.
          for (const party of [client, executor]) strictEqual(party.channel.canResume(party.said.length + 1), false);
        }
        reconnect(client, executor, () => {});
        finish(client, executor);
        deepStrictEqual(client.heard, executor.said);
        deepStrictEqual(executor.heard, client.said);
        strictEqual(client.channel.received, executor.said.length);
        // All was carried over, so what the peers still keep is what is not worth an acknowledgement.
        expect(client.said.length - client.acked).toBeLessThan(ACK_MESSAGES);
        expect(executor.said.length - executor.acked).toBeLessThan(ACK_MESSAGES);
      }),
      { numRuns: histories(2_500) },
    );
  });

  it("is full when what is not acknowledged is too much, and says when it no longer is", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.integer({ min: 1, max: 12 }), fc.nat(12)), { maxLength: 12 }), (turns) => {
        const { client, executor } = connected();
        for (const [says, carries] of turns) {
          for (let i = 0; i < says; i++) client.sayMegabyte();
          const kept = (client.said.length - client.acked) * MIB;
          if (kept > MAX_UNACKED_BYTES) expect(client.channel.isFull).toBe(true);
          const wasFull = client.channel.isFull;
          const rooms = client.rooms;
          carry(client, executor, carries);
          carry(executor, client, Number.POSITIVE_INFINITY);
          const left = (client.said.length - client.acked) * MIB;
          const isRoomy = wasFull && left <= MAX_UNACKED_BYTES / 2;
          expect(client.rooms - rooms).toBe(isRoomy ? 1 : 0);
          expect(client.channel.isFull).toBe(left > MAX_UNACKED_BYTES || (wasFull && !isRoomy));
        }
      }),
      { numRuns: histories(2_000) },
    );
  });

  it("does not grow while it is acknowledged: a million messages, or a tenth of them, leave nothing behind", () => {
    const { client, executor } = connected();
    const count = histories(1_000_000) + 3;
    for (let i = 0; i < count; i++) {
      client.channel.send("#;");
      carry(client, executor, 1);
      if (i % 100 === 0) carry(executor, client, 1_000);
    }
    finish(client, executor);
    expect(executor.channel.received).toBe(count);
    const acked = count - (count % ACK_MESSAGES);
    expect([acked - 1, acked].map((n) => client.channel.canResume(n))).toEqual([false, true]);
    expect(client.channel.isFull).toBe(false);
  });

  it("acknowledges by bytes and by messages, and not each one", () => {
    const { client, executor } = connected();
    const acks = (): number => executor.end?.sent.length ?? 0;
    for (let i = 0; i < ACK_MESSAGES - 1; i++) client.say(10);
    carry(client, executor, 1_000);
    expect(acks()).toBe(0);
    client.say(10);
    carry(client, executor, 1);
    expect(acks()).toBe(1);
    client.say(ACK_BYTES - 1);
    carry(client, executor, 1);
    expect(acks()).toBe(1);
    client.say(10);
    carry(client, executor, 1);
    expect(acks()).toBe(2);
    finish(client, executor);
    expect(client.acked).toBe(client.said.length);
  });

  it("cannot go on from what is no longer kept, nor from what was never said", () => {
    const { client, executor } = connected();
    for (let i = 0; i < 100; i++) client.say(10);
    expect([0, 50, 100].map((n) => client.channel.canResume(n))).toEqual([true, true, true]);
    carry(client, executor, 70);
    carry(executor, client, 1);
    expect([0, 63, 64, 100].map((n) => client.channel.canResume(n))).toEqual([false, false, true, true]);
    for (const never of [101, -1, 1e15, Number.NaN]) expect(client.channel.canResume(never)).toBe(false);
  });

  it("believes no acknowledgement of what was not said, and none that is no number", () => {
    const { client } = connected();
    client.say(10);
    client.say(10);
    for (const text of ["x", "-1", "1.5e3x", ""]) {
      client.end?.events?.onMessage(Buffer.from(`{"method":"session/ack","params":{"received":${text}}}`));
    }
    expect(client.acked).toBeLessThan(2);
    client.end?.events?.onMessage(Buffer.from('{"method":"session/ack","params":{"received":999}}'));
    expect(client.said.length).toBe(2);
    expect(client.channel.canResume(2)).toBe(true);
    expect(client.channel.canResume(3)).toBe(false);
    client.say(10);
    expect(client.channel.canResume(3)).toBe(true);
  });

  it("reads an acknowledgement however it is written, and counts it as no message", () => {
    const { client } = connected();
    for (let i = 0; i < 4; i++) client.say(10);
    const spaced = '{ "jsonrpc": "2.0", "params": { "received": 3, "more": true }, "method": "session/ack" }';
    client.end?.events?.onMessage(Buffer.from(spaced));
    expect([client.acked, client.channel.received]).toEqual([3, 0]);
    // Its name in a message is not the message.
    client.end?.events?.onMessage(Buffer.from('{"method":"a","params":"session/ack","received":4};'));
    client.end?.events?.onMessage(Buffer.from('{"method":"a","params":["session/ack"]}'));
    expect([client.acked, client.channel.received]).toEqual([3, 2]);
  });

  it("numbers what is said, and knows what can have reached the peer", () => {
    const { client, executor } = connected();
    expect(client.channel.send("a;")).toBe(0);
    expect(client.channel.wasWritten(0)).toBe(true);
    cut([client, executor], [client]);
    expect(client.losses).toBe(1);
    expect(client.channel.isOpen).toBe(false);
    expect(client.channel.send("b;")).toBe(1);
    expect(client.channel.wasWritten(1)).toBe(false);
    expect(client.channel.wasWritten(0)).toBe(true);
    reconnect(client, executor, () => {});
    expect(client.channel.wasWritten(1)).toBe(true);
    finish(client, executor);
    expect(executor.heard).toEqual(["a;", "b;"]);
  });

  it("hears nothing of a socket that was replaced, its end included", () => {
    const { client, executor } = connected();
    executor.say(10);
    const before = client.end;
    reconnect(client, executor, () => {});
    before?.events?.onMessage(Buffer.from("#late;"));
    before?.events?.onClose("late");
    expect(client.losses).toBe(0);
    expect(client.channel.isOpen).toBe(true);
    finish(client, executor);
    expect(client.heard).toEqual(executor.said);
  });
});

describe("a plain conversation", () => {
  function plain(): Party {
    const party = new Party();
    party.end = new End();
    party.channel.openPlain(party.end);
    return party;
  }

  it("says and keeps nothing of its own: what looks like ours is the peer's", () => {
    const party = plain();
    for (let i = 0; i < 1_000; i++) party.end?.events?.onMessage(Buffer.from(`#${i};`));
    party.end?.events?.onMessage(Buffer.from('{"method":"session/ack","params":{"received":1}};'));
    expect(party.heard).toHaveLength(1_001);
    expect(party.end?.sent).toEqual([]);
    party.say(10);
    party.say(10);
    expect(party.channel.canResume(0)).toBe(false);
    expect(party.end?.sent).toHaveLength(2);
  });

  it("is full while its socket has too much to write", () => {
    const party = plain();
    const end = party.end as End;
    end.waiting = MAX_UNACKED_BYTES + 1;
    expect(party.channel.isFull).toBe(true);
    end.waiting = MAX_UNACKED_BYTES / 2 + 1;
    end.events?.onDrain();
    expect([party.channel.isFull, party.rooms]).toEqual([true, 0]);
    end.waiting = MAX_UNACKED_BYTES / 2;
    end.events?.onDrain();
    expect([party.channel.isFull, party.rooms]).toEqual([false, 1]);
  });

  it("is overrun by short messages as by long ones, once nobody takes them, and not after there was room", () => {
    for (const length of [2, 1 * MIB]) {
      const party = plain();
      const end = party.end as End;
      end.waiting = MAX_UNACKED_BYTES + 1;
      const most = Math.floor(MAX_BACKLOG_BYTES / (length + MESSAGE_COST_BYTES));
      const frame = "x".repeat(length);
      for (let i = 0; i < most; i++) party.channel.send(frame);
      expect(party.channel.isOverrun).toBe(false);
      party.channel.send(frame);
      expect(party.channel.isOverrun).toBe(true);
      end.waiting = 0;
      end.events?.onDrain();
      party.channel.send(frame);
      expect(party.channel.isOverrun).toBe(false);
    }
  });

  it("is not full on its next socket for what the one before it could not write", () => {
    const party = plain();
    (party.end as End).waiting = MAX_UNACKED_BYTES + 1;
    expect(party.channel.isFull).toBe(true);
    party.end?.events?.onClose("gone");
    party.channel.openPlain(new End());
    expect([party.channel.isFull, party.rooms]).toEqual([false, 1]);
  });

  it("ends with its socket, and what is said then reaches nobody", () => {
    const party = plain();
    party.end?.events?.onClose("gone");
    expect(party.losses).toBe(1);
    const number = party.channel.send("a;");
    expect(party.channel.wasWritten(number)).toBe(false);
  });
});
