// Has a gateway that runs try one server, for `doctor`: one behind an executor that dials in is reached by nobody else, and
// one with a login only by who keeps it.

import type { GatewayStatus } from "../../contracts/status.js";
import type { ProbeResult } from "../../upstream/probe.js";
import { failedProbe } from "./failed-probe.js";
import type { GatewayClient, Probe } from "./port.js";

const LOOK_MS = 200;

/** An executor that was just started has so long to dial in: it does so at once, and again every ten seconds at most. */
const DIAL_IN_MS = 10_000;

interface Asked {
  readonly name: string;
  /** Undefined where none is needed. */
  readonly executor: string | undefined;
  /** As long as the server's own start may take. */
  readonly waitMs: number;
}

export async function askGateway(client: GatewayClient, asked: Asked, signal: AbortSignal): Promise<Probe> {
  const { name, executor } = asked;
  const until = performance.now() + Math.min(asked.waitMs, DIAL_IN_MS);
  for (;;) {
    signal.throwIfAborted();
    const { servers, executors } = (await client.get("/status", signal)) as GatewayStatus;
    if (!servers.some((server) => server.name === name)) {
      const remedy = "It reads its config when the file changes: `toolway status` says what keeps it from that.";
      return failedProbe({ message: "The gateway that runs does not have this server.", remedy });
    }
    if (executor === undefined || executors.find((one) => one.name === executor)?.ready === true) {
      return (await client.post(`/servers/${encodeURIComponent(name)}/probe`, {}, signal)) as ProbeResult;
    }
    if (performance.now() >= until) return nobodyThere(executor);
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}

function nobodyThere(executor: string): Probe {
  const message = `No executor "${executor}" is connected to the gateway that runs.`;
  const remedy = `Start one in its network: \`toolway executor --connect ws://GATEWAY/executors/${encodeURIComponent(executor)} --allow HOST\`. If one runs, its log says why it does not get in.`;
  return failedProbe({ reason: "no-executor", message, remedy });
}
