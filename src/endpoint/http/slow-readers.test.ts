import { EventEmitter } from "node:events";
import type { ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import { HeldBytes } from "../../runtime/memory/held-bytes.js";
import { KIB, MIB } from "../../runtime/sizes.js";
import { Retained } from "../legacy/streams/retained.js";
import { ENDPOINT_LIMITS } from "../session/limits.js";
import { OpenBodies, type OpenBody } from "./open-bodies.js";
import { SlowReaders } from "./slow-readers.js";

class FakeResponse extends EventEmitter {
  writableLength = 0;
  writableEnded = true;
  timeoutMs = -1;
  socket: object | null = {};
  setTimeout(ms: number): void {
    this.timeoutMs = ms;
  }
}

function reader(waiting: number): FakeResponse & ServerResponse {
  const res = new FakeResponse();
  res.writableLength = waiting;
  return res as FakeResponse & ServerResponse;
}

describe("readers that are behind", () => {
  it("are counted while something waits for them, and no longer [bounded]", () => {
    const held = new HeldBytes(16 * MIB);
    const readers = new SlowReaders(held, ENDPOINT_LIMITS);
    const res = reader(4 * MIB);
    expect(readers.watch(res, "a")).toBe(true);
    expect([held.used, readers.size]).toEqual([4 * MIB, 1]);
    Object.assign(res, { writableLength: MIB });
    readers.sweep();
    expect(held.used).toBe(MIB);
    res.emit("close");
    expect([held.used, readers.size]).toEqual([0, 0]);
  });

  it("are counted from 4 KiB on, and all that wait behind another answer of their connection [bounded]", () => {
    const held = new HeldBytes(16 * MIB);
    const readers = new SlowReaders(held, ENDPOINT_LIMITS);
    const [short, longer, queued] = [reader(4 * KIB - 1), reader(4 * KIB), reader(10)];
    queued.socket = null;
    for (const res of [short, longer, queued]) expect(readers.watch(res, "a")).toBe(true);
    expect([readers.size, held.used]).toEqual([2, 4 * KIB + 4 * KIB + 2 * 10]);
    // Its turn has come, and it goes out.
    Object.assign(queued, { socket: {}, writableLength: 0 });
    readers.sweep();
    expect(held.used).toBe(4 * KIB);
    for (const res of [short, longer, queued]) res.emit("close");
    expect([readers.size, held.used]).toEqual([0, 0]);
  });

  it("are refused together what none of them would be refused alone, and others are not [bounded]", () => {
    const held = new HeldBytes(16 * MIB);
    const readers = new SlowReaders(held, ENDPOINT_LIMITS);
    const kept = Array.from({ length: 1_000 }, () => readers.watch(reader(60 * KIB), "a")).filter(Boolean);
    expect(kept.length).toBe(Math.floor((12 * MIB) / (60 * KIB)));
    expect(readers.watch(reader(60 * KIB), "b")).toBe(true);
  });

  it("must go where there is no room for what waits [bounded]", () => {
    const held = new HeldBytes(16 * MIB);
    const readers = new SlowReaders(held, ENDPOINT_LIMITS);
    expect(readers.watch(reader(10 * MIB), "a")).toBe(true);
    expect(readers.watch(reader(3 * MIB), "a")).toBe(false);
    expect(readers.watch(reader(3 * MIB), "b")).toBe(true);
  });

  it("may stand still for 10 s while memory is short, and for the usual time else [bounded]", () => {
    const held = new HeldBytes(16 * MIB);
    const readers = new SlowReaders(held, ENDPOINT_LIMITS);
    const res = reader(4 * MIB);
    readers.watch(res, "a");
    readers.sweep();
    expect(res.timeoutMs).toBe(ENDPOINT_LIMITS.stallMs);
    expect(held.holder("a").hold(9 * MIB)).toBe(false);
    readers.sweep();
    expect([readers.isShort, res.timeoutMs]).toEqual([true, 10_000]);
    readers.sweep();
    expect([readers.isShort, res.timeoutMs]).toEqual([false, ENDPOINT_LIMITS.stallMs]);
    held.holder("b").hold(8 * MIB);
    readers.sweep();
    expect([readers.isShort, res.timeoutMs]).toEqual([true, 10_000]);
  });

  it("of event streams may be silent again once they have caught up", () => {
    const held = new HeldBytes(MIB);
    const readers = new SlowReaders(held, ENDPOINT_LIMITS);
    const res = Object.assign(reader(700 * KIB), { writableEnded: false });
    readers.watch(res, "a");
    held.fits("a", MIB);
    readers.sweep();
    expect(res.timeoutMs).toBe(10_000);
    Object.assign(res, { writableLength: 0 });
    readers.sweep();
    expect(res.timeoutMs).toBe(0);
  });
});

describe("what is kept for streams", () => {
  it("gives way to what is needed now, the oldest first, and stays within its owner's share [bounded]", () => {
    const held = new HeldBytes(16 * MIB);
    const retained = new Retained(16 * MIB, held);
    const keep = (owner: string, bytes: number) => {
      const one = {
        owner,
        bytes,
        forget: () => {
          const had = one.bytes;
          one.bytes = 0;
          return had;
        },
      };
      retained.add(one, bytes);
      return one;
    };
    const first = keep("a", 4 * MIB);
    const second = keep("a", 4 * MIB);
    expect(held.holder("b").hold(9 * MIB)).toBe(true);
    expect([first.bytes, second.bytes, retained.bytes, held.used]).toEqual([0, 4 * MIB, 4 * MIB, 13 * MIB]);
    const third = keep("b", 4 * MIB);
    expect([second.bytes, third.bytes, retained.bytes]).toEqual([4 * MIB, 0, 4 * MIB]);
    const fourth = keep("a", 10 * MIB);
    expect([second.bytes, fourth.bytes, retained.bytes, held.used]).toEqual([0, 0, 0, 9 * MIB]);
    retained.release(keep("c", MIB));
    expect([retained.bytes, held.used, held.usedBy("c")]).toEqual([0, 9 * MIB, 0]);
  });
});

describe("bodies that are being read", () => {
  class FakeBody implements OpenBody {
    place = -1;
    size = 0;
    isGone = false;
    isDrained = false;
    windowFrom: number | undefined = undefined;
    windowSize = 0;
    ended: [number, number] | undefined;
    endSlow(bytes: number, ms: number): void {
      this.ended = [bytes, ms];
    }
  }

  it("are read to their end for nothing by 256 at a time, and by as many again when those have gone [bounded]", () => {
    const bodies = new OpenBodies();
    const all = Array.from({ length: 300 }, () => new FakeBody());
    for (const body of all) bodies.add(body);
    expect(all.filter((body) => bodies.drain(body)).length).toBe(256);
    for (const body of all.slice(0, 10)) bodies.delete(body);
    for (const body of all.slice(290)) bodies.delete(body);
    for (const body of all.slice(10, 15)) body.isGone = true;
    bodies.sweep(0);
    const more = Array.from({ length: 20 }, () => new FakeBody());
    for (const body of more) bodies.add(body);
    expect(more.filter((body) => bodies.drain(body)).length).toBe(15);
  });

  it("are ended where they bring less than 32 KiB a second over 10 s, and forgotten when they are gone [bounded]", () => {
    const bodies = new OpenBodies();
    const [slow, brisk, gone, late] = [new FakeBody(), new FakeBody(), new FakeBody(), new FakeBody()];
    for (const body of [slow, brisk, gone, late]) bodies.add(body);
    for (let second = 0; second <= 60; second++) {
      slow.size += 31 * KIB;
      brisk.size += 33 * KIB;
      if (second < 30) late.size += 40 * KIB;
      bodies.sweep(second * 1000);
      if (second === 5) gone.isGone = true;
    }
    expect(slow.ended).toEqual([310 * KIB, 10_000]);
    expect(brisk.ended).toBeUndefined();
    expect(late.ended?.[0]).toBeLessThan(320 * KIB);
    expect(bodies.size).toBe(1);
  });
});
