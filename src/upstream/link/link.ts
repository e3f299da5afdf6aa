// A live transport to one server: it carries messages, and knows nothing of what they mean beyond the handshake.
// stdio/link.ts, http/streamable.ts and http/sse.ts carry it out (http/link.ts finds out which HTTP it is); connection/
// gives the messages their meaning.

import type { Readable } from "node:stream";
import type { WayNotes } from "../../contracts/service.js";
import type { MessageKey } from "../../contracts/upstream.js";
import type { Fault } from "../../protocol/errors.js";
import type { Era } from "../../protocol/modern.js";

/** One request in flight, as a link sees it. `id` is ours and unique on the link. */
export interface Ticket {
  readonly id: number;
  readonly method: string;
  readonly subject: string | undefined;
  /** Headers of the modern era that go with it on HTTP, names and values in turn; undefined in the legacy era. */
  readonly headers?: readonly string[] | undefined;
  /** Who asks; undefined where it is the gateway itself. */
  readonly principal?: string | undefined;
  /** The session of whoever asks, as a key of ours; undefined where it is the gateway itself. */
  readonly sessionKey?: string | undefined;
  /** Whoever asks wants to hear of progress: the id is the token. */
  readonly wantsProgress?: boolean;
  /** How long it may take in all; undefined where nothing bounds it. */
  readonly longestMs?: number | undefined;
  /** Undefined where nobody wants to know of it. */
  readonly notes?: WayNotes | undefined;
  /** Undefined where a repeat is not known for one. */
  readonly messageKey?: MessageKey | undefined;
  /** Its answer has come, or nobody waits for it any more. Undefined where whoever asks does not say. */
  readonly isOver?: boolean;
  /** The link sets it while the request waits for this, and the server has had nothing of it, or refused it for want of this. */
  waitsFor?: "place" | "handshake" | "credential" | undefined;
}

export interface LinkEvents {
  /**
   * A whole message arrived. `ticket` is the request on whose exchange it came, where the transport knows
   * that (HTTP); on a shared pipe or stream it is undefined. `bytes` may be kept by the receiver.
   */
  onMessage(bytes: Buffer, ticket: Ticket | undefined): void;
  /** A large message arrived in pieces. `ticket` as in onMessage; the receiver may keep the list. */
  onPieces(pieces: Buffer[], ticket: Ticket | undefined): void;
  /**
   * The answer to `ticket` is too large to hold: `head` has come, `rest` brings the rest; `length` is that of both, if
   * known.
   */
  onLargeReply(ticket: Ticket, head: Buffer, rest: Readable, length: number | undefined): void;
  /**
   * This request alone failed. `sent` is false where it is certain that the server did not act on it
   * (never written, or refused by a status such as 404 before the body was read).
   */
  onFailed(ticket: Ticket, fault: Fault, sent: boolean): void;
  /** The link is gone, with all that is in flight on it. Called at most once, and never after close(). */
  onClosed(fault: Fault): void;
  /** Something came that is not a message and was skipped; it is counted and shown in status. */
  onNoise(sample: string): void;
}

export interface Link {
  /** Gets the transport up, as far as it can be before the handshake. Throws a Fault. */
  open(signal: AbortSignal): Promise<void>;
  /**
   * Sends one message. `ticket` is given for requests; `headers` go with a notification to a modern server over HTTP, as
   * a ticket's do with a request. Failures come by onFailed or onClosed.
   */
  send(text: string, ticket: Ticket | undefined, headers?: readonly string[]): void;
  /** The legacy handshake is done at this version (HTTP sends it, and opens the stream for what is unasked). */
  established(version: string): void;
  /**
   * The ticket's answer has come, or is no longer wanted: frees what the link holds for it. On HTTP an exchange that
   * is still open is closed, which takes the request back in the modern era.
   */
  forget(ticket: Ticket): void;
  /**
   * The ticket's caller takes it back: whether nobody who acts on it has had it, and nobody will. Never rejects; `forget` follows,
   * unless it is answered first. Absent where what was sent is there at once.
   */
  withdraw?(ticket: Ticket): boolean | Promise<boolean>;
  /** Ends it for certain: a child's stdin is closed, then its group gets SIGTERM, then SIGKILL. Never rejects. */
  close(): Promise<void>;
  /** False where the server has no way to say what it was not asked. Absent where it always has. */
  readonly isHeard?: boolean;
  /** Counts the times in which what the server says unasked may have been lost. Absent where it never is. */
  readonly gaps?: number;
  /** The era that whoever is behind it speaks, once it is open. Absent where that is found out. */
  readonly era?: Era | undefined;
  /** That of the server itself, where somebody else speaks for it. */
  readonly serverEra?: Era | undefined;
  /** Whoever speaks the modern era for a legacy server passes its replies on as the server wrote them. */
  readonly isAsWritten?: boolean | undefined;
  /** It is about to end, because another gateway is to run the server: what it does not take any more goes to the next. */
  readonly isLeaving?: boolean | undefined;
  /** Where the one machine behind it writes down what it is sent; undefined where none does, or it is not known. */
  readonly journal?: string | undefined;
  /** What `status` and error messages show: pid, last lines of stderr, URL. It never holds a secret. */
  describe(): LinkDescription;
}

export interface LinkDescription {
  readonly kind: "stdio" | "http" | "sse" | "mailbox";
  readonly pid?: number;
  /** Where it is: of a mailbox, its broker's. */
  readonly url?: string;
  /** The last lines that the child wrote to stderr. */
  readonly stderr?: readonly string[];
}
