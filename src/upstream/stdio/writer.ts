// Writes messages to a child's stdin: in order, batched, within a bound, and with an account of what was not sent.

import type { Writable } from "node:stream";
import { Fault } from "../../protocol/errors.js";
import { type Holder, NO_ROOM, SMALL_BYTES } from "../../runtime/memory/held-bytes.js";
import type { Ticket } from "../link/link.js";

/**
 * A batch up to this size (PIPE_BUF) enters a pipe whole or not at all, and a Unix socket of Linux too: if its write
 * failed, the server has seen nothing of it. Of a larger one it may have seen a part.
 */
const ATOMIC_WRITE_BYTES = 4_096;

/** Nobody knows how much the server has read of a batch that is being written, so it is no larger than pays off. */
const BATCH_BYTES = 32 * 1024;

/**
 * So many characters of a long line are encoded and written in one turn of the event loop, which takes a millisecond or
 * two: a line of 16 MB as a whole would hold up everybody else for 30.
 */
export const PIECE_CHARS = 1024 * 1024;

interface Line {
  readonly text: string;
  readonly ticket: Ticket | undefined;
  readonly bytes: number;
}

interface Batch {
  readonly lines: readonly Line[];
  readonly bytes: number;
}

export interface WriterEvents {
  onFailed(ticket: Ticket, fault: Fault, sent: boolean): void;
  /** The child does not take input any more. It is called at most once. */
  onBroken(): void;
}

/**
 * One batch is with the stream at a time; what is sent meanwhile is the next one. It is begun at the end of the loop's
 * turn, so that what many agents send at once is one write for us and one read for the server; a server that has
 * nothing to do gets its line at once, and works while we read on.
 */
export class LineWriter {
  readonly #stream: Writable;
  readonly #maxPendingBytes: number;
  /** Counts what waits for the server, once that is not small. */
  readonly #holder: Holder;
  readonly #events: WriterEvents;
  #writing: Batch | undefined;
  /** What is yet to be written of a batch that is one long line. Undefined where there is nothing. */
  #rest: { readonly text: string; at: number } | undefined;
  #waiting: Line[] = [];
  #waitingBytes = 0;
  #scheduled = false;
  #state: "open" | "broken" | "ended" = "open";

