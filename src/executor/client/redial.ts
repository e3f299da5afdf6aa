// Dials until there is a socket, with growing pauses; and again when it is told that the socket is gone.

import { type BackoffLimits, fullJitter } from "../../runtime/backoff.js";
import { DialError } from "../../sockets/dial.js";
import type { Socket } from "../../sockets/socket.js";
import { ExecutorError } from "../wire/types.js";

/** It dials often at first, so that a short cut is a short wait, and several times while a session is kept. */
const PAUSES: BackoffLimits = { baseMs: 100, maxMs: 10_000 };

export class Redial {
  readonly #dial: (signal: AbortSignal) => Promise<Socket>;
  readonly #onSocket: (socket: Socket) => void;
  readonly #onFailed: (error: ExecutorError) => void;
  readonly #ended = new AbortController();
  #attempt = 0;
  #timer: NodeJS.Timeout | undefined;
  #isDialling: boolean = false;

  constructor(
    dial: (signal: AbortSignal) => Promise<Socket>,
    onSocket: (socket: Socket) => void,
    onFailed: (error: ExecutorError) => void,
  ) {
    this.#dial = dial;
    this.#onSocket = onSocket;
    this.#onFailed = onFailed;
  }

  /** There is no socket: the next attempt is made, at once or after a pause. */
  need(): void {
    if (this.#ended.signal.aborted || this.#isDialling || this.#timer !== undefined) return;
    const attempt = this.#attempt++;
    const wait = attempt === 0 ? 0 : fullJitter(attempt - 1, Math.random(), PAUSES);
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      void this.#try();
    }, wait);
  }

  /** It worked. The next loss is followed by a short pause and not by none: a peer may hang up on everybody. */
  worked(): void {
    this.#attempt = 1;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#ended.abort();
  }

  async #try(): Promise<void> {
    this.#isDialling = true;
    const { signal } = this.#ended;
    try {
      const socket = await this.#dial(signal);
      this.#isDialling = false;
      if (signal.aborted) socket.destroy("the client was closed");
      else this.#onSocket(socket);
    } catch (error) {
      this.#isDialling = false;
      if (signal.aborted) return;
      this.#onFailed(executorErrorOf(error));
    }
  }
}

function executorErrorOf(error: unknown): ExecutorError {
  if (error instanceof ExecutorError) return error;
  if (!(error instanceof DialError)) return new ExecutorError("unavailable", String(error), { sent: false });
  const { code, message, networkCode, status } = error;
  return new ExecutorError(code, message, { sent: false, networkCode, ...(status === undefined ? {} : { status }) });
}
