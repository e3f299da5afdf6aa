// The pins of all servers, kept on disk: what each tool's definition was when it was first seen or accepted. What a
// change means is policy/pins.ts's; who is told of one is the wiring's.
//
// What holds: a pin is in force at once, and on disk a commit later, or some turns of the event loop where there are many. A gateway that dies between the two has seen the
// tool for the last milliseconds only; its next start pins what it finds in the lists that were kept, then what comes.
// A change never needs the disk: the accepted hash lies there already. An acceptance is on disk before it is in force.

import type { OwnToolName } from "../../contracts/names.js";
import type { AcceptedPin, PinDiff, PinLine, RejectedPin } from "../../contracts/pins.js";
import type { Target } from "../../contracts/server-spec.js";
import type { SharedMap } from "../../contracts/store.js";
import { accept, type ListedTool, type Pin, type PinToWrite, reject, ServerPins } from "../../policy/pins.js";
import { Fault } from "../../protocol/errors.js";
import { nearest } from "../../runtime/nearest.js";
import { shellWord } from "../../runtime/words/shell-word.js";
import { iso, type KeptDefinition, keptOf, keyOf, type PinRecord, side, sizeOf, toPin } from "./pin-record.js";

export type { PinRecord };

/** Definitions have about 1 kB. A larger one is pinned all the same, but `diff` can only show that it changed. */
const MAX_DEFINITION_CHARS = 64 * 1024;

/** All definitions kept of one server: more than one list may have, so that a first sight fits as a whole. */
const MAX_KEPT_CHARS = 32 * 1024 * 1024;

/** So many records are written in one turn of the event loop, which takes a few milliseconds. */
const RECORDS_A_TURN = 100;

/** So many tools are named in a line of the log, and so much of each name; so much of one is looked at for that. */
const MAX_NAMED = 5;
const MAX_NAME_CHARS = 80;
const MAX_NAME_READ = 4_096;

/** Each lost race means that another gateway wrote what it saw of the tool; ours comes with the next list. */
const MAX_TRIES = 4;

/** A hash that somebody typed: as much of it as cannot be hit by chance. */
const MIN_HASH_CHARS = 8;

export interface StoredPinsDeps {
  readonly map: SharedMap<PinRecord>;
  /** Which server an entry means, where other gateways have pins in the map too; absent where this one is alone. */
  readonly identityOf?: ((target: Target) => string) | undefined;
  readonly wall: () => number;
  /** What agents see of a server's tools has changed, other than by a list that was just checked. */
  readonly onChange: (server: string) => void;
  /** So many tools changed, and are hidden from now on. */
  readonly onHeldBack?: ((count: number) => void) | undefined;
  readonly log: (level: "info" | "warn", text: string, facts?: Readonly<Record<string, unknown>>) => void;
  /** A text of the server's without the secrets of its entry: a tool may be named like one. */
  readonly redact: (server: string, text: string) => string;
}

/** Other tools of a server are hidden than before. */
export interface PinChange {
  readonly server: string;
  /** All that are hidden now, and why. */
  readonly hidden: readonly { readonly tool: string; readonly reason: string }[];
}

const NONE: ReadonlyMap<OwnToolName, string> = new Map();

export class StoredPins {
  readonly #deps: StoredPinsDeps;
  readonly #servers = new Map<string, ServerPins>();
  readonly #trusted = new Set<string>();
  /** Which servers the names of the config mean; empty where this gateway is alone. */
  readonly #targets = new Map<string, string>();
  /** The servers of the config, whatever their state. Undefined until one is known: then none has left it. */
  #configured: ReadonlySet<string> | undefined;
  /** Records that are written but not committed, or that the disk refused: they count until they are there. */
  readonly #unsaved = new Map<string, PinRecord>();
  /** How many characters of definitions are kept, by server, and of each pin of it by key. */
  readonly #kept = new Map<string, number>();
  readonly #sizes = new Map<string, number>();

  /**
   * Sightings whose records are yet to be written, the oldest first. Each is of another tool: of a server there are as
   * many as it may have pins.
   */
  #waiting: { readonly server: string; readonly pin: PinToWrite }[] = [];
  #isWriting = false;

  readonly #watchers = new Set<(change: PinChange) => void>();

  constructor(deps: StoredPinsDeps) {
    this.#deps = deps;
    for (const [key, record] of deps.map.entries()) {
      this.#pinsOf(record.server).put(record.tool, toPin(record));
      this.#count(record.server, key, record);
    }
  }