  constructor(stream: Writable, maxPendingBytes: number, holder: Holder, events: WriterEvents) {
    this.#stream = stream;
    this.#holder = holder;
    this.#maxPendingBytes = maxPendingBytes;
    this.#events = events;
    // EPIPE comes to the write's callback; without a listener it would end the process.
    stream.on("error", () => this.#break());
  }

  /** `atOnce`: the server has nothing else to do. False where nothing of it will be written. */
  send(text: string, ticket: Ticket | undefined, atOnce: boolean): boolean {
    if (this.#state !== "open") {
      if (this.#state === "broken") this.#fail(ticket, notTaken());
      return false;
    }
    // Those of a long line are looked for as its pieces are written.
    const hasBreaks = !isLong(text) && (text.includes("\n") || text.includes("\r"));
    const line = hasBreaks ? breaksToSpaces(Buffer.from(text)).toString() : text;
    const bytes = Buffer.byteLength(line) + 1;
    if ((this.#writing?.bytes ?? 0) + this.#waitingBytes + bytes > this.#maxPendingBytes) {
      this.#fail(ticket, new Fault("limit", `The server does not read: ${this.#maxPendingBytes} bytes wait for it.`));
      return false;
    }
    const waiting = this.#waitingBytes + bytes;
    if (waiting >= SMALL_BYTES && !this.#holder.hold(waiting)) {
      this.#fail(ticket, new Fault("limit", `The message was not sent to the server: ${NO_ROOM}`));
      return false;
    }
    this.#waiting.push({ text: line, ticket, bytes });
    this.#waitingBytes += bytes;
    if (this.#writing !== undefined) return true;
    if (atOnce) this.#flush();
    else if (!this.#scheduled) {
      this.#scheduled = true;
      setImmediate(this.#onTurn);
    }
    return true;
  }

  readonly #onTurn = (): void => {
    this.#scheduled = false;
    if (this.#state === "open" && this.#writing === undefined) this.#flush();
  };

  /** Ends the input: what waits is dropped, and stdin is closed behind what is being written. */
  end(): void {
    if (this.#state === "ended") return;
    if (this.#state === "open" && this.#writing === undefined) this.#flush();
    this.#state = "ended";
    this.#take(this.#waiting.length);
    // The last piece of a long line ends it else.
    if (this.#rest === undefined) this.#stream.end();
  }

  /** The child is gone: fails what was certainly not sent. */
  abandon(): void {
    if (this.#state === "open") this.#state = "broken";
    this.#rest = undefined;
    this.#dropNext();
  }

  #flush(): void {
    let bytes = 0;
    let count = 0;
    let text = "";
    for (const line of this.#waiting) {
      if (count > 0 && bytes + line.bytes > BATCH_BYTES) break;
      bytes += line.bytes;
      text += `${line.text}\n`;
      count++;
    }
    if (count === 0) return;
    const lines = this.#take(count);
    this.#writing = { lines, bytes };
    const [first] = lines;
    // As many bytes as characters: it is ASCII, which is written without being encoded.
    const encoding = bytes === text.length ? "latin1" : "utf8";
    if (first === undefined || !isLong(first.text)) this.#stream.write(text, encoding, this.#onWritten);
    else {
      // It is alone in its batch.
      this.#rest = { text: first.text, at: 0 };
      this.#writePiece();
    }
  }

  readonly #writePiece = (): void => {
    const rest = this.#rest;
    if (rest === undefined) return;
    const { text, at } = rest;
    let end = Math.min(at + PIECE_CHARS, text.length);
    // The two halves of a character beyond the first 65,536 are encoded together.
    if (isFirstHalf(text.charCodeAt(end - 1)) && end < text.length) end--;
    rest.at = end;
    const piece = text.slice(at, end);
    if (end < text.length) {
      this.#stream.write(breaksToSpaces(Buffer.from(piece)), this.#onPieceWritten);
      return;
    }
    this.#rest = undefined;
    const last = Buffer.from(`${piece}\n`);
    breaksToSpaces(last.subarray(0, -1));
    this.#stream.write(last, this.#onWritten);
    if (this.#state === "ended") this.#stream.end();
  };

  readonly #onPieceWritten = (error: Error | null | undefined): void => {
    if (this.#rest === undefined) return;
    if (error === null || error === undefined) setImmediate(this.#writePiece);
    else {
      this.#rest = undefined;
      this.#onWritten(error);
    }
  };

  #take(count: number): Line[] {
    const taken = count === this.#waiting.length ? this.#waiting : this.#waiting.splice(0, count);
    if (taken === this.#waiting) this.#waiting = [];
    for (const { bytes } of taken) this.#waitingBytes -= bytes;
    this.#holder.hold(this.#waitingBytes < SMALL_BYTES ? 0 : this.#waitingBytes);
    return taken;
  }

  readonly #onWritten = (error: Error | null | undefined): void => {
    const batch = this.#writing;
    this.#writing = undefined;
    if (error === null || error === undefined) {
      if (this.#state === "open") this.#flush();
      return;
    }
    if (batch !== undefined && batch.bytes <= ATOMIC_WRITE_BYTES) {
      for (const { ticket } of batch.lines) this.#fail(ticket, notTaken());
    }
    this.#break();
  };

  #break(): void {
    const was = this.#state;
    if (was === "open") this.#state = "broken";
    this.#rest = undefined;
    this.#dropNext();
    if (was === "open") this.#events.onBroken();
  }

  #dropNext(): void {
    for (const { ticket } of this.#take(this.#waiting.length)) this.#fail(ticket, notTaken());
  }

  #fail(ticket: Ticket | undefined, fault: Fault): void {
    if (ticket !== undefined && this.#state !== "ended") this.#events.onFailed(ticket, fault, false);
  }
}

/** Such a line is alone in its batch, and is written in pieces. */
function isLong(text: string): boolean {
  return text.length >= PIECE_CHARS;
}

/**
 * In place: line breaks in JSON text stand between tokens only, and a carriage return is one to some servers. Byte by
 * byte, because a text may have nothing else in it, and a search for each of half a million takes 70 ms.
 */
function breaksToSpaces(bytes: Buffer): Buffer {
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i];
    if (byte === 0x0a || byte === 0x0d) bytes[i] = 0x20;
  }
  return bytes;
}

function isFirstHalf(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}

function notTaken(): Fault {
  const message = "The server closed its input before the message was written.";
  return new Fault("unavailable", message, { reason: "exited" });
}
