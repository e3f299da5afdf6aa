import { defineConfig } from "vitest/config";
import { full } from "./test/faults/length.js";
import { FlakyReporter } from "./test/flaky-reporter.js";
import { PromisesReporter } from "./test/promises-reporter.js";
import { SPLIT, TIERS } from "./test/tiers.js";

export default defineConfig(({ mode }) => ({
  test: {
    // Only what hangs takes so long; with half a core, starting a dozen processes takes half a minute.
    testTimeout: 120_000,
    globalSetup: ["test/setup/state-home.ts"],
    hookTimeout: 120_000,
    // As many as small machines have cores: with one more, bounds on memory and on times were missed now and then.
    maxWorkers: 2,
    // As patient as the tests' own waits: only reached where a test fails.
    expect: { poll: { timeout: 60_000 } },
    reporters: [
      "default",
      ...(process.env["GITHUB_ACTIONS"] === undefined ? [] : ["github-actions"]),
      new PromisesReporter(),
      new FlakyReporter(),
    ],
    projects: [
      {
        extends: true,
        test: {
          name: "unit",
          ...TIERS.unit,
          setupFiles: ["test/setup/no-io.ts"],
          // Files share a worker: a worker for each would take as long again as the tests.
          isolate: false,
          // `npm run test:unit` is what people run after every change; `npm test` makes all histories.
          env: mode === "quick" ? { TOOLWAY_QUICK: "1" } : {},
          // What is waited for here is in the same process: looking costs nothing.
          expect: { poll: { timeout: 60_000, interval: 5 } },
          // Nothing here waits for anybody else: what hangs is told sooner.
          testTimeout: 60_000,
        },
      },
      // A second try for what has real sockets and processes, which is told at the end; the full runs give none.
      { extends: true, test: { name: "integration", ...TIERS.integration, retry: full ? 0 : 1 } },
      { extends: true, test: { name: "system", ...TIERS.system, retry: full ? 0 : 1 } },
      // Once more, over three gateways on one engine: each request of a session goes to the next of them.
      ...(full ? [{ extends: true as const, test: { name: "split", ...SPLIT } }] : []),
    ],
  },
}));
