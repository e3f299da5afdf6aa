// What a gateway keeps: tokens, the sealing key, last-known lists. In a state directory that it alone holds, or, for
// programs that embed it without one, in memory.

import { createHmac, randomBytes } from "node:crypto";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { SessionRecord } from "../../contracts/session-record.js";
import type { DumpEntry, DurableMap, Store } from "../../contracts/store.js";
import type { DoorRecord } from "../../control/door/door.js";
import type { GrantRecord, GrantStore } from "../../credentials/grant.js";
import { TaskIds } from "../../pipeline/tasks/ids.js";
import type { TaskRecord } from "../../pipeline/tasks/table.js";
import type { ContextChanges } from "../../policy/contexts.js";
import { isObject, type JsonObject } from "../../protocol/jsonrpc.js";
import { isRedacted } from "../../runtime/redact/redactor.js";
import { redactorFor, type SecretSource } from "../../runtime/redact/secrets-of.js";
import { createSealer, createSteadySealer, createVault, openKey, type Sealer } from "../../runtime/seal.js";
import { lockStateDir } from "../../runtime/state-dir.js";
import { visible } from "../../runtime/visible.js";
import { openStore } from "../../store/local/store.js";
import { MemoryMap } from "../../store/memory-map.js";
import { TokenBook, type TokenRecord } from "../../tokens/tokens.js";
import type { RunRecord } from "../runs/run-book.js";
import type { EraRecord } from "./stored-eras.js";
import type { PinRecord } from "./stored-pins.js";

export interface GatewayState {
  /** Undefined where nothing outlives the process. */
  readonly dir: string | undefined;
  readonly sealer: Sealer;
  readonly tokens: TokenBook;
  /** What is known of each server, by its name: snapshots of the catalog. */
  readonly known: DurableMap<JsonObject>;
  /** Which era each server speaks, by its name. */
  readonly eras: DurableMap<EraRecord>;
  readonly pins: DurableMap<PinRecord>;
  /** Which sessions have ended, and when those that have not were used. */
  readonly sessions: DurableMap<SessionRecord>;
  /** What is known of each principal's situation, by its id. */
  readonly contexts: DurableMap<ContextChanges>;
  /** The runs of agents that hold a secret of their own, by their ids. */
  readonly runs: DurableMap<RunRecord>;
  /** Who may look through the operator's door. */
  readonly door: DurableMap<DoorRecord>;
  /** The logins at servers, sealed, by the names of these. */
  readonly grants: GrantStore;
  /** What tells this gateway's inboxes at brokers from those of others that have the same token. */
  readonly inbox: string;
  readonly taskIds: TaskIds;
  /** Whose each task is. */
  readonly tasks: DurableMap<TaskRecord>;
  /** Where mailboxes are kept. Undefined where nothing outlives the process: there are none then. */
  readonly store: Store | undefined;
  dump(): AsyncIterable<DumpEntry>;
  close(): Promise<void>;
}

const SEALING_KEY_BYTES = 32;

/** Takes the lock of `dir` first. Throws what says who holds it, or what is wrong with the directory. */
export async function openState(dir: string, env: NodeJS.ProcessEnv): Promise<GatewayState> {
  const lock = await lockStateDir(dir);
  try {
    const key = openKey(join(dir, "sealing-key"));
    const store = await openStore({ dir: join(dir, "store") });
    const tokens = new TokenBook({
      map: store.map<TokenRecord>("tokens"),
      tokenPath: join(dir, "token"),
      fromEnvironment: env["TOOLWAY_TOKEN"],
    });
    return {
      dir,
      sealer: createSealer(key),
      tokens,
      known: store.map<JsonObject>("known"),
      eras: store.map<EraRecord>("eras"),
      pins: store.map<PinRecord>("pins"),
      sessions: store.map<SessionRecord>("sessions"),
      contexts: store.map<ContextChanges>("contexts"),
      runs: store.map<RunRecord>("runs"),
      door: store.map<DoorRecord>("door"),
      grants: { map: store.map<GrantRecord>("logins"), vault: createVault(key) },
      inbox: inboxOf(key),
      taskIds: taskIdsOf(key),
      tasks: store.map<TaskRecord>("tasks"),
      store,
      dump: () => withoutBodies(store.dump()),
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

/** Maps of which nothing but the keys is shown. */
const BODIES: ReadonlySet<string> = new Set(["door", "journal-parts", "logins", "outbox-messages", "outbox-results"]);

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

export function memoryState(env: NodeJS.ProcessEnv): GatewayState {
  const tokens = new TokenBook({
    map: new MemoryMap<TokenRecord>("tokens"),
    tokenPath: undefined,
    fromEnvironment: env["TOOLWAY_TOKEN"],
  });
  const known = new MemoryMap<JsonObject>("known");
  return {
    dir: undefined,
    sealer: createSealer(randomBytes(SEALING_KEY_BYTES)),
    tokens,
    known,
    eras: new MemoryMap<EraRecord>("eras"),
    pins: new MemoryMap<PinRecord>("pins"),
    sessions: new MemoryMap<SessionRecord>("sessions"),
    contexts: new MemoryMap<ContextChanges>("contexts"),
    runs: new MemoryMap<RunRecord>("runs"),
    door: new MemoryMap<DoorRecord>("door"),
    grants: { map: new MemoryMap<GrantRecord>("logins"), vault: createVault(randomBytes(SEALING_KEY_BYTES)) },
    inbox: inboxOf(randomBytes(SEALING_KEY_BYTES)),
    taskIds: taskIdsOf(randomBytes(SEALING_KEY_BYTES)),
    tasks: new MemoryMap<TaskRecord>("tasks"),
    store: undefined,
    async *dump() {
      for (const [key, value] of known.entries()) yield { map: known.name, key, value };
    },
    close: async () => {},
  };
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
