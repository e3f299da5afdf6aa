import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["src/**/*.test.ts", "test/**/*.test.ts"],
    // Only what hangs takes so long; with half a core, starting a dozen processes takes half a minute.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // Two at a time: the e2e tests start real processes, and the machines this runs on have two cores.
    maxWorkers: 2,
    // As patient as the tests' own waits: only reached where a test fails.
    expect: { poll: { timeout: 60_000 } },
  },
});
