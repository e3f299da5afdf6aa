// A link to a server that is a child process: lines of JSON on its stdin and stdout, its stderr kept for errors.
// It carries messages; what they mean, and whether the server is started again, is decided elsewhere.

import type { Readable } from "node:stream";
import type { StdioTarget } from "../../contracts/server-spec.js";
import { Fault } from "../../protocol/errors.js";
import { systemClock } from "../../runtime/clock.js";
import { Table } from "../../runtime/containers/table.js";
import { LineSplitter } from "../../runtime/line-splitter.js";
import { type Holder, NO_ROOM, ownHolder } from "../../runtime/memory/held-bytes.js";
import { ProcessGroup } from "../../runtime/processes/group.js";
import type { Reaper } from "../../runtime/processes/reaper.js";
import { MARKER_VARIABLE } from "../../runtime/processes/reaper-marker.js";
import type { Redactor } from "../../runtime/redact/redactor.js";
import { redactorFor } from "../../runtime/redact/secrets-of.js";
import { sleepUnref } from "../../runtime/wait.js";
import { sentence } from "../../runtime/words/sentence.js";
import type { Link, LinkDescription, LinkEvents, Ticket } from "../link/link.js";
import { childEnvironment } from "./child-env.js";
import { type OutputPair, openOutputPair } from "./output.js";
import { type ServerProcess, spawnServer } from "./spawn.js";
import { StderrRing } from "./stderr.js";
import { type StderrBatch, StderrLines } from "./stderr-lines.js";
import { LineWriter } from "./writer.js";

export interface StdioLimits {
  readonly maxLineBytes: number;
  readonly maxPendingWriteBytes: number;
  readonly stdinGraceMs: number;
  readonly termGraceMs: number;
}

/**
 * The bound of one message. A pipe cannot be paused for one reader, so a line is held whole; 64 MiB is 8× our largest
 * test.
 */
const MAX_LINE_BYTES = 64 * 1024 * 1024;

/**
 * So much may wait for a child that does not read: as much as one message may have, so that any single one can be sent.
 */
const MAX_PENDING_WRITE_BYTES = 64 * 1024 * 1024;

/**
 * The time from closed stdin to SIGTERM, and from there to SIGKILL, that the official SDK's client gives its servers.
 */
const STDIN_GRACE_MS = 2_000;
const TERM_GRACE_MS = 2_000;

/** After the exit the pipes end at once, unless a process that escaped us holds them open. */
const DRAIN_MS = 1_000;

/** A pipe breaks a moment before the exit is known; a server that lives on with one closed is of no use. */
const BROKEN_PIPE_MS = 1_000;

/** So much is shown of the line that says why it died. */
const LAST_WORDS_CHARS = 300;

/** So much is shown of noise. */
const NOISE_SAMPLE_CHARS = 200;

/**
 * So many samples are decoded for each read (64 KiB); noise beyond that is told with the last one, so that a flood
 * costs little.
 */
const NOISE_SAMPLES_A_READ = 8;

/** After so many lines the others get a turn of the event loop: libuv alone would go on for 2 MiB of short lines. */
const LINES_A_TURN = 2_000;

/**
 * So much noise is read in one go; then the pipe is paused for a moment. A megabyte of noise a second is far
 * more than any log, and what a flood would take beyond that is taken from the others.
 */
const NOISE_BYTES_A_GO = 64 * 1024;
const NOISE_PAUSE_MS = 50;

/**
 * So many requests are remembered: as many as a connection has in flight. The oversized answer to one beyond counts as
 * noise.
 */
const TICKETS_KEPT = 10_000;

/** The ends of a line that is too long to be read: where an answer's id may stand. */
const HEAD = Buffer.from('{"jsonrpc":"2.0","id":');
const RESULT_FIRST = /^\{"(?:result|error)":/;
const AFTER_ID = /^(\d{1,16}),"(?:result|error)":/;
const ID_LAST = /,"id":(\d{1,16})\}\s*$/;

/** The patterns reach so far. */
const HEAD_BYTES = 64;
const TAIL_BYTES = 64;

/** Lines of stderr are gathered so long: one write of a file for many of them. */
const STDERR_GATHER_MS = 50;

