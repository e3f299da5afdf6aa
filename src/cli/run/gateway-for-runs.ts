// A gateway that runs for runs: a process of its own, in no terminal's way, that is started where none runs for the
// config and ends by itself. Its log is a file in the state directory.

import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, fstatSync, ftruncateSync, openSync, readSync, renameSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { messageOf } from "../../runtime/expected-error.js";
import { sleep } from "../../runtime/wait.js";
import type { GatewaySource } from "../gateway/port.js";
import type { HeldLine } from "./hold.js";
import { RunError } from "./run-error.js";

const LOG = "gateway.log";
/** Weeks of starts and ends; the one before is kept beside it. */
const MAX_LOG_BYTES = 4 * 1024 * 1024;
/** What is shown of the log where a start failed. */
const TAIL_BYTES = 4 * 1024;
/** A process of Node and a bundle are there within a second; a machine that is busy takes longer. */
const START_MS = 60_000;
const LOOK_MS = 50;
/** How a gateway for runs ends that found its state directory taken: EX_TEMPFAIL of sysexits.h. */
export const EXIT_HELD = 75;
/** Variables of a run around this one: its secret is not for a gateway. */
const NOT_PASSED = ["TOOLWAY_SESSION_TOKEN", "TOOLWAY_URL", "TOOLWAY_MCP_CONFIG", "TOOLWAY_RUN"];

/** A run's connection to the gateway of this state directory; undefined where none answers. */
export async function reachRun(source: GatewaySource): Promise<Duplex | undefined> {
  const running = await import("../gateway/running.js");
  return running.reachRun(source).catch((error: unknown) => {
    if ((error as { code?: unknown }).code !== "no-route") throw new RunError(messageOf(error));
    throw new RunError("The gateway that runs for this config is of an older version, which knows no runs.", {
      hint: "Stop it with `toolway down`, and start it again with this one.",
    });
  });
}

/** The same, where a gateway is started if none runs: at the address that the agent knows, if there was one before. */
export async function reachOrStart(
  source: GatewaySource,
  before: HeldLine | undefined,
  cwd: string,
  signal?: AbortSignal,
): Promise<Duplex | undefined> {
  const { ensureStateDir, isHeld } = await import("../gateway/running.js");
  const deadline = performance.now() + START_MS;
  const port = before === undefined ? 0 : Number(new URL(before.url).port);
  let child: StartedChild | undefined;
  for (;;) {
    const socket = await reachRun(source);
    if (socket !== undefined) return socket;
    signal?.throwIfAborted();
    const end = child?.ended();
    if (child !== undefined && end === "failed") throw failed(source, child);
    // Another process had the directory: a verb for a moment, or a gateway that is just coming or going.
    if (end === "held") child = undefined;
    if (child === undefined && !(await isHeld(source))) {
      ensureStateDir(source.stateDir);
      child = launch(source, port, cwd);
    }
    if (performance.now() > deadline) throw failed(source, child);
    await sleep(LOOK_MS);
  }
}

interface StartedChild {
  /** Undefined while it runs. "held": another process had the state directory. */
  ended(): "held" | "failed" | undefined;
  /** What it has logged, the end of it. */
  tail(): string;
}

function launch({ stateDir, configPath, env }: GatewaySource, port: number, cwd: string): StartedChild {
  const path = join(stateDir, LOG);
  if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) > MAX_LOG_BYTES) renameSync(path, `${path}.1`);
  const log = openSync(path, "a+", 0o600);
  const from = fstatSync(log).size;
  const line = ["__gateway-for-runs", "--state", stateDir, "--port", String(port)];
  if (configPath !== undefined) line.push("--config", configPath);
  const own = Object.fromEntries(Object.entries(env).filter(([name]) => !NOT_PASSED.includes(name)));
  const child: ChildProcess = spawn(process.execPath, [process.argv[1] ?? "", ...line], {
    cwd,
    env: own,
    // In a session of its own: Ctrl-C and the end of the terminal are not for it.
    detached: true,
    stdio: ["ignore", log, log],
  });
  closeSync(log);
  let ended: "held" | "failed" | undefined;
  child.once("exit", (code) => {
    ended = code === EXIT_HELD ? "held" : "failed";
  });
  child.once("error", () => {
    ended = "failed";
  });
  child.unref();
  return { ended: () => ended, tail: () => tailOf(path, from) };
}

function tailOf(path: string, from: number): string {
  const file = openSync(path, "r");
  try {
    const { size } = fstatSync(file);
    const start = Math.max(Math.min(from, size), size - TAIL_BYTES);
    const bytes = Buffer.alloc(size - start);
    readSync(file, bytes, 0, bytes.length, start);
    return bytes.toString().trim();
  } finally {
    closeSync(file);
  }
}

function failed({ stateDir }: GatewaySource, child: StartedChild | undefined): RunError {
  const said = child?.tail() ?? "";
  const why = said === "" ? "it did not come up in time" : `it says:\n  ${said.replaceAll("\n", "\n  ")}`;
  return new RunError(`The gateway for this run could not be started; ${why}`, {
    hint: `Its log is ${join(stateDir, LOG)}. \`toolway doctor\` says what is wrong with the config; --fallback starts the client without Toolway.`,
  });
}

/** In the gateway's own process: its log stays within its bound while it runs. */
export function boundLog(): NodeJS.Timeout {
  return setInterval(() => {
    // It was opened to append, so that what follows begins the file anew.
    const { size } = fstatSync(2);
    if (size > MAX_LOG_BYTES) ftruncateSync(2);
  }, 60_000).unref();
}
