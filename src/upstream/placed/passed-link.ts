// A link to a server that another gateway runs: lines of JSON on a stream to that gateway, which speaks the modern era for it.
// Each request says by itself what its agent can be asked, so that questions find the call that they belong to.

import type { Duplex } from "node:stream";
import { Fault } from "../../protocol/errors.js";
import { LineSplitter } from "../../runtime/line-splitter.js";
import { type Holder, NO_ROOM } from "../../runtime/memory/held-bytes.js";
import { MIB } from "../../runtime/sizes.js";
import type { Link, LinkDescription, LinkEvents, Ticket } from "../link/link.js";
import { answeredId } from "../stdio/link.js";
import { LineWriter } from "../stdio/writer.js";
import { movedId } from "./moved.js";
import { withSession } from "./session-mark.js";

/** As a child's: what it may say it may say from here too. */
const MAX_LINE_BYTES = 64 * MIB;
const MAX_PENDING_WRITE_BYTES = 64 * MIB;
/** The stream's last bytes have so long to leave. */
const END_MS = 1_000;

export class PassedLink implements Link {
  readonly era = "modern";
  readonly #stream: Duplex;
  readonly #events: LinkEvents;
  readonly #writer: LineWriter;
  /** Requests that wait for an answer: no more than a connection has in flight. */
  readonly #tickets = new Map<number, Ticket>();
  #isOver = false;

  constructor(stream: Duplex, events: LinkEvents, newHolder: () => Holder) {
    this.#stream = stream;
    this.#events = events;
    this.#writer = new LineWriter(stream, MAX_PENDING_WRITE_BYTES, newHolder(), {
      onFailed: (ticket, fault) => {
        // What a stream that broke has taken may be there. Only what there was no room for has certainly not left.
        if (fault.code !== "limit" || this.#isOver || !this.#tickets.delete(ticket.id)) return;
        events.onFailed(ticket, fault, false);
      },
      onBroken: () => this.#lost(),
    });
    const splitter = new LineSplitter(
      {
        onLine: (line) => this.#line(line),
        onPieces: (pieces) => {
          if (!this.#isOver) events.onPieces(pieces, undefined);
        },
        onOversize: (head, tail, length, hadRoom) => this.#oversize(head, tail, length, hadRoom),
      },
      MAX_LINE_BYTES,
      newHolder(),
    );
    stream.on("data", (chunk: Buffer) => splitter.push(chunk));
    stream.on("error", () => this.#lost());
    stream.on("close", () => {
      splitter.abandon();
      this.#lost();
    });
    stream.on("end", () => this.#lost());
    // It was paused behind its first line.
    stream.resume();
  }

  async open(): Promise<void> {
    if (this.#isOver || this.#stream.destroyed) throw gone();
  }

  send(text: string, ticket: Ticket | undefined): void {
    if (this.#isOver) return;
    if (ticket !== undefined) this.#tickets.set(ticket.id, ticket);
    const whose = ticket?.sessionKey;
    this.#writer.send(whose === undefined ? text : withSession(text, whose), ticket, this.#tickets.size === 1);
  }

  established(): void {
    // The modern era has no handshake.
  }

  forget(ticket: Ticket): void {
    this.#tickets.delete(ticket.id);
  }

  async close(): Promise<void> {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#tickets.clear();
    this.#writer.end();
    const timer = setTimeout(() => this.#stream.destroy(), END_MS);
    timer.unref();
    this.#stream.once("close", () => clearTimeout(timer));
    this.#stream.resume();
  }

  describe(): LinkDescription {
    return { kind: "stdio" };
  }

  #line(line: Buffer): void {
    if (this.#isOver) return;
    const moved = movedId(line);
    const ticket = moved === undefined ? undefined : this.#tickets.get(moved);
    if (ticket === undefined) {
      this.#events.onMessage(line, undefined);
      return;
    }
    this.#tickets.delete(ticket.id);
    // It waits for the end of this link, which follows, and goes out on the next.
    this.#events.onFailed(ticket, gone(), false);
  }

  #oversize(head: Buffer, tail: Buffer, length: number, hadRoom: boolean): void {
    if (this.#isOver) return;
    const id = answeredId(head, tail);
    const ticket = id === undefined ? undefined : this.#tickets.get(id);
    if (ticket === undefined) {
      this.#events.onNoise(`a line of ${length} bytes`);
      return;
    }
    this.#tickets.delete(ticket.id);
    const why = hadRoom ? `the limit for one message is ${MAX_LINE_BYTES}.` : `it was thrown away: ${NO_ROOM}`;
    const fault = new Fault("limit", `The answer has ${length} bytes; ${why}`, { wire: { left: true } });
    this.#events.onFailed(ticket, fault, true);
  }

  #lost(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#writer.abandon();
    this.#tickets.clear();
    this.#stream.destroy();
    const text = "The gateway that ran this server stopped, or gave it to another: what became of the call is unknown.";
    this.#events.onClosed(new Fault("outcome-unknown", text));
  }
}

function gone(): Fault {
  return new Fault("unavailable", "The gateway that runs this server is another by now.");
}
