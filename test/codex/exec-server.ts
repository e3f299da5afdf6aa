// A real `codex exec-server` on a port of its own, with a token.

import { randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findCodex } from "./binary.js";
import { type Listening, startListening } from "./listening.js";

export interface CodexExecServer extends Listening {
  readonly token: string;
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
  // By itself it takes one after the other.
  args.push("--concurrent-requests", String(options.concurrent ?? 64));
  const forget = () => rm(home, { recursive: true, force: true, maxRetries: 5 });
  try {
    const server = await startListening(codex.path, args, { CODEX_HOME: home });
    const stop = async (signal?: NodeJS.Signals) => {
      await server.stop(signal);
      await forget();
    };
    return { ...server, token, stop };
  } catch (error) {
    await forget();
    throw error;
  }
}
