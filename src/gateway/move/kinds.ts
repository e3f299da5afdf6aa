// What a state is made of, as a move sees it: maps, which are copied by their names, and what is queued, which lies on disk in
// one place and in an engine in partitions. What is one machine's own stays.

import type { Store } from "../../contracts/store.js";
import { deadLetterOf } from "../../mailbox/broker/dead-letters.js";
import { headerOf, REPLY, REQUEST, type StoredBinding } from "../../mailbox/broker/record.js";
import { ownerOf } from "../../mailbox/wire/address.js";
import { ExpectedError } from "../../runtime/expected-error.js";
import type { TokenRecord } from "../../tokens/tokens.js";
import { MARK_MAP } from "../state/mark.js";

export class MoveError extends ExpectedError {
  override readonly name = "MoveError";
  override readonly kind = "failed";
}

/** Of this machine alone, whoever else there is: the operator's page, the audit log's last line, the journal of what it shares. */
const LOCAL_ONLY: ReadonlySet<string> = new Set([
  "admin-tokens",
  "audit",
  "door",
  "journal",
  "journal-ends",
  "journal-id",
  "journal-parts",
]);

/** In an engine: the partitions of receipts whose ids name none, since they were given on a disk. */
export const MOVED_RECEIPTS = "moved-receipts";

/** Of gateways that live, and of how they share the engine. The default token is a file elsewhere, and moved as such. */
const ENGINE_ONLY: ReadonlySet<string> = new Set([
  "budgets",
  "configs",
  "default-token",
  "executors",
  "gateways",
  "layout",
  "login-claims",
  "mail-gateways",
  "mail-partitions",
  MOVED_RECEIPTS,
  "partitions",
]);

/** Kept beside what is queued, and moved with it. */
const QUEUED: ReadonlySet<string> = new Set([
  "mail-bindings",
  "outbox",
  "outbox-holds",
  "outbox-messages",
  "outbox-results",
]);

/** What every table has a line for, in this order; maps that are not known here follow. */
export const KNOWN_MAPS = [
  "tokens",
  "sessions",
  "pins",
  "contexts",
  "runs",
  "logins",
  "tasks",
  "known",
  "eras",
] as const;

/** Whether a map of that name is copied: all that is not known to stay. */
export function isMoved(map: string): boolean {
  return !LOCAL_ONLY.has(map) && !ENGINE_ONLY.has(map) && !QUEUED.has(map) && map !== MARK_MAP;
}

/** What one thing in a queue consists of; undefined for a part that it does not have. */
export type Texts = readonly (string | undefined)[];

/** Something in a queue, as it was found. */
export interface QueueItem {
  /** Its place in the store. */
  readonly key: string;
  /** For people. */
  readonly name: string;
  /** What its partition follows from. */
  readonly owner: string;
  readonly atMs: number;
  texts(): Texts;
}

/** Whom a token may send messages to. */
export type MaySend = (id: string) => TokenRecord["maySendTo"];

export interface QueueKind {
  readonly name: string;
  /** The partitions that it is kept in, in an engine. */
  readonly group: "mail" | undefined;
  items(store: Store, maySend: MaySend): Iterable<QueueItem>;
  /** Whether whoever opens the store would send it. */
  isWaiting(texts: Texts): boolean;
  /** Behind what is there, in this order. */
  append(store: Store, all: readonly Texts[]): Promise<void>;
  remove(store: Store, keys: readonly string[]): Promise<void>;
}

/** Sequence numbers as text that sorts, as the outbox's journal has them. */
const DIGITS = 15;
/** The last one of a store that is written to: to find it, all of them are walked over. */
const lastSequences = new WeakMap<Store, number>();

function lastSequence(store: Store): number {
  let last = lastSequences.get(store) ?? 0;
  if (last === 0) for (const [key] of store.map("outbox").entries()) last = Number(key);
  return last;
}

export const KEPT_WRITES: QueueKind = {
  name: "kept writes",
  group: undefined,
  isWaiting: ([record]) => ["queued", "sending"].includes((parsed(record) as { state?: string }).state ?? ""),
  *items(store) {
    const [records, messages, results] = [
      store.map("outbox"),
      store.map("outbox-messages"),
      store.map("outbox-results"),
    ];
    for (const [key, record] of records.entries()) {
      const { id, server, takenMs } = (record ?? {}) as { id?: unknown; server?: unknown; takenMs?: unknown };
      if (typeof server !== "string" || typeof id !== "string") {
        throw new MoveError(
          `The kept write ${Number(key)} was written by a newer Toolway: update this one, then move.`,
        );
      }
      const texts = () => [json(records.get(key)), json(messages.get(key)), json(results.get(key))];
      yield { key, name: id, owner: server, atMs: typeof takenMs === "number" ? takenMs : 0, texts };
    }
  },
  append(store, all) {
    const [records, messages, results] = [
      store.map("outbox"),
      store.map("outbox-messages"),
      store.map("outbox-results"),
    ];
    let last = lastSequence(store);
    lastSequences.set(store, last + all.length);
    return store.batch((batch) => {
      for (const [record, message, result] of all) {
        const key = String(++last).padStart(DIGITS, "0");
        batch.put(records, key, parsed(record));
        if (message !== undefined) batch.put(messages, key, parsed(message));
        if (result !== undefined) batch.put(results, key, parsed(result));
      }
    });
  },
  remove(store, keys) {
    const maps = ["outbox", "outbox-messages", "outbox-results"].map((name) => store.map(name));
    return store.batch((batch) => {
      for (const key of keys) for (const map of maps) batch.delete(map, key);
    });
  },
};

