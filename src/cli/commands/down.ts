// `toolway down`: stops a whole gateway, and waits until it is gone.

import type { GatewayStatus } from "../../contracts/status.js";
import { isObject } from "../../protocol/jsonrpc.js";
import { sleep } from "../../runtime/wait.js";
import { type GatewayClient, type GatewayPort, type GatewaySource, runningGateway } from "../gateway/port.js";
import { gatewayFor } from "../gateway/which.js";
import { noteIfSlow, POLL_MS } from "../gateway/with-gateway.js";
import { configArg, defineCommand, jsonOption, stateOption } from "../line/command.js";
import { Exit, UserError } from "../line/errors.js";
import { type Io, print, printJson, shortPath } from "../line/io.js";
import { drainMsOf, drainOption } from "../line/times.js";

/** A gateway is over 8 s after its calls had their time; the rest is for a machine that is busy. */
const END_MS = 20_000;

export const down = defineCommand({
  metadata: {
    name: "down",
    summary: "Stops a gateway, and waits until it is gone.",
    description:
      "Stops the gateway of a config, as SIGTERM does: calls in flight may end, then its servers are stopped. Waits until " +
      "it is gone. Where systemd or the like keeps it running, stop it there. A client whose `toolway stdio` was joined to " +
      "it becomes the gateway itself after five seconds.",
  },
  args: { config: configArg("The config whose gateway is meant.") },
  options: {
    ...stateOption,
    ...drainOption("How long calls in flight have to end. Default: as it was started."),
    ...jsonOption,
  },
  examples: [
    { line: "toolway down", note: "the one of ./toolway.json" },
    { line: "toolway down ~/work/toolway.json --drain 0", note: "that one, without waiting for its calls" },
  ],
  async handler(input, io) {
    const drainMs = drainMsOf(input.drain);
    const source = await gatewayFor({ config: input.config, state: input.state }, io);
    const port = await runningGateway();
    const client = await port.find(source);
    if (client === undefined) {
      const what = source.configPath === undefined ? "" : ` for ${shortPath(io, source.configPath)}`;
      throw new UserError(`No gateway runs${what}.`, source.others === undefined ? {} : { hint: source.others });
    }
    const { pid, endpoint, startedAt } = (await client.get("/status", io.signal)) as GatewayStatus;
    const answer = await client.post("/down", drainMs === undefined ? {} : { drainMs }, io.signal);
    const allowed = isObject(answer) ? Number(answer["drainMs"]) : 0;
    const ended = untilGone({ port, source, startedAt, limitMs: allowed + END_MS }, io);
    const isGone = await noteIfSlow(io, "Waiting until calls in flight have ended …", ended);
    if (!isGone) {
      throw new UserError(`The gateway, process ${pid}, was told to stop and is still there.`, {
        hint: `\`kill -9 ${pid}\` ends it; its servers end with it.`,
      });
    }
    if (input.json) printJson(io, { stopped: pid });
    else print(io, `Stopped the gateway${endpoint === undefined ? "" : ` at ${endpoint}`} (process ${pid}).`);
    return Exit.ok;
  },
});

interface Ending {
  readonly port: Pick<GatewayPort, "find" | "isHeld">;
  readonly source: GatewaySource;
  readonly startedAt: string;
  readonly limitMs: number;
}

/** Gone is when nobody has its state directory, or another gateway does. */
async function untilGone({ port, source, startedAt, limitMs }: Ending, io: Io): Promise<boolean> {
  const deadline = performance.now() + limitMs;
  while (performance.now() < deadline) {
    io.signal.throwIfAborted();
    if (!(await port.isHeld(source))) return true;
    const there = await port.find(source);
    if (there !== undefined && (await isAnother(there, startedAt, io))) return true;
    await sleep(POLL_MS);
  }
  return false;
}

async function isAnother(client: GatewayClient, startedAt: string, io: Io): Promise<boolean> {
  try {
    return ((await client.get("/status", io.signal)) as GatewayStatus).startedAt !== startedAt;
  } catch {
    // It ended while it was asked.
    return false;
  }
}
