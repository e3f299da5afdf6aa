// A line to a broker in the same process: two ends without a socket between. What one sends the other gets in a later turn,
// as from a socket, so that neither is called while it calls.

import { MAX_UNACKED_BYTES } from "../../sockets/limits.js";
import { Close, NO_EVENTS, type SocketEvents } from "../../sockets/socket.js";
import { type BrokerLine, greet, type HelloOptions, type LineCarrier, type LineEvents } from "./line.js";

/** One end of a line within this process. */
export class LocalEnd implements LineCarrier {
  #events: SocketEvents = NO_EVENTS;
  #other: LocalEnd | undefined;
  #isClosed = false;
  #wasRefused = false;
  /** Bytes that were sent and have not arrived. */
  #waiting = 0;
  /** So much waits that whoever sends is told when there is room again, as by a socket. */
  #isCrowded = false;

  static pair(): readonly [LocalEnd, LocalEnd] {
    const ends = [new LocalEnd(), new LocalEnd()] as const;
    ends[0].#other = ends[1];
    ends[1].#other = ends[0];
    return ends;
  }

  get waiting(): number {
    return this.#waiting;
  }

  get wasRefused(): boolean {
    return this.#wasRefused;
  }

  attach(events: SocketEvents): void {
    this.#events = events;
  }

  /** What is in one process ends with it. */
  beat(): void {}

  gather(): void {}

  send(frame: string | Buffer): void {
    if (this.#isClosed) return;
    const bytes = Buffer.from(frame);
    this.#waiting += bytes.length;
    if (this.#waiting > MAX_UNACKED_BYTES) this.#isCrowded = true;
    setImmediate(() => {
      this.#waiting -= bytes.length;
      const other = this.#other;
      if (other !== undefined && !other.#isClosed) other.#events.onMessage(bytes);
      if (!this.#isCrowded || this.#waiting > MAX_UNACKED_BYTES / 2) return;
      this.#isCrowded = false;
      if (!this.#isClosed) this.#events.onDrain();
    });
  }

  close(code: number, reason: string): void {
    // What was sent before arrives before.
    setImmediate(() => {
      const other = this.#other;
      if (other !== undefined) other.#end(reason, code === Close.policy);
      this.#end(reason, false);
    });
  }

  destroy(reason: string): void {
    this.close(Close.goingAway, reason);
  }

  #end(why: string, wasRefused: boolean): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#wasRefused = wasRefused;
    this.#events.onClose(why);
  }
}

/** `accept` takes the broker's end. Rejects as openLine does. */
export function openLocalLine(
  accept: (end: LocalEnd) => void,
  hello: HelloOptions,
  events: LineEvents,
): Promise<BrokerLine> {
  const [ours, brokers] = LocalEnd.pair();
  accept(brokers);
  return greet(ours, hello, events);
}