export interface StdioContext {
  readonly reaper: Reaper;
  /** Our environment, of which the child sees the allowlisted part. */
  readonly env: NodeJS.ProcessEnv;
  readonly limits?: Partial<StdioLimits>;
  /** For what is half read, and for what waits to be written: it is counted as the server's. */
  readonly newHolder?: () => Holder;
  /** Takes what the child writes to stderr, line by line and without known secrets. Undefined where nobody keeps it. */
  readonly onStderr?: ((batch: StderrBatch) => void) | undefined;
  /** Resolves when what an earlier gateway left behind is gone. The start of a child waits for this. */
  readonly swept?: () => Promise<unknown>;
}

interface Running {
  readonly child: ServerProcess;
  /** Its stdout, or our end of the pair that it writes to. */
  readonly output: Readable;
  readonly group: ProcessGroup;
  readonly writer: LineWriter;
}

export class StdioLink implements Link {
  readonly #target: StdioTarget;
  readonly #events: LinkEvents;
  readonly #context: StdioContext;
  readonly #limits: StdioLimits;
  readonly #redactor: Redactor;
  readonly #stderr: StderrRing;
  readonly #stderrLines: StderrLines;
  #stderrTimer: NodeJS.Timeout | undefined;
  readonly #splitter: LineSplitter;
  /** Requests that wait for an answer: one that is too long to read still fails the right call. It is bounded. */
  readonly #tickets = new Table<number, Ticket>();
  #running: Running | undefined;
  #opened = false;
  /** True once the link has ended, by whichever side: no event is told any more. */
  #over = false;
  #closing: Promise<void> | undefined;
  /** Why we stop the server although nobody asked for it. */
  #complaint: string | undefined;
  #linesThisTurn = 0;
  #noiseBytes = 0;
  #samplesLeft = 0;
  #lastSample = "";

