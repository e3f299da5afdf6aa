// The schema version of a store and the steps from one version to the next. Owns no data: each step says what it
// changes, and runs in the one transaction in which the version changes too.

import { messageOf } from "../../runtime/expected-error.js";
import { corrupt, StoreError, toStoreError } from "../store-error.js";
import { envStats, fileEnd, usedBytes } from "./committer.js";
import type { Env } from "./env.js";
import { after, type Kind, logKey, logSequence, mapKey, mapKeyText, prefixOf, SCHEMA_KEY } from "./keys.js";
import type { Space } from "./space.js";

/** What a migration may do. All of it happens in one transaction, or not at all. */
interface MigrationStore {
  /** All entries of a map or log, keys as text for maps and sequence numbers for logs. */
  entries(kind: Kind, name: string): Iterable<{ key: string | number; value: unknown }>;
  put(kind: Kind, name: string, key: string | number, value: unknown): void;
  delete(kind: Kind, name: string, key: string | number): void;
}

export interface Migration {
  /** What changes, in a few words: shown when it fails. */
  readonly name: string;
  run(store: MigrationStore): void;
}

/**
 * In order; never changed or removed once released, only added to. A store's version is 1 + the number of migrations
 * that it has seen.
 */
export const MIGRATIONS: readonly Migration[] = [];

/** Brings the store to the code's version; throws a StoreError and changes nothing where that cannot be. */
export function migrate(
  env: Env,
  space: Space | undefined,
  path: string,
  migrations: readonly Migration[],
  readOnly: boolean,
): number {
  const current = 1 + migrations.length;
  const stored = readVersion(env, path);
  if (stored === current) return current;
  if (stored !== undefined && stored > current) {
    throw new StoreError(
      "newer",
      `The store at ${path} has schema version ${stored}; this version of Toolway knows up to ${current}. ` +
        "Use the newer Toolway that wrote it, or another state directory.",
    );
  }
  if (readOnly || space === undefined) {
    if (stored === undefined) return current;
    throw new StoreError(
      "older",
      `The store at ${path} has schema version ${stored}, and this Toolway reads ${current}. ` +
        "Start the gateway once: it brings the store up to date.",
    );
  }
  const stats = envStats(env);
  // A migration may rewrite everything, and old pages are not reused within a transaction.
  space.claim(fileEnd(stats), 3 * usedBytes(stats) + 64 * stats.pageSize);
  let running = "";
  try {
    env.transactionSync(() => {
      // A new store has nothing to change.
      if (stored !== undefined) {
        const store = migrationStore(env);
        for (const migration of migrations.slice(stored - 1)) {
          running = migration.name;
          migration.run(store);
        }
      }
      void env.put(SCHEMA_KEY, JSON.stringify({ version: current }));
    });
  } catch (error) {
    if (running === "") throw toStoreError(error, path);
    const reason = messageOf(error);
    throw new StoreError(
      "io",
      `Migrating the store at ${path} failed at "${running}", nothing was changed: ${reason}`,
      error,
    );
  }
  return current;
}

function readVersion(env: Env, path: string): number | undefined {
  const text = env.get(SCHEMA_KEY);
  if (text === undefined) {
    if (envStats(env).entryCount > 0) throw corrupt(path, "it has entries but no schema version");
    return undefined;
  }
  try {
    const { version } = JSON.parse(text) as { version?: unknown };
    if (typeof version === "number" && Number.isInteger(version) && version >= 1) return version;
  } catch {
    // Told below, as for any other unreadable version.
  }
  throw corrupt(path, "its schema version cannot be read");
}

function migrationStore(env: Env): MigrationStore {
  const keyOf = (kind: Kind, name: string, key: string | number) =>
    typeof key === "string" ? mapKey(prefixOf(kind, name), key) : logKey(prefixOf(kind, name), key);
  return {
    *entries(kind, name) {
      const prefix = prefixOf(kind, name);
      // Read before anything is yielded: the migration writes while it walks.
      const found = [...env.getRange({ start: prefix, end: after(prefix) })];
      for (const { key, value } of found) {
        yield { key: kind === "map" ? mapKeyText(key, prefix.length) : logSequence(key), value: JSON.parse(value) };
      }
    },
    put(kind, name, key, value) {
      void env.put(keyOf(kind, name, key), JSON.stringify(value));
    },
    delete(kind, name, key) {
      void env.remove(keyOf(kind, name, key));
    },
  };
}
