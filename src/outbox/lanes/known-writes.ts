// All writes that are known, by their ids and by their keys, and those that are over, for as long as somebody may ask.

import type { WriteState } from "../../contracts/outbox.js";
import { CommonFacts } from "./kept-facts.js";
import type { KeptWrite } from "./lane.js";
import {
  ENDED_MS,
  FORGOTTEN_A_SWEEP,
  MAX_ENDED_A_PRINCIPAL,
  MAX_ENDED_BYTES,
  MAX_ENDED_BYTES_A_PRINCIPAL,
} from "./limits.js";
import type { WriteFacts } from "./write.js";

/** So many of the last characters of a text make its number. They are what is random in it: ids may have a name in front. */
const CHARACTERS = 12;

/**
 * Writes in the order in which they came. A new walk over a set goes past the places of all that have left its front, which may be as
 * many as are in it: so one walk goes on for as long as the oldest are taken.
 */
class OldestFirst {
  readonly #all = new Set<KeptWrite>();
  #walk: Iterator<KeptWrite> | undefined;

  get size(): number {
    return this.#all.size;
  }

  add(write: KeptWrite): void {
    this.#all.add(write);
  }

  delete(write: KeptWrite): boolean {
    return this.#all.delete(write);
  }

  takeOldest(): KeptWrite | undefined {
    if (this.#all.size === 0) return undefined;
    this.#walk ??= this.#all.values();
    let next = this.#walk.next();
    if (next.done === true) {
      this.#walk = this.#all.values();
      next = this.#walk.next();
    }
    this.#all.delete(next.value);
    return next.value;
  }

  /** Ends the walk: one that stands still keeps all that was in the set when it stopped, however long it is gone. */
  rest(): Iterable<KeptWrite> {
    this.#walk = undefined;
    return this.#all;
  }
}

/** Ended writes of one principal, the oldest end first. */
interface Ended {
  readonly writes: OldestFirst;
  /** Those of them whose result is kept. */
  readonly withResult: OldestFirst;
  bytes: number;
}

/** What makes room for a write that ended: receipts that are forgotten, and those whose results are. */
interface MadeRoom {
  readonly gone: KeptWrite[];
  readonly thinned: KeptWrite[];
}

export class KnownWrites {
  readonly common = new CommonFacts();
  readonly #byId: WriteIndex;
  readonly #byKey: WriteIndex;
  /** What ended, by its principal. */
  readonly #ended = new Map<string, Ended>();
  #endedBytes = 0;
  /** Of which nobody knows what became of them. */
  readonly unknown = new Set<KeptWrite>();

  /** `random` is in [0, 1). */
  constructor(random = 0) {
    this.#byId = new WriteIndex(({ facts }) => facts.id, random);
    this.#byKey = new WriteIndex(({ facts }) => facts.keyHash, random);
  }

  get(id: string): KeptWrite | undefined {
    return this.#byId.get(id);
  }

  ofKey(keyHash: string): KeptWrite | undefined {
    return this.#byKey.get(keyHash);
  }

  get all(): Iterable<KeptWrite> {
    return this.#byId.all();
  }

  get hasEnded(): boolean {
    return this.#ended.size > 0;
  }

  /** `facts`: its own as they were taken, where they are at hand: here they are packed. */
  add(write: KeptWrite, { id, keyHash }: Pick<WriteFacts, "id" | "keyHash"> = write.facts): void {
    this.#byId.add(write, id);
    this.#byKey.add(write, keyHash);
    if (write.state === "unknown") this.unknown.add(write);
  }

  moved(write: KeptWrite, state: WriteState): void {
    if (state === "unknown") this.unknown.add(write);
    else this.unknown.delete(write);
    write.state = state;
  }

  remove(write: KeptWrite): void {
    this.#byId.remove(write);
    this.unknown.delete(write);
    this.#byKey.remove(write);
    this.revived(write);
  }

  /** It is over. What has to go for it, where there are too many, or too much is kept with them. */
  ended(write: KeptWrite): MadeRoom {
    const { id } = write.facts.principal;
    let own = this.#ended.get(id);
    if (own === undefined) {
      own = { writes: new OldestFirst(), withResult: new OldestFirst(), bytes: 0 };
      this.#ended.set(id, own);
    }
    own.writes.add(write);
    // The text of what is done is not kept: it is never sent again.
    write.endedBytes = write.resultBytes + (write.state === "done" ? 0 : write.facts.bytes);
    this.#count(own, write.endedBytes);
    const room: MadeRoom = { gone: [], thinned: [] };
    while (own.writes.size > MAX_ENDED_A_PRINCIPAL) this.#removeOldest(own, room);
    while (own.bytes > MAX_ENDED_BYTES_A_PRINCIPAL) this.#thinOldest(own, room);
    while (this.#endedBytes > MAX_ENDED_BYTES) this.#thinOldest(this.#largest(), room);
    // Its own does not go for it.
    if (write.resultBytes > 0 && !room.gone.includes(write)) own.withResult.add(write);
    return room;
  }

  #count(own: Ended, bytes: number): void {
    own.bytes += bytes;
    this.#endedBytes += bytes;
  }

