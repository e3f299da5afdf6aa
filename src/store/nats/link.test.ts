import fc from "fast-check";
import { expect, it } from "vitest";
import { histories } from "../../../test/faults/length.js";
import { EngineLink } from "./link.js";

type Event =
  | { kind: "dial" }
  | { kind: "connected" }
  | { kind: "lost" }
  | { kind: "refused" }
  | { kind: "full" }
  | { kind: "wrote" }
  | { kind: "pass"; ms: number };

const event: fc.Arbitrary<Event> = fc.oneof(
  fc.constantFrom<Event>({ kind: "dial" }, { kind: "connected" }, { kind: "lost" }, { kind: "refused" }),
  fc.constantFrom<Event>({ kind: "full" }, { kind: "wrote" }),
  fc.nat({ max: 5_000 }).map<Event>((ms) => ({ kind: "pass", ms })),
);

it("[engine-away] a lost engine is tried again after a wait that is never nothing and never long, whatever happens", () => {
  fc.assert(
    fc.property(
      fc.array(event, { maxLength: 60 }),
      fc.double({ min: 0, max: 0.999, noNaN: true }),
      (events, random) => {
        let now = 0;
        const link = new EngineLink(now, () => random);
        for (const one of events) {
          if (one.kind === "pass") now += one.ms;
          else if (one.kind === "dial") link.dialling(3, now);
          else if (one.kind === "connected") link.connected("a:4222", "2.9.10", now);
          else if (one.kind === "lost") link.lost("It went.", now);
          else if (one.kind === "full") link.wrote("No room.", now);
          else if (one.kind === "wrote") link.wrote(undefined, now);
          else link.refused("It said no.", now);
          const { state, nextTryMs, sinceMs, problem } = link.status;
          if (one.kind === "dial" && (link.waitMs < 50 || link.waitMs > 60_000))
            throw new Error("a wait out of bounds");
          if (one.kind === "dial" && state === "away" && link.waitMs > 2_000)
            throw new Error("a long wait for a restart");
          if ((nextTryMs === undefined) !== (state === "connected")) throw new Error("nobody knows when it is tried");
          if ((problem !== undefined) !== (state === "away" || state === "refused")) throw new Error("no reason");
          if (link.status.full !== undefined && state !== "connected") throw new Error("full though nobody knows");
          if (one.kind === "wrote" && link.status.full !== undefined) throw new Error("full though it took a write");
          if (sinceMs > now) throw new Error("since a time to come");
        }
      },
    ),
    { numRuns: histories(2_000) },
  );
});

it("[engine-away] each node is dialled once at once, and the round after that waits longer", () => {
  const link = new EngineLink(0, () => 0.999);
  link.connected("a:4222", "2.9.10", 0);
  link.lost("It went.", 1_000);
  const waits = Array.from({ length: 9 }, () => {
    link.dialling(3, 1_000);
    return Math.round(link.waitMs / 10) * 10;
  });
  expect(waits).toEqual([100, 100, 100, 200, 200, 200, 400, 400, 400]);
  expect(link.status).toMatchObject({ state: "away", sinceMs: 1_000, node: "a:4222", problem: "It went." });
});

it("[engine-away] a refusal is the reason that is told, also when the closed socket is seen after it, and is tried seldom", () => {
  const link = new EngineLink(0, () => 0.999);
  link.connected("a:4222", "2.9.10", 0);
  link.refused("The password is wrong.", 10);
  link.lost("It went.", 11);
  for (let n = 0; n < 30; n++) link.dialling(1, 20);
  expect(link.status).toMatchObject({ state: "refused", sinceMs: 10, problem: "The password is wrong." });
  expect(link.waitMs).toBeGreaterThan(30_000);
  link.connected("b:4222", "2.10.27", 99);
  expect(link.status).toMatchObject({ state: "connected", node: "b:4222", problem: undefined, nextTryMs: undefined });
  expect(link.waitMs).toBe(0);
});

it("[engine-away] is mute where it is connected and tells nothing for longer than an election, until it tells again or refuses for want of room", () => {
  const link = new EngineLink(0, () => 0.5);
  let now = 1_000;
  const pass = (ms: number) => {
    for (const endMs = now + ms; now < endMs; link.look(now)) now += 1_000;
  };
  link.connected("a:4222", "2.9.10", now);
  pass(20_000);
  link.heard(now);
  pass(24_000);
  expect(link.status.mute).toBeUndefined();
  pass(1_000);
  expect(link.status).toMatchObject({ state: "connected", mute: { sinceMs: 21_000 } });
  link.heard(now);
  expect(link.status.mute).toBeUndefined();
  pass(30_000);
  link.wrote("No room.", now);
  expect(link.status).toMatchObject({ full: "No room.", mute: undefined });
  pass(30_000);
  link.lost("It went.", now);
  expect(link.status.mute).toBeUndefined();
  pass(30_000);
  expect(link.status.mute).toBeUndefined();
  link.connected("a:4222", "2.9.10", now);
  // Whoever stood still finds at once what came meanwhile.
  now += 60_000;
  link.look(now);
  expect(link.status.mute).toBeUndefined();
  now += 1_000;
  link.look(now);
  expect(link.status.mute).toBeDefined();
});

it("what is closed stays closed", () => {
  const link = new EngineLink(0, () => 0.5);
  link.closed(undefined, 5);
  link.connected("a:4222", "2.9.10", 6);
  link.lost("It went.", 7);
  expect(link.status).toMatchObject({ state: "closed", sinceMs: 5 });
});
