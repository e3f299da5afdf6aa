// An executor that dials out, from behind a firewall: keeps one socket to a gateway open for ever, and names the
// session that it still has, so that it goes on. What is said on the socket is the executor's business.

import { hostname } from "node:os";
import { type BackoffLimits, fullJitter } from "../../runtime/backoff.js";
import { messageOf } from "../../runtime/expected-error.js";
import { safeAddress } from "../../runtime/redact/safe-url.js";
import { pause } from "../../runtime/wait.js";
import { DialError, dialSocket } from "../../sockets/dial.js";
import { MACHINE_HEADER, SESSION_HEADER } from "../../sockets/protocol.js";
import { Close, type Socket } from "../../sockets/socket.js";
import type { ExecutorLog } from "../wire/types.js";
import type { Executor } from "./executor.js";

export type DialState =
  | { readonly state: "connecting" }
  | { readonly state: "connected" }
  /** The connection was lost, or not made; the next try is in `retryMs`. */
  | { readonly state: "waiting"; readonly why: string; readonly retryMs: number };

export interface DialGatewayOptions {
  /** `wss://gateway.example.com/executors/office`. */
  readonly url: string;
  /** A token of the gateway, of the role `executor`. */
  readonly token: string | undefined;
  readonly log?: ExecutorLog | undefined;
  readonly onState?: ((state: DialState) => void) | undefined;
  /** Default: FAST and SLOW. */
  readonly backoff?: { readonly fast: BackoffLimits; readonly slow: BackoffLimits } | undefined;
}

export interface DialledGateway {
  close(): Promise<void>;
}

/** A gateway that restarts is back in a second or two, and one that was moved within the retention of a session. */
const FAST: BackoffLimits = { baseMs: 500, maxMs: 15_000 };

/** For what only an operator can mend, by a token or a line in the config: tried seldom enough to be no load. */
const SLOW: BackoffLimits = { baseMs: 30_000, maxMs: 60_000 };

/** After a connection that lasted so long, the next is dialled without delay. A shorter one may have been refused. */
const STEADY_MS = 5_000;

/** What to do about an answer that asking again soon does not change. */
const ADVICE: Readonly<Record<number, string>> = {
  401: "it refused the token (401): set TOOLWAY_TOKEN to one of the gateway's",
  403: "the token is not good for this name (403): make one with `toolway token create --id NAME --role executor`",
  404: "it has no executor of this name (404): add it to `executors` in the gateway's config",
};

/** Never fails: what is wrong is logged and tried again. */
export function dialGateway(executor: Executor, options: DialGatewayOptions): DialledGateway {
  const dialer = new Dialer(executor, options);
  const done = dialer.run();
  return {
    close: async () => {
      dialer.stop();
      await done;
    },
  };
}

class Dialer {
  readonly #executor: Executor;
  readonly #options: DialGatewayOptions;
  readonly #stopping = new AbortController();
  #socket: Socket | undefined;
  #sessionId: string | undefined;
  #attempt = 0;
  #told: string | undefined;

  constructor(executor: Executor, options: DialGatewayOptions) {
    this.#executor = executor;
    this.#options = options;
  }

  stop(): void {
    this.#stopping.abort();
    this.#socket?.close(Close.goingAway, "the executor stops");
  }

  async run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const { why, limits } = await this.#once(signal);
      if (signal.aborted) return;
      const retryMs = Math.round(fullJitter(this.#attempt++, Math.random(), limits));
      this.#tell(why);
      this.#options.onState?.({ state: "waiting", why, retryMs });
      await pause(retryMs, signal);
    }
  }

  /** One connection, from the dialling to its end. */
  async #once(signal: AbortSignal): Promise<{ why: string; limits: BackoffLimits }> {
    const { url, token, log, onState, backoff = { fast: FAST, slow: SLOW } } = this.#options;
    onState?.({ state: "connecting" });
    let socket: Socket;
    try {
      socket = await dialSocket(url, { token, signal, headers: this.#headers() });
    } catch (error) {
      const status = error instanceof DialError ? error.status : undefined;
      const advice = status === undefined ? undefined : ADVICE[status];
      if (advice !== undefined) return { why: advice, limits: backoff.slow };
      return { why: messageOf(error), limits: backoff.fast };
    }
    const since = performance.now();
    this.#socket = socket;
    const served = this.#executor.serve(socket);
    if (signal.aborted) socket.close(Close.goingAway, "the executor stops");
    this.#told = undefined;
    log?.info("executor: connected to the gateway", { gateway: shown(url) });
    onState?.({ state: "connected" });
    const why = await served.closed;
    this.#socket = undefined;
    this.#sessionId = served.sessionId ?? this.#sessionId;
    if (performance.now() - since >= STEADY_MS) this.#attempt = 0;
    return { why: `the connection was lost: ${why}`, limits: backoff.fast };
  }

  #headers(): Record<string, string> {
    const id = this.#sessionId;
    const machine = { [MACHINE_HEADER]: encodeURIComponent(hostname()) };
    return id !== undefined && this.#executor.has(id) ? { ...machine, [SESSION_HEADER]: id } : machine;
  }

  /** Logs each reason once, as it is tried for ever. */
  #tell(why: string): void {
    if (why === this.#told) return;
    this.#told = why;
    this.#options.log?.warn(`executor: no connection to the gateway; it is tried again: ${why}`, {
      gateway: shown(this.#options.url),
    });
  }
}

function shown(url: string): string {
  return URL.canParse(url) ? safeAddress(new URL(url)) : "what is no URL";
}
