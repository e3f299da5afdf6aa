// Starts `toolway executor` for the e2e tests. Each is killed when the test file ends.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { afterAll } from "vitest";
import type { ExecutorStatus } from "../../src/contracts/executors.js";
import type { GatewayStatus } from "../../src/contracts/status.js";
import { cli, type Gateway, until } from "./harness.js";
import { toolway } from "./operator.js";

const started = new Set<ChildProcess>();

afterAll(async () => {
  await Promise.all([...started].map((child) => end(child)));
});

async function end(child: ChildProcess): Promise<void> {
  started.delete(child);
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGKILL");
  await once(child, "exit");
}

export interface ExecutorProcess {
  readonly pid: number;
  log(): string;
  kill(): Promise<void>;
}

/** With the right to reach this machine, where all fixtures are. */
export function startExecutor(args: readonly string[], token?: string): ExecutorProcess {
  const { TOOLWAY_TOKEN: _, ...inherited } = process.env;
  const env = token === undefined ? inherited : { ...inherited, TOOLWAY_TOKEN: token };
  const auth = token === undefined ? ["--no-auth"] : [];
  const child = spawn(process.execPath, [cli, "executor", ...args, "--allow", "127.0.0.1", ...auth], {
    stdio: ["ignore", "pipe", "pipe"],
    env,
  });
  started.add(child);
  const output: string[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8");
    stream.on("data", (chunk: string) => output.push(chunk));
  }
  return { pid: child.pid ?? 0, log: () => output.join(""), kill: () => end(child) };
}

export async function statusOfAll(gateway: Gateway): Promise<GatewayStatus> {
  return JSON.parse((await toolway(gateway, "status", "--json")).out) as GatewayStatus;
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
