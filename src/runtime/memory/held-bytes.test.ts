import { describe, expect, it } from "vitest";
import { histories } from "../../../test/faults/length.js";
import { randomOf } from "../../../test/faults/random.js";
import { HELD_FOR_BODY } from "../../config/resolve.js";
import { MIB } from "../sizes.js";
import { DEFAULT_HELD_BYTES, HeldBytes, type Holder, SMALL_BYTES } from "./held-bytes.js";

describe("the bytes that are held", () => {
  it("leave every owner some room, are never over the limit nor below nothing, in any history [bounded]", () => {
    for (let seed = 0; seed < histories(3_000); seed++) {
      const random = randomOf(seed);
      const limit = Math.floor(MIB * (0.1 + random()));
      const held = new HeldBytes(limit);
      let spare = 0;
      if (seed % 2 === 0)
        held.onShortage((bytes) => {
          const given = Math.min(spare, bytes);
          if (given > 0) held.giveBack("kept", given);
          spare -= given;
        });
      const owners = ["a", "b", "server c", "server d"];
      const holders: { owner: string; holder: Holder; bytes: number }[] = [];
      const usedByServers = () => held.usedBy("server c") + held.usedBy("server d");
      for (let step = 0; step < 60; step++) {
        const owner = owners[Math.floor(random() * owners.length)] as string;
        const size = Math.floor(random() ** 3 * limit * 1.1);
        const one = holders[Math.floor(random() * holders.length)];
        const dice = random();
        if (dice < 0.1 && held.take("kept", size)) spare += size;
        else if (dice < 0.4 || one === undefined) {
          const holder = owner.startsWith("server ") ? held.serverHolder(owner.slice(7)) : held.holder(owner);
          holders.push({ owner, holder, bytes: 0 });
        } else if (dice < 0.8) {
          const before = held.used;
          const others = spare;
          if (one.holder.hold(size)) one.bytes = size;
          else {
            // It is refused for want of room alone, and nothing but what can be spared has gone.
            const more = size - one.bytes;
            const isServer = one.owner.startsWith("server ");
            const own = held.usedBy(one.owner) + more;
            const isFull =
              own > limit * 0.75 - 1 ||
              own > 3 * (limit - held.used - more) - 3 ||
              (isServer && own > 3 * (limit * 0.75 - usedByServers() - more) - 6);
            if (!isFull || before - held.used !== others - spare) expect({ seed, step }).toBe("refused for nothing");
          }
        } else {
          one.holder.release();
          one.bytes = 0;
        }
        const sum = holders.reduce((total, { bytes }) => total + bytes, spare);
        const unfair = [...owners, "kept"].find((name) => held.usedBy(name) < 0 || held.usedBy(name) > limit * 0.75);
        // One comparison for each step: expect() costs far more than what is tested.
        if (held.used !== sum || sum >= limit || unfair !== undefined || usedByServers() > limit * 0.75) {
          expect({ seed, step, used: held.used, limit, unfair }).toEqual({ seed, step, used: sum, limit });
        }
      }
      // Whatever was taken, a newcomer has three quarters of what is left, and so has a new server of what servers may.
      const free = limit - held.used;
      const left = Math.min(Math.floor(limit * 0.75) - usedByServers(), free);
      const newcomer = held.holder("e");
      const fits = newcomer.hold(Math.max(0, Math.floor(free * 0.75) - 1));
      newcomer.release();
      const fitsServer = held.serverHolder("f").hold(Math.max(0, Math.floor(left * 0.75) - 3));
      if (!fits || !fitsServer) expect({ seed, fits, fitsServer, free, left }).toBe("no room for a newcomer");
      for (const { holder } of holders) holder.release();
    }
  });

  it("come back to nothing, also where more owners came than are remembered", () => {
    const held = new HeldBytes(MIB);
    const holders = Array.from({ length: 3_000 }, (_, n) => ({ owner: `p${n}`, holder: held.holder(`p${n}`) }));
    for (const { holder } of holders) expect(holder.hold(100)).toBe(true);
    for (const { holder } of holders) expect(holder.hold(150)).toBe(true);
    expect([held.used, held.usedBy("p0"), held.usedBy("p2999")]).toEqual([450_000, 150, 150]);
    for (const { holder } of holders) holder.release();
    // One that was forgotten meanwhile is counted as any other.
    for (const { holder } of holders.slice(0, 10)) holder.hold(7);
    expect([held.used, held.usedBy("p0"), held.usedBy("p9"), held.usedBy("p10")]).toEqual([70, 7, 7, 0]);
  });

  it("leave a quarter to others, whatever one owner wants, and each some to the next [bounded]", () => {
    const held = new HeldBytes(100 * MIB);
    const greedy = Array.from({ length: 200 }, () => held.holder("greedy"));
    for (const holder of greedy) holder.hold(MIB);
    expect(held.usedBy("greedy")).toBe(75 * MIB);
    expect(held.refusals).toBe(125);
    expect(held.holder("other").hold(19 * MIB)).toBe(false);
    expect(held.holder("other").hold(18 * MIB)).toBe(true);
    expect(held.holder("third").hold(6 * MIB)).toBe(false);
    expect(held.holder("third").hold(5 * MIB)).toBe(true);
    expect(held.holder("fourth").hold(MIB)).toBe(true);
    expect(greedy[199]?.hold(1)).toBe(false);
    greedy[0]?.release();
    expect(greedy[199]?.hold(1)).toBe(false);
  });

  it("leave a quarter to principals, whatever all servers want, and some to another server [bounded]", () => {
    const held = new HeldBytes(DEFAULT_HELD_BYTES);
    expect(held.serverHolder("a").hold(64 * MIB)).toBe(true);
    expect(held.serverHolder("a").hold(16 * MIB)).toBe(false);
    expect(held.serverHolder("b").hold(24 * MIB)).toBe(true);
    expect(held.serverHolder("c").hold(8 * MIB)).toBe(false);
    expect(held.serverHolder("c").hold(6 * MIB)).toBe(true);
    expect(held.holder("a").hold(24 * MIB)).toBe(true);
    expect(held.holder("a").hold(8 * MIB)).toBe(false);
    expect(held.holder("b").hold(4 * MIB)).toBe(true);
  });

  it("are counted however small they are [bounded]", () => {
    const held = new HeldBytes(MIB);
    const holders = Array.from({ length: 20_000 }, () => held.holder("a"));
    expect(holders.filter((holder) => holder.hold(100)).length).toBe(Math.floor((0.75 * MIB) / 100));
    expect(held.used).toBe(held.usedBy("a"));
    // A small reply does not ask: it is counted where it waits.
    expect([held.fits("a", SMALL_BYTES - 1), held.fits("a", SMALL_BYTES)]).toEqual([true, false]);
    for (const holder of holders) holder.release();
    expect([held.used, held.usedBy("a")]).toEqual([0, 0]);
  });

  it("have room for the largest result and the largest body of one principal, side by side", () => {
    const held = new HeldBytes(DEFAULT_HELD_BYTES);
    expect(held.most).toBe(96 * MIB);
    // Of which the config warns.
    expect(held.largestBody).toBe(DEFAULT_HELD_BYTES / HELD_FOR_BODY);
    expect(held.holder("a").hold(64 * MIB)).toBe(true);
    expect(held.holder("a").hold(32 * MIB)).toBe(true);
  });

  it("are half of the limit at most where they are small, of which one principal has three quarters [bounded]", () => {
    const held = new HeldBytes(DEFAULT_HELD_BYTES);
    const half = MIB / 2;
    const small = Array.from({ length: 200 }, () => held.holder("a"));
    const kept = small.filter((holder) => holder.hold(half));
    expect([kept.length, held.used, held.refusals]).toEqual([96, 48 * MIB, 104]);
    // The other half is there for what is large, and some of this one for the next.
    const large = held.holder("a");
    expect(large.hold(16 * MIB)).toBe(true);
    expect(held.holder("b").hold(half)).toBe(true);
    // What grows past the small gives its room there back, and takes it again when it shrinks.
    for (const holder of kept.slice(0, 2)) expect(holder.hold(MIB)).toBe(true);
    expect(small[199]?.hold(half)).toBe(true);
    expect(large.hold(half)).toBe(true);
    expect(held.holder("a").hold(half)).toBe(false);
    for (const holder of [...small, large]) holder.release();
    expect([held.usedBy("a"), held.holder("a").hold(half)]).toEqual([0, true]);
    const narrow = new HeldBytes(64 * MIB);
    expect(small.filter(() => narrow.holder("a").hold(half)).length).toBe(96);
  });

  it("are told once when they are an eighth of the limit, and once when they are a sixteenth again [bounded]", () => {
    const told: boolean[] = [];
    const held = new HeldBytes(16 * MIB, { onMuchHeld: (isMuch) => void told.push(isMuch), onTurnover: () => {} });
    const holder = held.holder("a");
    for (const [size, calls] of [
      [1, 0],
      [2, 1],
      [3, 1],
      [1, 1],
      [2, 1],
      [0.9, 2],
      [1.9, 2],
      [2, 3],
      [0, 4],
    ] as const) {
      holder.hold(size * MIB);
      expect([size, told.length]).toEqual([size, calls]);
    }
    expect(told).toEqual([true, false, true, false]);
  });

  it("are told of each 16 MiB that came or were refused while there is much of them, and of none before [bounded]", () => {
    let turnovers = 0;
    const held = new HeldBytes(16 * MIB, { onMuchHeld: () => {}, onTurnover: () => void turnovers++ });
    const come = () => {
      for (let i = 0; i < 64; i++) {
        const holder = held.holder("a");
        holder.hold(MIB);
        holder.release();
      }
    };
    come();
    expect(turnovers).toBe(0);
    const kept = held.holder("a");
    expect(kept.hold(10 * MIB)).toBe(true);
    come();
    expect(turnovers).toBe(4);
    // The refused ones count as well: they were read.
    for (let i = 0; i < 16; i++) expect(held.holder("a").hold(8 * MIB)).toBe(false);
    expect(turnovers).toBe(12);
    kept.release();
    come();
    expect(turnovers).toBe(12);
  });
});
