// What a gateway keeps: tokens, the sealing key, last-known lists. In a state directory that it alone holds, or, for
// programs that embed it without one, in memory. Where several gateways share an engine, what is theirs together is there,
// and what is this machine's alone stays where it was.

import { createHmac, randomBytes } from "node:crypto";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { GatewayEngine } from "../../contracts/engine/engine.js";
import type { SessionRecord } from "../../contracts/session-record.js";
import type { DumpEntry, DurableMap, SharedMap, Store } from "../../contracts/store.js";
import type { DoorRecord } from "../../control/door/door.js";
import type { GrantRecord, GrantStore } from "../../credentials/grant.js";
import { type RenewalClaim, RenewalClaims } from "../../credentials/renewal-claims.js";
import type { ChainHead } from "../../observe/audit/chain.js";
import { TaskIds } from "../../pipeline/tasks/ids.js";
import type { TaskRecord } from "../../pipeline/tasks/table.js";
import type { ContextChanges } from "../../policy/contexts.js";
import { isObject, type JsonObject } from "../../protocol/jsonrpc.js";
import { systemClock } from "../../runtime/clock.js";
import { isRedacted } from "../../runtime/redact/redactor.js";
import { redactorFor, type SecretSource } from "../../runtime/redact/secrets-of.js";
import { createSealer, createSteadySealer, createVault, openKey, type Sealer } from "../../runtime/seal.js";
import { lockStateDir } from "../../runtime/state-dir.js";
import { visible } from "../../runtime/visible.js";
import { openStore } from "../../store/local/store.js";
import { MemoryMap } from "../../store/memory-map.js";
import { StoreError } from "../../store/store-error.js";
import { newSecret, TokenBook, type TokenRecord } from "../../tokens/tokens.js";
import type { RunRecord } from "../runs/run-book.js";
import { demandUnmarked, MARK_MAP, markOf } from "./mark.js";
import { joinPins } from "./pin-record.js";
import type { EraRecord } from "./stored-eras.js";
import type { PinRecord } from "./stored-pins.js";

export interface GatewayState {
  /** Undefined where nothing outlives the process. */
  readonly dir: string | undefined;
  readonly sealer: Sealer;
  readonly tokens: TokenBook;
  /** Those of the operator's door. Another book: none of them is known where agents come in, and no other is known there. */
  readonly adminTokens: TokenBook;
  /** What is known of each server, by its name: snapshots of the catalog. */
  readonly known: SharedMap<JsonObject>;
  /** Which era each server speaks, by its name. */
  readonly eras: SharedMap<EraRecord>;
  readonly pins: SharedMap<PinRecord>;
  /** Which sessions have ended, and when those that have not were used. */
  readonly sessions: SharedMap<SessionRecord>;
  /** What is known of each principal's situation, by its id. */
  readonly contexts: SharedMap<ContextChanges>;
  /** The runs of agents that hold a secret of their own, by their ids. */
  readonly runs: SharedMap<RunRecord>;
  /** Who may look through the operator's door. */
  readonly door: DurableMap<DoorRecord>;
  /** The last line of the audit log, under `head`: this machine's alone, as the files are. */
  readonly audit: DurableMap<ChainHead>;
  /** For HMACs of arguments in it. */
  readonly auditKey: Uint8Array;
  /** The logins at servers, sealed, by the names of these. */
  readonly grants: GrantStore;
  /** What tells this gateway's inboxes at brokers from those of others that have the same token. */
  readonly inbox: string;
  /** What all gateways on one engine have together; undefined where this one is alone. */
  readonly engine: GatewayEngine | undefined;
  readonly taskIds: TaskIds;
  /** Whose each task is. */
  readonly tasks: SharedMap<TaskRecord>;
  /** Where mailboxes are kept. Undefined where nothing outlives the process: there are none then. */
  readonly store: Store | undefined;
  /** Whether what is on this machine's disk was moved away: what is queued there is somebody else's. */
  readonly isMovedAway: boolean;
  /** Tells where what several gateways share is, or was since it was opened, moved elsewhere: this one must stop. */
  onMarked(listener: (why: string) => void): void;
  dump(): AsyncIterable<DumpEntry>;
  close(): Promise<void>;
}

