// `toolway __complete tool|server|pinned [words of the line]`: the names that a running gateway knows, one a line. For the
// completion scripts; a shell waits for it, so it gives up early and never says what went wrong.

import type { PinLine } from "../../contracts/pins.js";
import type { GatewayStatus } from "../../contracts/status.js";
import { within as signalWithin } from "../../runtime/wait.js";
import { type GatewayClient, runningGateway } from "../gateway/port.js";
import { sourceFor } from "../gateway/source.js";
import { defineCommand } from "../line/command.js";
import { Exit } from "../line/errors.js";
import { type Io, print } from "../line/io.js";
import { listTools } from "../text/tool-list.js";

/** Longer than this after a key press feels broken. */
const DEADLINE_MS = 300;

export const complete = defineCommand({
  metadata: { name: "__complete", summary: "Names for the completion scripts.", hidden: true },
  args: { kind: { required: true, description: "tool, server or pinned" } },
  options: {},
  examples: [],
  async handler(input, io) {
    const rest = (input as { rest?: unknown }).rest;
    const words = Array.isArray(rest) ? rest.map(String) : [];
    const signal = signalWithin(DEADLINE_MS, io.signal);
    try {
      for (const name of await within(signal, names(input.kind, words, io, signal))) print(io, name);
    } catch {
      // No gateway, or too slow: then there is nothing to offer.
    }
    return Exit.ok;
  },
});

async function names(kind: string, words: readonly string[], io: Io, signal: AbortSignal): Promise<string[]> {
  const after = (flag: string): string | undefined => {
    const at = words.lastIndexOf(flag);
    return at < 0 ? undefined : words[at + 1];
  };
  const port = await runningGateway();
  const client: GatewayClient | undefined = await port.find(
    sourceFor({ config: after("--config"), state: after("--state") }, io),
  );
  if (client === undefined) return [];
  if (kind === "server")
    return ((await client.get("/status", signal)) as GatewayStatus).servers.map(({ name }) => name);
  if (kind !== "pinned") return (await listTools(client, signal)).map(({ name }) => name);
  const { pins } = (await client.get("/pins", signal)) as { pins: readonly PinLine[] };
  // The server stands before the tool on the line. A name with a control character is no word to complete.
  return pins.filter(({ server, tool }) => words.includes(server) && !/\p{C}/u.test(tool)).map(({ tool }) => tool);
}

function within<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  const late = new Promise<never>((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
  });
  return Promise.race([work, late]);
}
