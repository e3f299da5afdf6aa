// Names the tests that passed only when they were run a second time. The tests of whole systems get that second try, since
// a thousand of them with real processes on a busy machine meet what none of them is about; but a test that needs it is
// wrong, or has found something, and is looked into.

import type { Reporter, TestModule, Vitest } from "vitest/node";

export class FlakyReporter implements Reporter {
  #vitest: Vitest | undefined;

  onInit(vitest: Vitest): void {
    this.#vitest = vitest;
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    for (const module of modules) {
      for (const test of module.children.allTests()) {
        if (test.diagnostic()?.flaky !== true) continue;
        const [error] = test.result().errors ?? [];
        const why = error?.message.split("\n", 1)[0] ?? "no reason given";
        this.#vitest?.logger.log(`passed at the second try: ${module.relativeModuleId}, "${test.fullName}" (${why})`);
      }
    }
  }
}
