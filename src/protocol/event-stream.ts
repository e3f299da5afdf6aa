// Parses text/event-stream at the level of bytes. It knows nothing of JSON-RPC; large data is never turned into a
// string.

import { type Holder, NO_ROOM } from "../runtime/memory/held-bytes.js";
import { giveBack, keepBlock } from "../runtime/memory/read-blocks.js";
import { Fault } from "./errors.js";

/** One event is held whole. 64 MiB is far above any tool result seen, and small enough to survive a few at once. */
const MAX_EVENT_BYTES = 64 * 1024 * 1024;

/** Pieces smaller than this are copied together: a flood of one-byte chunks must not cost an object each. */
const SMALL_PIECE_BYTES = 4 * 1024;
/** Where small pieces are copied to: a few network reads of text. */
const TAIL_BYTES = 16 * 1024;
/** A line of data from this size on is given in the pieces it came in: a few reads of the socket. */
const LONG_LINE_BYTES = 128 * 1024;
/** `retry` is read up to here; more digits are no delay that anyone waits for. */
const MAX_RETRY_DIGITS = 9;

const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;
const COLON = 0x3a;
const LF_BYTE = Buffer.from("\n");

export interface StreamEvent {
  /** As this event gave it; undefined where it gave none. What to resume from is the parser's `lastEventId`. */
  readonly id: string | undefined;
  readonly event: string | undefined;
  /** May be kept by the receiver. Where the event came in one chunk this is a part of that chunk. */
  readonly data: Buffer;
  /** As this event gave it, in milliseconds. */
  readonly retry: number | undefined;
}

/** An event whose data is one long line: all of `pieces`, one behind the other. None of their reads is another event's. */
export interface LongEvent extends Omit<StreamEvent, "data"> {
  readonly pieces: Buffer[];
}

export interface EventStreamHandler {
  /** Events without a data line are not given, as in browsers; their id and retry count all the same. */
  onEvent(event: StreamEvent): void;
  /** Where this is absent the data of such events is joined too, which costs as much as reading it did. */
  onLongEvent?(event: LongEvent): void;
  /** The stream cannot be read on. Called at most once; what is pushed later is ignored. */
  onError(fault: Fault): void;
  /** Counts what is held of an event that has not ended. Whoever stops reading releases it. */
  readonly holder?: Holder | undefined;
}

/** Bytes that came in pieces, joined by one copy, or by none where there is one piece. */
export class Pieces {
  length = 0;
  /** Made when the first piece comes: of most there is none. */
  #list: Buffer[] | undefined;
  #tail: Buffer | undefined;
  /** Of the tail: [from, to) is filled and not yet in the list. */
  #from = 0;
  #to = 0;

