// What the commits of a stream come to: the values of maps and the entries of logs, and which messages are of no more use.
// No I/O and no clock. The later message wins a key, whatever the order in which they are told: so that what is told
// twice changes nothing, and a superseded message can be removed without changing what the rest come to.

import type { Commit, CommitWrite } from "./commit.js";

/** Numbers of a log's entries are places in the stream; so many of one commit have one each. 2^41 messages are left. */
const ENTRIES_A_COMMIT = 4096;
export const MAX_WRITES = ENTRIES_A_COMMIT;
/** Messages that were removed and may still be told by somebody who follows late: some seconds of removals. */
const MAX_GONE = 20_000;

interface Cell {
  /** Undefined where it was deleted, which is remembered while an older message still has a value for it. */
  readonly json: string | undefined;
  readonly message: StoredMessage;
  /** Messages that are stored, are older and write this key. */
  older: number;
}

interface StoredMessage {
  readonly sequence: number;
  readonly subject: string;
  /** Infinite until the stream has told it. */
  atMs: number;
  readonly places: readonly (readonly [space: KeySpace, key: string | number])[];
  readonly hadDeletion: boolean;
  /** Of its writes, those that the state would not be the same without. */
  needed: number;
  /** It was handed to the one who removes. */
  isGarbage: boolean;
}

/** The last commit on a subject. */
export interface CommitHead {
  readonly id: string;
  readonly sequence: number;
  readonly after: Commit["after"];
}

type Listener = (key: string | number, json: string | undefined) => void;

/** The keys of one map or log. */
export class KeySpace {
  readonly cells = new Map<string | number, Cell>();
  readonly listeners = new Set<Listener>();
  readonly #compare: (a: string | number, b: string | number) => number;
  /** Undefined while keys came or went since. */
  #sorted: (string | number)[] | undefined;
  count = 0;

  constructor(kind: "map" | "log") {
    this.#compare = kind === "log" ? (a, b) => Number(a) - Number(b) : (a, b) => compareUtf8(String(a), String(b));
  }

  json(key: string | number): string | undefined {
    return this.cells.get(key)?.json;
  }

  /** Of the value that is there; undefined where there is none. */
  revision(key: string | number): number | undefined {
    const cell = this.cells.get(key);
    return cell?.json === undefined ? undefined : cell.message.sequence;
  }

  /** In order. Sorted when asked for, and again only after keys came or went. */
  keys(): readonly (string | number)[] {
    if (this.#sorted === undefined) {
      const keys: (string | number)[] = [];
      for (const [key, { json }] of this.cells) if (json !== undefined) keys.push(key);
      this.#sorted = keys.sort(this.#compare);
    }
    return this.#sorted;
  }

  set(key: string | number, cell: Cell | undefined): void {
    const was = this.cells.get(key)?.json !== undefined;
    const is = cell?.json !== undefined;
    if (cell === undefined) this.cells.delete(key);
    else this.cells.set(key, cell);
    if (was === is) return;
    this.count += is ? 1 : -1;
    this.#sorted = undefined;
  }
}

/** JavaScript sorts by UTF-16; a character outside the BMP comes last in UTF-8. */
export function compareUtf8(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const x = a.charCodeAt(i);
    const y = b.charCodeAt(i);
    if (x === y) continue;
    const isHighX = x >= 0xd800 && x <= 0xdfff;
    const isHighY = y >= 0xd800 && y <= 0xdfff;
    return isHighX === isHighY ? x - y : isHighX ? 1 : -1;
  }
  return a.length - b.length;
}

export class CommitState {
  readonly #maps = new Map<string, KeySpace>();
  readonly #logs = new Map<string, KeySpace>();
  readonly #messages = new Map<number, StoredMessage>();
  readonly #heads = new Map<string, CommitHead>();
  /** Messages that nothing needs. Whoever made them so takes them from here and removes them. */
  #garbage: StoredMessage[] = [];
  /** Since the stream is told from its start: what was told. */
  #told: Set<number> | undefined;
  #toldTo = 0;
  /** All that is stored up to here is known, because the stream tells in order. What writers know of may lie beyond it. */
  #followedTo = 0;
  /** The last ones that were removed. What is told late would else be taken for new, and come back to life. */
  readonly #gone = new Set<number>();

