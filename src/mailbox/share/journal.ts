// The sharer's journal on disk: which messages were begun and how they ended, and the parts of replies that are too large
// for a message. What follows from an entry is journal-entry.ts's to say.

import { createHash, hash, randomBytes } from "node:crypto";
import type { Batch, DurableMap, Store } from "../../contracts/store.js";
import type { Clock } from "../../runtime/clock.js";
import { ExpectedError } from "../../runtime/expected-error.js";
import { KIB, MIB } from "../../runtime/sizes.js";
import {
  fullness,
  type JournalEntry,
  type JournalLimits,
  KEPT_AFTER_END_MS,
  type LargeReply,
} from "./journal-entry.js";

/**
 * Two hundred calls a second whose messages live for half an hour, about 200 bytes each; and replies up to a quarter of
 * what the store may have, which it shares with all else.
 */
const DEFAULT_JOURNAL_LIMITS: JournalLimits = { entries: 400_000, bytes: 256 * MIB };

/**
 * A reply that is no longer is not counted among the bytes: the bound of entries bounds it too, at 200 MB. Most are so short,
 * and what is written when they begin stays true when they end.
 */
const SHORT_REPLY_BYTES = 512;

/** What one live frame carries. */
export const PART_BYTES = 64 * KIB;
/** Parts that are written in one commit: others' commits wait behind it. */
const PARTS_A_COMMIT = 16;
/** Entries that one sweep forgets, which takes some milliseconds of a turn; the next goes on. */
const FORGOTTEN_A_SWEEP = 1_000;
/** Milliseconds since 1970, as text that sorts. */
const TIME_DIGITS = 15;
/** The number that an id ends with, as our workers write it. What begins with a zero is no number: "-01" is not "-1". */
const COUNT_DIGITS = 15;
const COUNTED = /(?<=-)[1-9]\d{0,14}$/;

export interface JournalOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly limits?: JournalLimits;
}

/** A message, as the journal has to know it. */
export interface JournalCall {
  readonly key: string;
  /** The id of the token of the worker that sent it, by which shares are counted. */
  readonly owner: string;
  readonly digest: string;
  readonly endMs: number;
}

/**
 * What is kept of an entry beside it: the bytes of its reply, and whose it is. A number alone was written before shares were counted: that
 * counts among all, and to nobody.
 */
type Weight = number | readonly [bytes: number, owner: string];

interface Used {
  entries: number;
  bytes: number;
}

const NOTHING: Used = { entries: 0, bytes: 0 };

/** The journal takes no more calls: why, in words for whoever called. */
export class JournalFull extends ExpectedError {
  override readonly name = "JournalFull";
  override readonly kind = "failed";
}

export class Journal {
  /** Says to a broker which consumer knows what was begun. It is kept, as what is written here is. */
  readonly id: string;
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #limits: JournalLimits;
  readonly #entries: DurableMap<JournalEntry>;
  /** What each entry weighs, by its end and its key, so that what is over is found in order. */
  readonly #ends: DurableMap<Weight>;
  /** In base64, as they travel, by the key of the entry and their number. */
  readonly #parts: DurableMap<string>;
  /** Wall time at the start. From there it goes by the steady clock: a calendar that is set forgets no entry. */
  readonly #startMs: number;
  /** Entries whose parts are being taken out. There are no more than replies that are drawn at a time. */
  readonly #drawing = new Set<string>();
  readonly #used: Used = { entries: 0, bytes: 0 };
  /** Of each worker that has any: not more than there are entries. */
  readonly #usedBy = new Map<string, Used>();