  push(piece: Buffer): void {
    this.length += piece.length;
    if (piece.length >= SMALL_PIECE_BYTES || (this.#list === undefined && this.#tail === undefined)) {
      this.#flush();
      this.#list ??= [];
      this.#list.push(piece);
      return;
    }
    if (this.#tail === undefined || this.#tail.length - this.#to < piece.length) {
      this.#flush();
      this.#tail = Buffer.allocUnsafeSlow(TAIL_BYTES);
      this.#from = 0;
      this.#to = 0;
    }
    piece.copy(this.#tail, this.#to);
    this.#to += piece.length;
  }

  /** All of it; nothing is left. */
  take(): Buffer {
    const { length } = this;
    const list = this.takeList();
    return list.length === 1 ? (list[0] as Buffer) : Buffer.concat(list, length);
  }

  /** The same, not joined. */
  takeList(): Buffer[] {
    this.#flush();
    const list = this.#list ?? [];
    this.clear();
    return list;
  }

  clear(): void {
    this.#list = undefined;
    this.#tail = undefined;
    this.#from = 0;
    this.#to = 0;
    this.length = 0;
  }

  #flush(): void {
    if (this.#tail === undefined || this.#to === this.#from) return;
    this.#list ??= [];
    this.#list.push(this.#tail.subarray(this.#from, this.#to));
    this.#from = this.#to;
  }
}

export class EventStreamParser {
  /** The id to resume from: that of the last finished event which gave one. Empty while none has. */
  lastEventId = "";
  /** The delay before reconnecting that the stream last asked for. */
  retryMs: number | undefined;

  readonly #handler: EventStreamHandler;
  readonly #maxEventBytes: number;
  /** The line that is not finished yet. */
  readonly #line = new Pieces();
  /** The event's data from its second line on; a single line stays where it is. */
  readonly #joined = new Pieces();
  #data: Buffer | undefined;
  /** A first line of data that is long, in its pieces, and how many bytes they have. */
  #long: { readonly pieces: Buffer[]; readonly bytes: number } | undefined;
  #dataLines = 0;
  #id: string | undefined;
  #event: string | undefined;
  #retry: number | undefined;
  /** The last chunk ended in CR: an LF at the start of the next one belongs to it. */
  #skipLf: boolean = false;
  /** How many bytes of a byte order mark have been seen; -1 once the start is behind us. */
  #bom = 0;
  #failed: boolean = false;

  constructor(handler: EventStreamHandler, maxEventBytes = MAX_EVENT_BYTES) {
    this.#handler = handler;
    this.#maxEventBytes = maxEventBytes;
  }

  push(chunk: Buffer): void {
    if (this.#failed || chunk.length === 0) return;
    const from = this.#bom >= 0 ? this.#skipBom(chunk) : 0;
    this.#lines(chunk, from);
  }

  #lines(chunk: Buffer, from: number): void {
    let start = from;
    if (this.#skipLf && start < chunk.length) {
      this.#skipLf = false;
      if (chunk[start] === LF) start++;
    }
    let lf = chunk.indexOf(LF, start);
    let cr = chunk.indexOf(CR, start);
    while (lf >= 0 || cr >= 0) {
      const end = cr < 0 || (lf >= 0 && lf < cr) ? lf : cr;
      let next = end + 1;
      if (end === cr) {
        if (next === chunk.length) this.#skipLf = true;
        else if (chunk[next] === LF) next++;
      }
      if (!this.#finishLine(chunk, start, end)) return;
      start = next;
      if (lf >= 0 && lf < start) lf = chunk.indexOf(LF, start);
      if (cr >= 0 && cr < start) cr = chunk.indexOf(CR, start);
    }
    if (start < chunk.length) {
      this.#line.push(start === 0 ? chunk : chunk.subarray(start));
      this.#withinBound(0);
    }
    this.#count();
  }

  /** False when the stream has failed. */
  #finishLine(chunk: Buffer, start: number, end: number): boolean {
    if (this.#line.length === 0) {
      if (start === end) this.#dispatch();
      else this.#field(chunk, start, end);
    } else {
      if (end > start) this.#line.push(chunk.subarray(start, end));
      const isLong = this.#line.length >= LONG_LINE_BYTES;
      const pieces = this.#line.takeList();
      if (!isLong || !this.#isLongData(pieces, chunk)) {
        const line = joinedLine(pieces, chunk);
        this.#field(line, 0, line.length);
      }
    }
    return this.#withinBound(0);
  }

  /** Takes a long line as it is, where it is data, the first of its event, and whoever gets it wants that. */
  #isLongData(pieces: Buffer[], current: Buffer): boolean {
    const [first] = pieces;
    if (first === undefined || this.#handler.onLongEvent === undefined || this.#dataLines > 0) return false;
    // A name that stands in several pieces is for those who join them.
    if (first.length < DATA_NAME.length + 1 || !first.subarray(0, DATA_NAME.length).equals(DATA_NAME)) return false;
    // An event before it may be in the first read, and what follows is in the current one: others keep those.
    keepBlock(first);
    keepBlock(current);
    const rest = first.subarray(DATA_NAME.length + (first[DATA_NAME.length] === SPACE ? 1 : 0));
    if (rest.length > 0) pieces[0] = rest;
    else pieces.shift();
    let bytes = 0;
    for (const piece of pieces) bytes += piece.length;
    this.#long = { pieces, bytes };
    this.#dataLines = 1;
    return true;
  }

  /** `line[start, end)` is one line, not empty. */
  #field(line: Buffer, start: number, end: number): void {
    if (line[start] === COLON) return;
    // Field names have at most five letters: a colon further on belongs to an unknown field.
    let colon = start;
    const limit = Math.min(end, start + 6);
    while (colon < limit && line[colon] !== COLON) colon++;
    if (colon === limit && limit < end) return;
    const name = line.toString("latin1", start, colon);
    let value = Math.min(colon + 1, end);
    if (value < end && line[value] === SPACE) value++;
    switch (name) {
      case "data":
        this.#addData(line.subarray(value, end));
        break;
      case "event":
        this.#event = value === end ? undefined : line.toString("utf8", value, end);
        break;
      case "id":
        if (value === end) this.#id = "";
        else if (!line.subarray(value, end).includes(0)) this.#id = line.toString("utf8", value, end);
        break;
      case "retry": {
        const digits = line.toString("latin1", value, Math.min(end, value + MAX_RETRY_DIGITS + 1));
        if (/^\d+$/.test(digits) && digits.length <= MAX_RETRY_DIGITS) {
          this.#retry = Number(digits);
          this.retryMs = this.#retry;
        }
        break;
      }
    }
  }

  #addData(value: Buffer): void {
    this.#dataLines++;
    if (this.#dataLines === 1) {
      this.#data = value;
      return;
    }
    if (!this.#withinBound(value.length)) return;
    if (this.#long !== undefined) {
      for (const piece of this.#long.pieces) this.#joined.push(piece);
      this.#long = undefined;
    }
    if (this.#data !== undefined) {
      this.#joined.push(this.#data);
      this.#data = undefined;
    }
    this.#joined.push(LF_BYTE);
    if (value.length > 0) this.#joined.push(value);
  }

  #dispatch(): void {
    const { onEvent } = this.#handler;
    const id = this.#id;
    if (id !== undefined) this.lastEventId = id;
    if (this.#dataLines > 0) {
      const long = this.#long;
      const data = long === undefined ? (this.#data ?? this.#joined.take()) : undefined;
      const event = this.#event;
      const retry = this.#retry;
      this.#reset();
      // Whoever keeps it counts it from here on, in the same turn.
      this.#handler.holder?.release();
      if (data !== undefined) onEvent.call(this.#handler, { id, event, data, retry });
      else if (long !== undefined) this.#handler.onLongEvent?.({ id, event, pieces: long.pieces, retry });
      return;
    }
    this.#reset();
  }

  #reset(): void {
    this.#data = undefined;
    this.#long = undefined;
    this.#dataLines = 0;
    this.#id = undefined;
    this.#event = undefined;
    this.#retry = undefined;
  }

  /** How much there is of an event that has not ended. */
  get #unfinished(): number {
    return this.#line.length + (this.#data?.length ?? this.#long?.bytes ?? 0) + this.#joined.length;
  }

  #withinBound(more: number): boolean {
    if (this.#failed) return false;
    if (this.#unfinished + more <= this.#maxEventBytes) return true;
    this.#fail(`One event of the stream is larger than ${this.#maxEventBytes} bytes.`);
    return false;
  }

  /** Once for each chunk: most end with their event, and leave nothing to count. */
  #count(): void {
    const { holder } = this.#handler;
    if (this.#failed || holder === undefined || holder.hold(this.#unfinished)) return;
    this.#fail(`One event of the stream was thrown away: ${NO_ROOM}`);
  }

  #fail(why: string): void {
    this.#handler.holder?.release();
    this.#failed = true;
    this.#line.clear();
    this.#joined.clear();
    this.#reset();
    this.#handler.onError(new Fault("limit", why));
  }

  /** The index behind a byte order mark; a mark that turns out to be none is given back to the line. */
  #skipBom(chunk: Buffer): number {
    let i = 0;
    while (i < chunk.length && this.#bom < 3) {
      if (chunk[i] !== BOM[this.#bom]) {
        if (this.#bom > i) this.#line.push(BOM.subarray(0, this.#bom - i));
        this.#bom = -1;
        return 0;
      }
      i++;
      this.#bom++;
    }
    if (this.#bom === 3) this.#bom = -1;
    return i;
  }
}

/**
 * One line of what came in pieces. The reads between its first and its last are all of this line, and nobody else reads
 * them; an event before it may be in the first, and what follows is in the `current` one.
 */
function joinedLine(pieces: readonly Buffer[], current: Buffer): Buffer {
  const [first] = pieces;
  if (first === undefined || pieces.length === 1) return first ?? Buffer.alloc(0);
  const line = Buffer.concat(pieces);
  for (const piece of pieces) if (piece.buffer !== first.buffer && piece.buffer !== current.buffer) giveBack(piece);
  return line;
}

const BOM = Buffer.from([0xef, 0xbb, 0xbf]);
const DATA_NAME = Buffer.from("data:");
