// Writes messages to a child's stdin: in order, batched, within a bound, and with an account of what was not sent.

import type { Writable } from "node:stream";
import { Fault } from "../protocol/errors.js";
import type { Ticket } from "./link.js";

/**
 * A batch up to this size (PIPE_BUF) enters a pipe whole or not at all, and a Unix socket of Linux too: if its write
 * failed, the server has seen nothing of it. Of a larger one it may have seen a part.
 */
const ATOMIC_WRITE_BYTES = 4_096;

interface Batch {
  text: string[];
  tickets: Ticket[];
  bytes: number;
}

export interface WriterEvents {
  onFailed(ticket: Ticket, fault: Fault, sent: boolean): void;
  /** The child does not take input any more; called at most once. */
  onBroken(): void;
}

/** One batch is with the stream at a time; what is sent meanwhile is the next one, so a burst is few writes. */
export class LineWriter {
  readonly #stream: Writable;
  readonly #maxPendingBytes: number;
  readonly #events: WriterEvents;
  #writing: Batch | undefined;
  #next: Batch = { text: [], tickets: [], bytes: 0 };
  #state: "open" | "broken" | "ended" = "open";

  constructor(stream: Writable, maxPendingBytes: number, events: WriterEvents) {
    this.#stream = stream;
    this.#maxPendingBytes = maxPendingBytes;
    this.#events = events;
    // EPIPE comes to the write's callback; without a listener it would end the process.
    stream.on("error", () => this.#break());
  }

  send(text: string, ticket: Ticket | undefined): void {
    if (this.#state !== "open") {
      if (this.#state === "broken") this.#fail(ticket, notTaken());
      return;
    }
    // Line breaks in JSON text stand between tokens only; a carriage return is a line break to some servers.
    const line = text.includes("\n") || text.includes("\r") ? text.replace(/[\r\n]+/g, " ") : text;
    const bytes = Buffer.byteLength(line) + 1;
    if ((this.#writing?.bytes ?? 0) + this.#next.bytes + bytes > this.#maxPendingBytes) {
      this.#fail(ticket, new Fault("limit", `The server does not read: ${this.#maxPendingBytes} bytes wait for it.`));
      return;
    }
    this.#next.text.push(line);
    this.#next.bytes += bytes;
    if (ticket !== undefined) this.#next.tickets.push(ticket);
    if (this.#writing === undefined) this.#flush();
  }

  /** No more input: what waits is dropped, and stdin is closed behind what is being written. */
  end(): void {
    if (this.#state === "ended") return;
    this.#state = "ended";
    this.#next = { text: [], tickets: [], bytes: 0 };
    this.#stream.end();
  }

  /** The child is gone: fails what was certainly not sent. */
  abandon(): void {
    if (this.#state === "open") this.#state = "broken";
    this.#dropNext();
  }

  #flush(): void {
    const batch = this.#next;
    this.#next = { text: [], tickets: [], bytes: 0 };
    this.#writing = batch;
    batch.text.push("");
    const text = batch.text.join("\n");
    batch.text = [];
    this.#stream.write(text, "utf8", (error) => {
      this.#writing = undefined;
      if (error !== null && error !== undefined) {
        if (batch.bytes <= ATOMIC_WRITE_BYTES) for (const ticket of batch.tickets) this.#fail(ticket, notTaken());
        this.#break();
      } else if (this.#next.bytes > 0) this.#flush();
    });
  }

  #break(): void {
    const was = this.#state;
    if (was === "open") this.#state = "broken";
    this.#dropNext();
    if (was === "open") this.#events.onBroken();
  }

  #dropNext(): void {
    const { tickets } = this.#next;
    this.#next = { text: [], tickets: [], bytes: 0 };
    for (const ticket of tickets) this.#fail(ticket, notTaken());
  }

  #fail(ticket: Ticket | undefined, fault: Fault): void {
    if (ticket !== undefined && this.#state !== "ended") this.#events.onFailed(ticket, fault, false);
  }
}

function notTaken(): Fault {
  return new Fault("unavailable", "The server closed its input before the message was written.");
}
