// Arguments and results that a person records: in memory alone, within bounds, and gone when the time is over. They are read
// without the secrets of servers' entries. Who records is told apart by server and tool; it is loaded when somebody does.

import type { RecordedBodies, RecordingShown } from "../../contracts/control/record.js";
import { PiecedReply, replySize } from "../../protocol/arrived.js";
import { copied, jsonHead } from "../../protocol/json-head.js";
import { isObject } from "../../protocol/jsonrpc.js";
import type { RequestMessage } from "../../protocol/message.js";
import type { Reply } from "../../protocol/reply.js";
import type { Clock } from "../../runtime/clock.js";
import { MAX_KEPT_CALLS } from "./kept-calls.js";

/** Of a side of a call: what a person reads. */
const MAX_SIDE_CHARACTERS = 64 * 1024;
/** Of all recordings together; the oldest make room. */
const MAX_ALL_CHARACTERS = 16 * 1024 * 1024;
/** Of older calls nothing can be looked at, however small they were. */
const MAX_BODIES = MAX_KEPT_CALLS;
/** So many that made room are let go of at once: to move all others for each would cost every call. */
const GONE_AT_ONCE = 1_024;
/** A secret that stands across the end of a side is found too: nobody has a longer one. */
const OVERLAP_CHARACTERS = 4 * 1024;
/** So many are under way at once: a person looks at one or two. */
const MAX_RECORDINGS = 16;
/** What is recorded for longer is forgotten by who began it. */
export const MAX_RECORD_MS = 3_600_000;
/** A reply in pieces that is longer is not joined for a look at its head. */
const MAX_JOINED_BYTES = 1024 * 1024;

/** Takes the secrets of a server's entry out of a text, those that it had when this was asked for. */
type Redact = (text: string, isCut: boolean) => string;
/** Undefined for a server that is not in the config: nobody knows its secrets. */
export type RedactFor = (server: string) => Redact | undefined;

interface Target {
  readonly server: string;
  readonly tool: string | undefined;
  /** On the clock that only goes forward. */
  endMs: number;
  /** The same as people are shown it. */
  until: string;
  calls: number;
}

type Side = readonly [text: string, isCut: boolean];

/** As it was sent: nothing but `Bodies` may look at it. */
interface Raw {
  readonly given: Side;
  readonly result: Side;
  readonly redact: Redact;
}

/** What a record of a call carries; emptied when its time or its recording ends, or when it has to make room. */
export class Bodies {
  readonly target: unknown;
  /** Its own: a recording that is begun anew keeps nothing for longer. */
  readonly endMs: number;
  readonly #isOver: () => boolean;
  readonly #isConfigured: () => boolean;
  #raw: Raw | undefined;

  constructor(target: Target, raw: Raw, clock: Clock, isConfigured: () => boolean) {
    const { endMs } = target;
    this.target = target;
    this.endMs = endMs;
    this.#raw = raw;
    this.#isOver = () => clock.now() >= endMs;
    this.#isConfigured = isConfigured;
  }

  get isKept(): boolean {
    return this.#raw !== undefined && !this.#isOver();
  }

  /** Without secrets, which takes milliseconds: for who looks at this one call. Undefined where it is gone. */
  read(): RecordedBodies | undefined {
    const raw = this.#raw;
    if (raw === undefined || this.#isOver() || !this.#isConfigured()) return undefined;
    const [given, isGivenCut] = shownSide(raw.given, raw.redact);
    const [result, isResultCut] = shownSide(raw.result, raw.redact);
    const cut = [...(isGivenCut ? ["arguments" as const] : []), ...(isResultCut ? ["result" as const] : [])];
    return { arguments: given, result, cut };
  }

  get characters(): number {
    return this.#raw === undefined ? 0 : this.#raw.given[0].length + this.#raw.result[0].length;
  }

  empty(): void {
    this.#raw = undefined;
  }
}

export class Recordings {
  readonly #redactFor: RedactFor;
  readonly #clock: Clock;
  readonly #targets: Target[] = [];
  /** Oldest first, from `#first` on: those before it have made room. */
  #bodies: Bodies[] = [];
  #first = 0;
  #characters = 0;

  constructor(redactFor: RedactFor, clock: Clock) {
    this.#redactFor = redactFor;
    this.#clock = clock;
  }

