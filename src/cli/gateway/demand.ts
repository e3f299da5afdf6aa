// The gateway that runs for a config, for verbs that make no sense without one.

import { UserError } from "../line/errors.js";
import type { Io } from "../line/io.js";
import { type GatewayClient, runningGateway } from "./port.js";
import { gatewayFor } from "./which.js";

/** What is said where none runs, unless several do, which are named then. */
interface Demand {
  readonly message: string;
  readonly hint: string;
  readonly orBroker?: boolean;
}

export const USUAL: Demand = {
  message: "No gateway runs for this config.",
  hint: "`toolway serve` starts one, with all its servers. Another config's: add --config FILE.",
};

export async function demandGateway(
  input: Parameters<typeof gatewayFor>[0],
  io: Io,
  { message, hint, orBroker = false }: Demand = USUAL,
): Promise<GatewayClient> {
  const source = await gatewayFor(input, io, { orBroker });
  const client = await (await runningGateway()).find(source);
  if (client !== undefined) return client;
  throw new UserError(message, { hint: source.others ?? hint });
}
