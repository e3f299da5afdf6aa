// `toolway drain`: takes one of several gateways on an engine out of use, from any of them, and waits until it is gone.

import { DRAIN_NOTICE_MS, type EngineGatewaySeen } from "../../contracts/status.js";
import { isObject } from "../../protocol/jsonrpc.js";
import { sleep } from "../../runtime/wait.js";
import { type GatewayClient, runningGateway } from "../gateway/port.js";
import { gatewayFor } from "../gateway/which.js";
import { noteIfSlow, POLL_MS } from "../gateway/with-gateway.js";
import { defineCommand, gatewayOptions, jsonOption } from "../line/command.js";
import { Exit, type ExitCode, UserError } from "../line/errors.js";
import { type Io, print, printJson, shown } from "../line/io.js";
import { drainMsOf, drainOption } from "../line/times.js";
import { fittedTable, heading, oneLine, styleOf } from "../text/print.js";

/** To hand over 64 partitions, and for a machine that is busy. */
const END_MS = 30_000;

/** Others say these of themselves; names of machines and files are shorter as a rule. */
const MAX_WORD = 60;

type Listed = EngineGatewaySeen;

export const drain = defineCommand({
  metadata: {
    name: "drain",
    summary: "Takes one of several gateways on an engine out of use.",
    description:
      "Takes a gateway out of use, asked of any gateway on the same engine: `/readyz` says so from then on, what it has in hand is handed " +
      "over to the others while it goes on answering: partitions of writes and mailboxes, machines that share, executors that dialled in. Then it " +
      "stops as by SIGTERM: calls in flight may end. Waits until the others have all of it. Without a name it lists the gateways. docs/scale.md.",
  },
  args: {
    gateway: {
      description:
        "Its name, or how it begins: as this lists it, or `toolway status` at it. Its machine or its address, where no other " +
        "gateway has the same. `this` is the one that is asked.",
      completes: "gateway",
    },
  },
  options: {
    ...gatewayOptions,
    ...drainOption("How long its calls in flight have to end. Default: as it was started."),
    ...jsonOption,
  },
  examples: [
    { line: "toolway drain", note: "which gateways are on the engine" },
    { line: "toolway drain this", note: "the one of ./toolway.json, before its upgrade" },
    { line: "toolway drain Xk3Q --drain 10", note: "another, whose calls have ten seconds" },
    { line: "toolway drain web-2", note: "the one on that machine" },
  ],
  async handler(input, io) {
    const drainMs = drainMsOf(input.drain);
    const source = await gatewayFor(input, io);
    const client = await (await runningGateway()).find(source);
    if (client === undefined)
      throw new UserError("No gateway runs here to ask.", { hint: "`toolway ps` lists those that run." });
    const { gateway: name } = input;
    if (name === undefined) return list(io, await gatewaysAt(client, io), input.json === true);
    const before = await gatewaysAt(client, io);
    const asked = before.find(({ isThis }) => isThis)?.gateway;
    const body = { gateway: name, ...(drainMs === undefined ? {} : { drainMs }) };
    const answer = (await client.post("/drain", body, io.signal)) as { gateway: string; drainMs: number };
    const gone = untilGone(client, answer.gateway, answer.gateway === asked, io);
    if (!(await noteIfSlow(io, "Waiting until the others have what it had in hand …", gone))) {
      throw new UserError(`${nameOf(answer.gateway, before, io)} was told to hand over, and is still there.`, {
        hint: "`toolway drain` shows what it has left.",
      });
    }
    const isLast = before.every(({ gateway, isLeaving }) => gateway === answer.gateway || isLeaving);
    const ends = `ends within ${Math.ceil((answer.drainMs + (isLast ? 0 : DRAIN_NOTICE_MS)) / 1000)} s`;
    if (input.json) printJson(io, { drained: answer.gateway });
    else if (!isLast) print(io, `${nameOf(answer.gateway, before, io)} has handed over, and ${ends}.`);
    else
      print(
        io,
        `${nameOf(answer.gateway, before, io)} ${ends}. No other is there: what it had in hand waits in the engine.`,
      );
    return Exit.ok;
  },
});

function list(io: Io, gateways: readonly Listed[], json: boolean): ExitCode {
  if (json) printJson(io, gateways);
  else {
    const style = styleOf(io);
    const rows = gateways.map(({ gateway, place, partitions, version, config, isLeaving, isThis }) => [
      style.bold(gateway),
      oneLine(place?.host ?? "", MAX_WORD),
      oneLine(place?.address ?? "", MAX_WORD),
      String(partitions),
      version ?? "",
      oneLine(place?.file ?? "", MAX_WORD),
      config ?? "",
      [...(isThis ? ["this"] : []), ...(isLeaving ? ["hands over"] : [])].join(", "),
    ]);
    print(
      io,
      fittedTable(
        [heading(style, ["GATEWAY", "MACHINE", "ADDRESS", "PARTITIONS", "VERSION", "CONFIG", "HASH", ""]), ...rows],
        io,
        { whole: ["GATEWAY", "ADDRESS", ""] },
      ),
    );
  }
  return Exit.ok;
}

/** `Gateway Xk3Q (web-2, 10.0.0.1:7420, toolway.json)`: its name is drawn, and tells nobody which one it is. */
function nameOf(name: string, gateways: readonly Listed[], { isTTY }: Io): string {
  const place = gateways.find(({ gateway }) => gateway === name)?.place;
  const words = [place?.host, place?.address, place?.file].filter((word) => word !== undefined);
  return words.length === 0
    ? `Gateway ${name}`
    : `Gateway ${name} (${shown(words, isTTY)
        .map((word) => oneLine(word, MAX_WORD))
        .join(", ")})`;
}

async function gatewaysAt(client: GatewayClient, io: Io): Promise<Listed[]> {
  const answer = await client.get("/gateways", io.signal);
  return isObject(answer) ? (answer["gateways"] as Listed[]) : [];
}

/** Gone is when the others do not see it any more, or it was the one that is asked and does not answer. */
async function untilGone(client: GatewayClient, name: string, isAsked: boolean, io: Io): Promise<boolean> {
  const deadline = performance.now() + END_MS;
  while (performance.now() < deadline) {
    io.signal.throwIfAborted();
    try {
      if ((await gatewaysAt(client, io)).every(({ gateway }) => gateway !== name)) return true;
    } catch {
      io.signal.throwIfAborted();
      if (isAsked) return true;
    }
    await sleep(POLL_MS);
  }
  return false;
}
