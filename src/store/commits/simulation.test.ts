// The store's contract over a virtual network with losses, doubles, delays and crashes, against a simple model: the history
// of each key as the engine stored it.

import { describe, expect, it } from "vitest";
import { full, histories } from "../../../test/faults/length.js";
import { randomOf } from "../../../test/faults/random.js";
import { VirtualEngine, VirtualTime } from "../../../test/fixtures/store/virtual-stream.js";
import type { Store } from "../../contracts/store.js";
import { decodeCommit } from "./commit.js";
import { openCommitStore } from "./store.js";

const SEEDS = histories(2_000, 20_000);
/** Of the full runs, on a busy machine. */
const LIMIT_MS = 600_000;
const CALM = { lost: 0, doubled: 0, late: 0 };

interface Attempt {
  readonly key: string;
  /** Unique: what is written tells who wrote it. */
  readonly value: string;
  /** The value that it was to replace; null: none; undefined: whatever there was. */
  readonly on: string | null | undefined;
  outcome: "written" | "refused" | "unknown" | "away" | "dead" | undefined;
}

interface Tally {
  written: number;
  refused: number;
  unknown: number;
}

function outcomeOf(error: unknown): "unknown" | "away" {
  const code = (error as { code?: string }).code;
  if (code === "unknown" || code === "away") return code;
  throw error;
}

async function sharedRun(seed: number, tally: Tally): Promise<void> {
  const random = randomOf(seed);
  const time = new VirtualTime();
  const weather = { lost: random() * 0.3, doubled: random() * 0.3, late: random() * 0.2 };
  const engine = new VirtualEngine(time, random, CALM, true);
  const attempts: Attempt[] = [];
  const keys = ["a", "b", "c"].slice(0, 1 + Math.floor(random() * 3));
  let failure: unknown;
  let running = 0;
  let count = 0;
  const open = (line: ReturnType<VirtualEngine["connect"]>) =>
    openCommitStore({
      stream: line,
      pace: line.pace,
      layout: "shared",
      prefix: "s.",
      where: "the engine",
    });
  const gateway = async (name: string) => {
    for (let life = 0, left = 4; left > 0; life++) {
      const line = engine.connect();
      const store = await open(line);
      const map = store.shared<string>("m");
      const seen = new Map<string, number>();
      const isMortal = random() < 0.3;
      for (; left > 0; left--) {
        await time.sleep(random() * 300);
        engine.weather = weather;
        if (random() < 0.05) engine.forget();
        line.isAway = random() < 0.05;
        const key = keys[Math.floor(random() * keys.length)] as string;
        const now = map.read(key);
        // What is read never goes back.
        if (now !== undefined && now.revision < (seen.get(key) ?? 0)) throw new Error(`${key} went back`);
        seen.set(key, now?.revision ?? seen.get(key) ?? 0);
        const how = random();
        const value = `${name}${life}.${++count}`;
        const on = how < 0.3 ? undefined : now === undefined ? null : now.value;
        const attempt: Attempt = { key, value, on, outcome: undefined };
        attempts.push(attempt);
        const written =
          on === undefined
            ? map.put(key, value).then(() => 1)
            : now === undefined
              ? map.create(key, value)
              : map.update(key, value, now.revision);
        const settled = written.then(
          (revision) => {
            attempt.outcome ??= revision === undefined ? "refused" : "written";
            // What was written can be read, or something that came after it.
            const read = map.read(key);
            if (attempt.outcome === "written" && on !== undefined && (read?.revision ?? 0) < (revision ?? 0))
              throw new Error("not read");
          },
          (error: unknown) => {
            attempt.outcome ??= outcomeOf(error);
          },
        );
        if (isMortal && random() < 0.2) {
          // Killed with its write on the way.
          await time.sleep(random() * 3_000);
          attempt.outcome ??= "dead";
          line.isDead = true;
          left--;
          break;
        }
        await settled;
      }
    }
  };
  for (const name of ["x", "y", "z"]) {
    running++;
    gateway(name)
      .catch((error: unknown) => {
        failure ??= error;
      })
      .finally(() => {
        running--;
      });
  }
  await time.run(() => running === 0 || failure !== undefined, 3_600_000);
  if (failure !== undefined) throw failure;
  expect(running, "all gateways came to an end").toBe(0);
  // All that is still on its way arrives.
  engine.weather = CALM;
  await time.run(() => false, time.now + 60_000);
  const histories = new Map<string, string[]>();
  for (const { body } of engine.history) {
    const commit = decodeCommit(body);
    if (typeof commit === "string") throw new Error("no commit");
    for (const { key, json } of commit.writes) {
      const history = histories.get(String(key)) ?? [];
      histories.set(String(key), [...history, JSON.parse(json ?? "null") as string]);
    }
  }
  for (const { key, value, on, outcome } of attempts) {
    const history = histories.get(key) ?? [];
    const times = history.filter((one) => one === value).length;
    const what = `${value} was ${outcome} and stored ${times} times`;
    if (times > 1) throw new Error(what);
    if (outcome === "written" && times !== 1) throw new Error(what);
    if ((outcome === "refused" || outcome === "away") && times !== 0) throw new Error(what);
    if (outcome === undefined) throw new Error(`${value} has no end`);
    if (times === 1 && on !== undefined) {
      const before = history[history.indexOf(value) - 1] ?? null;
      if (before !== on) throw new Error(`${value} was to replace ${on} and replaced ${before}`);
    }
    if (outcome !== "away" && outcome !== "dead") tally[outcome]++;
  }
  let last: Store | undefined;
  void open(engine.connect()).then((store) => {
    last = store;
  });
  await time.run(() => last !== undefined, time.now + 60_000);
  for (const key of keys) expect(last?.map("m").get(key)).toBe(histories.get(key)?.at(-1));
}

