// How long one turn of a gateway's event loop takes: CPU time of the main thread, as turns-preload.mjs takes it in the gateway.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { root, sleep } from "../e2e/harness.js";
import { full } from "./length.js";

/** No turn is longer, under an attack, for an honest body of the largest size, for what servers say: everybody else waits for it. */
export const TURN_MS = 50;

/** So many times as many tries, where none was short. */
const MORE_TRIES = 4;

/** By then the turn that is under way was written down. */
const WRITTEN_MS = 50;

export interface Turn {
  readonly ms: number;
  /** V8's collector had so much of it. */
  readonly collectorMs: number;
  /** Node began to read so many requests in it. */
  readonly requests: number;
}

const SHORT: Turn = { ms: 0, collectorMs: 0, requests: 0 };

const withoutCollector = ({ ms, collectorMs }: Turn) => ms - collectorMs;

export interface Turns {
  /** For the gateway that is watched. */
  readonly env: Record<string, string>;
  /** What was before does not count: a start, and code that runs for the first time. */
  begin(): void;
  /** The longest turn since begin(), in milliseconds; 0 where all were short. */
  longest(): Promise<number>;
  /** The turn since begin() that is the longest without what the collector had of it. */
  worst(): Promise<Turn>;
  /** The longest turn while `act` runs. Of a few tries the one that was least disturbed. */
  leastOf(times: number, act: () => Promise<void>): Promise<number>;
  /** As a report says it. */
  text(ms: number | Turn): string;
}

export function watchedTurns(folder: string): Turns {
  const turns = join(folder, "turns");
  const begin = () => writeFileSync(turns, "");
  const all = async (): Promise<Turn[]> => {
    await sleep(WRITTEN_MS);
    const lines = readFileSync(turns, "latin1").split("\n").slice(0, -1);
    return lines.map((line) => {
      const [ms = 0, collectorMs = 0, requests = 0] = line.split(" ").map(Number);
      return { ms, collectorMs, requests };
    });
  };
  const longest = async () => Math.max(0, ...(await all()).map(({ ms }) => ms));
  return {
    env: { NODE_OPTIONS: `--import ${join(root, "test/faults/turns-preload.mjs")}`, TOOLWAY_TURNS: turns },
    begin,
    longest,
    worst: async () =>
      (await all()).reduce((worst, one) => (withoutCollector(one) > withoutCollector(worst) ? one : worst), SHORT),
    // What the machine does at the same time makes CPU time longer at random: the shortest of a few counts. Where others keep it
    // busy there are more tries, and what is too long by itself is so in all of them.
    async leastOf(times, act) {
      let least = Number.POSITIVE_INFINITY;
      for (let n = 0; n < times || (least >= TURN_MS && n < times * MORE_TRIES); n++) {
        begin();
        await act();
        least = Math.min(least, await longest());
      }
      return least;
    },
    text: (turn) => {
      if (typeof turn === "number") return turn === 0 ? "under 15 ms" : `${turn} ms`;
      if (turn.ms === 0) return "under 15 ms";
      const read = turn.requests > 1 ? `, in which ${turn.requests} requests began` : "";
      return `${turn.ms} ms, of which the collector had ${turn.collectorMs} ms${read}`;
    },
  };
}

/**
 * For an attack that is made once and takes long. In the short form other tests take the same cores, and there is no
 * second try that they leave alone: it is printed there, and judged in the full form.
 */
export function expectShortTurn(ms: number): void {
  if (full) expect(ms).toBeLessThan(TURN_MS);
}

/** The same where much garbage is made: without what the collector had of the turn. */
export function expectShortOwnTurn(turn: Turn): void {
  if (full) expect(withoutCollector(turn), JSON.stringify(turn)).toBeLessThan(TURN_MS);
}
