// A load in a process of its own, as its parent tells it by IPC: it opens what it calls, warms up, says that it is ready, and
// begins when all are. What it calls, and how, is said by each load.

import { median } from "./ratios.mjs";

/** `round` is given the job, the plan, and a function that resolves when it may begin. */
export function serveLoad({ open, round }) {
  let go = () => {};
  const ready = () => {
    const told = new Promise((resolve) => {
      go = resolve;
    });
    process.send({ did: "ready" });
    return told;
  };
  const handlers = {
    open: async (message) => {
      await open(message);
      return {};
    },
    round: ({ job, plan }) => round(job, plan, ready),
    go: async () => go(),
  };
  process.on("message", ({ do: what, ...message }) => {
    handlers[what](message).then(
      (result) => result !== undefined && process.send({ did: what, ...result }),
      (error) => process.send({ did: "fail", message: error.message }),
    );
  });
  process.on("disconnect", () => process.exit(0));
}

/** What a round was like, by how long each of its calls took; `units` are what they count for. */
export function figuresOfRound({ took, ms }, units = took.length) {
  const sorted = [...took].sort((a, b) => a - b);
  return {
    calls: units,
    verified: units,
    callsPerSec: (units / ms) * 1000,
    p50Ms: median(took),
    p99Ms: sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * 0.99))],
  };
}
