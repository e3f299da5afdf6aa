import { randomBytes } from "node:crypto";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { histories } from "../../test/faults/length.js";
import { createSealer, createSteadySealer, openKey } from "./seal.js";
import { StateDirError } from "./state-dir.js";

const sealer = createSealer(randomBytes(32));

describe("a sealer", () => {
  it("gives back what was sealed, in safe characters", () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 4 }), fc.string(), (json, purpose) => {
        const value = JSON.parse(json);
        const text = sealer.seal(purpose, value);
        expect(text).toMatch(/^[A-Za-z0-9_-]+$/);
        expect(sealer.unseal(purpose, text)).toEqual(value);
      }),
      { numRuns: histories(500) },
    );
  });

  it("never seals twice alike", () => {
    const seen = new Set(Array.from({ length: 1000 }, () => sealer.seal("p", 1)));
    expect(seen.size).toBe(1000);
  });

  it("that is steady seals alike, each purpose and each value otherwise, and opens what it sealed alone", () => {
    const key = randomBytes(32);
    const steady = createSteadySealer(key);
    fc.assert(
      fc.property(fc.json(), fc.json(), (one, other) => {
        const [value, different] = [JSON.parse(one), JSON.parse(other)] as unknown[];
        const text = steady.seal("task", value);
        expect(createSteadySealer(key).seal("task", value)).toBe(text);
        expect(steady.unseal("task", text)).toEqual(value);
        expect(steady.seal("list", value)).not.toBe(text);
        if (JSON.stringify(value) !== JSON.stringify(different)) expect(steady.seal("task", different)).not.toBe(text);
        expect(createSealer(key).unseal("task", text)).toBeUndefined();
      }),
      { numRuns: histories(300) },
    );
  });

  it("opens for its own purpose and key only", () => {
    const text = sealer.seal("session", { id: 1 });
    expect(sealer.unseal("session", text)).toEqual({ id: 1 });
    expect(sealer.unseal("cursor", text)).toBeUndefined();
    expect(sealer.unseal("", text)).toBeUndefined();
    expect(createSealer(randomBytes(32)).unseal("session", text)).toBeUndefined();
  });

  it("does not open after any flip of a bit, nor with anything added or taken away", () => {
    for (const value of [1, "ab", { principal: "default", version: "2025-11-25", capabilities: { roots: {} } }]) {
      const text = sealer.seal("p", value);
      const bytes = Buffer.from(text, "latin1");
      for (let bit = 0; bit < bytes.length * 8; bit++) {
        const flipped = Buffer.from(bytes);
        flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7));
        expect(sealer.unseal("p", flipped.toString("latin1"))).toBeUndefined();
      }
      for (let at = 0; at < text.length; at++) {
        expect(sealer.unseal("p", text.slice(0, at) + text.slice(at + 1))).toBeUndefined();
      }
      for (let at = 0; at <= text.length; at++) {
        for (const extra of ["A", "=", "\n", " ", "+"]) {
          expect(sealer.unseal("p", text.slice(0, at) + extra + text.slice(at))).toBeUndefined();
        }
      }
    }
  });

  it("opens no garbage, and does not throw", () => {
    fc.assert(
      fc.property(fc.string(), (text) => sealer.unseal("p", text) === undefined),
      { numRuns: histories(2000) },
    );
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (b) => {
        return sealer.unseal("p", Buffer.from(b).toString("base64url")) === undefined;
      }),
      { numRuns: histories(2000) },
    );
    expect(sealer.unseal("p", "A".repeat(1_000_000))).toBeUndefined();
  });

  it("refuses to make what it would not open", () => {
    expect(() => sealer.seal("p", "x".repeat(6000))).toThrow(/Too large/);
    expect(() => sealer.seal("p", undefined)).toThrow(/JSON/);
    expect(() => createSealer(Buffer.alloc(16))).toThrow(/32 bytes/);
  });
});

describe("the key file", () => {
  let dir: string;
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), "toolway-seal-"));
  });
  afterEach(() => rmSync(dir, { recursive: true }));

  it("is made once, for us alone, and opens what was sealed before a restart", () => {
    const path = join(dir, "key");
    const text = createSealer(openKey(path)).seal("p", { a: 1 });
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(statSync(path).size).toBe(32);
    expect(readdirSync(dir)).toEqual(["key"]);
    chmodSync(path, 0o644);
    expect(createSealer(openKey(path)).unseal("p", text)).toEqual({ a: 1 });
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  it("of a wrong length is refused, not replaced", () => {
    const path = join(dir, "key");
    writeFileSync(path, "short");
    expect(() => createSealer(openKey(path))).toThrow(/has 5 bytes instead of 32.*remove it/);
    expect(readFileSync(path, "utf8")).toBe("short");
  });

  it.each([
    ["that was cut off", (path: string) => writeFileSync(path, ""), "has 0 bytes instead of 32"],
    ["that is a folder", (path: string) => mkdirSync(path), "cannot be read (EISDIR)"],
  ])("%s is told as an error of the state directory, with what to do and what that costs", (_what, damage, why) => {
    const path = join(dir, "key");
    damage(path);
    let thrown: unknown;
    try {
      openKey(path);
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(StateDirError);
    const { message } = thrown as StateDirError;
    expect(message).toContain(`The key file ${path} ${why}.`);
    expect(message).toMatch(/Restore it from a backup, or remove it.*sessions.*tasks.*logins.*inputs/);
  });
});
