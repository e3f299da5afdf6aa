// The executors of one name at another gateway, as a member of the group here: each request goes there on a stream of its own,
// which ends with an error where a piece of it is lost.

import type { Duplex } from "node:stream";
import type { MemberState } from "../../contracts/executors.js";
import { messageOf } from "../../runtime/expected-error.js";
import type { GroupClient } from "../group/group.js";
import { MAX_REQUESTS } from "../wire/limits.js";
import type { HttpHeader } from "../wire/protocol.js";
import {
  type AnswerHandler,
  ExecutorError,
  type ExecutorErrorCode,
  type ExecutorRequest,
  type RequestHandle,
} from "../wire/types.js";
import { dataFrames, endFrame, Frame, FrameReader, jsonFrame } from "./frames.js";

/** How a request is told to the gateway that makes it. Its body follows, and then an end. */
export interface PassedHead {
  readonly name: string;
  readonly method: string;
  readonly url: string;
  readonly headers: readonly HttpHeader[];
  readonly hasBody: boolean;
  readonly timeoutMs?: number | undefined;
  readonly redirect?: "follow" | "stop" | undefined;
}

/** How an error of an executor is told to the gateway whose request it was. */
export interface PassedError {
  readonly code: ExecutorErrorCode;
  readonly fact: string;
  readonly remedy?: string | undefined;
  readonly sent: boolean;
  readonly networkCode?: string | undefined;
}

/** A gateway that says it has none is asked again after so long, unless it tells of some before: what it tells is on its way. */
const DOUBT_MS = 1_000;

interface PassedClientOptions {
  /** Of the executors. */
  readonly name: string;
  /** Opens a stream to the gateway that has them. */
  readonly connect: () => Promise<Duplex>;
  readonly onState: () => void;
}

export class PassedClient implements GroupClient {
  readonly #options: PassedClientOptions;
  readonly sessionId = undefined;
  readonly extended = true;
  readonly lastError = undefined;
  #state: MemberState = "ready";
  /** As that gateway told last. */
  #told: MemberState = "ready";
  #doubt: NodeJS.Timeout | undefined;
  readonly #open = new Set<PassedRequest>();

  constructor(options: PassedClientOptions) {
    this.#options = options;
  }

  get state(): MemberState {
    return this.#state;
  }

  /** As the gateway that has them says. What is under way there ends by what that gateway tells of it. */
  become(state: MemberState): void {
    this.#told = state;
    this.#end();
    this.#set(state);
  }

  /** It was asked, and had none: the next request waits, or goes to another, until that gateway says how it is. */
  #hadNone(): void {
    if (this.#state !== "ready") return;
    this.#set("lost");
    this.#doubt = setTimeout(() => this.become(this.#told), DOUBT_MS).unref();
  }

  #set(state: MemberState): void {
    if (state === this.#state || this.#state === "closed") return;
    this.#state = state;
    this.#options.onState();
  }

  #end(): void {
    clearTimeout(this.#doubt);
    this.#doubt = undefined;
  }

  get inFlight(): number {
    return this.#open.size;
  }

  start(request: ExecutorRequest, handler: AnswerHandler): RequestHandle {
    const one = new PassedRequest(request, handler, {
      left: () => this.#open.delete(one),
      hadNone: () => this.#hadNone(),
    });
    const { body } = request;
    if (this.#open.size >= MAX_REQUESTS) {
      one.failSoon("limit", `${MAX_REQUESTS} requests are under way at the gateway that has the executor.`);
    } else if (body !== undefined && typeof body !== "string" && !Buffer.isBuffer(body)) {
      one.failSoon("limit", "A body that comes in pieces is not passed to another gateway.");
    } else {
      this.#open.add(one);
      void one.begin(this.#options);
    }
    return one;
  }

  adopt(): void {}

  abandon(): void {}

  async close(): Promise<void> {
    this.#end();
    this.#state = "closed";
    for (const one of [...this.#open]) one.fail(new ExecutorError("closed", "It is closed.", { sent: true }));
  }
}

interface PassedEvents {
  left(): void;
  /** The gateway that was asked has no executor now. */
  hadNone(): void;
}

class PassedRequest implements RequestHandle {
  readonly #request: ExecutorRequest;
  readonly #events: PassedEvents;
  #handler: AnswerHandler | undefined;
  #stream: Duplex | undefined;
  readonly #reader: FrameReader;
  #isPaused = false;

  constructor(request: ExecutorRequest, handler: AnswerHandler, events: PassedEvents) {
    this.#request = request;
    this.#handler = handler;
    this.#events = events;
    this.#reader = new FrameReader({
      onJson: (type, value) => {
        if (type === Frame.head) this.#onHead(value as { status: number; headers: readonly HttpHeader[] });
        else {
          const error = errorOf(value as PassedError);
          if (error.code === "unavailable" && !error.sent) this.#events.hadNone();
          this.fail(error);
        }
      },
      onData: (piece) => this.#handler?.onData(piece),
      onEnd: () => {
        const told = this.#leave();
        told?.onEnd();
      },
    });
  }

  async begin({ name, connect }: PassedClientOptions): Promise<void> {
    let stream: Duplex;
    try {
      stream = await connect();
    } catch (error) {
      // Nothing of it was sent: another may have it.
      this.fail(new ExecutorError("disconnected", messageOf(error), { sent: false }));
      return;
    }
    if (this.#handler === undefined) {
      stream.destroy();
      return;
    }
    this.#stream = stream;
    stream.on("data", (bytes: Buffer) => this.#read(() => this.#reader.push(bytes)));
    stream.on("error", (error) => this.#lost(messageOf(error)));
    stream.on("close", () => this.#lost("The stream to the gateway that has the executor ended."));
    if (this.#isPaused) stream.pause();
    const { method, url, headers, body, timeoutMs, redirect } = this.#request;
    const head: PassedHead = { name, method, url, headers, hasBody: body !== undefined, timeoutMs, redirect };
    stream.write(jsonFrame(Frame.head, head));
    // A body is in memory already, and leaves as there is credit.
    if (body !== undefined) for (const frame of dataFrames(Buffer.from(body as Buffer))) stream.write(frame);
    stream.write(endFrame());
  }

  pause(): void {
    this.#isPaused = true;
    this.#reader.pause();
    this.#stream?.pause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#read(() => this.#reader.resume());
    if (!this.#isPaused) this.#stream?.resume();
  }

  abort(): void {
    this.#leave();
  }

  failSoon(code: ExecutorErrorCode, text: string): void {
    queueMicrotask(() => this.fail(new ExecutorError(code, text, { sent: false })));
  }

  fail(error: ExecutorError): void {
    const told = this.#leave();
    told?.onError(error);
  }

  #onHead({ status, headers }: { status: number; headers: readonly HttpHeader[] }): void {
    this.#handler?.onHead(status, headers);
  }

  #read(act: () => void): void {
    try {
      act();
    } catch (error) {
      this.fail(new ExecutorError("protocol", messageOf(error), { sent: true }));
    }
  }

  /** The request may have been made: nobody here knows how far it came. */
  #lost(why: string): void {
    this.fail(new ExecutorError("disconnected", `The gateway that has the executor was lost: ${why}`, { sent: true }));
  }

  #leave(): AnswerHandler | undefined {
    const handler = this.#handler;
    this.#handler = undefined;
    this.#stream?.destroy();
    this.#events.left();
    return handler;
  }
}

function errorOf({ code, fact, remedy, sent, networkCode }: PassedError): ExecutorError {
  return new ExecutorError(code, fact, { remedy, sent, networkCode });
}
