// A real `codex exec-server` on a port of its own, with a token, that dies with the test.

import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findCodex } from "./binary.js";

/** It listens within a second; half a core takes longer. */
const READY_MS = 60_000;
/** After SIGTERM; then it is killed. */
const STOP_MS = 3_000;

export interface CodexExecServer {
  readonly url: string;
  readonly token: string;
  readonly pid: number;
  stop(): Promise<void>;
}

/** Rejects where Codex cannot be had: ask findCodex() first, and skip. */
export async function startCodexExecServer(options: { concurrent?: number } = {}): Promise<CodexExecServer> {
  const codex = await findCodex();
  if (codex.path === undefined) throw new Error(codex.missing);
  const home = await mkdtemp(join(tmpdir(), "toolway-codex-server-"));
  const token = randomBytes(24).toString("hex");
  const tokenFile = join(home, "token");
  await writeFile(tokenFile, token, { mode: 0o600 });
  const args = ["exec-server", "--listen", "ws://127.0.0.1:0"];
  args.push("--ws-auth", "capability-token", "--ws-token-file", tokenFile);
  args.push("--concurrent-requests", String(options.concurrent ?? 64));
  const env = { ...process.env, CODEX_HOME: home };
  const child = spawn(codex.path, args, { env, stdio: ["ignore", "pipe", "pipe"] });
  // It does not notice that we are gone.
  const kill = () => child.kill("SIGKILL");
  process.once("exit", kill);
  const exited = new Promise<void>((resolve) => {
    child.once("error", () => resolve());
    child.once("exit", () => resolve());
  });
  const stop = async () => {
    child.kill("SIGTERM");
    const timer = setTimeout(kill, STOP_MS);
    await exited;
    clearTimeout(timer);
    process.off("exit", kill);
    await rm(home, { recursive: true, force: true, maxRetries: 5 });
  };
  let output = "";
  try {
    const url = await new Promise<string>((resolve, reject) => {
      const give = (why: string) => reject(new Error(`codex exec-server ${why}: ${output.slice(-2000)}`));
      const timer = setTimeout(() => give("did not listen"), READY_MS);
      const read = (chunk: Buffer) => {
        output += chunk.toString();
        const [said] = /^ws:\/\/\S+$/m.exec(output) ?? [];
        if (said === undefined) return;
        clearTimeout(timer);
        resolve(said);
      };
      child.stdout.on("data", read);
      child.stderr.on("data", (chunk: Buffer) => {
        output += chunk.toString();
      });
      void exited.then(() => {
        clearTimeout(timer);
        give("ended");
      });
    });
    return { url, token, pid: child.pid as number, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
