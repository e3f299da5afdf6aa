// What a gateway that runs knows of one server, in the form that `doctor` shows: for servers behind an executor that
// dials in, which nobody but that gateway can try.

import type { GatewayStatus, ServerStatus } from "../../contracts/status.js";
import type { GatewayClient, Probe } from "./port.js";

const LOOK_MS = 200;

interface Asked {
  readonly name: string;
  readonly executor: string;
  /** An executor that was just started has so long to dial in, and the server to answer. */
  readonly waitMs: number;
}

export async function askGateway(client: GatewayClient, asked: Asked, signal: AbortSignal): Promise<Probe> {
  const until = performance.now() + asked.waitMs;
  for (;;) {
    signal.throwIfAborted();
    const status = (await client.get("/status", signal)) as GatewayStatus;
    const server = status.servers.find(({ name }) => name === asked.name);
    const isUp = server?.state === "ready" && !server.listsFromBefore;
    if (isUp || server === undefined || performance.now() >= until) {
      const { tools } = (await client.get("/tools", signal)) as { tools?: { server: string; ownName: string }[] };
      const names = (tools ?? []).filter((tool) => tool.server === asked.name).map(({ ownName }) => ownName);
      return probeOf(server, isUp, names, asked);
    }
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}

function probeOf(server: ServerStatus | undefined, ok: boolean, tools: readonly string[], asked: Asked): Probe {
  const missing = "The gateway that runs does not have this server: `toolway reload` reads the config again.";
  const silent = `No executor "${asked.executor}" is connected.`;
  const message = server === undefined ? missing : (server.lastError ?? silent);
  return {
    ok,
    era: server?.era,
    version: server?.version,
    serverInfo: server?.serverInfo,
    tools: ok ? tools : [],
    problems: server?.problems ?? [],
    readyMs: server?.readyAfterMs,
    error: ok ? undefined : { code: "unavailable", message },
    stderr: server?.stderr ?? [],
    noise: { count: 0, sample: undefined },
  };
}
