// The gateway that runs for a config, for verbs that make no sense without one.

import { UserError } from "../line/errors.js";
import type { Io } from "../line/io.js";
import { type GatewayClient, runningGateway } from "./port.js";
import { gatewayFor } from "./which.js";

export async function demandGateway(input: Parameters<typeof gatewayFor>[0], io: Io): Promise<GatewayClient> {
  const source = await gatewayFor(input, io);
  const client = await (await runningGateway()).find(source);
  if (client !== undefined) return client;
  throw new UserError("No gateway runs for this config.", {
    hint: source.others ?? "`toolway serve` starts one, with all its servers. Another config's: add --config FILE.",
  });
}