  /** The same target again goes on, with its new time for what comes. False where there are too many. */
  begin(server: string, tool: string | undefined, forMs: number): boolean {
    this.sweep();
    const known = this.#targets.find((one) => one.server === server && one.tool === tool);
    if (known === undefined && this.#targets.length >= MAX_RECORDINGS) return false;
    const lastsMs = Math.min(forMs, MAX_RECORD_MS);
    const endMs = this.#clock.now() + lastsMs;
    const until = new Date(this.#clock.wall() + lastsMs).toISOString();
    if (known === undefined) this.#targets.push({ server, tool, endMs, until, calls: 0 });
    else Object.assign(known, { endMs, until });
    return true;
  }

  /**
   * Ends the one of a server, or the one of its tool, and forgets what it has; all where nothing is named. A whole
   * server's leaves those of its tools. Returns how many there were.
   */
  stop(server?: string, tool?: string): number {
    return this.#end((one) => server === undefined || (one.server === server && one.tool === tool));
  }

  /** Ends what has its time over. Returns when the next does, on the clock that only goes forward. */
  sweep(): number | undefined {
    const nowMs = this.#clock.now();
    this.#end(({ endMs }) => endMs <= nowMs);
    this.#forget(({ endMs }) => endMs <= nowMs);
    // Who has ended has no bodies, so that none is left where there is no target.
    const ends = [...this.#targets, ...this.#bodies].map(({ endMs }) => endMs);
    return ends.length === 0 ? undefined : ends.reduce((first, endMs) => Math.min(first, endMs));
  }

  get shown(): RecordingShown[] {
    return this.#targets.map(({ server, tool, until, calls }) => ({ server, tool, until, calls }));
  }

  /** In the turn in which the call ends: what the reply's bytes stand in is used again. Undefined where nobody records it. */
  capture(server: string, tool: string | undefined, message: RequestMessage, reply: Reply): Bodies | undefined {
    const nowMs = this.#clock.now();
    const target = this.#targets.find(
      (one) => one.server === server && (one.tool === undefined || one.tool === tool) && one.endMs > nowMs,
    );
    if (target === undefined) return undefined;
    const redact = this.#redactFor(server);
    if (redact === undefined) return undefined;
    target.calls++;
    const raw = { given: argumentsText(message), result: resultText(reply), redact };
    const isConfigured = () => this.#redactFor(server) !== undefined;
    const bodies = new Bodies(target, raw, this.#clock, isConfigured);
    this.#bodies.push(bodies);
    this.#characters += bodies.characters;
    this.#makeRoom();
    return bodies;
  }

  #makeRoom(): void {
    while (this.#characters > MAX_ALL_CHARACTERS || this.#bodies.length - this.#first > MAX_BODIES) {
      this.#empty(this.#bodies[this.#first++] as Bodies);
    }
    if (this.#first < GONE_AT_ONCE) return;
    this.#bodies.splice(0, this.#first);
    this.#first = 0;
  }

  #end(isOver: (target: Target) => boolean): number {
    const over = new Set<unknown>(this.#targets.filter(isOver));
    if (over.size === 0) return 0;
    const left = this.#targets.filter((one) => !over.has(one));
    this.#targets.splice(0, this.#targets.length, ...left);
    this.#forget(({ target }) => over.has(target));
    return over.size;
  }

  #forget(isGone: (bodies: Bodies) => boolean): void {
    const left: Bodies[] = [];
    for (const bodies of this.#bodies.slice(this.#first)) {
      if (isGone(bodies)) this.#empty(bodies);
      else left.push(bodies);
    }
    this.#bodies = left;
    this.#first = 0;
  }

  #empty(bodies: Bodies): void {
    this.#characters -= bodies.characters;
    bodies.empty();
  }
}

function shownSide([text, isLonger]: Side, redact: Redact): Side {
  const redacted = redact(text, isLonger);
  return [redacted.slice(0, MAX_SIDE_CHARACTERS), isLonger || redacted.length > MAX_SIDE_CHARACTERS];
}

const READ = MAX_SIDE_CHARACTERS + OVERLAP_CHARACTERS;

function argumentsText({ params }: RequestMessage): Side {
  return jsonHead(params?.["arguments"] ?? params ?? {}, READ);
}

function resultText(reply: Reply): Side {
  switch (reply.kind) {
    case "result":
      return jsonHead(reply.result, READ);
    case "error":
      return jsonHead({ error: reply.error }, READ);
    case "stream":
      return ["", true];
    case "bytes": {
      const size = replySize(reply);
      const isPieced = reply instanceof PiecedReply && size > MAX_JOINED_BYTES;
      const bytes = isPieced ? reply.first : reply.bytes;
      const text = bytes.toString("utf8", 0, READ);
      return size > READ ? [copied(text), true] : [innerText(text), false];
    }
  }
}

/** The result or error of a whole message; the message where it cannot be read. */
function innerText(text: string): string {
  try {
    const message: unknown = JSON.parse(text);
    if (!isObject(message)) return text;
    return JSON.stringify("error" in message ? { error: message["error"] } : message["result"]) ?? text;
  } catch {
    return text;
  }
}
