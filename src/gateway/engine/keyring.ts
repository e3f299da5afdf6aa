// The sealing key that all gateways on one engine share: made by the first, wrapped under the engine's key, and wrapped
// anew when another of the engine's keys is put first.

import { randomBytes } from "node:crypto";
import type { EngineSecret } from "../../contracts/settings.js";
import type { SharedMap } from "../../contracts/store.js";
import { readSecret } from "../../store/nats/auth.js";
import { type EngineKey, EngineKeyError, readEngineKeys, unwrapKey, type WrappedKey, wrapKey } from "./keys.js";

const NAME = "sealing";
const KEY_BYTES = 32;
/** Each lost race means that another gateway has written; a few starting at once are done after one. */
const MAX_TRIES = 16;

/** The same bytes at every gateway. `map` is one in the engine, of nothing else. */
export async function openSealingKey(
  map: SharedMap<WrappedKey>,
  keys: readonly [EngineKey, ...EngineKey[]],
): Promise<Uint8Array> {
  for (let n = 0; n < MAX_TRIES; n++) {
    const found = map.read(NAME);
    if (found === undefined) {
      const key = randomBytes(KEY_BYTES);
      if ((await map.create(NAME, wrapKey(key, keys))) !== undefined) return key;
      continue;
    }
    const key = unwrapKey(found.value, keys);
    if (found.value.by === keys[0].id) return key;
    // The first of our keys is in use from now on. Those who know it only as their second open it as well.
    if ((await map.update(NAME, wrapKey(key, keys), found.revision)) !== undefined) return key;
  }
  throw new EngineKeyError(
    "The engine's sealing key was changed by others again and again: gateways have different keys first in their lists. Give all the same.",
  );
}

/** The same, where there is one already: nothing is made or wrapped anew. */
export function findSealingKey(
  map: SharedMap<WrappedKey>,
  keys: readonly [EngineKey, ...EngineKey[]],
): Uint8Array | undefined {
  const found = map.read(NAME);
  return found === undefined ? undefined : unwrapKey(found.value, keys);
}

/** Has the gateways on the engine share this key, where they have none yet. Throws where another was faster. */
export async function giveSealingKey(
  map: SharedMap<WrappedKey>,
  keys: readonly [EngineKey, ...EngineKey[]],
  key: Uint8Array,
): Promise<void> {
  if ((await map.create(NAME, wrapKey(key, keys))) !== undefined) return;
  if (Buffer.compare(unwrapKey(map.read(NAME)?.value as WrappedKey, keys), key) === 0) return;
  throw new EngineKeyError("A gateway was started on the engine in this moment, and made a sealing key of its own.");
}

/** The engine's keys as this gateway was given them. Throws what says where they were looked for. */
export function engineKeys(key: EngineSecret, env: NodeJS.ProcessEnv): readonly [EngineKey, ...EngineKey[]] {
  const where = key.from === "env" ? `The variable ${key.name}` : `The file ${key.path}`;
  return readEngineKeys(readSecret(key, "the engine's key, which `toolway engine key` makes", env), where);
}
