import { createHash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { histories } from "../../test/faults/length.js";
import { seeded } from "../../test/faults/random.js";
import { until } from "../../test/fixtures/wait.js";
import type { Principal } from "../contracts/caller.js";
import type { Store } from "../contracts/store.js";
import { WORKER_INBOX } from "../mailbox/wire/address.js";
import { MAX_ID_CHARS } from "../mailbox/wire/limits.js";
import { openStore } from "../store/local/store.js";
import { MemoryMap } from "../store/memory-map.js";
import { MAX_SENDER_ID_CHARS, TokenError } from "./labels.js";
import { OLD_SECRET_MS, parseExpires, TokenBook, type TokenRecord } from "./tokens.js";

const NOW = Date.UTC(2026, 0, 15, 12);
let dir: string;
let store: Store;
let tokenPath: string;

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), "toolway-tokens-"));
  store = await openStore({ dir: join(dir, "store") });
  tokenPath = join(dir, "token");
});
afterEach(async () => {
  await store.close();
  rmSync(dir, { recursive: true });
});

function book(fromEnvironment?: string): TokenBook {
  return new TokenBook({ map: store.shared<TokenRecord>("tokens"), tokenPath, fromEnvironment });
}

describe("tokens", () => {
  it("that came a moment ago are refused once they are revoked, rotated away or expired", async () => {
    const tokens = book();
    const revoked = await tokens.create({ id: "revoked", role: "reader" }, NOW);
    const rotated = await tokens.create({ id: "rotated", role: "reader" }, NOW);
    const expired = await tokens.create({ id: "expired", role: "reader", expires: NOW + 1_000 }, NOW);
    for (let i = 0; i < 3; i++) {
      for (const token of [revoked, rotated, expired]) expect(tokens.authenticate(token, NOW)).toBeDefined();
    }
    await tokens.revoke("revoked");
    const { oldUntil } = await tokens.rotate("rotated", NOW);
    expect(tokens.authenticate(revoked, NOW)).toBeUndefined();
    expect(tokens.authenticate(rotated, oldUntil - 1)).toBeDefined();
    expect(tokens.authenticate(rotated, oldUntil)).toBeUndefined();
    expect(tokens.authenticate(expired, NOW + 1_000)).toBeUndefined();
  });

  it("are looked up by their digests, those that were proved before too: how long it takes tells nothing of them [agent-8]", async () => {
    const tokens = book();
    const good = await tokens.create({ id: "ci", role: "reader" }, NOW);
    const near = `${good.slice(0, -1)}${good.endsWith("A") ? "B" : "A"}`;
    expect(tokens.authenticate(good, NOW)?.id).toBe("ci");
    const asked: unknown[] = [];
    const spies = [
      ...(["get", "has"] as const).map((name) => vi.spyOn(Map.prototype, name)),
      ...(["has"] as const).map((name) => vi.spyOn(Set.prototype, name)),
    ];
    try {
      expect([tokens.authenticate(good, NOW)?.id, tokens.authenticate(near, NOW)]).toEqual(["ci", undefined]);
      for (const spy of spies) asked.push(...spy.mock.calls.map(([key]) => key));
    } finally {
      for (const spy of spies) spy.mockRestore();
    }
    for (const token of [good, near]) {
      expect(asked).toContain(createHash("sha256").update(token).digest().toString("latin1"));
      expect(asked.filter((key) => typeof key === "string" && key.includes(token.slice(3, 20)))).toEqual([]);
    }
  });

  it("are shown once, stored as hashes, and still known after a restart [agent-8]", async () => {
    const token = await book().create({ id: "ci", role: "reader" }, NOW);
    expect(token).toMatch(/^tw_[A-Za-z0-9_-]{43}$/);
    const dump: unknown[] = [];
    for await (const entry of store.dump()) dump.push(entry);
    expect(dump).toHaveLength(1);
    expect(JSON.stringify(dump)).not.toContain(token.slice(3));
    const again = book();
    expect(again.authenticate(token, NOW)).toEqual({ id: "ci", role: "reader" });
    expect(again.authenticate(`${token}x`, NOW)).toBeUndefined();
    expect(again.authenticate(token.slice(0, -1), NOW)).toBeUndefined();
    expect(again.authenticate("", NOW)).toBeUndefined();
    expect(again.authenticate("x".repeat(100_000), NOW)).toBeUndefined();
    expect(again.list()).toEqual([
      { id: "default", role: "default", source: "file" },
      { id: "ci", role: "reader", source: "created", created: NOW },
    ]);
  });

  it("are refused for an id that has one", async () => {
    const tokens = book();
    const both = await Promise.allSettled([
      tokens.create({ id: "ci", role: "a" }, NOW),
      tokens.create({ id: "ci", role: "b" }, NOW),
    ]);
    expect(both.map((r) => r.status)).toEqual(["fulfilled", "rejected"]);
    await expect(tokens.create({ id: "ci", role: "a" }, NOW)).rejects.toMatchObject({
      code: "exists",
      message: expect.stringContaining("toolway token revoke ci"),
    });
    await expect(tokens.create({ id: "default", role: "a" }, NOW)).rejects.toMatchObject({ code: "exists" });
  });

  it("end when they are revoked, at once and after a restart, and listeners are told", async () => {
    const tokens = book();
    let told = 0;
    const off = tokens.onRevoked(() => void told++);
    const token = await tokens.create({ id: "ci", role: "a" }, NOW);
    const done = tokens.revoke("ci");
    expect(tokens.authenticate(token, NOW)).toBeUndefined();
    expect(told).toBe(1);
    await done;
    expect(book().authenticate(token, NOW)).toBeUndefined();
    await expect(tokens.revoke("ci")).rejects.toMatchObject({ code: "not-found" });
    await expect(tokens.revoke("default")).rejects.toMatchObject({ code: "invalid" });
    const next = await tokens.create({ id: "ci", role: "b" }, NOW);
    expect(next).not.toBe(token);
    expect(tokens.authenticate(next, NOW)).toEqual({ id: "ci", role: "b" });
    off();
    await tokens.revoke("ci");
    expect(told).toBe(1);
  });

  it("stay current for whoever came in by them until they end, whatever the clock does, in any history", async () => {
    for (let seed = 1; seed <= histories(200); seed++) {
      const random = seeded(seed);
      const tokens = new TokenBook({ map: new MemoryMap<TokenRecord>("tokens"), tokenPath: undefined });
      let nowMs = NOW;
      /** Everybody who ever came in, and what ends the token that they came in by. */
      const held: { principal: Principal; expires: number; revoked: boolean }[] = [];
      for (let step = 0; step < 40; step++) {
        const id = `p${random.int(4)}`;
        const mine = held.filter((one) => one.principal.id === id && !one.revoked);
        if (random.chance(0.3)) nowMs += (random.int(2001) - 1000) * 10;
        else if (mine.length > 0 && random.chance(0.4)) {
          await tokens.revoke(id);
          for (const one of mine) one.revoked = true;
        } else if (mine.length === 0) {
          const expires = random.chance(0.2) ? undefined : nowMs + 1 + random.int(5000);
          const token = await tokens.create({ id, role: "r", expires }, nowMs);
          const principal = tokens.authenticate(token, nowMs);
          if (principal === undefined) throw new Error(`seed ${seed}: a new token lets nobody in`);
          held.push({ principal, expires: expires ?? Number.POSITIVE_INFINITY, revoked: false });
        }
        for (const one of held) {
          const wanted = !one.revoked && nowMs < one.expires;
          expect([seed, step, tokens.isCurrent(one.principal, nowMs)]).toEqual([seed, step, wanted]);
        }
      }
    }
  });

  it("that are rotated have a new secret, and the old one for ten minutes more, over restarts too [token-ends]", async () => {
    const tokens = book();
    const first = await tokens.create({ id: "ci", role: "reader", maySendTo: ["studio"] }, NOW);
    const came = tokens.authenticate(first, NOW);
    const { token: second, oldUntil } = await tokens.rotate("ci", NOW + 5);
    expect(oldUntil).toBe(NOW + 5 + OLD_SECRET_MS);
    expect(second).not.toBe(first);
    const who = { id: "ci", role: "reader", maySendTo: ["studio"] };
    for (const one of [tokens, book()]) {
      expect(one.authenticate(second, oldUntil - 1)).toEqual(who);
      expect(one.authenticate(first, oldUntil - 1)).toEqual(who);
      expect(one.list()[1]).toEqual({ ...who, source: "created", created: NOW, oldUntil });
      expect(one.authenticate(first, oldUntil)).toBeUndefined();
      // A clock that was set back before the rotation gives the old secret no time.
      expect(one.authenticate(first, NOW + 4)).toBeUndefined();
      expect(one.authenticate(second, oldUntil)).toEqual(who);
    }
    // Whoever came in by the old secret stays in until that ends, and is told apart from who came by the new one.
    expect(came !== undefined && tokens.isCurrent(came, oldUntil - 1)).toBe(true);
    expect(came !== undefined && tokens.isCurrent(came, oldUntil)).toBe(false);
    const dump: unknown[] = [];
    for await (const entry of store.dump()) dump.push(entry);
    expect(JSON.stringify(dump)).not.toContain(second.slice(3));
  });

  it("that were rotated never get an old secret back that has ended, whatever the clock says later [token-ends]", async () => {
    const tokens = book();
    const first = await tokens.create({ id: "ci", role: "a" }, NOW);
    const { token: second } = await tokens.rotate("ci", NOW);
    tokens.dropOldSecrets(NOW + OLD_SECRET_MS);
    expect(tokens.authenticate(first, NOW + 1)).toBeUndefined();
    expect(tokens.list()[1]).not.toHaveProperty("oldUntil");
    await until("it to be written", () => store.shared<TokenRecord>("tokens").get("ci")?.old === undefined);
    const again = book();
    expect(again.authenticate(first, NOW + 1)).toBeUndefined();
    expect(again.authenticate(second, NOW + 1)).toEqual({ id: "ci", role: "a" });
  });

  it("are not rotated where nobody could use the new secret, and revoking ends both", async () => {
    const tokens = book();
    await expect(tokens.rotate("ci", NOW)).rejects.toMatchObject({ code: "not-found" });
    await expect(tokens.rotate("default", NOW)).rejects.toThrow(/remove the file "token"/);
    const first = await tokens.create({ id: "ci", role: "a", expires: NOW + 1000 }, NOW);
    await expect(tokens.rotate("ci", NOW + 1000)).rejects.toThrow(/has expired/);
    const { token: second, oldUntil } = await tokens.rotate("ci", NOW);
    expect(oldUntil).toBe(NOW + 1000);
    await tokens.revoke("ci");
    for (const one of [tokens, book()]) {
      expect(one.authenticate(first, NOW)).toBeUndefined();
      expect(one.authenticate(second, NOW)).toBeUndefined();
    }
  });

  it("have the secrets that a simple model says, whatever is rotated, revoked and restarted, with any clock", async () => {
    for (let seed = 1; seed <= histories(300); seed++) {
      const random = seeded(seed);
      const map = new MemoryMap<TokenRecord>("tokens");
      let tokens = new TokenBook({ map, tokenPath: undefined });
      let nowMs = NOW;
      /** Every secret that there ever was: since when and until when it is good, and whether it is over for good. */
      const secrets: { secret: string; since: number; until: number; over: boolean }[] = [];
      const look = () => {
        tokens.dropOldSecrets(nowMs);
        for (const one of secrets) one.over ||= one.since > 0 && !(nowMs >= one.since && nowMs < one.until);
      };
      for (let step = 0; step < 40; step++) {
        const current = secrets.find(({ since, over }) => since === 0 && !over);
        const roll = random.int(10);
        if (roll < 3) nowMs += (random.int(2001) - 700) * 1000;
        else if (roll < 4 && current !== undefined) {
          await tokens.revoke("ci");
          for (const one of secrets) one.over = true;
        } else if (roll < 5) tokens = new TokenBook({ map, tokenPath: undefined });
        else if (current === undefined) {
          secrets.push({
            secret: await tokens.create({ id: "ci", role: "r" }, nowMs),
            since: 0,
            until: 0,
            over: false,
          });
        } else {
          look();
          const { token } = await tokens.rotate("ci", nowMs);
          current.since = nowMs;
          current.until = nowMs + OLD_SECRET_MS;
          secrets.push({ secret: token, since: 0, until: 0, over: false });
          const old = secrets.filter(({ since, over }) => since > 0 && !over);
          for (const one of old.slice(0, -4)) one.over = true;
        }
        look();
        // What is written in passing is there in the next turn.
        await new Promise((done) => setImmediate(done));
        for (const { secret, over } of secrets) {
          const isIn = tokens.authenticate(secret, nowMs) !== undefined;
          if (isIn === over) throw new Error(`seed ${seed}, step ${step}: a secret is ${isIn ? "good" : "no good"}`);
        }
      }
    }
  });

  it("of executors are good for the names that they were made for, also after a restart", async () => {
    const tokens = book();
    const made = await tokens.create({ id: "site", role: "executor", names: ["lab", "annex", "lab"] }, NOW);
    const plain = await tokens.create({ id: "office", role: "executor" }, NOW);
    for (const one of [tokens, book()]) {
      expect(one.authenticate(made, NOW)).toEqual({ id: "site", role: "executor", names: ["lab", "annex"] });
      expect(one.authenticate(plain, NOW)).toEqual({ id: "office", role: "executor" });
      expect(one.list().find(({ id }) => id === "site")?.names).toEqual(["lab", "annex"]);
    }
    await expect(tokens.create({ id: "a", role: "reader", names: ["lab"] }, NOW)).rejects.toThrow(/"executor"/);
    await expect(tokens.create({ id: "b", role: "executor", names: [] }, NOW)).rejects.toThrow(/no name/);
    await expect(tokens.create({ id: "c", role: "executor", names: ["x\ny"] }, NOW)).rejects.toThrow(/control/);
    for (const odd of ["*", "lab*", "a/b", "lab?", "a\\b", "{a}"]) {
      const token = tokens.create({ id: "d", role: "executor", names: [odd] }, NOW);
      await expect(token, odd).rejects.toThrow(
        /made of letters, digits, .* There are no patterns: name each executor\./,
      );
      await expect(tokens.create({ id: odd, role: "executor" }, NOW), odd).rejects.toThrow(/There are no patterns/);
    }
    await tokens.create({ id: "e", role: "executor", names: ["büro 2", "lab-1.eu", "a_b"] }, NOW);
  });

  it("end when they expire", async () => {
    const tokens = book();
    const token = await tokens.create({ id: "ci", role: "a", expires: NOW + 1000 }, NOW);
    expect(tokens.authenticate(token, NOW + 999)).toEqual({ id: "ci", role: "a" });
    expect(tokens.authenticate(token, NOW + 1000)).toBeUndefined();
    expect(book().authenticate(token, NOW + 1000)).toBeUndefined();
    await expect(tokens.create({ id: "old", role: "a", expires: NOW }, NOW)).rejects.toMatchObject({ code: "invalid" });
  });

  it("have ids and roles that can be logged", async () => {
    const tokens = book();
    for (const bad of ["", "  ", "a\nb", "a\u0000", "\u007f", "x".repeat(129), "\ud800"]) {
      await expect(tokens.create({ id: bad, role: "r" }, NOW)).rejects.toMatchObject({ code: "invalid" });
      await expect(tokens.create({ id: "i", role: bad }, NOW)).rejects.toMatchObject({ code: "invalid" });
    }
    for (const bad of ["executor ", " executor", "\u00a0executor"]) {
      const error = /must not begin or end with a space: ".*" is not "executor"\.$/;
      await expect(tokens.create({ id: "i", role: bad }, NOW)).rejects.toThrow(error);
      await expect(tokens.create({ id: bad, role: "r" }, NOW)).rejects.toThrow(error);
    }
    await expect(tokens.create({ id: "i", role: "exec\u200butor" }, NOW)).rejects.toThrow(
      /hidden .*exec\\u\{200B\}utor/,
    );
    // What follows it is a mailbox's own.
    await expect(tokens.create({ id: "a#b", role: "r" }, NOW)).rejects.toThrow(/The id of a token has no "#" in it/);
    await expect(tokens.create({ id: "🦊".repeat(129), role: "r" }, NOW)).rejects.toThrow(/128 characters, not 129/);
    for (const good of ["a*b>.c", "Zoë", "x".repeat(128), "🦊".repeat(128), "__proto__"]) {
      const token = await tokens.create({ id: good, role: good }, NOW);
      expect(tokens.authenticate(token, NOW)).toEqual({ id: good, role: good });
    }
  });

  it("that send to mailboxes have ids that leave room for the address of their inbox [bounded] [told-why]", async () => {
    expect(MAX_SENDER_ID_CHARS + WORKER_INBOX.length + 16).toBe(MAX_ID_CHARS);
    const tokens = book();
    const make = (id: string, to?: readonly string[]) => tokens.create({ id, role: "dev", maySendTo: to }, NOW);
    await make("w".repeat(107), ["studio"]);
    await expect(make("w".repeat(108), ["studio"])).rejects.toThrow("may have 107 characters, not 108");
    await make("w".repeat(128));
  });

  it("are not handed out when the store cannot keep them", async () => {
    const tokens = book();
    await store.close();
    await expect(tokens.create({ id: "ci", role: "a" }, NOW)).rejects.toMatchObject({ code: "closed" });
    expect(tokens.list()).toHaveLength(1);
  });
});

