// Arguments and results that a person records: in memory alone, within bounds, without the secrets of servers' entries, and
// gone when the time is over. Who records is told apart by server and tool; it is loaded when somebody does.

import type { RecordedBodies, RecordingShown } from "../../contracts/control/record.js";
import { PiecedReply, replySize } from "../../protocol/arrived.js";
import { isObject } from "../../protocol/jsonrpc.js";
import type { RequestMessage } from "../../protocol/message.js";
import type { Reply } from "../../protocol/reply.js";
import type { RedactName } from "../call-lines.js";

/** Of a side of a call: what a person reads. */
const MAX_SIDE_CHARACTERS = 64 * 1024;
/** Of all recordings together; the oldest make room. */
const MAX_ALL_CHARACTERS = 16 * 1024 * 1024;
/** A secret that stands across the end of a side is found too: nobody has a longer one. */
const OVERLAP_CHARACTERS = 4 * 1024;
/** So many are under way at once: a person looks at one or two. */
const MAX_RECORDINGS = 16;
/** What is recorded for longer is forgotten by who began it. */
export const MAX_RECORD_MS = 3_600_000;
/** A reply in pieces that is longer is not joined for a look at its head. */
const MAX_JOINED_BYTES = 1024 * 1024;

interface Target {
  readonly server: string;
  readonly tool: string | undefined;
  readonly untilMs: number;
  calls: number;
}

/** What a record of a call carries; emptied when its recording ends or has to make room. */
export class Bodies {
  readonly #target: Target;
  #kept: RecordedBodies | undefined;

  constructor(target: Target, kept: RecordedBodies) {
    this.#target = target;
    this.#kept = kept;
  }

  get target(): unknown {
    return this.#target;
  }

  get kept(): RecordedBodies | undefined {
    return this.#kept;
  }

  get characters(): number {
    return this.#kept === undefined ? 0 : this.#kept.arguments.length + this.#kept.result.length;
  }

  empty(): void {
    this.#kept = undefined;
  }
}

export class Recordings {
  readonly #redact: RedactName;
  readonly #wall: () => number;
  readonly #targets: Target[] = [];
  /** Oldest first. */
  #bodies: Bodies[] = [];
  #characters = 0;

  constructor(redact: RedactName, wall: () => number) {
    this.#redact = redact;
    this.#wall = wall;
  }

  /** The same target again begins anew, with its new time. False where there are too many. */
  begin(server: string, tool: string | undefined, forMs: number): boolean {
    this.sweep();
    const known = this.#targets.findIndex((one) => one.server === server && one.tool === tool);
    if (known < 0 && this.#targets.length >= MAX_RECORDINGS) return false;
    const before = this.#targets[known];
    const target = { server, tool, untilMs: this.#wall() + Math.min(forMs, MAX_RECORD_MS), calls: before?.calls ?? 0 };
    if (before !== undefined) {
      // What was recorded stays until the new time is over.
      Object.assign(before, target);
    } else this.#targets.push(target);
    return true;
  }

  /** Ends those that fit, all where nothing is named, and forgets what they have. Returns how many there were. */
  stop(server?: string, tool?: string): number {
    return this.#end(
      (one) => (server === undefined || one.server === server) && (tool === undefined || one.tool === tool),
    );
  }

  /** Ends those whose time is over. Returns when the next ends, in milliseconds since 1970. */
  sweep(): number | undefined {
    const nowMs = this.#wall();
    this.#end(({ untilMs }) => untilMs <= nowMs);
    return this.#targets.length === 0 ? undefined : Math.min(...this.#targets.map(({ untilMs }) => untilMs));
  }

  get shown(): RecordingShown[] {
    return this.#targets.map(({ server, tool, untilMs, calls }) => ({
      server,
      tool,
      until: new Date(untilMs).toISOString(),
      calls,
    }));
  }

  /** In the turn in which the call ends: what the reply's bytes stand in is used again. Undefined where nobody records it. */
  capture(server: string, tool: string | undefined, message: RequestMessage, reply: Reply): Bodies | undefined {
    const nowMs = this.#wall();
    const target = this.#targets.find(
      (one) => one.server === server && (one.tool === undefined || one.tool === tool) && one.untilMs > nowMs,
    );
    if (target === undefined) return undefined;
    target.calls++;
    const [given, isGivenCut] = this.#side(server, argumentsText(message));
    const [result, isResultCut] = this.#side(server, resultText(reply));
    const cut = [...(isGivenCut ? ["arguments" as const] : []), ...(isResultCut ? ["result" as const] : [])];
    const bodies = new Bodies(target, { arguments: given, result, cut });
    this.#bodies.push(bodies);
    this.#characters += bodies.characters;
    let gone = 0;
    while (this.#characters > MAX_ALL_CHARACTERS) {
      const oldest = this.#bodies[gone++] as Bodies;
      this.#characters -= oldest.characters;
      oldest.empty();
    }
    if (gone > 0) this.#bodies = this.#bodies.slice(gone);
    return bodies;
  }

  #side(server: string, [text, isLonger]: readonly [string, boolean]): [text: string, isCut: boolean] {
    const redacted = this.#redact(server, text.slice(0, MAX_SIDE_CHARACTERS + OVERLAP_CHARACTERS));
    const isCut = isLonger || redacted.length > MAX_SIDE_CHARACTERS;
    // Copied: a part of a long text holds all of it.
    return [isCut ? Buffer.from(redacted.slice(0, MAX_SIDE_CHARACTERS)).toString() : redacted, isCut];
  }

  #end(isOver: (target: Target) => boolean): number {
    const over = new Set<unknown>(this.#targets.filter(isOver));
    if (over.size === 0) return 0;
    const left = this.#targets.filter((one) => !over.has(one));
    this.#targets.splice(0, this.#targets.length, ...left);
    for (const bodies of this.#bodies) {
      if (!over.has(bodies.target)) continue;
      this.#characters -= bodies.characters;
      bodies.empty();
    }
    this.#bodies = this.#bodies.filter(({ kept }) => kept !== undefined);
    return over.size;
  }
}

const READ = MAX_SIDE_CHARACTERS + OVERLAP_CHARACTERS;

function argumentsText({ params, text }: RequestMessage): readonly [string, boolean] {
  // From where they stand: to write long ones out anew would take as long as the call.
  if (text.length > READ) return [text.slice(Math.max(0, text.indexOf('"arguments"'))).slice(0, READ), true];
  const given = isObject(params) ? (params["arguments"] ?? params) : params;
  return [JSON.stringify(given ?? {}), false];
}

function resultText(reply: Reply): readonly [string, boolean] {
  switch (reply.kind) {
    case "result":
      return shortened(JSON.stringify(reply.result) ?? "");
    case "error":
      return shortened(JSON.stringify({ error: reply.error }));
    case "stream":
      return ["", true];
    case "bytes": {
      const size = replySize(reply);
      const isPieced = reply instanceof PiecedReply && size > MAX_JOINED_BYTES;
      const bytes = isPieced ? reply.first : reply.bytes;
      const text = bytes.toString("utf8", 0, READ);
      return size > READ ? [text, true] : [innerText(text), false];
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

function shortened(text: string): readonly [string, boolean] {
  return [text.slice(0, READ), text.length > READ];
}
