// A link to a server that another gateway runs: lines of JSON on a stream to that gateway, which speaks the modern era for it.
// Each request says by itself what its agent can be asked, so that questions find the call that they belong to.

import type { PassedServer } from "../../contracts/engine/placement.js";
import { Fault } from "../../protocol/errors.js";
import { LineSplitter } from "../../runtime/line-splitter.js";
import { type Holder, NO_ROOM } from "../../runtime/memory/held-bytes.js";
import { MIB } from "../../runtime/sizes.js";
import type { Link, LinkDescription, LinkEvents, Ticket } from "../link/link.js";
import { answeredId } from "../stdio/link.js";
import { LineWriter } from "../stdio/writer.js";
import { type GatewayWord, withSession, wordIn } from "./words.js";

/** As a child's: what it may say it may say from here too. */
const MAX_LINE_BYTES = 64 * MIB;
const MAX_PENDING_WRITE_BYTES = 64 * MIB;
/** The stream's last bytes have so long to leave. */
const END_MS = 1_000;

/** A request that waits for its answer, and which of the lines that were sent it is. */
interface SentRequest {
  readonly ticket: Ticket;
  readonly line: number;
}

export class PassedLink implements Link {
  readonly era = "modern";
  readonly serverEra: PassedServer["serverEra"];
  readonly isAsWritten: boolean;
  readonly #stream: PassedServer["stream"];
  readonly #events: LinkEvents;
  readonly #writer: LineWriter;
  readonly #secret: Buffer;
  /** Requests that wait for an answer: no more than a connection has in flight. */
  readonly #requests = new Map<number, SentRequest>();
  #sentLines = 0;
  /** How many of them the other gateway has read; undefined where it did not say. */
  #takenLines: number | undefined;
  #isOver = false;
  /** The other gateway has said that the server is another's: the end of the stream follows. */
  isLeaving = false;

  constructor({ stream, secret, serverEra, isAsWritten }: PassedServer, events: LinkEvents, newHolder: () => Holder) {
    this.#stream = stream;
    this.serverEra = serverEra;
    this.isAsWritten = isAsWritten;
    this.#secret = Buffer.from(secret);
    this.#events = events;
    this.#writer = new LineWriter(stream, MAX_PENDING_WRITE_BYTES, newHolder(), {
      onFailed: (ticket, fault) => {
        // What a stream that broke has taken may be there. Only what there was no room for has certainly not left.
        if (fault.code !== "limit" || this.#isOver || !this.#requests.delete(ticket.id)) return;
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
    const line = this.#sentLines + 1;
    if (ticket !== undefined) this.#requests.set(ticket.id, { ticket, line });
    const whose = ticket?.sessionKey;
    const marked = whose === undefined ? text : withSession(text, whose);
    if (this.#writer.send(marked, ticket, this.#requests.size === 1)) this.#sentLines = line;
  }

  established(): void {
    // The modern era has no handshake.
  }

  forget(ticket: Ticket): void {
    this.#requests.delete(ticket.id);
  }

  async close(): Promise<void> {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#requests.clear();
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
    const word = wordIn(line, this.#secret);
    if (word === undefined) this.#events.onMessage(line, undefined);
    else this.#told(word);
  }

  #told(word: GatewayWord): void {
    if ("taken" in word) this.#takenLines = word.taken;
    else if ("moved" in word) {
      this.isLeaving = true;
      const request = this.#requests.get(word.moved);
      if (request !== undefined) this.#unsent(request);
    }
  }

  /** It waits for the end of this link, which follows, and goes out on the next. */
  #unsent({ ticket }: SentRequest): void {
    this.#requests.delete(ticket.id);
    this.#events.onFailed(ticket, gone(), false);
  }

  #oversize(head: Buffer, tail: Buffer, length: number, hadRoom: boolean): void {
    if (this.#isOver) return;
    const id = answeredId(head, tail);
    const ticket = id === undefined ? undefined : this.#requests.get(id)?.ticket;
    if (ticket === undefined) {
      this.#events.onNoise(`a line of ${length} bytes`);
      return;
    }
    this.#requests.delete(ticket.id);
    const why = hadRoom ? `the limit for one message is ${MAX_LINE_BYTES}.` : `it was thrown away: ${NO_ROOM}`;
    const fault = new Fault("limit", `The answer has ${length} bytes; ${why}`, { wire: { left: true } });
    this.#events.onFailed(ticket, fault, true);
  }

  #lost(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#writer.abandon();
    const taken = this.#takenLines ?? this.#sentLines;
    for (const request of [...this.#requests.values()]) if (request.line > taken) this.#unsent(request);
    this.#requests.clear();
    this.#stream.destroy();
    const text = "The gateway that ran this server stopped, or gave it to another: what became of the call is unknown.";
    this.#events.onClosed(new Fault("outcome-unknown", text, { reason: "moved" }));
  }
}

function gone(): Fault {
  return new Fault("unavailable", "The gateway that runs this server is another by now.", { reason: "moved" });
}
