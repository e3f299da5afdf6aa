import { createHash, createHmac } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { histories } from "../../../test/faults/length.js";
import { DoorSessions, type SessionKept } from "./sessions.js";

const HOUR = 60 * 60_000;

describe("a key that a page makes of its secret", () => {
  it("opens what the secret does, until the door is another [secrets-unseen]", () => {
    const keyAt = (opening: string) => {
      const hash = createHash("sha256").update("secret").digest("base64url");
      return createHmac("sha256", hash).update(`toolway-door-key:${opening}`).digest("base64url");
    };
    const sessions = new DoorSessions("first");
    sessions.addCode("code", "viewer", 0);
    const redeemed = sessions.redeem("code", "a", "secret", 1, 1_000);
    expect(sessions.find(keyAt("first"), 1_000)).toMatchObject({ id: "a", power: "viewer" });
    expect(sessions.find(keyAt("second"), 1_000)).toBeUndefined();
    const after = new DoorSessions("second", "kept" in redeemed ? [["a", redeemed.kept]] : []);
    expect(after.find(keyAt("first"), 1_000)).toBeUndefined();
    expect(after.find(keyAt("second"), 1_000)).toMatchObject({ id: "a" });
    after.end("a");
    expect(after.find(keyAt("second"), 1_000)).toBeUndefined();
  });
});

describe("a link", () => {
  it("is good once, and gives what it was made for", () => {
    const sessions = new DoorSessions("first");
    sessions.addCode("code", "viewer", 0);
    expect(sessions.redeem("code", "a", "secret", 1, 1_000)).toMatchObject({ kept: { power: "viewer" } });
    expect(sessions.find("secret", 1_000)).toMatchObject({ id: "a", power: "viewer" });
    expect(sessions.redeem("code", "b", "other", 2, 1_000)).toEqual({ refused: "unknown" });
    expect(sessions.find("other", 1_000)).toBeUndefined();
  });

  it("is over after a minute", () => {
    const sessions = new DoorSessions("first");
    sessions.addCode("code", "operator", 0);
    expect(sessions.isWanted(59_999)).toBe(true);
    expect(sessions.redeem("code", "a", "secret", 60_000, 0)).toEqual({ refused: "unknown" });
    expect(sessions.isWanted(60_000)).toBe(false);
  });

  const sixteen = () => {
    const sessions = new DoorSessions("first");
    for (let n = 0; n < 16; n++) {
      sessions.addCode(`code ${n}`, "operator", 0);
      expect(sessions.redeem(`code ${n}`, `id ${n}`, `secret ${n}`, 0, n)).toHaveProperty("kept");
      sessions.pageOpened(`id ${n}`);
    }
    return sessions;
  };

  it("gives no session where 16 have a page open, and is used up by that [bounded]", () => {
    const sessions = sixteen();
    sessions.addCode("one more", "operator", 0);
    expect(sessions.redeem("one more", "x", "x", 0, 0)).toEqual({ refused: "full" });
    sessions.end("id 3");
    expect(sessions.redeem("one more", "x", "x", 0, 0)).toEqual({ refused: "unknown" });
  });
});