const SEALING_KEY_BYTES = 32;

/** What is this machine's alone, whoever else there is. */
interface Place {
  /** Undefined where nothing outlives the process. */
  readonly dir: string | undefined;
  readonly key: Uint8Array;
  readonly store: Store | undefined;
  shared<V>(name: string): SharedMap<V>;
  close(): Promise<void>;
}

/** What several gateways have together: their engine, and the sealing key that it keeps for them. */
export interface SharedPlace {
  readonly engine: GatewayEngine;
  readonly key: Uint8Array;
}

/** Takes the lock of `dir` first. Throws what says who holds it, or what is wrong with the directory. */
export async function openState(dir: string | undefined, env: NodeJS.ProcessEnv): Promise<GatewayState> {
  const place = dir === undefined ? memoryPlace() : await openPlace(dir);
  return withPlace(place, async () => {
    // Before a token is looked up: nothing of it is used.
    if (place.store !== undefined) {
      await demandUnmarked(place.store);
      await joinPins(place.store);
    }
    return stateOf(place, undefined, tokensOf(place, env));
  });
}

/** The same for one of several gateways. The engine is closed with the state, and where it cannot be opened. */
export async function openSharedState(
  dir: string | undefined,
  env: NodeJS.ProcessEnv,
  openEngine: () => Promise<SharedPlace>,
): Promise<GatewayState> {
  // The lock first: of a gateway that is started a second time the engine need not hear.
  const place = dir === undefined ? memoryPlace() : await openPlace(dir);
  return withPlace(place, async () => {
    const shared = await openEngine();
    try {
      await demandUnmarked(shared.engine.shared);
      const { map, tokens } = await sharedTokens(shared, env);
      map.watch((id, record) => tokens.told(id, record));
      return stateOf(place, shared, tokens);
    } catch (error) {
      await shared.engine.close();
      throw error;
    }
  });
}

async function withPlace(place: Place, make: () => GatewayState | Promise<GatewayState>): Promise<GatewayState> {
  try {
    return await make();
  } catch (error) {
    await place.close();
    throw error;
  }
}

function tokensOf(place: Place, env: NodeJS.ProcessEnv): TokenBook {
  return new TokenBook({
    map: place.shared<TokenRecord>("tokens"),
    tokenPath: place.dir === undefined ? undefined : join(place.dir, "token"),
    fromEnvironment: env["TOOLWAY_TOKEN"],
  });
}

interface DefaultTokenRecord {
  readonly v: 1;
  readonly sealed: string;
}

const DEFAULT_TOKEN = "default";

/** The default token is made by the first gateway, and is good at all. One from the environment is this gateway's alone. */
async function sharedTokens(
  { engine, key }: SharedPlace,
  env: NodeJS.ProcessEnv,
): Promise<{ map: SharedMap<TokenRecord>; tokens: TokenBook }> {
  const map = engine.shared.shared<TokenRecord>("tokens");
  const fromEnvironment = env["TOOLWAY_TOKEN"];
  if (fromEnvironment !== undefined && fromEnvironment !== "")
    return { map, tokens: new TokenBook({ map, fromEnvironment, tokenPath: undefined }) };
  const defaults = engine.shared.shared<DefaultTokenRecord>("default-token");
  const vault = createVault(key);
  const { token } = newSecret();
  const isNew =
    defaults.get(DEFAULT_TOKEN) === undefined &&
    (await defaults.create(DEFAULT_TOKEN, { v: 1, sealed: vault.seal("default token", token) })) !== undefined;
  const kept = isNew ? token : vault.unseal("default token", defaults.get(DEFAULT_TOKEN)?.sealed ?? "");
  if (typeof kept !== "string") {
    throw new StoreError(
      "newer",
      "The default token in the engine cannot be read: a newer Toolway made it. Update this one.",
    );
  }
  return { map, tokens: new TokenBook({ map, tokenPath: undefined, given: { token: kept, source: "engine", isNew } }) };
}