  /**
   * The name means this server from now on. What was accepted under the name for another is where it begins, so that no entry
   * widens what agents see; what is seen and accepted from now on is its own. True where it was another before.
   */
  #means(server: string, target: Target | undefined): boolean {
    const next = target === undefined ? undefined : this.#deps.identityOf?.(target);
    const before = this.#targets.get(server);
    if (next === undefined || next === before) return false;
    this.#targets.set(server, next);
    const pins = new ServerPins(server);
    const all = [...this.#deps.map.entries()].filter(([, record]) => record.server === server);
    const isOwn = ([, record]: [string, PinRecord]) => record.target === next;
    for (const [, record] of [...all.filter((one) => !isOwn(one)), ...all.filter(isOwn)]) {
      pins.put(record.tool, toPin(record));
    }
    this.#servers.set(server, pins);
    return before !== undefined;
  }

  /** Where the pin of a tool is kept. */
  #keyOf(server: string, tool: OwnToolName): string {
    return keyOf(server, tool, this.#targets.get(server));
  }

  /** What is kept of a pin by now, whoever wrote it. What we know already changes nothing. */
  told(key: string, record: PinRecord | undefined): void {
    const { server, tool } = record ?? this.#findKey(key) ?? {};
    if (server === undefined || tool === undefined) return;
    const target = this.#targets.get(server);
    // It is of a gateway where the name means another server.
    if (record !== undefined && target !== undefined && record.target !== target) return;
    const pins = this.#pinsOf(server);
    this.#count(server, key, record);
    const unsaved = this.#unsaved.get(key);
    if (unsaved !== undefined && unsaved.accepted.hash !== record?.accepted.hash) this.#unsaved.delete(key);
    const wasHidden = pins.quarantined.has(tool);
    if (record === undefined) pins.delete(tool);
    else pins.take(tool, toPin(record));
    if (wasHidden === pins.quarantined.has(tool)) return;
    this.#deps.onChange(server);
    this.#announce(server);
  }

  /** Only of a pin that another gateway forgot: seldom enough for a search. */
  #findKey(key: string): { readonly server: string; readonly tool: OwnToolName } | undefined {
    for (const [server, { pins }] of this.#servers) {
      for (const tool of pins.keys()) if (this.#keyOf(server, tool) === key) return { server, tool };
    }
    return undefined;
  }

