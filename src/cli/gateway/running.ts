// Finds the gateway that runs for a config, in whichever process, and asks it. Loads nothing of a gateway itself, so
// that verbs which only ask are quick.

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type ControlClient, findGateway } from "../../control/client.js";
import { stateDirFor } from "../../runtime/state-dir.js";
import type { GatewayClient, GatewaySource } from "./port.js";

export function stateDirOf({ configPath, stateDir, env, home }: GatewaySource): string {
  return stateDir ?? stateDirFor(configPath, env, home);
}

export function clientOf(control: ControlClient): GatewayClient {
  const given = (signal: AbortSignal | undefined) => (signal === undefined ? {} : { signal });
  return {
    get: (path, signal) => control.get(path, given(signal)),
    post: (path, body, signal) => control.post(path, body, given(signal)),
    delete: (path, signal) => control.delete(path, given(signal)),
    async *lines(path, signal) {
      for await (const value of control.lines(path, given(signal))) yield JSON.stringify(value);
    },
  };
}

export async function find(source: GatewaySource): Promise<GatewayClient | undefined> {
  const control = await findGateway(stateDirOf(source));
  return control === undefined ? undefined : clientOf(control);
}

export async function defaultToken(source: GatewaySource): Promise<string | undefined> {
  try {
    return (await readFile(join(stateDirOf(source), "token"), "utf8")).trim();
  } catch {
    return undefined;
  }
}
