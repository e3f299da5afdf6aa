// An agent over stdio, or over a socket that stands for it: lines in, lines out, and nothing but protocol.

import { randomBytes } from "node:crypto";
import type { Readable, Writable } from "node:stream";
import type { AgentProfile, Principal } from "../../contracts/caller.js";
import type { Service } from "../../contracts/service.js";
import { weightOf } from "../../protocol/bytes/weight.js";
import { Fault, LIMIT } from "../../protocol/errors.js";
import type { Reply } from "../../protocol/reply.js";
import { type Clock, systemClock } from "../../runtime/clock.js";
import { LineSplitter } from "../../runtime/line-splitter.js";
import { HeldBytes, type Holder, NO_ROOM } from "../../runtime/memory/held-bytes.js";
import { createSealer, type Sealer } from "../../runtime/seal.js";
import { ownTurn } from "../../runtime/turns/turns.js";
import { sleep } from "../../runtime/wait.js";
import { ModernEra } from "../modern/era.js";
import type { EndpointEvent } from "../session/endpoint-event.js";
import { ENDPOINT_LIMITS, type EndpointLimits } from "../session/limits.js";
import {
  costOf,
  decodeLong,
  LONG_BYTES,
  PIPED,
  SHORT_BYTES,
  SMALL_BYTES,
  TextCheck,
  tooLargeToHold,
  type Unreadable,
} from "../session/read-message.js";
import { ModernPipe } from "./modern-pipe.js";
import { LINES, PipeOut } from "./out.js";
import { PipePeer } from "./peer.js";

/** What is said besides what the service answers, to an agent that is another gateway. */
export interface ExtraLines {
  /** The line in place of a reply to the request with this id. Undefined where the reply goes as it is. */
  readonly instead: (reply: Reply, idText: string) => string | undefined;
  /** The last line, where it is we who end it: so many lines of the agent's were taken. What is in flight is not answered then. */
  readonly last: (takenLines: number) => string;
}

export interface StdioEndpointOptions {
  readonly service: Service;
  readonly input: Readable;
  readonly output: Writable;
  readonly principal: Principal;
  /** It takes a tool's structured output as the server gives it, whatever agents of its era take. */
  readonly takesAnyOutput?: true;
  /** It takes replies of legacy servers as these wrote them, also to its modern requests. */
  readonly asWritten?: true;
  /** Where it is given, the agent sees this server alone, as at `/mcp/<server>`. */
  readonly scope?: string;
  /** Seals what a modern agent brings back to us. Where it is absent, the pipe makes a key of its own. */
  readonly sealer?: Sealer;
  /** Is told what the agent can be asked, before anything that it sends reaches the service. */
  readonly introduced?: (profile: AgentProfile | undefined) => void;
  readonly extraLines?: ExtraLines;
  readonly limits?: Partial<EndpointLimits>;
  /** The gateway's count of the bytes that it holds. By default the pipe has one of its own. */
  readonly held?: HeldBytes;
  readonly clock?: Clock;
  readonly log?: (event: EndpointEvent) => void;
}

export interface StdioEndpoint {
  /** Writes a notification that belongs to no session and no call of the agent's; not where the agent is behind. */
  tell(text: string): void;
  /** Settles when the agent is gone or close() was called. Never rejects. */
  readonly closed: Promise<void>;
  /** Waits up to `drainMs` for what is in flight. */
  close(options?: { drainMs?: number }): Promise<void>;
}

const SEALING_KEY_BYTES = 32;
/** A drain looks this often. */
const LOOK_MS = 20;
/** The last lines have so long to leave: an agent that does not read must not hold up our end. */
const FLUSH_MS = 1000;

const SKIPPED = `A line was skipped: ${NO_ROOM}`;

export function createStdioEndpoint(options: StdioEndpointOptions): StdioEndpoint {
  return new Stdio(options);
}

class Stdio implements StdioEndpoint {
  readonly closed: Promise<void>;
  readonly #input: Readable;
  readonly #output: Writable;
  readonly #limits: EndpointLimits;
  readonly #out: PipeOut;
  readonly #peer: PipePeer;
  readonly #lines: LineSplitter;
  readonly #held: HeldBytes;
  readonly #owner: string;
  /** While a long line is read: those that came with its end. The input is paused meanwhile. */
  #behind: Buffer[] | undefined;
  readonly #extraLines: ExtraLines | undefined;
  /** Lines that were answered without being read. */
  #refusedLines = 0;
  #settle: () => void = () => {};
  #over = false;

