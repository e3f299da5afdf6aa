// Why a start failed, where the address is taken: mostly by another gateway of the same user, and then it is said by which.

import { UserError } from "../line/errors.js";
import { type Io, shortPath } from "../line/io.js";
import { runningGateway } from "./port.js";
import { builtInWords, optionFor } from "./which.js";

/** The same error where nothing better is known. */
export async function namingWhoListens(error: unknown, io: Io): Promise<unknown> {
  const { code, port } = (error instanceof Error ? (error.cause ?? {}) : {}) as { code?: unknown; port?: unknown };
  if (code !== "EADDRINUSE" || typeof port !== "number") return error;
  const running = await (await runningGateway()).list(io);
  const there = running.find(({ endpoint }) => endpoint !== undefined && portOf(endpoint) === port);
  if (there === undefined) return error;
  const { config, pid, endpoint } = there;
  const what = config === undefined ? builtInWords(there) : `the gateway of ${shortPath(io, config)}`;
  return new UserError(`Port ${port} is taken: ${what} listens at ${endpoint}, process ${pid}.`, {
    hint: `\`toolway down ${optionFor(there, running, io)}\` stops it; or choose another port with --listen.`,
    cause: error,
  });
}

function portOf(endpoint: string): number {
  const { port, protocol } = new URL(endpoint);
  return port === "" ? (protocol === "https:" ? 443 : 80) : Number(port);
}
