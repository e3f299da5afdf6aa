// Fits the gateway to the port that the CLI's verbs are written against. Loaded by gateway-port.ts when first needed.

import { UserError } from "./errors.js";
import type { GatewayPort } from "./gateway-port.js";

function missing(): never {
  throw new UserError("This build has no gateway yet.");
}

export const adapter: GatewayPort = {
  find: async () => undefined,
  start: async () => missing(),
  local: async () => missing(),
  stdio: async () => missing(),
  probe: async () => missing(),
  defaultToken: async () => undefined,
};