/** Owners of one partition, one after the other, the former not always knowing; batches of three that belong together. */
async function partitionRun(seed: number, tally: { committed: number; fenced: number }): Promise<void> {
  const random = randomOf(seed * 7 + 3);
  const time = new VirtualTime();
  const engine = new VirtualEngine(time, random, CALM, false);
  const weather = { lost: random() * 0.25, doubled: random() * 0.3, late: random() * 0.2 };
  const committed = new Set<number>();
  const removed = new Set<number>();
  const doubtful = new Set<number>();
  let failure: unknown;
  let batches = 0;
  let done = false;
  const open = async (): Promise<Store> => {
    const line = engine.connect();
    const parts = { stream: line, pace: line.pace, prefix: "p.", where: "partition 1" };
    try {
      return await openCommitStore({ ...parts, layout: "partition" });
    } catch (error) {
      outcomeOf(error);
      return open();
    }
  };
  const check = (store: Store) => {
    const one = new Map(store.map<number>("one").entries());
    const two = new Map(store.map<number>("two").entries());
    const log = new Set([...store.log("log").entries()].map(([, json]) => Number(json)));
    for (const n of new Set([...one.values(), ...two.values(), ...log])) {
      const places = [one.has(String(n)), two.has(String(n)), log.has(n)].filter(Boolean).length;
      if (places !== 3) throw new Error(`batch ${n} is there in ${places} of 3 places`);
      if (removed.has(n)) throw new Error(`batch ${n} came back`);
    }
    for (const n of committed)
      if (!one.has(String(n)) && !removed.has(n) && !doubtful.has(n)) throw new Error(`batch ${n} is lost`);
  };
  const own = async (store: Store, writes: number) => {
    const numbers = new Map<number, number>();
    for (const [sequence, json] of store.log("log").entries()) numbers.set(Number(json), sequence);
    const one = store.map<number>("one");
    const two = store.map<number>("two");
    for (let i = 0; i < writes; i++) {
      await time.sleep(random() * 100);
      engine.weather = weather;
      if (random() < 0.1) engine.forget();
      const [oldest] = numbers;
      try {
        if (oldest !== undefined && random() < 0.45) {
          const [n, sequence] = oldest;
          numbers.delete(n);
          doubtful.add(n);
          await store.batch((batch) => {
            batch.delete(one, String(n));
            batch.delete(two, String(n));
            batch.remove(store.log("log"), sequence);
          });
          removed.add(n);
        } else {
          const n = ++batches;
          const entry = await store.batch((batch) => {
            batch.put(one, String(n), n);
            batch.put(two, String(n), n);
            return batch.append(store.log("log"), String(n));
          });
          // The next owner may have removed it before the former was told that it was written.
          const read = store.log("log").get(entry.sequence) ?? (doubtful.has(n) ? String(n) : undefined);
          if (read !== String(n)) throw new Error(`entry ${n} has another number`);
          numbers.set(n, entry.sequence);
          committed.add(n);
          tally.committed++;
        }
      } catch (error) {
        const code = (error as { code?: string }).code;
        if (code === "fenced") {
          tally.fenced++;
          return;
        }
        if (code !== "unknown") throw error;
      }
    }
  };
  const owners = async () => {
    let former: Promise<void> | undefined;
    for (let i = 0; i < 3; i++) {
      engine.weather = CALM;
      const store = await open();
      check(store);
      // It goes on for a while beside the next, as one that was frozen does.
      const present = own(store, 5);
      await Promise.race([present, time.sleep(random() * 3_000)]);
      await former;
      former = present;
    }
    await former;
    engine.weather = CALM;
    check(await open());
    done = true;
  };
  owners().catch((error: unknown) => {
    failure = error;
  });
  await time.run(() => done || failure !== undefined, 3_600_000);
  if (failure !== undefined) throw failure;
  expect(done, "all owners came to an end").toBe(true);
}

async function seeds(run: (seed: number) => Promise<void>): Promise<void> {
  for (let seed = 1; seed <= SEEDS; seed++) {
    try {
      await run(seed);
    } catch (error) {
      throw new Error(`seed ${seed}: ${(error as Error).message}`, { cause: error });
    }
  }
}

describe("the store over a virtual network", () => {
  it(
    "tells each writer of a shared key what became of its write, and never makes one twice [compare-and-set]",
    async () => {
      const tally: Tally = { written: 0, refused: 0, unknown: 0 };
      await seeds((seed) => sharedRun(seed, tally));
      // It would be easy to be right by not knowing.
      expect(tally.unknown).toBeLessThan((tally.written + tally.refused) / 50);
      expect(tally.written).toBeGreaterThan(SEEDS * 5);
      expect(tally.refused).toBeGreaterThan(SEEDS / 4);
      if (full) process.stdout.write(`shared keys: ${SEEDS} seeds, ${JSON.stringify(tally)}\n`);
    },
    LIMIT_MS,
  );

  it(
    "has each batch of a partition whole or not at all, and one owner that writes [one-owner] [ack-is-durable]",
    async () => {
      const tally = { committed: 0, fenced: 0 };
      await seeds((seed) => partitionRun(seed, tally));
      expect(tally.committed).toBeGreaterThan(SEEDS * 3);
      expect(tally.fenced).toBeGreaterThan(SEEDS / 10);
      if (full) process.stdout.write(`partitions: ${SEEDS} seeds, ${JSON.stringify(tally)}\n`);
    },
    LIMIT_MS,
  );
});
