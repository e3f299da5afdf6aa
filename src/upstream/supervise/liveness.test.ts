import { describe, expect, it } from "vitest";
import { ServerError } from "../link/own-call.js";
import { Idleness, Liveness, type Pingable } from "./liveness.js";

it("an idle connection is pinged when nothing was heard for its time, once each time", () => {
  const idleness = new Idleness({ keepAliveMs: undefined, pingMs: 100 }, 0);
  expect(idleness.look(0, 0, 0, false)).toBe("nothing");
  expect(idleness.look(99, 0, 0, false)).toBe("nothing");
  expect(idleness.look(100, 0, 0, false)).toBe("ping");
  expect(idleness.look(150, 0, 0, false)).toBe("nothing");
  expect(idleness.look(180, 0, 1, false)).toBe("nothing");
  expect(idleness.look(279, 0, 1, false)).toBe("nothing");
  expect(idleness.look(280, 0, 1, false)).toBe("ping");
  // A busy server may be slow to answer: that is for the deadlines of its calls.
  expect(idleness.look(1_000, 0, 1, true)).toBe("nothing");
});

it("an idle connection is closed when nobody used it for its time, whatever the server says by itself", () => {
  const idleness = new Idleness({ keepAliveMs: 100, pingMs: undefined }, 0);
  expect(idleness.look(0, 1, 0, false)).toBe("nothing");
  expect(idleness.look(90, 2, 5, false)).toBe("nothing");
  expect(idleness.look(150, 2, 9, true)).toBe("nothing");
  expect(idleness.look(249, 2, 20, false)).toBe("nothing");
  expect(idleness.look(250, 2, 21, false)).toBe("rest");
});

describe("a server that is pinged", () => {
  const WAIT_MS = 5;
  const pinged = (ping: Pingable["ping"], received = 0): Pingable & { received: number } => ({ received, ping });
  const silent = (signal: AbortSignal) =>
    new Promise<void>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error)));

  it("lives where it answers, with an error too", async () => {
    const pulse = new Liveness(WAIT_MS);
    expect(
      await pulse.isGone(
        pinged(async () => {}),
        false,
      ),
    ).toBe(false);
    // It is known to answer now, so silence counts.
    expect(await pulse.isGone(pinged(silent), true)).toBe(true);
    const other = new Liveness(WAIT_MS);
    const refusing = pinged(silent);
    refusing.ping = async () => {
      refusing.received++;
      throw new ServerError(-32601, "What is a ping?");
    };
    expect(await other.isGone(refusing, false)).toBe(false);
    expect(await other.isGone(pinged(silent), true)).toBe(true);
  });

  it("is gone where nothing comes, but not while it sends anything else", async () => {
    expect(await new Liveness(WAIT_MS).isGone(pinged(silent), false)).toBe(true);
    const busy = pinged(silent);
    busy.ping = (signal) => {
      busy.received++;
      return silent(signal);
    };
    expect(await new Liveness(WAIT_MS).isGone(busy, false)).toBe(false);
  });

  it("is not given up by silence alone where it has never answered a ping", async () => {
    expect(await new Liveness(WAIT_MS).isGone(pinged(silent), true)).toBe(false);
  });

  it("is pinged once at a time, and all who ask hear of it", async () => {
    const pulse = new Liveness(WAIT_MS);
    let pings = 0;
    const counted = pinged((signal) => {
      pings++;
      return silent(signal);
    });
    const all = [pulse.isGone(counted, false), pulse.isGone(counted, false), pulse.isGone(counted, true)];
    expect(await Promise.all(all)).toEqual([true, true, false]);
    expect(pings).toBe(1);
    expect(await pulse.isGone(counted, false)).toBe(true);
    expect(pings).toBe(2);
  });
});