describe("the default token", () => {
  it("is made at the first start, for us alone, and kept", () => {
    const first = book();
    expect(first.isNew).toBe(true);
    expect(statSync(tokenPath).mode & 0o777).toBe(0o600);
    expect(readFileSync(tokenPath, "utf8")).toBe(`${first.defaultToken()}\n`);
    expect(readdirSync(dir).sort()).toEqual(["store", "token"]);
    chmodSync(tokenPath, 0o644);
    const second = book();
    expect(second.isNew).toBe(false);
    expect(second.defaultToken()).toBe(first.defaultToken());
    expect(statSync(tokenPath).mode & 0o777).toBe(0o600);
    expect(second.authenticate(first.defaultToken(), NOW)).toEqual({ id: "default", role: "default" });
  });

  it("comes from the environment when set, and is then not written", () => {
    const tokens = book("correct-horse-battery");
    expect(tokens.isNew).toBe(false);
    expect(existsSync(tokenPath)).toBe(false);
    expect(tokens.authenticate("correct-horse-battery", NOW)).toEqual({ id: "default", role: "default" });
    expect(tokens.list()[0]?.source).toBe("environment");
    expect(book("").isNew).toBe(true);
  });

  it("is refused when weak, without being shown", () => {
    const weak = (text: string) => {
      try {
        book(text);
      } catch (error) {
        expect(error).toBeInstanceOf(TokenError);
        expect(String(error)).not.toContain(text);
        return String(error);
      }
      throw new Error("was taken");
    };
    expect(weak("hunter2")).toMatch(/TOOLWAY_TOKEN has 7 characters.*openssl rand -base64 32/);
    expect(weak("correct horse battery")).toMatch(/cannot be sent in a header/);
    expect(weak("k".repeat(513))).toMatch(/513 characters/);
    writeFileSync(tokenPath, "short\n");
    expect(() => book()).toThrow(/the file .*token has 5 characters/);
  });

  it("can live in memory alone", () => {
    const tokens = new TokenBook({ map: store.shared<TokenRecord>("tokens"), tokenPath: undefined });
    expect(tokens.isNew).toBe(true);
    expect(tokens.authenticate(tokens.defaultToken(), NOW)?.id).toBe("default");
  });
});

