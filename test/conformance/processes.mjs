// Processes of a conformance run: started, watched until they are ready, and stopped whatever happens.

import { spawn } from "node:child_process";

/** A fixture or a gateway is there in a second or two, on a busy machine in ten; one that never is must not hold up the run. */
const READY_MS = 60_000;
/** From SIGTERM to SIGKILL: a gateway without calls in flight stops in well under a second. */
const STOP_MS = 5_000;

const running = new Set();

export function start(command, args, { log, env = {}, verbose = false } = {}) {
  const child = spawn(command, args, { stdio: ["pipe", "pipe", "pipe"], env: { ...process.env, ...env } });
  const output = [];
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8");
    stream.on("data", (chunk) => {
      output.push(chunk);
      if (verbose) process.stderr.write(chunk);
    });
  }
  child.stdin.on("error", () => {});
  const exited = new Promise((resolve) => {
    child.on("error", (error) => resolve(`${error.message}`));
    child.on("close", (code, signal) => resolve(signal ?? code));
  });
  const handle = { child, exited, name: log, text: () => output.join("") };
  running.add(handle);
  void exited.then(() => running.delete(handle));
  return handle;
}

export async function stop(handle) {
  handle.child.stdin.end();
  handle.child.kill("SIGTERM");
  const timer = setTimeout(() => handle.child.kill("SIGKILL"), STOP_MS);
  await handle.exited;
  clearTimeout(timer);
}

export async function stopAll() {
  await Promise.all([...running].map(stop));
}

export function signalAll(signal) {
  for (const { child } of running) child.kill(signal);
}

export async function until(what, handle, attempt) {
  const deadline = Date.now() + READY_MS;
  let last = "no answer";
  let over;
  void handle.exited.then((code) => {
    over = code;
  });
  while (Date.now() < deadline) {
    if (over !== undefined) throw new Error(`${what} ended with ${over}\n${tail(handle.text())}`);
    try {
      const found = await attempt();
      if (found) return found;
    } catch (error) {
      last = error.message;
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`${what} is not ready after ${READY_MS} ms (${last})\n${tail(handle.text())}`);
}

export function tail(text, lines = 30) {
  return text.trimEnd().split("\n").slice(-lines).join("\n");
}
