// What the store does at its bounds and beside what is not its own, over a virtual engine and in virtual time.

import { randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import { randomOf } from "../../../test/faults/random.js";
import { VirtualEngine, VirtualTime } from "../../../test/fixtures/store/virtual-stream.js";
import type { Store } from "../../contracts/store.js";
import { createTextVault } from "../../runtime/seal.js";
import { decodeCommit, encodeCommit } from "./commit.js";
import { openCommitStore } from "./store.js";

const CALM = { lost: 0, doubled: 0, late: 0 };
/** Nothing arrives, and nothing is answered. */
const SILENT = { lost: 1, doubled: 0, late: 0 };
const MINUTE = 60_000;

function virtual(layout: "shared" | "partition") {
  const time = new VirtualTime();
  const engine = new VirtualEngine(time, randomOf(1), CALM, layout === "shared");
  /** What it comes to, with the virtual time that it takes. */
  const done = async <T>(work: Promise<T>): Promise<T> => {
    let isOver = false;
    const over = () => {
      isOver = true;
    };
    work.then(over, over);
    await time.run(() => isOver, time.now + 10 * MINUTE);
    if (!isOver) throw new Error("it took more than ten minutes");
    return work;
  };
  const pass = (ms: number) => done(time.sleep(ms));
  const open = (line = engine.connect()): Promise<Store> => {
    return done(openCommitStore({ stream: line, pace: line.pace, layout, prefix: "s.", where: "the engine" }));
  };
  return { time, engine, done, pass, open };
}

const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => "written",
    (error: { code?: string }) => error.code,
  );

