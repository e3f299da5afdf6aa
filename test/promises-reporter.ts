// Says at the end of a run which promises it did not show: all tests that cite them were skipped, or one failed. Of a
// promise it speaks only when every file that cites it was in the run, so that a run of some files says nothing of the
// rest. The exit code is not its business: promises.test.ts fails where nothing cites a promise.

import { fileURLToPath } from "node:url";
import type { Reporter, TestCase, TestModule, Vitest } from "vitest/node";
import { citationsIn } from "./citations.js";
import { PROMISES, type Promised } from "./promises.js";

interface Scope {
  readonly root: string;
  readonly folders: readonly string[];
  readonly ending: string;
  readonly promises: readonly Promised[];
}

const REPOSITORY: Scope = {
  root: fileURLToPath(new URL("..", import.meta.url)),
  folders: ["src", "test"],
  ending: ".test.ts",
  promises: PROMISES,
};

export class PromisesReporter implements Reporter {
  readonly #scope: Scope;
  #vitest: Vitest | undefined;

  constructor(scope: Scope = REPOSITORY) {
    this.#scope = scope;
  }

  onInit(vitest: Vitest): void {
    this.#vitest = vitest;
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    // Tests that a name was not asked for count as skipped, and say nothing of a promise.
    if (this.#vitest?.config.testNamePattern !== undefined) return;
    const { root, folders, ending, promises } = this.#scope;
    const citations = citationsIn(root, folders, ending);
    const ran = new Map(modules.map((module) => [module.relativeModuleId, module]));
    for (const { id } of promises.filter(({ status }) => status === "made")) {
      const files = [...(citations.get(id) ?? [])];
      if (files.length === 0 || !files.every((file) => ran.has(file))) continue;
      const reason = whyNotShown(id, modules, files);
      if (reason !== undefined) this.#vitest?.logger.log(`not shown in this run: ${id} (${reason})`);
    }
  }
}

function whyNotShown(id: string, modules: readonly TestModule[], files: readonly string[]): string | undefined {
  const tests = modules
    .flatMap((module) => [...module.children.allTests()])
    .filter(({ fullName }) => fullName.includes(`[${id}]`));
  const failed = tests.filter((test) => test.result().state === "failed");
  if (failed.length > 0) return `failed: ${inShort(failed)}`;
  if (tests.some((test) => test.result().state === "passed")) return undefined;
  return tests.length > 0 ? `skipped: ${inShort(tests)}` : `no test of ${files.join(", ")} cited it`;
}

function inShort([first, ...more]: readonly TestCase[]): string {
  if (first === undefined) return "";
  const result = first.result();
  const note = result.state === "skipped" && result.note !== undefined ? `, ${result.note}` : "";
  const rest = more.length > 0 ? `; and ${more.length} more` : "";
  return `${first.module.relativeModuleId}, "${first.fullName}"${note}${rest}`;
}