  map(name: string): KeySpace {
    return spaceIn(this.#maps, name, "map");
  }

  log(name: string): KeySpace {
    return spaceIn(this.#logs, name, "log");
  }

  *spaces(): Iterable<[kind: "map" | "log", name: string, space: KeySpace]> {
    for (const [name, space] of this.#maps) yield ["map", name, space];
    for (const [name, space] of this.#logs) yield ["log", name, space];
  }

  head(subject: string): CommitHead | undefined {
    return this.#heads.get(subject);
  }

  get messages(): number {
    return this.#messages.size;
  }

  /** The stream has come to this message. */
  follow(commit: Commit, subject: string, sequence: number, atMs: number): void {
    this.apply(commit, subject, sequence, atMs);
    this.#followed(sequence);
  }

  /** The last place that was told. */
  get followedTo(): number {
    return this.#followedTo;
  }

  /** The same of one that is known: whoever wrote it here was told of it before. False where it has to be read. */
  followKnown(sequence: number, atMs: number): boolean {
    const known = this.#messages.get(sequence);
    if (known === undefined) return false;
    this.#told?.add(sequence);
    known.atMs = Math.min(known.atMs, atMs);
    this.#followed(sequence);
    return true;
  }

  #followed(sequence: number): void {
    if (sequence > this.#followedTo) this.#followedTo = sequence;
    const message = this.#messages.get(sequence);
    if (message !== undefined) this.#settle(message);
  }

  /** A message that is stored, however one came to know of it. */
  apply(commit: Commit, subject: string, sequence: number, atMs: number): void {
    this.#told?.add(sequence);
    if (this.#gone.has(sequence)) return;
    const known = this.#messages.get(sequence);
    if (known !== undefined) {
      known.atMs = Math.min(known.atMs, atMs);
      return;
    }
    const last = new Map<KeySpace, Map<string | number, string | undefined>>();
    let appended = 0;
    for (const write of commit.writes) {
      const space = write.kind === "m" ? this.map(write.name) : this.log(write.name);
      const key = write.kind === "a" ? numberOf(sequence, appended++) : write.key;
      const keys = last.get(space) ?? new Map<string | number, string | undefined>();
      last.set(space, keys.set(key, write.json));
    }
    const places = [...last].flatMap(([space, keys]) => [...keys.keys()].map((key) => [space, key] as const));
    const hadDeletion = commit.writes.some(({ json }) => json === undefined);
    const message: StoredMessage = { sequence, subject, atMs, places, hadDeletion, needed: 0, isGarbage: false };
    this.#messages.set(sequence, message);
    const changed: (() => void)[] = [];
    for (const [space, keys] of last) {
      for (const [key, json] of keys) {
        if (!this.#write(space, key, json, message)) continue;
        for (const listener of space.listeners) changed.push(() => listener(key, json));
      }
    }
    this.#advance(subject, { id: commit.id, sequence, after: commit.after });
    this.#check(message);
    // Whoever listens sees the whole commit.
    for (const tell of changed) tell();
  }

  /** A message is gone from the stream. */
  removed(sequence: number): void {
    const message = this.#messages.get(sequence);
    if (message === undefined) return;
    this.#messages.delete(sequence);
    this.#gone.add(sequence);
    for (const oldest of this.#gone) {
      if (this.#gone.size <= MAX_GONE) break;
      this.#gone.delete(oldest);
    }
    if (this.#heads.get(message.subject)?.sequence === sequence) this.#heads.delete(message.subject);
    for (const [space, key] of message.places) {
      const cell = space.cells.get(key);
      if (cell === undefined) continue;
      if (cell.message === message) space.set(key, undefined);
      else if (--cell.older === 0 && cell.json === undefined) this.#settle(cell.message);
    }
  }

  /** The subject has no message any more, or another is its last: what the engine says. */
  emptied(subject: string): void {
    const head = this.#heads.get(subject);
    if (head !== undefined) this.removed(head.sequence);
  }

  /** A message that cannot be read is the subject's last now: what was its value is another's to say, and whoever listens is told. */
  superseded(subject: string, sequence: number): void {
    this.#told?.add(sequence);
    const head = this.#heads.get(subject);
    if (head === undefined || head.sequence >= sequence) return;
    const message = this.#messages.get(head.sequence);
    if (message !== undefined) this.#tellGone(message);
  }

  /** Those that said of something that it is gone stay for a while: whoever reads the stream now may have read the older. */
  takeGarbage(): { readonly sequence: number; readonly hadDeletion: boolean }[] {
    const garbage = this.#garbage;
    this.#garbage = [];
    return garbage;
  }

  /** Messages of before then that only say that something is gone: all who follow have been told. */
  deletionsBefore(atMs: number, limit: number): { readonly subject: string; readonly sequence: number }[] {
    const found: StoredMessage[] = [];
    for (const message of this.#messages.values()) {
      if (found.length >= limit) break;
      if (message.atMs < atMs && this.#onlyDeletes(message)) found.push(message);
    }
    return found;
  }

  /** The stream is told from its start from now on, up to this place at least. */
  restarted(sequence: number): void {
    this.#told = new Set();
    this.#toldTo = sequence;
  }

  /** All of it was told: what was known and was not told is gone, and whoever listens is told so. */
  current(): void {
    const told = this.#told;
    this.#told = undefined;
    if (told === undefined) return;
    for (const message of [...this.#messages.values()]) {
      if (told.has(message.sequence) || message.sequence > this.#toldTo) continue;
      this.#tellGone(message);
    }
  }

  #tellGone(message: StoredMessage): void {
    const gone = message.places.filter(([space, key]) => {
      const cell = space.cells.get(key);
      return cell?.message === message && cell.json !== undefined;
    });
    this.removed(message.sequence);
    for (const [space, key] of gone) for (const listener of space.listeners) listener(key, undefined);
  }

  #onlyDeletes(message: StoredMessage): boolean {
    return message.places.every(([space, key]) => {
      const cell = space.cells.get(key);
      return cell?.message !== message || (cell.json === undefined && cell.older === 0);
    });
  }

  #write(space: KeySpace, key: string | number, json: string | undefined, message: StoredMessage): boolean {
    const cell = space.cells.get(key);
    if (cell !== undefined && cell.message.sequence > message.sequence) {
      cell.older++;
      return false;
    }
    const older = cell === undefined ? 0 : cell.older + 1;
    if (cell !== undefined) {
      cell.message.needed--;
      this.#check(cell.message);
    }
    message.needed++;
    space.set(key, { json, message, older });
    return json !== undefined || cell?.json !== undefined;
  }

  #advance(subject: string, head: CommitHead): void {
    const before = this.#heads.get(subject);
    const isLate = before !== undefined && before.sequence > head.sequence;
    if (!isLate) this.#heads.set(subject, head);
    const overtaken = this.#messages.get(isLate ? head.sequence : (before?.sequence ?? 0));
    if (overtaken !== undefined) this.#settle(overtaken);
  }

  /**
   * That something is gone need not be said any more once no older message has a value for it: none that is known, and the
   * stream has come to this one, so that none is unknown. The last of a subject says it for as long as it is the last:
   * whoever is told the stream again is told the older ones first.
   */
  #settle(message: StoredMessage): void {
    if (message.sequence > this.#followedTo || !this.#isOvertaken(message)) return;
    for (const [space, key] of message.places) {
      const cell = space.cells.get(key);
      if (cell?.message !== message || cell.json !== undefined || cell.older > 0) continue;
      space.set(key, undefined);
      message.needed--;
    }
    this.#check(message);
  }

  #check(message: StoredMessage): void {
    if (message.isGarbage || message.needed > 0) return;
    if (!this.#messages.has(message.sequence) || !this.#isOvertaken(message)) return;
    message.isGarbage = true;
    this.#garbage.push(message);
  }

  /** The last of a subject stays, needed or not: the next is made on it. */
  #isOvertaken({ subject, sequence }: StoredMessage): boolean {
    return (this.#heads.get(subject)?.sequence ?? 0) > sequence;
  }
}

export function numberOf(sequence: number, index: number): number {
  return sequence * ENTRIES_A_COMMIT + index;
}

/** Bytes of a write, about, for bounds. */
export function sizeOf({ name, key, json }: CommitWrite): number {
  return name.length + (typeof key === "string" ? key.length : 16) + (json?.length ?? 0) + 32;
}

function spaceIn(spaces: Map<string, KeySpace>, name: string, kind: "map" | "log"): KeySpace {
  let space = spaces.get(name);
  if (space === undefined) {
    space = new KeySpace(kind);
    spaces.set(name, space);
  }
  return space;
}
