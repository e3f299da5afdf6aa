// One nats-server with JetStream on loopback, from PATH or the first that NATS_SERVERS lists, and what it says of its work.

import { execFileSync } from "node:child_process";
import { delimiter, join } from "node:path";
import { freePort, startProcess } from "../processes.mjs";

const [PROGRAM = "nats-server"] = (process.env.NATS_SERVERS ?? "nats-server").split(delimiter);
const READY_MS = 30_000;
const POLL_MS = 50;

/** Its version; undefined where there is none. */
export function natsVersion() {
  try {
    return /v(\d+\.\d+\.\d+)/.exec(execFileSync(PROGRAM, ["--version"], { encoding: "utf8" }))?.[1];
  } catch {
    return undefined;
  }
}

export async function startNats(folder) {
  const [port, monitor] = [await freePort(), await freePort()];
  const args = ["-a", "127.0.0.1", "-p", String(port), "-m", String(monitor), "-js", "-sd", join(folder, "jetstream")];
  const started = startProcess(PROGRAM, args);
  const ask = async (path) => (await fetch(`http://127.0.0.1:${monitor}${path}`)).json();
  const deadline = Date.now() + READY_MS;
  for (;;) {
    const health = await ask("/healthz").catch(() => undefined);
    if (health?.status === "ok") break;
    if (Date.now() > deadline) throw new Error(`nats-server did not start: ${started.output()}`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  return {
    address: `127.0.0.1:${port}`,
    pid: started.child.pid,
    stop: started.stop,
    /** Messages that were published to streams of this prefix and requests of the API, since it began. */
    async operations(prefix) {
      const { account_details = [], api } = await ask("/jsz?accounts=1&streams=1");
      const streams = account_details.flatMap(({ stream_detail = [] }) => stream_detail);
      const published = streams.filter(({ name }) => name.startsWith(`${prefix}_`));
      return published.reduce((sum, { state }) => sum + state.last_seq, 0) + (api?.total ?? 0);
    },
  };
}
