// Finds the gateways that run, in whichever process, and asks them. Loads nothing of a gateway itself, so that verbs
// which only ask are quick.

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { type ControlClient, findGateway } from "../../control/client.js";
import { listGateways, type RunningGateway } from "../../control/registry.js";
import { OPERATOR_UPGRADE, RUN_UPGRADE } from "../../control/upgrades.js";
import { isStateDirHeld, stateRootFor } from "../../runtime/state-dir.js";
import type { GatewayClient, GatewaySource } from "./port.js";

// From here, so that `toolway --help` loads none of it, and a gateway no file more.
export { ensureStateDir, realPath, stateDirFor } from "../../runtime/state-dir.js";

export function clientOf(control: ControlClient): GatewayClient {
  const given = (signal: AbortSignal | undefined) => (signal === undefined ? {} : { signal });
  return {
    get: (path, signal) => control.get(path, given(signal)),
    post: (path, body, signal) => control.post(path, body, given(signal)),
    delete: (path, signal) => control.delete(path, given(signal)),
    session: (server, signal) => control.upgrade(OPERATOR_UPGRADE, { server }, given(signal)),
    async *lines(path, signal) {
      for await (const value of control.lines(path, given(signal))) yield JSON.stringify(value);
    },
  };
}

export async function find({ stateDir }: Pick<GatewaySource, "stateDir">): Promise<GatewayClient | undefined> {
  const control = await findGateway(stateDir);
  return control === undefined ? undefined : clientOf(control);
}

/** The connection of a run to the gateway of this state directory; undefined where none answers. */
export async function reachRun({ stateDir }: Pick<GatewaySource, "stateDir">): Promise<Duplex | undefined> {
  const running = await findGateway(stateDir);
  return running?.upgrade(RUN_UPGRADE).catch((error: { code?: unknown }) => {
    // One that is just dying still takes connections, and does not answer. An older version knows no runs.
    if (error.code === "no-route") throw error;
    return undefined;
  });
}

export async function list({ env, home }: Pick<GatewaySource, "env" | "home">): Promise<RunningGateway[]> {
  return listGateways(stateRootFor(env, home));
}

export async function isHeld({ stateDir }: Pick<GatewaySource, "stateDir">): Promise<boolean> {
  return isStateDirHeld(stateDir);
}

export { type KeptToken, keptPath, readKept } from "../../agents/setup/kept-token.js";

export async function defaultToken({ stateDir }: GatewaySource): Promise<string | undefined> {
  try {
    return (await readFile(join(stateDir, "token"), "utf8")).trim();
  } catch {
    return undefined;
  }
}
