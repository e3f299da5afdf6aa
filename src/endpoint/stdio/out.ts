// Writes messages and replies onto one byte stream, one after another: as lines of stdio, or as events of the old
// HTTP+SSE. A large reply holds up what comes behind it, within a bound, and never mixes with it.

import type { Readable, Writable } from "node:stream";
import { type Reply, renderReply } from "../../protocol/reply.js";
import type { HeldBytes, Holder } from "../../runtime/memory/held-bytes.js";
import { KIB } from "../../runtime/sizes.js";
import { bounded, brokenOff } from "../session/bounded-reply.js";
import type { EndpointLimits } from "../session/limits.js";
import { OneLine, oneLine, oneLineBytes } from "../session/one-line.js";

export interface Framing {
  readonly before: string;
  readonly after: string;
}

export const LINES: Framing = { before: "", after: "\n" };
export const EVENTS: Framing = { before: "event: message\ndata: ", after: "\n\n" };

/**
 * What waits for the reader is counted at once from here on, and what is less at the next look: of what was just
 * written, something may wait until the end of the turn.
 */
const AT_ONCE_BYTES = 16 * KIB;

interface BodyJob {
  readonly body: Readable;
  onBroken(): void;
}

type Job = string | Buffer | BodyJob;

export class PipeOut {
  readonly #to: Writable;
  readonly #framing: Framing;
  readonly #limits: EndpointLimits;
  readonly #held: HeldBytes;
  readonly #owner: string;
  /** What waits for the reader. */
  readonly #holder: Holder;
  /** There was no room for what waits. */
  #noRoom = false;
  readonly #queue: Job[] = [];
  #queuedBytes = 0;
  #busy: Readable | undefined;
  #ended = false;

  constructor(to: Writable, framing: Framing, limits: EndpointLimits, held: HeldBytes, owner: string) {
    this.#to = to;
    this.#held = held;
    this.#owner = owner;
    this.#holder = held.holder(owner);
    this.#framing = framing;
    this.#limits = limits;
  }

  get #waiting(): number {
    return this.#queuedBytes + this.#to.writableLength;
  }

  /** True while a body is being written, between whose pieces nothing may stand. */
  get busy(): boolean {
    return this.#busy !== undefined;
  }

  /** True where the reader is behind, and no more requests should be taken from it. */
  get full(): boolean {
    return this.#waiting > this.#limits.slowReaderBytes;
  }

  /** True where even replies no longer fit, and the reader is given up. */
  get overflowing(): boolean {
    return this.#noRoom || this.#waiting > this.#limits.outputBytes;
  }

  /** True where so much waits that it is counted. */
  get isBehind(): boolean {
    return this.#holder.bytes > 0;
  }

  /** Counts what waits. To be called when some of it may have been read. */
  recount(): void {
    if (!this.#ended && !this.#holder.hold(this.#waiting)) this.#noRoom = true;
  }

  /** A notification is dropped where the reader is behind; anything else is not. */
  notify(text: string): void {
    if (!this.full) this.send(text);
  }

  send(message: string | Buffer): void {
    if (this.#ended) return;
    if (this.#busy === undefined) this.#write(message);
    else {
      this.#queue.push(message);
      this.#queuedBytes += message.length;
    }
    if (this.#waiting >= AT_ONCE_BYTES) this.recount();
  }

  /** Sends an error that belongs to no request that could be read, or to `id`. */
  refuse(code: number, message: string, id = "null"): void {
    this.send(`{"jsonrpc":"2.0","id":${id},"error":${JSON.stringify({ code, message })}}`);
  }

  /** Sends a reply under the asker's id. One that breaks off on its way is followed by an error. */
  reply(reply: Reply, idText: string): void {
    const fitting = this.fitting(reply);
    if (fitting.kind === "stream") this.#sendBody(fitting.open(idText), () => this.send(brokenOff(idText)));
    else this.send(renderReply(fitting, idText));
  }

  /** The reply, or what stands in for one that is too large or finds no room. */
  fitting<R extends Reply>(reply: R): ReturnType<typeof bounded<R>> {
    return bounded(reply, this.#limits, this.#held, this.#owner);
  }

  /** For a reply of this agent that is held until others are there. */
  newHolder(): Holder {
    return this.#held.holder(this.#owner);
  }

  #sendBody(body: Readable, onBroken: () => void): void {
    if (this.#ended) body.destroy();
    else if (this.#busy === undefined) this.#pipe({ body, onBroken });
    else this.#queue.push({ body, onBroken });
  }

  #write(message: string | Buffer): void {
    const { before, after } = this.#framing;
    if (typeof message === "string") {
      this.#to.write(before + oneLine(message) + after);
      return;
    }
    this.#to.cork();
    if (before !== "") this.#to.write(before);
    this.#to.write(oneLineBytes(message));
    this.#to.write(after);
    this.#to.uncork();
  }

  #pipe({ body, onBroken }: BodyJob): void {
    this.#busy = body;
    const to = this.#to;
    to.write(this.#framing.before);
    const line = body.pipe(new OneLine());
    let passed = 0;
    line.on("data", (chunk: Buffer) => {
      passed += chunk.length;
      if (passed > this.#limits.streamedBytes) body.destroy();
      else if (!to.write(chunk)) line.pause();
    });
    const onDrain = () => line.resume();
    to.on("drain", onDrain);
    let over = false;
    const finish = (broken: boolean) => {
      if (over) return;
      over = true;
      to.off("drain", onDrain);
      this.#busy = undefined;
      if (this.#ended) return;
      to.write(this.#framing.after);
      if (broken) onBroken();
      this.#flush();
    };
    line.on("end", () => finish(false));
    body.on("error", () => finish(true));
    body.on("close", () => {
      if (!body.readableEnded) finish(true);
    });
  }

  #flush(): void {
    while (this.#busy === undefined) {
      const job = this.#queue.shift();
      if (job === undefined) return;
      if (typeof job === "string" || Buffer.isBuffer(job)) {
        this.#queuedBytes -= job.length;
        this.#write(job);
      } else this.#pipe(job);
    }
  }

  /** Nothing more is written; replies that were waiting are given up. */
  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#busy?.destroy();
    for (const job of this.#queue) if (typeof job !== "string" && !Buffer.isBuffer(job)) job.body.destroy();
    this.#queue.length = 0;
    this.#queuedBytes = 0;
    this.#holder.release();
  }
}
