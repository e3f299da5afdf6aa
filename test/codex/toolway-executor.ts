// `toolway executor --listen` as a process of its own, with a token.

import { randomBytes } from "node:crypto";
import { cli } from "../e2e/harness.js";
import { type Listening, startListening } from "./listening.js";

export interface ToolwayExecutor extends Listening {
  readonly token: string;
}

export async function startToolwayExecutor(allow: readonly string[] = ["127.0.0.1"]): Promise<ToolwayExecutor> {
  const token = randomBytes(24).toString("hex");
  const args = [cli, "executor", "--listen", "ws://127.0.0.1:0", ...allow.flatMap((rule) => ["--allow", rule])];
  return { ...(await startListening(process.execPath, args, { TOOLWAY_TOKEN: token })), token };
}