  /**
   * `others` are servers of the config that do not run. Returns the servers that are trusted no longer: their lists have
   * to be checked again.
   */
  configure(
    servers: readonly {
      readonly name: string;
      readonly trust: "pinned" | "always";
      readonly target?: Target;
    }[],
    others: readonly string[] = [],
  ): string[] {
    const recheck: string[] = [];
    this.#configured = new Set([...servers.map(({ name }) => name), ...others]);
    for (const name of this.#trusted) if (!this.#configured.has(name)) this.#trusted.delete(name);
    for (const { name, trust, target } of servers) {
      if (this.#means(name, target) && trust !== "always") recheck.push(name);
      const wasTrusted = this.#trusted.has(name);
      if (wasTrusted === (trust === "always")) continue;
      if (wasTrusted) {
        this.#trusted.delete(name);
        recheck.push(name);
      } else {
        this.#trusted.add(name);
      }
      if ((this.#servers.get(name)?.quarantined.size ?? 0) === 0) continue;
      this.#deps.onChange(name);
      this.#announce(name);
    }
    return recheck;
  }

  /** To be called with every list of tools that is read or restored, before agents see it. */
  check(
    server: string,
    tools: readonly ListedTool[],
  ): { readonly quarantined: ReadonlyMap<OwnToolName, string>; readonly differs: boolean } {
    if (this.#trusted.has(server)) return { quarantined: NONE, differs: false };
    // What came before of these tools is written before what comes now.
    if (this.#waiting.some((one) => one.server === server)) this.flush();
    const pins = this.#pinsOf(server);
    const { toWrite, differs } = pins.see(tools, this.#deps.wall());
    for (const [key, record] of this.#unsaved) if (record.server === server) this.#write(key, record);
    for (const pin of toWrite) this.#waiting.push({ server, pin });
    // A few are written at once. The first sight of thousands is the work of many turns: in force they are already.
    this.#writeSome();
    this.#tell(server, toWrite);
    if (differs) this.#announce(server);
    return { quarantined: pins.quarantined, differs };
  }

  /** Why a call of the tool is refused and lists leave it out; undefined where nothing is wrong with it. */
  quarantine(server: string, tool: OwnToolName): string | undefined {
    if (this.#trusted.has(server)) return undefined;
    return this.#servers.get(server)?.quarantined.get(tool);
  }

  isQuarantined(server: string, tool: OwnToolName): boolean {
    return this.quarantine(server, tool) !== undefined;
  }

  /** Its tools that a person has to decide about: what was rejected stays hidden, and asks no more. */
  asking(server: string): OwnToolName[] {
    const known = this.#trusted.has(server) ? undefined : this.#servers.get(server);
    return [...(known?.quarantined.keys() ?? [])].filter((tool) => !isRejected(known?.pins.get(tool)));
  }

  /** Since when it is another than the one that was accepted; undefined of one that is not, or cannot be pinned. */
  changedMs(server: string, tool: OwnToolName): number | undefined {
    return this.#servers.get(server)?.pins.get(tool)?.changed?.seenMs;
  }

  /** Tells of every change, in a turn of its own, until what it returns is called. */
  watch(watcher: (change: PinChange) => void): () => void {
    this.#watchers.add(watcher);
    return () => void this.#watchers.delete(watcher);
  }

  /** Servers whose tools are not pinned, since their entries say so. */
  get trusted(): string[] {
    return [...this.#trusted];
  }

  #hasLeft(server: string): boolean {
    return this.#configured?.has(server) === false;
  }

  list(): PinLine[] {
    const lines: PinLine[] = [];
    for (const [server, book] of this.#servers) {
      if (this.#trusted.has(server)) continue;
      for (const [tool, pin] of book.pins) lines.push(this.#line(server, tool, pin, book));
      for (const [tool, reason] of book.quarantined) {
        if (!book.pins.has(tool)) lines.push({ server, tool, state: "refused", reason });
      }
    }
    return lines;
  }

  /** What changed, of all changed tools of the server or of the one. */
  diff(server: string, tool?: OwnToolName): PinDiff[] {
    this.flush();
    const pins = this.#demand(server, tool);
    const diffs: PinDiff[] = [];
    for (const [name, { changed }] of pins.pins) {
      if (changed === undefined || (tool !== undefined && name !== tool)) continue;
      const record = this.#read(server, name);
      if (record?.changed === undefined) continue;
      const rejectedAt = record.changed.rejected;
      const rejected = rejectedAt === undefined ? {} : { rejectedAt: iso(rejectedAt) };
      diffs.push({ server, tool: name, old: side(record.accepted), new: side(record.changed), ...rejected });
    }
    return diffs;
  }

  /**
   * Takes the definition as it is now, of one tool or of all that changed. `hash`: only if it is still the one whose
   * hash begins so. Resolves when that is on disk; only then are the tools there again.
   */
  async accept(server: string, tool?: OwnToolName, hash?: string): Promise<AcceptedPin[]> {
    this.flush();
    const pins = this.#demand(server, tool);
    const wanted = [...pins.pins].filter(([name]) => tool === undefined || name === tool);
    const changed = wanted.flatMap(([name, pin]) =>
      pin.changed === undefined ? [] : [{ tool: name, hash: pin.changed.hash, oldHash: pin.hash }],
    );
    for (const one of changed) refuseOther(one, hash);
    const done = await Promise.allSettled(changed.map((one) => this.#accept(server, pins, one)));
    if (tool === undefined && pins.isFull) await this.#deleteGone(server, pins);
    if (changed.length > 0) {
      this.#deps.onChange(server);
      this.#announce(server);
    }
    for (const result of done) if (result.status === "rejected") throw result.reason;
    return changed;
  }

  async #accept(server: string, pins: ServerPins, { tool, hash }: AcceptedPin): Promise<void> {
    const key = this.#keyOf(server, tool);
    const before = this.#read(server, tool);
    const definition = before?.changed?.hash === hash ? before.changed.definition : undefined;
    for (;;) {
      const pin = pins.pins.get(tool);
      if (pin === undefined) return;
      const next = accept(pin, hash, this.#deps.wall());
      const stored = this.#read(server, tool);
      const isStored = stored?.accepted.hash === hash && stored.changed?.hash === next.changed?.hash;
      if (isStored) {
        pins.put(tool, next);
        this.#count(server, key, stored);
        return;
      }
      const changed = next.changed === undefined ? undefined : keptOf(next.changed, stored?.changed);
      // It does not go through `#unsaved`: what the disk refuses is not accepted. A list that comes meanwhile, here or at
      // another gateway, may write over it what it knew; then it is written once more.
      await this.#swap(key, {
        server,
        tool,
        ...this.#targetOf(server),
        firstSeen: next.firstSeenMs,
        accepted: { hash, at: next.acceptedMs, ...(definition === undefined ? {} : { definition }) },
        ...(changed === undefined ? {} : { changed }),
      });
      // It is in it, whatever became of that record's own write.
      if (this.#unsaved.get(key) === stored) this.#unsaved.delete(key);
    }
  }

  /** Writes on what is there now; false where somebody else has written meanwhile. */
  async #swap(key: string, record: PinRecord): Promise<boolean> {
    const { map } = this.#deps;
    const revision = map.read(key)?.revision;
    const written = revision === undefined ? map.create(key, record) : map.update(key, record, revision);
    return (await written) !== undefined;
  }

  /**
   * Leaves tools hidden as they are now, and asks about them no more until they change again: one, or all that changed.
   * `hash` as in `accept`. Resolves when that is on disk.
   */
  async reject(server: string, tool?: OwnToolName, hash?: string): Promise<RejectedPin[]> {
    this.flush();
    const pins = this.#demand(server, tool);
    const wanted = [...pins.pins].flatMap(([name, { changed }]) =>
      changed === undefined || changed.rejectedMs !== undefined || (tool !== undefined && name !== tool)
        ? []
        : [{ tool: name, hash: changed.hash }],
    );
    for (const one of wanted) refuseOther(one, hash);
    for (const one of wanted) await this.#reject(server, pins, one);
    if (wanted.length > 0) this.#announce(server);
    return wanted;
  }

  async #reject(server: string, pins: ServerPins, { tool, hash }: RejectedPin): Promise<void> {
    const key = this.#keyOf(server, tool);
    for (;;) {
      const stored = this.#read(server, tool);
      if (stored?.changed?.hash !== hash) return;
      const at = this.#deps.wall();
      // Another gateway may have written meanwhile: what it wrote is looked at first.
      if (!(await this.#swap(key, { ...stored, changed: { ...stored.changed, rejected: at } }))) continue;
      if (this.#unsaved.get(key) === stored) this.#unsaved.delete(key);
      const pin = pins.pins.get(tool);
      // A list that came meanwhile has written what it knew, and asks anew.
      if (pin?.changed?.hash === hash) pins.put(tool, reject(pin, hash, at));
      return;
    }
  }

  /**
   * Forgets the pins of a server that has left the config or is trusted, and of others those of tools that are gone: a
   * pin that is in use is what a change is known by. Resolves with the tools when that is on disk. Throws a Fault where
   * there is nothing to forget.
   */
  async forget(server: string, tool?: OwnToolName): Promise<OwnToolName[]> {
    const pins = this.#servers.get(server);
    const known = [...(pins?.pins.keys() ?? [])].filter((name) => tool === undefined || name === tool);
    if (pins === undefined || known.length === 0) {
      const what = tool === undefined ? "" : `"${tool}" of `;
      throw new Fault(
        "not-found",
        `There is no pin of ${what}server "${server}": \`toolway pins\` shows those there are.`,
      );
    }
    const isFree = this.#hasLeft(server) || this.#trusted.has(server);
    const forgotten = known.filter((name) => isFree || pins.isGone(name));
    if (forgotten.length === 0) {
      const next = `\`toolway pins accept\` takes what it lists now; pins of tools that are gone can be forgotten.`;
      throw new Fault("denied", `Server "${server}" is in the config, and its pins are in use: ${next}`);
    }
    await this.#delete(server, pins, forgotten);
    if (pins.pins.size === 0 && this.#hasLeft(server)) this.#servers.delete(server);
    this.#deps.onChange(server);
    this.#announce(server);
    return forgotten;
  }

  async #deleteGone(server: string, pins: ServerPins): Promise<void> {
    const gone = [...pins.pins.keys()].filter((tool) => pins.isGone(tool));
    if (gone.length > 0) await this.#delete(server, pins, gone);
  }

  /** All that `#means` would begin with at the next start, but what is of gateways where the name means another server. */
  async #delete(server: string, pins: ServerPins, tools: readonly OwnToolName[]): Promise<void> {
    const own = this.#targets.get(server);
    const keys = new Map(tools.map((tool) => [tool, [this.#keyOf(server, tool)]]));
    for (const [key, record] of this.#deps.map.entries()) {
      const { target } = record;
      // Of a server that had left the config before this start nobody knows which it was: all under its name are meant.
      if (record.server !== server || (target !== undefined && own !== undefined && target !== own)) continue;
      const found = keys.get(record.tool);
      if (found?.includes(key) === false) found.push(key);
    }
    for (const [tool, all] of keys) {
      for (const key of all) {
        await this.#deps.map.delete(key);
        this.#unsaved.delete(key);
        this.#count(server, key, undefined);
      }
      pins.delete(tool);
    }
  }

  #pinsOf(server: string): ServerPins {
    const known = this.#servers.get(server);
    if (known !== undefined) return known;
    const made = new ServerPins(server);
    this.#servers.set(server, made);
    return made;
  }

  #demand(server: string, tool: OwnToolName | undefined): ServerPins {
    const pins = this.#trusted.has(server) ? undefined : this.#servers.get(server);
    if (pins === undefined) {
      const why = this.#trusted.has(server) ? 'its entry says `"trust": "always"`' : "no tool of it has been seen yet";
      const meant = this.#trusted.has(server) ? undefined : nearest(server, [...this.#servers.keys()]);
      const hint = meant === undefined ? "" : ` Did you mean "${meant}"?`;
      throw new Fault("not-found", `Nothing of server "${server}" is pinned: ${why}.${hint}`);
    }
    if (tool === undefined || pins.pins.has(tool)) return pins;
    const problem = pins.quarantined.get(tool);
    if (problem === undefined) throw new Fault("not-found", `Server "${server}" has shown no tool "${tool}".`);
    throw new Fault("denied", `Tool "${tool}" of server "${server}" cannot be accepted: ${problem}.`);
  }

  #line(server: string, tool: OwnToolName, pin: Pin, book: ServerPins): PinLine {
    const reason = book.quarantined.get(tool);
    return {
      server,
      tool,
      state: this.#hasLeft(server) ? "left" : stateOf(tool, pin, book),
      firstSeen: iso(pin.firstSeenMs),
      acceptedAt: iso(pin.acceptedMs),
      hash: pin.hash,
      ...(pin.changed === undefined ? {} : { newHash: pin.changed.hash }),
      ...(reason === undefined ? {} : { reason }),
    };
  }

  // ── The disk ─────────────────────────────────────────────────────────────────────────────────────────────────

  /** Gives the store all that is waiting. To be called before it is closed. */
  flush(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    try {
      for (const { server, pin } of waiting) this.#record(server, pin);
    } catch (error) {
      // The store was closed meanwhile: the next start pins what it finds.
      this.#deps.log("warn", `pins could not be kept: ${(error as Error).message}`);
    }
  }

  /** Tries again what could not be written: at most one record for each pin. */
  retry(): void {
    for (const [key, record] of [...this.#unsaved]) this.#write(key, record);
  }

  #writeSome(): void {
    if (this.#isWriting) return;
    const rest = this.#waiting.splice(RECORDS_A_TURN);
    this.flush();
    this.#waiting = rest;
    if (rest.length === 0) return;
    this.#isWriting = true;
    setImmediate(() => {
      this.#isWriting = false;
      this.#writeSome();
    });
  }

  #targetOf(server: string): { target?: string } {
    const target = this.#targets.get(server);
    return target === undefined ? {} : { target };
  }

  #read(server: string, tool: OwnToolName): PinRecord | undefined {
    const key = this.#keyOf(server, tool);
    return this.#unsaved.get(key) ?? this.#deps.map.get(key);
  }

  #record(server: string, { tool, pin, definition }: PinToWrite): void {
    const before = this.#read(server, tool);
    const at = pin.changed === undefined ? pin.acceptedMs : pin.changed.seenMs;
    const room = MAX_KEPT_CHARS - (this.#kept.get(server) ?? 0);
    const fits = definition.length <= Math.min(MAX_DEFINITION_CHARS, room);
    const seen: KeptDefinition = { hash: pin.changed?.hash ?? pin.hash, at, ...(fits ? { definition } : {}) };
    const accepted = pin.changed === undefined ? (before?.accepted ?? seen) : before?.accepted;
    const key = this.#keyOf(server, tool);
    const record: PinRecord = {
      server,
      tool,
      ...this.#targetOf(server),
      firstSeen: pin.firstSeenMs,
      accepted: accepted ?? { hash: pin.hash, at: pin.acceptedMs },
      ...(pin.changed === undefined ? {} : { changed: seen }),
    };
    this.#count(server, key, record);
    this.#write(key, record);
  }

  /** A disk that is full costs what a restart would have known; it is tried again with the server's next list. */
  #write(key: string, record: PinRecord): void {
    this.#put(key, record).catch((error: unknown) => {
      const { server, tool } = record;
      const name = this.#deps.redact(server, tool);
      this.#deps.log("warn", `the pin of ${server}/${name} could not be kept: ${(error as Error).message}`, { server });
    });
  }

  async #put(key: string, record: PinRecord): Promise<void> {
    this.#unsaved.set(key, record);
    for (let n = 0; n < MAX_TRIES; n++) {
      // What was accepted at another gateway meanwhile is what counts; we were told it, or are about to be.
      const { accepted } = this.#deps.map.get(key) ?? record;
      if (accepted.hash !== record.accepted.hash || (await this.#swap(key, record))) break;
      // A later one is on its way, and must not be written over.
      if (this.#unsaved.get(key) !== record) return;
    }
    if (this.#unsaved.get(key) === record) this.#unsaved.delete(key);
  }

  #count(server: string, key: string, record: PinRecord | undefined): void {
    const size = sizeOf(record);
    const before = this.#sizes.get(key) ?? 0;
    if (size === 0) this.#sizes.delete(key);
    else this.#sizes.set(key, size);
    this.#kept.set(server, (this.#kept.get(server) ?? 0) + size - before);
  }

  #announce(server: string): void {
    if (this.#watchers.size === 0) return;
    const quarantined = this.#trusted.has(server) ? NONE : (this.#servers.get(server)?.quarantined ?? NONE);
    const change = { server, hidden: [...quarantined].map(([tool, reason]) => ({ tool, reason })) };
    for (const watcher of this.#watchers) setImmediate(watcher, change);
  }

  #tell(server: string, toWrite: readonly PinToWrite[]): void {
    const names = (kind: PinToWrite["kind"]): OwnToolName[] =>
      toWrite.filter((one) => one.kind === kind).map(({ tool }) => tool);
    const [first, changed, restored] = [names("first"), names("changed"), names("restored")];
    const say = (level: "info" | "warn", what: string, tools: readonly OwnToolName[], next = "") => {
      const text = `server "${server}": ${what}: ${this.#some(server, tools)}${next}`;
      this.#deps.log(level, text, { server, tools: tools.length });
    };
    if (first.length > 0) say("info", "pinned at first sight", first);
    if (changed.length > 0) {
      this.#deps.onHeldBack?.(changed.length);
      const next = `; see \`toolway pins diff ${shellWord(server)}\`, then \`toolway pins accept ${shellWord(server)}\``;
      say("warn", "definition changed, so quarantined", changed, next);
    }
    if (restored.length > 0) say("info", "as accepted again", restored);
  }

  /** A log line names a few; `toolway pins` has them all. */
  #some(server: string, tools: readonly OwnToolName[]): string {
    // It is redacted before it is cut: half of a secret is none that is found.
    const shown = tools.slice(0, MAX_NAMED).map((tool) => {
      const name = this.#deps.redact(server, tool.slice(0, MAX_NAME_READ));
      return JSON.stringify(name.slice(0, MAX_NAME_CHARS));
    });
    const more = tools.length - shown.length;
    return more === 0 ? shown.join(", ") : `${shown.join(", ")} and ${more} more`;
  }
}

function stateOf(tool: OwnToolName, pin: Pin, book: ServerPins): PinLine["state"] {
  if (book.problem(tool) !== undefined) return "refused";
  if (pin.changed !== undefined) return isRejected(pin) ? "rejected" : "changed";
  return book.isGone(tool) ? "gone" : "pinned";
}

function isRejected(pin: Pin | undefined): boolean {
  return pin?.changed?.rejectedMs !== undefined;
}

function refuseOther({ tool, hash }: RejectedPin, wanted: string | undefined): void {
  if (wanted === undefined) return;
  if (wanted.length < MIN_HASH_CHARS)
    throw new Fault(
      "invalid",
      `A hash is given by its first ${MIN_HASH_CHARS} characters at least, as \`toolway pins diff\` shows it.`,
    );
  if (hash.startsWith(wanted)) return;
  throw new Fault(
    "invalid",
    `Tool "${tool}" is not what was looked at: its hash is ${hash} now. Look at its diff again, and name that hash.`,
  );
}