describe("a session", () => {
  it("gives way to a new one where 16 are there and its pages have gone, the longest unseen first [bounded]", () => {
    const sessions = new DoorSessions("first");
    for (let n = 0; n < 40; n++) {
      sessions.addCode(`code ${n}`, "operator", 0);
      const redeemed = sessions.redeem(`code ${n}`, `id ${n}`, `secret ${n}`, 0, n);
      expect(redeemed).toHaveProperty("kept");
      // The first has its page open all the time; whoever opened the others closed them at once.
      sessions.pageOpened(`id ${n}`);
      if (n > 0) sessions.pageClosed(`id ${n}`, n);
      if (n >= 16) expect(redeemed).toMatchObject({ ended: `id ${n - 15}` });
      expect(sessions.size).toBeLessThanOrEqual(16);
    }
    expect(sessions.find("secret 0", 40)).toBeDefined();
    expect(sessions.find("secret 20", 40)).toBeUndefined();
  });

  it("goes on after a gateway that was killed hours after its page was opened [restart-unseen]", () => {
    const sessions = open();
    sessions.pageOpened("a");
    const kept = new Map<string, SessionKept>();
    let writes = 0;
    for (let ms = 0; ms < 5 * HOUR; ms += 5_000) {
      for (const [id, record] of sessions.seenLately(ms)) {
        kept.set(id, record);
        writes++;
      }
    }
    expect(new DoorSessions("second", kept).find("secret", 5 * HOUR)).toBeDefined();
    // Every ten minutes, and not with every look.
    expect(writes).toBeLessThanOrEqual(30);
    sessions.pageClosed("a", 5 * HOUR);
    expect(sessions.seenLately(6 * HOUR)).toEqual([]);
  });

  const open = () => {
    const sessions = new DoorSessions("first");
    sessions.addCode("code", "operator", 0);
    sessions.redeem("code", "a", "secret", 0, 0);
    return sessions;
  };

  it("ends an hour after its last page has gone, and goes on while one is open", () => {
    const sessions = open();
    sessions.pageOpened("a");
    sessions.pageOpened("a");
    expect(sessions.sweep(5 * HOUR)).toEqual([]);
    sessions.pageClosed("a", 5 * HOUR);
    expect(sessions.sweep(7 * HOUR)).toEqual([]);
    sessions.pageClosed("a", 7 * HOUR);
    expect(sessions.find("secret", 8 * HOUR - 1)).toBeDefined();
    expect(sessions.find("secret", 8 * HOUR)).toBeUndefined();
    expect(sessions.sweep(8 * HOUR)).toEqual(["a"]);
  });

  it("ends after twelve hours, whoever looks", () => {
    const sessions = open();
    sessions.pageOpened("a");
    expect(sessions.find("secret", 12 * HOUR - 1)).toBeDefined();
    expect(sessions.find("secret", 12 * HOUR)).toBeUndefined();
    expect(sessions.prove("a", "nonce", 12 * HOUR)).toBeUndefined();
  });

  it("goes on after a restart with what was kept of it, which is no secret [secrets-unseen]", () => {
    const sessions = open();
    sessions.pageOpened("a");
    const kept = sessions.pageClosed("a", HOUR);
    expect(JSON.stringify(kept)).not.toContain("secret");
    const after = new DoorSessions("second", kept === undefined ? [] : [["a", kept]]);
    expect(after.find("secret", HOUR + 1)).toMatchObject({ id: "a", power: "operator" });
    expect(after.find("secret", 2 * HOUR)).toBeUndefined();
  });

  it("is proved by what the page can make of its secret, and by nothing less", () => {
    const hash = createHash("sha256").update("secret").digest("base64url");
    const wanted = createHmac("sha256", hash).update("toolway-door:nonce").digest("base64url");
    expect(open().prove("a", "nonce", 1)).toBe(wanted);
    expect(open().prove("b", "nonce", 1)).toBeUndefined();
  });

  it("is never another's, never there without a link, and never more than 16 are, in 2,000 histories [bounded]", () => {
    const act = fc.record({
      kind: fc.constantFrom("code", "trade", "open", "close", "sweep", "end", "endAll"),
      n: fc.nat({ max: 24 }),
      ms: fc.constantFrom(1, 1_000, 61_000, HOUR, 13 * HOUR),
    });
    fc.assert(
      fc.property(fc.array(act, { maxLength: 60 }), (acts) => {
        const sessions = new DoorSessions("first");
        const made = new Set<string>();
        let now = 0;
        for (const { kind, n, ms } of acts) {
          now += ms;
          if (kind === "code") {
            sessions.addCode(`c${n}`, n % 2 === 0 ? "viewer" : "operator", now);
            made.add(`c${n}`);
          } else if (kind === "trade") {
            const got = sessions.redeem(`c${n}`, `i${n}-${now}`, `s${n}-${now}`, now, now);
            if ("kept" in got) {
              expect(made.delete(`c${n}`)).toBe(true);
              expect(sessions.find(`s${n}-${now}`, now)).toMatchObject({ power: n % 2 === 0 ? "viewer" : "operator" });
            }
          } else if (kind === "endAll") {
            sessions.endAll();
            made.clear();
            expect(sessions.isWanted(now)).toBe(false);
          } else if (kind === "sweep") {
            for (const id of sessions.sweep(now)) expect(sessions.ids).not.toContain(id);
          } else {
            const id = sessions.ids[n % Math.max(1, sessions.size)];
            if (id !== undefined && kind === "open") sessions.pageOpened(id);
            if (id !== undefined && kind === "end") sessions.end(id);
          }
          expect(sessions.size).toBeLessThanOrEqual(16);
          expect(sessions.find("c1", now)).toBeUndefined();
        }
      }),
      { numRuns: histories(2_000) },
    );
  });
});