  private constructor({ store, clock, limits = DEFAULT_JOURNAL_LIMITS }: JournalOptions, id: string) {
    this.id = id;
    this.#store = store;
    this.#clock = clock;
    this.#limits = limits;
    this.#entries = store.map<JournalEntry>("journal");
    this.#ends = store.map<Weight>("journal-ends");
    this.#parts = store.map<string>("journal-parts");
    this.#startMs = clock.wall() - clock.now();
    for (const [, weight] of this.#ends.entries()) this.#count(ownerIn(weight), 1, bytesIn(weight));
  }

  static async open(options: JournalOptions): Promise<Journal> {
    const ids = options.store.map<string>("journal-id");
    let id = ids.get("id");
    if (id === undefined) {
      id = randomBytes(16).toString("base64url");
      await ids.put("id", id);
    }
    return new Journal(options, id);
  }

  now(): number {
    return this.#startMs + this.#clock.now();
  }

  get used(): JournalLimits {
    return this.#used;
  }

  /**
   * Senders choose ids as they like, so that a key is the hash of where it came, whose it is and what it is called. A number at
   * the end of an id stays one: what a sender counts lies side by side on the disk, and calls that begin together are
   * written in one place.
   */
  static keyOf(mailbox: string, owner: string, id: string): string {
    const [number] = COUNTED.exec(id) ?? [];
    if (number === undefined) return hash("sha256", `${mailbox}\0${owner}\0${id}`, "base64url");
    const counted = `${mailbox}\0${owner}\0${id.slice(0, -number.length)}`;
    if (counted !== Journal.#counted) {
      Journal.#counter = hash("sha256", counted, "base64url");
      Journal.#counted = counted;
    }
    return `${Journal.#counter}-${number.padStart(COUNT_DIGITS, "0")}`;
  }

  /** What was hashed last: a sender that counts sends many in a row. */
  static #counted = "";
  static #counter = "";

  static digestOf(body: string): string {
    return hash("sha256", body, "base64url");
  }

  get(key: string): JournalEntry | undefined {
    return this.#entries.get(key);
  }

  /** Resolves when it is on disk: the tool may be sent its call then. Throws a JournalFull, or what the store throws. */
  async start({ key, owner, digest, endMs }: JournalCall, what: string): Promise<void> {
    this.#demandRoom(owner, 0);
    this.#count(owner, 1, 0);
    try {
      await this.#store.batch((batch) => {
        batch.put(this.#entries, key, { state: "started", digest, endMs, what });
        batch.put(this.#ends, endKey(endMs, key), [0, owner]);
      });
    } catch (error) {
      this.#count(owner, -1, 0);
      throw error;
    }
  }

  /** For one more call; or for so many bytes of a reply, whose call is counted already. */
  #demandRoom(owner: string, bytes: number): void {
    const own = this.#usedBy.get(owner) ?? NOTHING;
    const full =
      bytes === 0
        ? fullness(this.#used, own, this.#limits, owner)
        : fullness(withReply(this.#used, bytes), withReply(own, bytes), this.#limits, owner);
    if (full !== undefined) throw new JournalFull(full);
  }

  /** Resolves when it is on disk. `hadStarted` says whether it has an entry already. */
  async finish({ key, owner, digest, endMs }: JournalCall, body: string, hadStarted: boolean): Promise<void> {
    const size = Buffer.byteLength(body);
    const bytes = size <= SHORT_REPLY_BYTES ? 0 : size;
    await this.#store.batch((batch) => {
      batch.put(this.#entries, key, { state: "finished", digest, endMs, reply: body });
      // It was written with its start, and says the same.
      if (!hadStarted || bytes > 0) batch.put(this.#ends, endKey(endMs, key), [bytes, owner]);
    });
    this.#count(owner, hadStarted ? 0 : 1, bytes);
  }

  /** Keeps a reply in parts, for somebody who draws them. */
  async finishLarge(call: JournalCall, reply: Buffer, hadStarted: boolean): Promise<LargeReply> {
    const { key, owner, digest, endMs } = call;
    this.#demandRoom(owner, reply.length);
    // Before it is written: others look meanwhile whether there is room.
    this.#count(owner, hadStarted ? 0 : 1, reply.length);
    let isFound = false;
    try {
      const commit = PARTS_A_COMMIT * PART_BYTES;
      for (let from = 0; from < reply.length; from += commit) {
        const until = Math.min(from + commit, reply.length);
        await this.#store.batch((batch) => {
          // With the first of them, so that parts whose writing breaks off are found, and counted, until their time has come.
          if (from === 0) batch.put(this.#ends, endKey(endMs, key), [reply.length, owner]);
          for (let at = from; at < until; at += PART_BYTES) {
            const part = reply.toString("base64", at, Math.min(at + PART_BYTES, reply.length));
            batch.put(this.#parts, partKey(key, at / PART_BYTES), part);
          }
        });
        isFound = true;
      }
      const large = { bytes: reply.length, sha256: createHash("sha256").update(reply).digest("hex") };
      await this.#store.batch((batch) => {
        batch.put(this.#entries, key, { state: "finished", digest, endMs, reply: large });
      });
      return large;
    } catch (error) {
      if (!isFound) this.#count(owner, hadStarted ? 0 : -1, -reply.length);
      throw error;
    }
  }

  #count(owner: string | undefined, entries: number, bytes: number): void {
    this.#used.entries += entries;
    this.#used.bytes += bytes;
    if (owner === undefined) return;
    let own = this.#usedBy.get(owner);
    if (own === undefined) {
      own = { entries: 0, bytes: 0 };
      this.#usedBy.set(owner, own);
    }
    own.entries += entries;
    own.bytes += bytes;
    if (own.entries === 0) this.#usedBy.delete(owner);
  }

  /** A piece of a large reply from this offset on, in base64, which ends with its part at the latest. */
  piece(key: string, offset: number, bytes: number): string | undefined {
    const part = this.#parts.get(partKey(key, Math.floor(offset / PART_BYTES)));
    if (part === undefined) return undefined;
    const within = offset % PART_BYTES;
    if (within === 0 && bytes >= PART_BYTES) return part;
    return Buffer.from(part, "base64")
      .subarray(within, within + bytes)
      .toString("base64");
  }

  /** Whoever wanted the parts has them: they go now, and the entry when its time has come. */
  async drawn(key: string): Promise<void> {
    const entry = this.#entries.get(key);
    const isLarge = entry?.state === "finished" && typeof entry.reply !== "string";
    if (!isLarge || this.#drawing.has(key)) return;
    this.#drawing.add(key);
    const end = endKey(entry.endMs, key);
    const weight = this.#ends.get(end) ?? 0;
    const owner = ownerIn(weight);
    try {
      await this.#store.batch((batch) => {
        this.#dropParts(batch, key);
        batch.put(this.#ends, end, owner === undefined ? 0 : [0, owner]);
      });
      // What is gone takes no room.
      this.#count(owner, 0, -bytesIn(weight));
    } finally {
      this.#drawing.delete(key);
    }
  }

  /** Forgets what is over, some of it. True: there is more, and it is to be called again soon; else now and then. */
  async sweep(): Promise<boolean> {
    const to = timeText(this.now() - KEPT_AFTER_END_MS);
    const over = [...this.#ends.entries({ to, limit: FORGOTTEN_A_SWEEP })];
    if (over.length === 0) return false;
    await this.#store.batch((batch) => {
      for (const [end] of over) {
        const key = end.slice(TIME_DIGITS + 1);
        batch.delete(this.#ends, end);
        batch.delete(this.#entries, key);
        this.#dropParts(batch, key);
      }
    });
    for (const [, weight] of over) this.#count(ownerIn(weight), -1, -bytesIn(weight));
    return over.length === FORGOTTEN_A_SWEEP;
  }

  #dropParts(batch: Batch, key: string): void {
    for (let number = 0; this.#parts.get(partKey(key, number)) !== undefined; number++) {
      batch.delete(this.#parts, partKey(key, number));
    }
  }
}

function withReply(used: JournalLimits, bytes: number): JournalLimits {
  return { entries: 0, bytes: used.bytes + bytes };
}

function bytesIn(weight: Weight): number {
  return typeof weight === "number" ? weight : weight[0];
}

function ownerIn(weight: Weight): string | undefined {
  return typeof weight === "number" ? undefined : weight[1];
}

function partKey(key: string, number: number): string {
  return `${key}/${number}`;
}

function endKey(endMs: number, key: string): string {
  return `${timeText(endMs)}/${key}`;
}

function timeText(ms: number): string {
  return String(Math.max(0, Math.ceil(ms))).padStart(TIME_DIGITS, "0");
}
