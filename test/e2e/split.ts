// Three gateways on one engine behind a plain balancer, in the place of one: the scenarios of both eras are run over them too
// (the project "split" of vitest.config.ts, in the full form), and know nothing of it.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll } from "vitest";
import type { GatewayStatus } from "../../src/contracts/status.js";
import { findGateway } from "../../src/control/client.js";
import { makeEngineKey } from "../../src/gateway/engine/keys.js";
import { balanceRequests } from "../fixtures/balancer.js";
import { temporaryFolder } from "../fixtures/folders.js";
import { type Nats, startNats } from "../fixtures/nats.js";
import { until } from "../fixtures/wait.js";
import type { Gateway, GatewayConfig, GatewayOptions } from "./harness.js";

const GATEWAYS = 3;
/** One for a file; its Toolways are told apart by their prefixes. */
let nats: Promise<Nats> | undefined;
let prefixes = 0;
const ends: (() => void)[] = [];
afterAll(() => {
  for (const end of ends) end();
});

export async function startSplit(
  config: GatewayConfig,
  options: GatewayOptions,
  startOne: (config: GatewayConfig, options: GatewayOptions) => Promise<Gateway>,
): Promise<Gateway> {
  nats ??= startNats();
  const folder = temporaryFolder("toolway-split-");
  const key = join(folder, "key");
  writeFileSync(key, makeEngineKey(), { mode: 0o600 });
  const engine = { nats: (await nats).urls, key: { file: key }, replicas: 1, prefix: `split${++prefixes}` };
  const shared = { ...options, configPath: options.configPath ?? join(folder, "toolway.json") };
  // These can be one gateway's alone.
  const { stateDir: _stateDir, port: _port, ...rest } = shared;
  const on = (one: GatewayConfig): GatewayConfig => ({ ...one, engine });
  const each = (n: number) => startOne(on(config), n === 0 ? shared : rest);
  let all = await Promise.all(Array.from({ length: GATEWAYS }, (_, n) => each(n)));
  await known(all);
  const { port, close } = await balanceRequests(() => all.map((one) => one.port));
  ends.push(close);
  const [first] = all as [Gateway];
  const origin = `http://127.0.0.1:${port}`;
  const split: Gateway = {
    ...first,
    url: `${origin}/mcp`,
    origin,
    port,
    log: () => all.map((one) => one.log()).join("\n"),
    writeConfig: (next) => first.writeConfig(typeof next === "string" ? next : on(next)),
    signal: (signal) => {
      for (const one of all) one.signal(signal);
    },
    stop: async (signal) => {
      await Promise.all(all.map((one) => one.stop(signal)));
    },
    again: async () => {
      all = await Promise.all(all.map((one) => one.again()));
      await known(all);
      return split;
    },
  };
  return split;
}

/** What belongs at another is passed there only by who knows it. */
async function known(all: readonly Gateway[]): Promise<void> {
  const seenBy = async ({ stateDir }: Gateway) =>
    (await (await findGateway(stateDir))?.get<GatewayStatus>("/status"))?.engine?.gateways.length;
  await until("each gateway to know the others", async () =>
    (await Promise.all(all.map(seenBy))).every((count) => count === GATEWAYS),
  );
}