const holds: QueueKind = {
  name: "held lanes",
  group: undefined,
  isWaiting: () => false,
  *items(store) {
    const map = store.map<{ readonly server?: unknown; readonly lane?: unknown }>("outbox-holds");
    for (const [key, { server }] of map.entries()) {
      if (typeof server !== "string")
        throw new MoveError("A held lane was written by a newer Toolway: update this one.");
      yield { key, name: `of ${server}`, owner: server, atMs: 0, texts: () => [key, json(map.get(key))] };
    }
  },
  append(store, all) {
    const map = store.map("outbox-holds");
    return store.batch((batch) => {
      for (const [key, hold] of all) batch.put(map, key ?? "", parsed(hold));
    });
  },
  remove(store, keys) {
    const map = store.map("outbox-holds");
    return store.batch((batch) => {
      for (const key of keys) batch.delete(map, key);
    });
  },
};

const mail: QueueKind = {
  name: "messages",
  group: "mail",
  isWaiting: () => true,
  *items(store, maySend) {
    const log = store.log("mail");
    const bindings = store.map<StoredBinding>("mail-bindings");
    for (const [sequence, record] of log.entries()) {
      const { id, at, to } = headerOf(record);
      const key = String(sequence);
      const texts = () => [log.get(sequence), json(bindings.get(key))];
      yield { key, name: `${id} for ${ownerOf(to)}`, owner: mailOwner(record, maySend), atMs: at, texts };
    }
  },
  async append(store, all) {
    const log = store.log("mail");
    const added = await store.batch((batch) => all.map(([record]) => batch.append(log, record ?? "null")));
    const bindings = store.map<StoredBinding>("mail-bindings");
    // Their numbers are known only now. What is cut off here differs from the source, and is written anew.
    await store.batch((batch) => {
      for (const [n, [, binding]] of all.entries()) {
        const sequence = added[n]?.sequence;
        if (binding !== undefined) batch.put(bindings, String(sequence), parsed(binding) as StoredBinding);
      }
    });
  },
  remove(store, keys) {
    const log = store.log("mail");
    const bindings = store.map<StoredBinding>("mail-bindings");
    return store.batch((batch) => {
      for (const key of keys) {
        batch.remove(log, Number(key));
        batch.delete(bindings, key);
      }
    });
  },
};

const dead: QueueKind = {
  name: "dead letters",
  group: "mail",
  isWaiting: () => false,
  *items(store, maySend) {
    const log = store.log("dead-letters");
    for (const [sequence, text] of log.entries()) {
      const { mailbox, at, record } = deadLetterOf(text);
      const name = `${headerOf(record).id} for ${mailbox}`;
      const owner = mailOwner(record, maySend);
      yield { key: String(sequence), name, owner, atMs: at, texts: () => [log.get(sequence)] };
    }
  },
  async append(store, all) {
    const log = store.log("dead-letters");
    await store.batch((batch) => {
      for (const [text] of all) batch.append(log, text ?? "null");
    });
  },
  remove(store, keys) {
    const log = store.log("dead-letters");
    return store.batch((batch) => {
      for (const key of keys) batch.remove(log, Number(key));
    });
  },
};

export const QUEUES: readonly QueueKind[] = [KEPT_WRITES, holds, mail, dead];

/**
 * Whose partition a message is in: that of the mailbox which it is for; an answer's is that of whoever was asked, so that a
 * request, its reply and its end are decided in one place. As brokers on an engine place them.
 */
function mailOwner(record: string, maySend: MaySend): string {
  const { to, from, kind, correlationId } = headerOf(record);
  const isOfSender = () => {
    const recipients = maySend(ownerOf(from)) ?? [];
    return recipients !== "any" && !recipients.includes(to);
  };
  const isAnswer = kind.endsWith(REPLY) || (correlationId !== undefined && !kind.endsWith(REQUEST) && isOfSender());
  return ownerOf(isAnswer ? from : to);
}

function json(value: unknown): string | undefined {
  return value === undefined ? undefined : JSON.stringify(value);
}

function parsed(text: string | undefined): unknown {
  return text === undefined ? undefined : JSON.parse(text);
}