  constructor(target: StdioTarget, events: LinkEvents, context: StdioContext) {
    this.#target = target;
    this.#events = events;
    this.#context = context;
    this.#limits = {
      maxLineBytes: MAX_LINE_BYTES,
      maxPendingWriteBytes: MAX_PENDING_WRITE_BYTES,
      stdinGraceMs: STDIN_GRACE_MS,
      termGraceMs: TERM_GRACE_MS,
      ...context.limits,
    };
    this.#redactor = redactorFor(target);
    this.#stderr = new StderrRing(this.#redactor);
    this.#stderrLines = new StderrLines(this.#redactor);
    this.#splitter = new LineSplitter(
      {
        onLine: (line) => this.#line(line),
        onPieces: (pieces) => this.#pieces(pieces),
        onOversize: (head, tail, length, hadRoom) => this.#oversize(head, tail, length, hadRoom),
      },
      this.#limits.maxLineBytes,
      this.#newHolder(),
    );
  }

  async open(signal: AbortSignal): Promise<void> {
    await this.#context.swept?.();
    if (this.#opened || this.#over) throw new Fault("closing", "A link is opened once.");
    this.#opened = true;
    if (signal.aborted) throw aborted();
    const marker = this.#context.reaper.prepare();
    const env = childEnvironment(this.#context.env, this.#target.env);
    env[MARKER_VARIABLE] = marker;
    const pair = await openOutputPair((bytes) => this.#readLent(bytes));
    try {
      if (signal.aborted || this.#over) throw aborted();
      await spawnServer(this.#target, env, pair?.theirs, (child) => this.#attach(child, marker, pair));
    } catch (error) {
      pair?.ours.destroy();
      throw error;
    } finally {
      pair?.theirs.destroy();
    }
    if (!signal.aborted) return;
    await this.close();
    throw aborted();
  }

  send(text: string, ticket: Ticket | undefined): void {
    if (this.#over) return;
    if (this.#running === undefined) {
      if (ticket !== undefined) this.#events.onFailed(ticket, new Fault("unavailable", "Not connected."), false);
      return;
    }
    if (ticket !== undefined) this.#remember(ticket);
    // Its only request that is under way, as far as anybody waits for an answer.
    this.#running.writer.send(text, ticket, ticket !== undefined && this.#tickets.size === 1);
  }

  established(): void {
    // Lines carry no version.
  }

  forget(ticket: Ticket): void {
    this.#tickets.delete(ticket.id);
  }

  close(): Promise<void> {
    this.#over = true;
    this.#closing ??= this.#stop();
    return this.#closing;
  }

  describe(): LinkDescription {
    const pid = this.#running?.child.pid;
    return { kind: "stdio", ...(pid === undefined ? {} : { pid }), stderr: this.#stderr.lines() };
  }

  #newHolder(): Holder {
    return this.#context.newHolder?.() ?? ownHolder();
  }

  #attach(child: ServerProcess, marker: string, pair: OutputPair | undefined): void {
    const group = new ProcessGroup(child, child.pid as number, marker, this.#context.reaper);
    const writer = new LineWriter(child.stdin, this.#limits.maxPendingWriteBytes, this.#newHolder(), {
      onFailed: (ticket, fault, sent) => {
        this.#tickets.delete(ticket.id);
        if (!this.#over) this.#events.onFailed(ticket, fault, sent);
      },
      onBroken: () => void this.#pipeBroke("closed its input"),
    });
    const output = pair?.ours ?? (child.stdout as Readable);
    this.#running = { child, output, group, writer };
    if (pair === undefined) output.on("data", (chunk: Buffer) => this.#read(chunk));
    output.on("end", () => {
      this.#splitter.end();
      void this.#pipeBroke("closed its output");
    });
    child.stderr.on("data", (chunk: Buffer) => this.#readStderr(chunk));
    child.stderr.once("close", () => this.#giveStderr(true));
    output.on("error", () => {});
    child.stderr.on("error", () => {});
    // The child's own "close" tells of the pipes that Node made.
    const outputClosed = new Promise<void>((resolve) => output.once("close", () => resolve()));
    const pipesClosed = new Promise<void>((resolve) => child.once("close", () => resolve()));
    const pipesEnded = Promise.all([outputClosed, pipesClosed]);
    child.once("exit", (code, signal) => void this.#exited(code, signal, pipesEnded));
  }

  #readStderr(chunk: Buffer): void {
    this.#stderr.push(chunk);
    if (this.#context.onStderr === undefined) return;
    this.#stderrLines.push(chunk, systemClock.now());
    this.#stderrTimer ??= setTimeout(() => this.#giveStderr(false), STDERR_GATHER_MS).unref();
  }

  #giveStderr(isEnd: boolean): void {
    clearTimeout(this.#stderrTimer);
    this.#stderrTimer = undefined;
    const batch = this.#stderrLines.take(isEnd);
    if (batch !== undefined) this.#context.onStderr?.(batch);
  }

  #read(chunk: Buffer): void {
    this.#samplesLeft = NOISE_SAMPLES_A_READ;
    this.#linesThisTurn += this.#splitter.push(chunk);
    this.#shareTurn();
  }

  /** True where a part of it was kept, and must not be read into again. */
  #readLent(chunk: Buffer): boolean {
    this.#samplesLeft = NOISE_SAMPLES_A_READ;
    this.#linesThisTurn += this.#splitter.pushLent(chunk);
    const isKept = this.#splitter.keptLent;
    this.#shareTurn();
    return isKept;
  }

  #shareTurn(): void {
    const isFlooded = this.#noiseBytes >= NOISE_BYTES_A_GO;
    if (this.#linesThisTurn < LINES_A_TURN && !isFlooded) return;
    this.#linesThisTurn = 0;
    this.#noiseBytes = 0;
    const output = this.#running?.output;
    output?.pause();
    if (isFlooded) setTimeout(() => output?.resume(), NOISE_PAUSE_MS);
    else setImmediate(() => output?.resume());
  }

  #line(line: Buffer): void {
    if (this.#over) return;
    const start = firstOfText(line);
    if (start === line.length) return;
    const first = line[start];
    if (first !== 0x7b && first !== 0x5b) {
      this.#noise(line.subarray(start));
      return;
    }
    const message = start === 0 ? line : line.subarray(start);
    this.#events.onMessage(message, undefined);
  }

  /** A long line, as it came. */
  #pieces(pieces: Buffer[]): void {
    if (this.#over) return;
    const first = pieces[0] as Buffer;
    const start = firstOfText(first);
    const char = first[start];
    if (char !== 0x7b && char !== 0x5b) {
      this.#noise(start === first.length ? first : first.subarray(start));
      return;
    }
    if (start > 0) pieces[0] = first.subarray(start);
    this.#events.onPieces(pieces, undefined);
  }

  #oversize(head: Buffer, tail: Buffer, length: number, hadRoom: boolean): void {
    if (this.#over) return;
    const start = firstOfText(head);
    const id = answeredId(start === 0 ? head : head.subarray(start), tail);
    const ticket = id === undefined ? undefined : this.#tickets.get(id);
    if (ticket === undefined) {
      this.#noise(head);
      return;
    }
    this.#tickets.delete(ticket.id);
    const message = hadRoom
      ? `The answer has ${length} bytes; the limit for one message is ${this.#limits.maxLineBytes}.`
      : `The answer of ${length} bytes was thrown away: ${NO_ROOM}`;
    this.#events.onFailed(ticket, new Fault("limit", message, { wire: { left: true } }), true);
  }

  #noise(line: Buffer): void {
    this.#noiseBytes += line.length;
    if (this.#samplesLeft > 0) {
      this.#samplesLeft--;
      // At most four bytes make a character.
      const bytes = NOISE_SAMPLE_CHARS * 4;
      const text = line.toString("utf8", 0, bytes);
      this.#lastSample = this.#redactor.redact(text, line.length > bytes).slice(0, NOISE_SAMPLE_CHARS);
    }
    this.#events.onNoise(this.#lastSample);
  }

  #remember(ticket: Ticket): void {
    if (this.#tickets.size < TICKETS_KEPT) this.#tickets.set(ticket.id, ticket);
  }

  /** The server lives but cannot be talked to: it is given the time of a normal exit, then stopped. */
  async #pipeBroke(complaint: string): Promise<void> {
    const running = this.#running;
    if (running === undefined || this.#over) return;
    if ((await running.group.exits(BROKEN_PIPE_MS)) || this.#over) return;
    this.#complaint ??= complaint;
    await running.group.terminate(this.#limits.termGraceMs);
  }

  async #exited(code: number | null, signal: NodeJS.Signals | null, pipesEnded: Promise<unknown>): Promise<void> {
    const running = this.#running;
    if (running === undefined) return;
    // While closing, the rest of the group still has its grace.
    if (this.#closing === undefined) void running.group.kill();
    await Promise.race([pipesEnded, sleepUnref(DRAIN_MS)]);
    running.output.destroy();
    running.child.stderr.destroy();
    this.#splitter.abandon();
    if (this.#over) return;
    running.writer.abandon();
    this.#over = true;
    this.#tickets.clear();
    this.#events.onClosed(this.#exitFault(code, signal));
  }

  #exitFault(code: number | null, signal: NodeJS.Signals | null): Fault {
    const how = signal === null ? `exited with code ${code}` : `was ended by ${signal}`;
    const why = this.#complaint === undefined ? "" : ` after it had ${this.#complaint}`;
    const last = this.#stderr.reason();
    const said = (words: string | undefined) =>
      sentence(`The server ${how}${why}${words === undefined ? "" : `: ${words.slice(0, LAST_WORDS_CHARS)}`}`);
    const forOperator = said(last?.forOperator);
    return new Fault("outcome-unknown", said(last?.forAgents), { forOperator, reason: "exited" });
  }

  async #stop(): Promise<void> {
    this.#tickets.clear();
    const running = this.#running;
    if (running === undefined) return;
    running.writer.end();
    // Nobody reads any more, but a child that cannot write cannot end.
    running.output.resume();
    await running.group.exits(this.#limits.stdinGraceMs);
    await running.group.terminate(this.#limits.termGraceMs);
    running.output.destroy();
    running.child.stderr.destroy();
    this.#splitter.abandon();
  }
}

/** The index behind white space and a byte order mark. */
function firstOfText(line: Buffer): number {
  let at = 0;
  if (line[0] === 0xef && line[1] === 0xbb && line[2] === 0xbf) at = 3;
  for (; at < line.length; at++) {
    const c = line[at];
    if (c !== 0x20 && c !== 0x09 && c !== 0x0d) break;
  }
  return at;
}

function aborted(): Fault {
  return new Fault("cancelled", "The start of the server was given up.");
}

/**
 * The id that a response carries, where it stands first (`{"jsonrpc":"2.0","id":N,"result":…`) or last
 * (`{"result":…,"id":N}`); `head` and `tail` are the ends of one line and may overlap. In valid JSON neither can be
 * part of a string or of an inner object: the first is anchored to the start; before the last brace, an unescaped
 * quote and a comma can only belong to the outermost object. A server's own request has `"method"` and never fits.
 */
export function answeredId(head: Buffer, tail: Buffer): number | undefined {
  const start = head.toString("latin1", 0, HEAD_BYTES);
  if (head.length >= HEAD.length && head.compare(HEAD, 0, HEAD.length, 0, HEAD.length) === 0) {
    const id = AFTER_ID.exec(start.slice(HEAD.length))?.[1];
    return id === undefined ? undefined : Number(id);
  }
  if (!RESULT_FIRST.test(start)) return undefined;
  const id = ID_LAST.exec(tail.toString("latin1", Math.max(0, tail.length - TAIL_BYTES)))?.[1];
  return id === undefined ? undefined : Number(id);
}
