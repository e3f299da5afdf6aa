// Opens the engine for one gateway: the connection, the sealing key that all gateways on it share, and what they keep
// together. Says for how long what is known from it is current while it is away. Loaded only where the config has an engine.

import type { EngineStatus, GatewayEngine } from "../../contracts/engine/engine.js";
import type { Partitions } from "../../contracts/engine/partitions.js";
import type { EngineSettings } from "../../contracts/settings.js";
import type { BudgetGrants } from "../../policy/slices.js";
import { systemClock } from "../../runtime/clock.js";
import { createTextVault } from "../../runtime/seal.js";
import { resultWithin } from "../../runtime/wait.js";
import { randomId } from "../../runtime/words/random-id.js";
import { type Engine, openEngine } from "../../store/nats/connection.js";
import { openPeers } from "../../store/nats/peers.js";
import { type NatsStores, openNatsStores } from "../../store/nats/store.js";
import { enginePromises } from "../../store/nats/versions.js";
import { openPartitions } from "../../store/ownership/partitions.js";
import { SharedBudgets } from "./budgets.js";
import { engineFacts } from "./facts.js";
import { engineKeys, openSealingKey } from "./keyring.js";
import type { EngineKey, WrappedKey } from "./keys.js";

/** Tells gateways apart, and each start of one: a name that is drawn twice would be two owners of one lease. */
const SELF_BYTES = 9;
const newSelf = () => randomId(SELF_BYTES);

/** To hand everything over, or for writes to end: a gateway that stops must not wait for an engine that does not answer. */
const RELEASE_MS = 20_000;
const AWAY_CLOSE_MS = 1_000;

/** Whoever is told to come back does so no sooner: all agents of a gateway are told at once. */
const MIN_RETRY_MS = 1_000;

/** How often it is looked at whether the engine has gone silent. */
const LOOK_MS = 1_000;

/** What partitions of mailboxes are told from others by, in the engine. */
const MAIL = "mail";

interface EngineLog {
  info(text: string): void;
  warn(text: string): void;
}

/** What is known from the engine is too old: in how many milliseconds to ask again. Undefined while it may be taken for current. */
export function retryWhenStale(status: EngineStatus, staleMs: number, nowMs: number): number | undefined {
  const { state, nextTryMs, mute } = status;
  const sinceMs = state === "connected" ? mute?.sinceMs : status.sinceMs;
  if (sinceMs === undefined || nowMs - sinceMs < staleMs) return undefined;
  return Math.max(MIN_RETRY_MS, (nextTryMs ?? nowMs) - nowMs);
}

/** Throws what says what is wrong with the engine, its secrets or its key; nothing stays open then. */
export async function openGatewayEngine(
  settings: EngineSettings,
  env: NodeJS.ProcessEnv,
  log: EngineLog,
): Promise<{ engine: GatewayEngine; key: Uint8Array }> {
  const keys = engineKeys(settings.key, env);
  const warn = (text: string) => log.warn(text);
  const self = newSelf();
  const connection = await openEngine(settings, { env, name: `toolway ${self}` });
  try {
    const { prefix, replicas } = settings;
    const stores = await openNatsStores({ engine: connection, prefix, replicas, warn });
    const key = await sealingKey(stores, keys);
    const vault = createTextVault(key);
    const shared = await stores.shared(vault);
    const open = (partition: number) => stores.partition(partition, vault);
    const partitions = await openPartitions({ shared, open, self, clock: systemClock, warn });
    const peers = await openPeers({ engine: connection, prefix, self, key });
    const budgets = new SharedBudgets({
      map: shared.shared<BudgetGrants>("budgets"),
      gateways: () => partitions.gateways().map(({ gateway }) => gateway),
      self,
      status: () => connection.status,
      now: systemClock.now,
      wall: systemClock.wall,
    });
    const lookTimer = setInterval(() => connection.look(), LOOK_MS).unref();
    const ends: (() => Promise<void>)[] = [() => budgets.close()];
    let mail: Promise<Partitions> | undefined;
    const openMail = (partition: number) => stores.partition(partition, vault, MAIL);
    const engine: GatewayEngine = {
      self,
      shared,
      partitions,
      mailPartitions: () => {
        // One that failed, as in an election, is not kept: it is tried again when it is next asked for.
        mail ??= openPartitions({ shared, open: openMail, self, clock: systemClock, warn, group: MAIL }).catch(
          (error) => {
            mail = undefined;
            throw error;
          },
        );
        return mail;
      },
      peers,
      budgets: budgets.window,
      status: () => connection.status,
      staleForMs: () => retryWhenStale(connection.status, settings.staleMs, systemClock.now()),
      isNeededToBeReady: settings.failReady,
      watch: (listener) => connection.watch(listener),
      onClose: (act) => void ends.push(act),
      async close() {
        clearInterval(lookTimer);
        try {
          // Without it nothing can be handed over, and what is under way ends by itself.
          const isThere = connection.status.state === "connected";
          await resultWithin(Promise.all(ends.map((act) => act())), AWAY_CLOSE_MS);
          const mails = mail?.then((own) => own.release()).catch(() => {});
          await resultWithin(Promise.all([partitions.release(), mails]), isThere ? RELEASE_MS : AWAY_CLOSE_MS);
          await peers.close();
          await resultWithin(shared.close(), isThere ? RELEASE_MS : AWAY_CLOSE_MS);
        } finally {
          await connection.close();
        }
      },
    };
    tellChanges(connection, log);
    // Nobody waits for it: the monitoring port may be slow.
    void tellPromises(connection, log);
    return { engine, key };
  } catch (error) {
    await connection.close();
    throw error;
  }
}

/** What an operator who reads the log has to know: that it went, why, that it is back, and that it is full. */
function tellChanges(connection: Engine, log: EngineLog): void {
  let before = connection.status;
  connection.watch((status) => {
    const { state, problem, node, full, mute } = status;
    if (state !== before.state && (state === "away" || state === "refused")) {
      log.warn(`engine: ${problem ?? "It is away."} Calls go on; what has to be written waits for it.`);
    }
    if (state === "connected" && before.state !== "connected") log.info(`engine: connected to ${node} again`);
    if (full !== undefined && before.full === undefined) {
      log.warn(`engine: ${full} Until it has, nothing is kept, delivered or handed out.`);
    }
    if (full === undefined && before.full !== undefined && state === "connected") log.info("engine: it has room again");
    if (mute !== undefined && before.mute === undefined) {
      log.warn(`engine: ${mute.why} Calls go on; what has to be written is refused until one does.`);
    }
    if (mute === undefined && before.mute !== undefined && state === "connected") log.info("engine: it tells again");
    before = status;
  });
}

/** A start says which promises hold on this engine, and which do not. */
async function tellPromises(connection: Engine, log: EngineLog): Promise<void> {
  const { facts, problem } = await engineFacts(connection);
  if (problem !== undefined) log.warn(problem);
  for (const { holds, sentence } of enginePromises(facts)) log[holds ? "info" : "warn"](`engine: ${sentence}`);
}

async function sealingKey(stores: NatsStores, keys: readonly [EngineKey, ...EngineKey[]]): Promise<Uint8Array> {
  await using store = await stores.keys();
  // The store is closed first otherwise, and what is thrown meanwhile ends the process.
  return await openSealingKey(store.shared<WrappedKey>("keys"), keys);
}