  /** A result that nobody asked for by now is missed less than what became of the call, and its key. */
  #thinOldest(own: Ended, room: MadeRoom): void {
    const write = own.withResult.takeOldest();
    if (write === undefined) {
      this.#removeOldest(own, room);
      return;
    }
    const { resultBytes } = write;
    this.#count(own, -resultBytes);
    write.endedBytes -= resultBytes;
    write.lostBytes = resultBytes;
    write.resultBytes = 0;
    write.hasResult = false;
    room.thinned.push(write);
  }

  #removeOldest(own: Ended, room: MadeRoom): void {
    const oldest = own.writes.takeOldest();
    if (oldest === undefined) return;
    this.#left(own, oldest);
    this.remove(oldest);
    room.gone.push(oldest);
  }

  /** Who keeps the most gives way. */
  #largest(): Ended {
    const [first, ...others] = this.#ended.values();
    let largest = first as Ended;
    for (const one of others) if (one.bytes > largest.bytes) largest = one;
    return largest;
  }

  /** It is not over any more. What it was charged was for the time in which it was taken. */
  revived(write: KeptWrite): void {
    write.isCharged = false;
    const { id } = write.facts.principal;
    const own = this.#ended.get(id);
    if (own?.writes.delete(write) === true) this.#left(own, write);
  }

  #left(own: Ended, write: KeptWrite): void {
    own.withResult.delete(write);
    this.#count(own, -write.endedBytes);
    if (own.writes.size === 0) this.#ended.delete(write.facts.principal.id);
  }

  /** Forgets some of those whose time is over, and gives them. */
  sweep(nowMs: number): KeptWrite[] {
    const old: KeptWrite[] = [];
    for (const own of this.#ended.values()) {
      own.withResult.rest();
      for (const write of own.writes.rest()) {
        if (old.length >= FORGOTTEN_A_SWEEP || nowMs - write.endedMs < ENDED_MS) break;
        old.push(write);
      }
    }
    for (const write of old) this.remove(write);
    return old;
  }
}

/**
 * Writes by a text of theirs, without that text: a hundred thousand may wait, and a map of texts takes more memory than what it leads
 * to. It keeps a number made of the text, and asks the write itself whether it is the one.
 */
export class WriteIndex {
  readonly #textOf: (write: KeptWrite) => string;
  /** Almost always one write; several where their numbers meet. */
  readonly #at = new Map<number, KeptWrite | readonly KeptWrite[]>();
  readonly #factor: number;

  /** `random` in [0, 1): by it nobody outside can say which texts meet. */
  constructor(textOf: (write: KeptWrite) => string, random: number) {
    this.#textOf = textOf;
    this.#factor = Math.floor(random * 2 ** 30) * 2 + 31;
  }

  get(text: string): KeptWrite | undefined {
    const found = this.#at.get(this.#numberOf(text));
    if (found === undefined || !Array.isArray(found)) return this.#isOf(found as KeptWrite | undefined, text);
    return found.find((write: KeptWrite) => this.#textOf(write) === text);
  }

  /** In place of one with the same text, if there is one. */
  add(write: KeptWrite, text = this.#textOf(write)): void {
    const number = this.#numberOf(text);
    if (this.#at.has(number)) this.#put(number, [...this.#others(number, text), write]);
    else this.#at.set(number, write);
  }

  /** False where it is not in here. */
  remove(write: KeptWrite): boolean {
    const text = this.#textOf(write);
    const number = this.#numberOf(text);
    const found = this.#at.get(number);
    if (found === write) return this.#at.delete(number);
    if (!Array.isArray(found) || !found.includes(write)) return false;
    this.#put(number, this.#others(number, text));
    return true;
  }

  *all(): IterableIterator<KeptWrite> {
    for (const found of this.#at.values()) {
      if (Array.isArray(found)) yield* found;
      else yield found as KeptWrite;
    }
  }

  #isOf(write: KeptWrite | undefined, text: string): KeptWrite | undefined {
    return write !== undefined && this.#textOf(write) === text ? write : undefined;
  }

  /** Those whose number is that of the text, but for the one that has it. */
  #others(number: number, text: string): readonly KeptWrite[] {
    const found = this.#at.get(number);
    if (found === undefined) return [];
    const all = (Array.isArray(found) ? found : [found]) as readonly KeptWrite[];
    return all.filter((write) => this.#textOf(write) !== text);
  }

  #put(number: number, writes: readonly KeptWrite[]): void {
    const [first] = writes;
    if (first === undefined) this.#at.delete(number);
    else this.#at.set(number, writes.length === 1 ? first : writes);
  }

  #numberOf(text: string): number {
    let number = 0;
    for (let at = Math.max(0, text.length - CHARACTERS); at < text.length; at++) {
      number = Math.imul(number, this.#factor) + text.charCodeAt(at);
    }
    // Within 31 bits: larger numbers are objects of their own.
    return number >> 1;
  }
}