async function openPlace(dir: string): Promise<Place> {
  const lock = await lockStateDir(dir);
  try {
    const key = openKey(join(dir, "sealing-key"));
    const store = await openStore({ dir: join(dir, "store") });
    return {
      dir,
      key,
      store,
      shared: (name) => store.shared(name),
      async close() {
        try {
          await store.close();
        } finally {
          await lock.release();
        }
      },
    };
  } catch (error) {
    await lock.release();
    throw error;
  }
}

function memoryPlace(): Place {
  const maps = new Map<string, MemoryMap<unknown>>();
  return {
    dir: undefined,
    key: randomBytes(SEALING_KEY_BYTES),
    store: undefined,
    shared<V>(name: string) {
      const map = maps.get(name) ?? new MemoryMap<unknown>(name);
      maps.set(name, map);
      return map as unknown as MemoryMap<V>;
    },
    close: async () => {},
  };
}

function stateOf(place: Place, shared: SharedPlace | undefined, tokens: TokenBook): GatewayState {
  const { dir, store } = place;
  const key = shared?.key ?? place.key;
  const maps: Pick<Store, "shared"> = shared?.engine.shared ?? place;
  const known = maps.shared<JsonObject>("known");
  return {
    dir,
    sealer: createSealer(key),
    tokens,
    // The door is of this machine, whoever else there is.
    adminTokens: new TokenBook({ map: place.shared<TokenRecord>("admin-tokens"), tokenPath: undefined }),
    known,
    eras: maps.shared<EraRecord>("eras"),
    pins: maps.shared<PinRecord>("pins"),
    sessions: maps.shared<SessionRecord>("sessions"),
    contexts: maps.shared<ContextChanges>("contexts"),
    runs: maps.shared<RunRecord>("runs"),
    door: place.shared<DoorRecord>("door"),
    audit: place.shared<ChainHead>("audit"),
    auditKey: createHmac("sha256", place.key).update("audit arguments").digest(),
    grants: {
      map: maps.shared<GrantRecord>("logins"),
      vault: createVault(key),
      claims:
        shared === undefined
          ? undefined
          : new RenewalClaims(maps.shared<RenewalClaim>("login-claims"), shared.engine.self, systemClock.now),
    },
    // Each gateway has inboxes of its own, also where the rest is shared.
    inbox: inboxOf(place.key),
    engine: shared?.engine,
    taskIds: taskIdsOf(key),
    tasks: maps.shared<TaskRecord>("tasks"),
    store,
    isMovedAway: store !== undefined && markOf(store) !== undefined,
    onMarked(listener) {
      const marks = shared?.engine.shared;
      if (marks === undefined) return;
      const look = () => {
        const mark = markOf(marks);
        if (mark === undefined) return;
        // Where the sentence cannot be loaded, it must stop all the same.
        const short = `What is kept in ${mark.self} is moved to ${mark.other}.`;
        const text = import("./mark-text.js").then(({ refusalOf }) => refusalOf(mark)).catch(() => short);
        void text.then(listener);
      };
      marks.shared(MARK_MAP).watch(look);
      // It may have been marked between our opening it and this moment; nobody would tell it again.
      look();
    },
    dump: () => withoutBodies(allEntries(known, store, shared?.engine.shared)),
    async close() {
      try {
        await shared?.engine.close();
      } finally {
        await place.close();
      }
    },
  };
}

/** Without a store it is what is known of servers; the rest of what is in memory is nobody's who looks. */
async function* allEntries(
  known: DurableMap<JsonObject>,
  ...stores: readonly (Store | undefined)[]
): AsyncIterableIterator<DumpEntry> {
  if (stores.every((store) => store === undefined)) {
    for (const [key, value] of known.entries()) yield { map: known.name, key, value };
  }
  for (const store of stores) if (store !== undefined) yield* store.dump();
}

/** Maps of which nothing but the keys is shown. */
const BODIES: ReadonlySet<string> = new Set([
  "default-token",
  "door",
  "journal-parts",
  "logins",
  "outbox-messages",
  "outbox-results",
]);