  constructor(options: StdioEndpointOptions) {
    const { service, input, output, principal, scope, limits, clock = systemClock, log } = options;
    this.#input = input;
    this.#output = output;
    this.#limits = { ...ENDPOINT_LIMITS, ...limits };
    const held = options.held ?? new HeldBytes();
    this.#out = new PipeOut(output, LINES, this.#limits, held, principal.id);
    this.#held = held;
    this.#owner = principal.id;
    const failed = (error: unknown) => log?.({ kind: "failed", error });
    const { takesAnyOutput, asWritten, extraLines } = options;
    this.#extraLines = extraLines;
    const shared = {
      service,
      principal,
      scope,
      takesAnyOutput,
      limits: this.#limits,
      clock,
      held,
      out: this.#out,
      instead: extraLines?.instead,
      failed,
    };
    const sealer = options.sealer ?? createSealer(randomBytes(SEALING_KEY_BYTES));
    const modern = new ModernPipe({ ...shared, era: new ModernEra({ ...shared, sealer, asWritten }) });
    this.#peer = new PipePeer({ ...shared, modern, introduced: options.introduced });
    const events = {
      onLine: (line: Buffer) => this.#line(line),
      onOversize: (_head: Buffer, _tail: Buffer, _length: number, hadRoom: boolean) => this.#skipped(hadRoom),
    };
    this.#lines = new LineSplitter(events, this.#limits.bodyBytes, held.holder(principal.id));
    this.closed = new Promise((resolve) => {
      this.#settle = resolve;
    });
    input.on("data", (chunk: Buffer | string) => this.#data(typeof chunk === "string" ? Buffer.from(chunk) : chunk));
    input.on("end", () => {
      this.#peer.agentLeft();
      void this.close({ drainMs: this.#limits.stallMs });
    });
    input.on("error", () => this.#gone());
    input.on("close", () => {
      if (!input.readableEnded) this.#gone();
    });
    output.on("error", () => this.#gone());
    output.on("close", () => this.#gone());
    output.on("drain", () => {
      this.#out.recount();
      if (this.#behind === undefined) input.resume();
    });
  }

  tell(text: string): void {
    if (!this.#over) this.#out.notify(text);
  }

  #data(chunk: Buffer): void {
    this.#lines.push(chunk);
    if (this.#out.overflowing) this.#gone();
    else if (this.#out.full) this.#input.pause();
  }

  #line(line: Buffer): void {
    if (this.#over) return;
    if (this.#behind !== undefined) {
      this.#behind.push(line);
      return;
    }
    const holder = this.#held.holder(this.#owner);
    if (line.length >= LONG_BYTES) {
      if (!this.#holds(holder, line.length, costOf(line.length, 0))) return;
      this.#behind = [];
      this.#input.pause();
      void this.#longLine(piecesOf(line), holder, line.length);
      return;
    }
    const check = line.length < SMALL_BYTES ? undefined : new TextCheck(this.#limits, PIPED);
    const unreadable = check?.push(line);
    const cost = costOf(line.length, check?.weight ?? weightOf(line));
    if (unreadable !== undefined) this.#refuse(unreadable.code, unreadable.why);
    else if (line.length < SHORT_BYTES || this.#holds(holder, line.length, cost)) {
      const text = line.toString().trim();
      if (text !== "") this.#peer.receive(text, holder, cost);
    }
    holder.releaseUnclaimed();
  }

  /** False where there is no room, and it has been refused. */
  #holds(holder: Holder, bytes: number, cost: number): boolean {
    if (holder.hold(cost)) return true;
    this.#refuse(LIMIT, cost > this.#held.most ? tooLargeToHold("line", bytes, cost, this.#held) : SKIPPED);
    return false;
  }

  /** The same in turns: nobody else waits for all of it. The bytes are let go of once they are decoded. */
  async #longLine(pieces: Buffer[], holder: Holder, bytes: number): Promise<void> {
    const check = new TextCheck(this.#limits, PIPED);
    const unreadable = await this.#judge(pieces, check);
    const cost = costOf(bytes, check.weight);
    if (unreadable === undefined && this.#holds(holder, bytes, cost)) {
      const text = (await decodeLong(pieces, ownTurn)).trim();
      if (text !== "") await this.#peer.receiveLong(text, holder, cost);
    } else if (unreadable !== undefined && !this.#over) this.#refuse(unreadable.code, unreadable.why);
    holder.releaseUnclaimed();
    this.#readOn();
  }

  async #judge(pieces: readonly Buffer[], check: TextCheck): Promise<Unreadable | undefined> {
    for (const piece of pieces) {
      const unreadable = check.push(piece);
      if (unreadable !== undefined) return unreadable;
      await ownTurn();
    }
    return undefined;
  }

  #readOn(): void {
    const behind = this.#behind ?? [];
    this.#behind = undefined;
    // Where one of them is long, the others wait for it.
    for (const line of behind) this.#line(line);
    if (this.#over) return;
    if (this.#out.overflowing) this.#gone();
    else if (this.#behind === undefined && !this.#out.full) this.#input.resume();
  }

  #skipped(hadRoom: boolean): void {
    const { bodyBytes } = this.#limits;
    if (!hadRoom) this.#refuse(LIMIT, SKIPPED);
    else this.#refuse(LIMIT, `A line has more than ${bodyBytes} bytes, which is the limit; it was skipped.`);
  }

  #refuse(code: number, why: string): void {
    this.#refusedLines++;
    this.#out.refuse(code, why);
  }

  /** The agent has gone, and what is in flight is cancelled. */
  #gone(): void {
    if (this.#over) return;
    this.#over = true;
    this.#lines.abandon();
    this.#peer.close(new Fault("closing", "The agent has gone."));
    this.#settle();
  }

  async close({ drainMs = 0 }: { drainMs?: number } = {}): Promise<void> {
    const deadline = performance.now() + drainMs;
    while (!this.#over && (this.#behind !== undefined || this.#peer.inFlight > 0) && performance.now() < deadline) {
      await sleep(LOOK_MS);
    }
    if (this.#over) return;
    this.#over = true;
    this.#lines.abandon();
    const last = this.#extraLines?.last(this.#peer.takenLines + this.#refusedLines);
    this.#peer.close(new Fault("closing", "The gateway is closing."), last);
    await this.#flushed();
    this.#input.pause();
    this.#settle();
  }

  /** Waits until all has left. The output itself stays open: it may be our own stdout. */
  async #flushed(): Promise<void> {
    const deadline = performance.now() + FLUSH_MS;
    while (this.#output.writableLength > 0 && !this.#output.destroyed && performance.now() < deadline) {
      await sleep(LOOK_MS);
    }
  }
}

function piecesOf(line: Buffer): Buffer[] {
  const pieces: Buffer[] = [];
  for (let at = 0; at < line.length; at += LONG_BYTES) pieces.push(line.subarray(at, at + LONG_BYTES));
  return pieces;
}