describe("a store of commits", () => {
  it("refuses a batch whose entries would have the numbers of the next one's [ack-is-durable]", async () => {
    const { open, done } = virtual("partition");
    const store = await open();
    const log = store.log("l");
    const append = (count: number, word: string) =>
      store.batch((batch) => {
        for (let i = 0; i < count; i++) batch.append(log, `"${word}${i}"`);
      });
    expect(await done(codeOf(append(5_000, "a")))).toBe("invalid");
    await done(append(4_096, "b"));
    await done(append(2_000, "c"));
    expect([...log.entries()]).toHaveLength(6_096);
  });

  it("opens nothing that it wrote itself, whether the stream tells it before the answer or behind it", async () => {
    const { engine, done } = virtual("partition");
    const line = engine.connect();
    const vault = createTextVault(randomBytes(32));
    let opened = 0;
    const counting = {
      seal: vault.seal,
      open: (purpose: string, sealed: string) => {
        opened++;
        return vault.open(purpose, sealed);
      },
    };
    const rest = { layout: "partition", prefix: "s.", where: "the engine" } as const;
    const store = await done(openCommitStore({ ...rest, stream: line, pace: line.pace, vault: counting }));
    for (let n = 0; n < 50; n++) await done(store.map("m").put(`k${n}`, n));
    expect([...store.map("m").entries()]).toHaveLength(50);
    expect(opened).toBe(0);
  });

  it("removes what nothing needs when the engine answers again, however it was when that was due [bounded]", async () => {
    const { engine, open, done, pass } = virtual("partition");
    const line = engine.connect();
    const remove = line.remove.bind(line);
    line.remove = async () => false;
    const store = await open(line);
    const map = store.map<number>("m");
    for (let i = 0; i < 20; i++) await done(map.put("k", i));
    await pass(MINUTE);
    expect(engine.stored.size).toBeGreaterThan(20);
    line.remove = remove;
    await done(map.put("k", 20));
    await pass(MINUTE);
    expect(engine.stored.size).toBeLessThan(4);
    expect(map.get("k")).toBe(20);
  });

  it("keeps a deletion for those who have not been told of it, whatever the date is at a gateway [compare-and-set]", async () => {
    const { engine, open, done, pass } = virtual("shared");
    // The gateways are an hour ahead of the engine.
    engine.aheadMs = -60 * MINUTE;
    const store = await open();
    const map = store.map<number>("m");
    await done(map.put("k", 1));
    await done(map.delete("k"));
    const writes = async (minutes: number) => {
      for (let i = 0; i < minutes; i++) {
        await pass(MINUTE);
        await done(map.put("other", i));
      }
    };
    await writes(8);
    expect(engine.stored.size, "the deletion and the other key").toBe(2);
    await writes(8);
    expect(engine.stored.size, "the other key alone").toBe(1);
  });

  it("says of a key that holds what is no record of ours that nothing was written, and tries no more [bounded]", async () => {
    const { engine, open, done } = virtual("shared");
    const store = await open();
    const map = store.shared<number>("m");
    await done(map.put("k", 1));
    const [{ subject } = { subject: "" }] = engine.history;
    engine.publish({ subject, id: "theirs", body: "no record", expected: undefined });
    expect(await done(codeOf(map.put("k", 2)))).toBe("corrupt");
    expect(engine.last(subject)?.body).toBe("no record");
  });

  it("knows of a write that was refused that it is not there, however far its gateway is behind the others [compare-and-set]", async () => {
    const { engine, open, done, pass } = virtual("shared");
    const line = engine.connect();
    let isBehind = false;
    const follow = line.follow.bind(line);
    line.follow = (prefix, follower) => {
      const message: typeof follower.message = (told) => void (isBehind || follower.message(told));
      return follow(prefix, { ...follower, message });
    };
    const [behind, other] = [(await open(line)).shared<number>("m"), (await open()).shared<number>("m")];
    await done(other.put("k", 0));
    await pass(1_000);
    const revision = behind.read("k")?.revision ?? 0;
    isBehind = true;
    const overtaken = async () => {
      for (let n = 1; n <= 20; n++) await done(other.put("k", n));
    };
    await overtaken();
    expect(await done(behind.update("k", 100, revision))).toBeUndefined();
    await overtaken();
    expect(await done(codeOf(behind.put("k", 200)))).toBe("written");
    await pass(1_000);
    expect(other.get("k")).toBe(200);
  });

  it("takes for a sign of life what is new, and neither what is told again nor a stream that begins anew [engine-away]", async () => {
    const { engine, done, pass } = virtual("shared");
    const line = engine.connect();
    const followers: Parameters<typeof line.follow>[1][] = [];
    const follow = line.follow.bind(line);
    line.follow = (prefix, follower) => {
      followers.push(follower);
      return follow(prefix, follower);
    };
    let signs = 0;
    const told = () => void signs++;
    const rest = { layout: "shared", prefix: "s.", where: "The engine", told } as const;
    const store = await done(openCommitStore({ ...rest, stream: line, pace: line.pace }));
    const map = store.map<number>("m");
    for (let n = 1; n <= 3; n++) await done(map.put("k", n));
    await pass(1_000);
    expect(signs).toBe(3);
    const [follower] = followers;
    const [last] = [...engine.stored.values()].slice(-1);
    if (follower === undefined || last === undefined) throw new Error("Nobody follows.");
    const { subject, body } = last;
    // The engine was wiped, and others write to it as if it had always been so.
    follower.restarted(1);
    follower.message({ subject, sequence: 1, id: "theirs", body, atMs: engine.time.now });
    expect(signs).toBe(3);
    follower.message({ subject, sequence: last.sequence + 1, id: "theirs too", body, atMs: engine.time.now });
    expect(signs).toBe(4);
  });

  it("says of an engine that has lost what it acknowledged what to do, and does not ask it as fast as it answers [bounded] [unknown-is-said]", async () => {
    const { engine, done } = virtual("shared");
    const line = engine.connect();
    const warned: string[] = [];
    const warn = (text: string) => void warned.push(text);
    const rest = { layout: "shared", prefix: "s.", where: "The engine", warn } as const;
    const store = await done(openCommitStore({ ...rest, stream: line, pace: line.pace }));
    const map = store.map<number>("m");
    await done(map.put("k", 1));
    const [before] = [...engine.stored.values()];
    await done(map.put("k", 2));
    // The node that leads now never had the second one.
    let tries = 0;
    line.publish = async () => {
      tries++;
      return { kind: "conflict" };
    };
    line.last = async () => ({ message: before });
    for (let n = 0; n < 2; n++) expect(await done(codeOf(map.put("k", 3)))).toBe("away");
    expect(tries).toBeLessThan(1_000);
    expect(warned).toHaveLength(1);
    expect(warned[0]).toContain("The engine has lost what it had acknowledged");
    expect(map.get("k")).toBe(2);
  });

  it("calls a write unknown that got no answer before a newer version wrote on the same key [compare-and-set]", async () => {
    const { engine, open, done, time } = virtual("shared");
    const store = await open();
    const map = store.map<number>("m");
    await done(map.put("k", 1));
    const [{ subject } = { subject: "" }] = engine.history;
    const publish = engine.publish.bind(engine);
    engine.publish = (message) => {
      // It is stored, and its answer is lost.
      engine.publish = publish;
      publish(message);
      engine.weather = SILENT;
      time.at(1_000, () => {
        publish({ subject, id: "newer", body: '{"v":2}\n', expected: undefined });
        engine.forget();
        engine.weather = CALM;
      });
      return { kind: "silent" };
    };
    const outcome = codeOf(map.put("k", 2));
    expect(await done(outcome)).toBe("unknown");
    // What is known not to be written is called by its name.
    expect(await done(codeOf(map.put("k", 3)))).toBe("newer");
  });

  it("does not show the value of before where a newer version has written, tells so, and holds the record until it can be read [engine-versions]", async () => {
    const { engine, open, done, pass } = virtual("shared");
    const store = await open();
    const map = store.shared<number>("m");
    const told: [string, number | undefined][] = [];
    map.watch((key, value) => told.push([key, value]));
    await done(map.put("k", 1));
    const [{ subject } = { subject: "" }] = engine.history;
    engine.publish({ subject, id: "newer", body: '{"v":2}\n', expected: undefined });
    await done(map.put("other", 1));
    await pass(1_000);
    expect(map.get("k")).toBeUndefined();
    expect([...map.entries()]).toEqual([["other", 1]]);
    expect(told).toContainEqual(["k", undefined]);
    expect(store.stats().held).toBe(1);
    expect(await done(codeOf(map.put("k", 2)))).toBe("newer");
    expect(engine.last(subject)?.body).toBe('{"v":2}\n');
    // The newer one is rolled back, and writes as it did.
    const body = '{"v":1,"id":"old","after":[],"writes":[["m","m","k",1]]}\n3';
    engine.publish({ subject, id: "old", body, expected: undefined });
    await pass(1_000);
    expect(map.get("k")).toBe(3);
    expect(store.stats().held).toBe(0);
    expect(await done(codeOf(map.put("k", 4)))).toBe("written");
  });

  it("keeps values from whoever has not the key, and takes none that were not sealed [engine-sealed]", async () => {
    const vault = createTextVault(randomBytes(32));
    const commit = { id: "a.1", after: [], writes: [{ kind: "m", name: "m", key: "k", json: '"secret"' }] } as const;
    const body = encodeCommit(commit, vault);
    expect(body).not.toContain("secret");
    expect(decodeCommit(body, vault)).toEqual(commit);
    expect(decodeCommit(body, createTextVault(randomBytes(32)))).toBe("sealed");
    expect(decodeCommit(body)).toBe("sealed");
    expect(decodeCommit(encodeCommit(commit), vault)).toBe("foreign");
    // A sealed value is good in its own commit alone.
    expect(decodeCommit(body.replace('"a.1"', '"a.2"'), vault)).toBe("sealed");
  });

  it("lets nothing wait for a silent engine longer than twice the time of a try [engine-away]", async () => {
    const { engine, open, done, time } = virtual("shared");
    const store = await open();
    const map = store.map<number>("m");
    engine.weather = SILENT;
    const began = time.now;
    // Of these 64 are on their way at a time.
    const outcomes = await done(Promise.all(Array.from({ length: 500 }, (_, i) => codeOf(map.put(`k${i}`, i)))));
    expect(new Set(outcomes)).toEqual(new Set(["unknown", "away"]));
    expect(outcomes.filter((outcome) => outcome === "unknown")).toHaveLength(64);
    expect(time.now - began).toBeLessThan(55_000);
  });
});
