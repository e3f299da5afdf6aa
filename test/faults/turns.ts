// How long one turn of a gateway's event loop takes: CPU time of the main thread, as turns-preload.mjs takes it in the gateway.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root, sleep } from "../e2e/harness.js";

export interface Turns {
  /** For the gateway that is watched. */
  readonly env: Record<string, string>;
  /** The longest turn while `act` runs, in milliseconds; 0 where all were short. Of a few tries the one that was least disturbed. */
  leastOf(times: number, act: () => Promise<void>): Promise<number>;
  /** As a report says it. */
  text(ms: number): string;
}

export function watchedTurns(folder: string): Turns {
  const turns = join(folder, "turns");
  const longestTurn = async (act: () => Promise<void>) => {
    writeFileSync(turns, "");
    await act();
    await sleep(50);
    return Math.max(0, ...readFileSync(turns, "latin1").split("\n").map(Number));
  };
  return {
    env: { NODE_OPTIONS: `--import ${join(root, "test/faults/turns-preload.mjs")}`, TOOLWAY_TURNS: turns },
    // What the machine does at the same time makes CPU time longer at random: the shortest of a few counts.
    async leastOf(times, act) {
      let least = Number.POSITIVE_INFINITY;
      for (let n = 0; n < times; n++) least = Math.min(least, await longestTurn(act));
      return least;
    },
    text: (ms) => (ms === 0 ? "under 15 ms" : `${ms} ms`),
  };
}