describe("--expires", () => {
  it("takes spans and dates", () => {
    expect(parseExpires("30d", NOW)).toBe(NOW + 30 * 86_400_000);
    expect(parseExpires(" 12h ", NOW)).toBe(NOW + 12 * 3_600_000);
    expect(parseExpires("45m", NOW)).toBe(NOW + 45 * 60_000);
    expect(parseExpires("2w", NOW)).toBe(NOW + 14 * 86_400_000);
    expect(parseExpires("2030-01-31", NOW)).toBe(Date.UTC(2030, 0, 31));
    expect(parseExpires("2030-01-31T10:00:00Z", NOW)).toBe(Date.UTC(2030, 0, 31, 10));
    expect(parseExpires("2030-01-31T10:00+02:00", NOW)).toBe(Date.UTC(2030, 0, 31, 8));
  });

  it.each(["", "30", "d", "-5d", "1.5h", "30 d", "soon", "2030-02-31", "2030-13-01", "2030", "01/02/2030", "30D"])(
    "refuses %j and says what it takes",
    (text) => {
      expect(() => parseExpires(text, NOW)).toThrow(/Write 45m, 12h, 30d or 2w, or a date such as/);
    },
  );

  it("refuses the past and the very far", () => {
    expect(() => parseExpires("2020-01-01", NOW)).toThrow(/not in the future/);
    expect(() => parseExpires("0d", NOW)).toThrow(/not in the future/);
    expect(() => parseExpires("99999999d", NOW)).toThrow(/100 years/);
  });
});