/** What is in messages is nobody's who looks at the state: of each, who sent it to whom, and when. */
async function* withoutBodies(entries: AsyncIterable<DumpEntry>): AsyncIterableIterator<DumpEntry> {
  for await (const entry of entries) {
    if ("map" in entry && BODIES.has(entry.map)) yield { ...entry, value: undefined };
    else if ("map" in entry && entry.map === "journal") {
      const { reply: _, ...rest } = entry.value as JsonObject;
      yield { ...entry, value: rest };
    } else if (!("log" in entry)) yield entry;
    else if (Array.isArray(entry.value)) yield { ...entry, value: entry.value[1] };
    else {
      const { record, ...rest } = entry.value as { readonly record?: readonly unknown[] };
      yield { ...entry, value: record === undefined ? rest : { ...rest, header: record[1] } };
    }
  }
}

/** Made from the key, which is kept over restarts and in each state directory another: nothing else has to be. */
function inboxOf(key: Uint8Array): string {
  return createHmac("sha256", key).update("inbox").digest("hex").slice(0, 16);
}

function taskIdsOf(key: Uint8Array): TaskIds {
  const sealer = createSteadySealer(key);
  return new TaskIds({ seal: (value) => sealer.seal("task", value), unseal: (text) => sealer.unseal("task", text) });
}

/** A text of a server's, without the secrets of its entry. What is no longer in the config has none that is known. */
export function redactedText(
  servers: readonly { readonly name: string; readonly target: SecretSource }[],
  server: string,
  text: string,
): string {
  const target = servers.find(({ name }) => name === server)?.target;
  return target === undefined ? text : redactorFor(target).redact(text);
}

/**
 * Takes the secrets that a server's entry has now out of a text, whenever that is looked at. Undefined for a server that is
 * not in the config: nobody knows what of its texts is secret.
 */
export function redactionOf(
  servers: readonly { readonly name: string; readonly target: SecretSource }[],
  server: string,
): ((text: string, isCut: boolean) => string) | undefined {
  const target = servers.find(({ name }) => name === server)?.target;
  if (target === undefined) return undefined;
  const redactor = redactorFor(target).asOfNow();
  return (text, isCut) => redactor.redact(text, isCut);
}

/** A text that may hold words of any of them, on one line: without the secrets of all entries, and with nothing hidden. */
export function safeLine(
  servers: readonly { readonly name: string; readonly target: SecretSource }[],
  text: string,
): string {
  return visible(servers.reduce((left, { target }) => redactorFor(target).redact(left), text));
}

/** So many characters are looked at in one turn of the event loop, which takes some milliseconds. */
const CHARACTERS_A_TURN = 64 * 1024;

/** Maps whose keys are names of servers; in the others the value says whose it is. */
const BY_SERVER: ReadonlySet<string> = new Set(["known", "eras"]);

/**
 * What is kept, as an operator is shown it: without the secrets of the servers' entries, which a server may have put into
 * what it says of itself and of its tools. `redact` takes those of one server out of a text.
 */
export async function* redactedDump(
  entries: AsyncIterable<DumpEntry>,
  redact: (server: string, text: string) => string,
): AsyncIterable<DumpEntry> {
  for await (const entry of entries) {
    const server = serverOf(entry);
    yield server === undefined ? entry : { ...entry, value: await cleaned(entry.value, server, redact) };
  }
}

function serverOf(entry: DumpEntry): string | undefined {
  if ("map" in entry && BY_SERVER.has(entry.map)) return entry.key;
  const server = isObject(entry.value) ? entry.value["server"] : undefined;
  return typeof server === "string" ? server : undefined;
}

async function cleaned(value: unknown, server: string, redact: (server: string, text: string) => string) {
  let left = CHARACTERS_A_TURN;
  const clean = async (part: unknown): Promise<unknown> => {
    if (typeof part === "string") {
      left -= part.length;
      if (left < 0) {
        left = CHARACTERS_A_TURN;
        await nextTurn();
      }
      const redacted = redact(server, part);
      return isRedacted(redacted) ? redacted : part;
    }
    if (Array.isArray(part)) {
      const parts: unknown[] = [];
      for (const one of part) parts.push(await clean(one));
      return parts;
    }
    if (!isObject(part)) return part;
    const members: [string, unknown][] = [];
    for (const [name, one] of Object.entries(part)) members.push([name, await clean(one)]);
    return Object.fromEntries(members);
  };
  return clean(value);
}
