// Starts `toolway executor` for the e2e tests. Each is killed when the test file ends.

import { afterAll } from "vitest";
import type { ExecutorStatus } from "../../src/contracts/executors.js";
import { type Started, start } from "../fixtures/processes.js";
import { cli, type Gateway, until } from "./harness.js";
import { statusOfAll } from "./operator.js";

const started = new Set<Started>();

afterAll(async () => {
  await Promise.all([...started].map((one) => one.stop("SIGKILL")));
});

export interface ExecutorProcess {
  readonly pid: number;
  log(): string;
  kill(): Promise<void>;
  /** Asks it to stop. Resolves when it has gone. */
  stop(): Promise<void>;
}

/** With the right to reach this machine, where all fixtures are, or what `allow` names instead. */
export function startExecutor(
  args: readonly string[],
  token?: string,
  allow = "127.0.0.1",
  more: Readonly<Record<string, string>> = {},
): ExecutorProcess {
  const { TOOLWAY_TOKEN: _, ...own } = process.env;
  const inherited = { ...own, ...more };
  const env = token === undefined ? inherited : { ...inherited, TOOLWAY_TOKEN: token };
  const auth = token === undefined ? ["--no-auth"] : [];
  const line = [cli, "executor", ...args, "--allow", allow, ...auth];
  const one = start("executor", process.execPath, line, env);
  started.add(one);
  return {
    pid: one.child.pid ?? 0,
    log: one.log,
    kill: () => one.stop("SIGKILL"),
    stop: async () => {
      one.child.kill("SIGTERM");
      await one.exited;
    },
  };
}

export async function executorOf(gateway: Gateway, name: string): Promise<ExecutorStatus> {
  const found = (await statusOfAll(gateway)).executors.find((one) => one.name === name);
  if (found === undefined) throw new Error(`status has no executor ${name}`);
  return found;
}

export function connected(gateway: Gateway, name: string, members = 1): Promise<ExecutorStatus> {
  return until(`${members} of the executor ${name}`, async () => {
    const status = await executorOf(gateway, name);
    return status.members.filter(({ state }) => state === "ready").length === members ? status : undefined;
  });
}
