// The processes that the bench itself starts: none of them outlives it. Knows nothing of what they do.

import { fork, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";

/** A process that starts takes a second at most; two busy cores may take many. */
const START_MS = 60_000;
/** What has not ended by then is killed. */
const STOP_MS = 5_000;
/** The end of a process's output, shown when it fails. */
const KEPT_CHARS = 4000;

const running = new Set();

/** What was started by something that then failed has nobody who stops it. */
export function killAll() {
  for (const child of running) child.kill("SIGKILL");
}

// However we end, by an error too: nothing stays behind.
process.on("exit", killAll);

/**
 * @param {string[]} args of node
 * @param {{ env?: Record<string, string> }} [options]
 */
export function startNode(args, { env = {} } = {}) {
  return startProcess(process.execPath, args, { env });
}

/** Any other program. */
export function startProcess(command, args, { env = {} } = {}) {
  const child = spawn(command, args, { stdio: ["pipe", "pipe", "pipe"], env: { ...process.env, ...env } });
  running.add(child);
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8");
    stream.on("data", (chunk) => {
      output = (output + chunk).slice(-KEPT_CHARS);
    });
  }
  child.stdin.on("error", () => {});
  const exited = once(child, "exit").then(() => void running.delete(child));
  return { child, exited, said: firstJson(child.stdout), output: () => output, stop: () => stop(child, exited) };
}

/** A script of ours with IPC, which is how the load is told what to do. */
export function forkNode(file) {
  const child = fork(file, [], { stdio: ["ignore", "inherit", "inherit", "ipc"] });
  running.add(child);
  const exited = once(child, "exit").then(() => void running.delete(child));
  return { child, exited, stop: () => stop(child, exited) };
}

async function stop(child, exited) {
  if (child.exitCode === null && child.signalCode === null) child.kill("SIGTERM");
  child.stdin?.end();
  const timer = setTimeout(() => child.kill("SIGKILL"), STOP_MS);
  await exited;
  clearTimeout(timer);
}

/** The first line of JSON on a stream, as soon as it is there. */
function firstJson(stream) {
  return new Promise((resolve) => {
    let text = "";
    const onData = (chunk) => {
      text += chunk;
      const line = /^\{.*\}(?=\n)/m.exec(text);
      if (line === null) return;
      stream.off("data", onData);
      resolve(JSON.parse(line[0]));
    };
    stream.on("data", onData);
  });
}

/** The first line of JSON that a process prints. */
export async function firstLine({ said, exited, output }, what) {
  let timer;
  const ended = exited.then(() => Promise.reject(new Error(`${what} ended: ${output()}`)));
  const late = new Promise((_resolve, reject) => {
    const message = () => new Error(`${what} did not start within ${START_MS} ms: ${output()}`);
    timer = setTimeout(() => reject(message()), START_MS);
  });
  try {
    return await Promise.race([said, ended, late]);
  } finally {
    clearTimeout(timer);
    // Its end comes later, and is then no error.
    ended.catch(() => {});
  }
}

/** A port that was free a moment ago. */
export async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}
