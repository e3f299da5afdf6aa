// Opens the engine for one gateway: the connection, the sealing key that all gateways on it share, and what they keep
// together. Loaded only where the config has an engine.

import { randomBytes } from "node:crypto";
import type { GatewayEngine } from "../../contracts/engine/engine.js";
import type { EngineSettings } from "../../contracts/settings.js";
import { createTextVault } from "../../runtime/seal.js";
import { openEngine } from "../../store/nats/connection.js";
import { type NatsStores, openNatsStores } from "../../store/nats/store.js";
import { engineKeys, openSealingKey } from "./keyring.js";
import type { EngineKey, WrappedKey } from "./keys.js";

/** Tells gateways apart, and each start of one: a name that is drawn twice would be two owners of one lease. */
const SELF_BYTES = 9;

/** Throws what says what is wrong with the engine, its secrets or its key; nothing stays open then. */
export async function openGatewayEngine(
  settings: EngineSettings,
  env: NodeJS.ProcessEnv,
  warn: (text: string) => void,
): Promise<{ engine: GatewayEngine; key: Uint8Array }> {
  const keys = engineKeys(settings.key, env);
  const self = randomBytes(SELF_BYTES).toString("base64url");
  const connection = await openEngine(settings, { env, name: `toolway ${self}` });
  try {
    const { prefix, replicas } = settings;
    const stores = await openNatsStores({ engine: connection, prefix, replicas, warn });
    const key = await sealingKey(stores, keys);
    const shared = await stores.shared(createTextVault(key));
    const engine: GatewayEngine = {
      self,
      shared,
      status: () => connection.status,
      watch: (listener) => connection.watch(listener),
      async close() {
        try {
          await shared.close();
        } finally {
          await connection.close();
        }
      },
    };
    return { engine, key };
  } catch (error) {
    await connection.close();
    throw error;
  }
}

async function sealingKey(stores: NatsStores, keys: readonly [EngineKey, ...EngineKey[]]): Promise<Uint8Array> {
  await using store = await stores.keys();
  return openSealingKey(store.shared<WrappedKey>("keys"), keys);
}
