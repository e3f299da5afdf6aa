// The way of HTTP requests to one origin, as links see it: a requester, its exchanges, and the redirects that are followed.
// It knows nothing of MCP. pool-requester.ts is the way over our own network, executor-requester.ts the one through an executor.

import type { HttpTarget } from "../../contracts/server-spec.js";
import type { WayNotes } from "../../contracts/service.js";
import { ExpectedError } from "../../runtime/expected-error.js";
import { safeUrl } from "../../runtime/redact/safe-url.js";
import type { Ticket } from "../link/link.js";

/**
 * So many requests may be in flight on one link to a server. Each holds a connection (a stream may last for minutes), so
 * this is generous. A server that has sessions for agents of different capabilities has up to five links: they stay
 * apart here, since one that is replaced may still be read from while the next is in use.
 */
export const MAX_CALLS_IN_FLIGHT = 256;
/** So many of them are not for agents: what the gateway itself asks must get through whatever they do. */
export const OWN_CALLS_IN_FLIGHT = 16;

export type HttpMethod = "GET" | "POST" | "DELETE";
export type ResponseHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** `calls` holds a connection until the answer is there, `asides` is for what is answered at once. */
export type PoolName = "calls" | "asides";

export interface ExchangeHandler {
  onHead(status: number, headers: ResponseHeaders): void;
  /** A credential is being fetched, and then there; `isAnother`: in place of one that was refused. Nobody has to know. */
  onCredential?(state: "wanted" | "there", isAnother: boolean): void;
  onData(chunk: Buffer): void;
  onEnd(): void;
  /** `written` is false where it is certain that nothing of the request reached the server. */
  onError(error: Error, written: boolean): void;
}

/** What `onCredential` is told of a request, noted for it. */
export function noteCredential(ticket: Ticket | undefined, state: "wanted" | "there", isAnother: boolean): void {
  if (ticket === undefined) return;
  ticket.waitsFor = state === "wanted" ? "credential" : undefined;
  noteCredentialOf(ticket.notes, state, isAnother);
}

/** The same of one that goes on with an answer: the request was sent before. */
export function noteCredentialOf(notes: WayNotes | undefined, state: "wanted" | "there", isAnother: boolean): void {
  if (notes === undefined) return;
  notes.enter(state === "wanted" ? "credential" : "server");
  if (state === "there" && isAnother) notes.mended("token");
}

export interface RequestOptions {
  readonly method: HttpMethod;
  readonly pool: PoolName;
  readonly path: string;
  /** Names and values in turn. */
  readonly headers: string[];
  readonly body?: string;
}

/** A redirect that is not followed; `location` is without userinfo and query. */
export class RedirectError extends ExpectedError {
  override readonly kind = "failed";
  readonly status: number;
  readonly location: string;

  constructor(status: number, location: string) {
    super(`HTTP ${status} to ${location}`);
    this.status = status;
    this.location = location;
  }
}

/** One request and its answer. After abort() the handler hears nothing more. */
export interface HttpExchange {
  /** Takes effect after the data at hand. */
  pause(): void;
  resume(): void;
  /** Ends it where it stands; other exchanges are not touched. */
  abort(): void;
}

export interface Requester {
  /** Never throws; the handler is called after it has returned. */
  dispatch(options: RequestOptions, handler: ExchangeHandler): HttpExchange;
  /** Nothing is sent any more, and what is under way ends. */
  destroy(): Promise<void>;
}

/** Rejects with a Fault where there is no way; `signal` aborts when nobody waits any longer. */
export type OpenRequester = (target: HttpTarget, url: URL, signal: AbortSignal) => Promise<Requester>;

/** Decides which redirects of one origin are followed: those that keep method, body and origin, once each. */
export class Redirects {
  readonly #base: URL;
  readonly #moved = new Map<string, string>();

  constructor(base: URL) {
    this.#base = base;
  }

  /** Where a path is now, as far as the server has said. */
  current(path: string): string {
    return this.#moved.get(path) ?? path;
  }

  /** Where a redirect leads; undefined for one that is not followed. */
  followed(status: number, location: string, from: string): string | undefined {
    if (status !== 307 && status !== 308) return undefined;
    const target = this.#resolve(location, from);
    return target?.origin === this.#base.origin ? target.pathname + target.search : undefined;
  }

  refused(status: number, location: string, from: string): RedirectError {
    const target = this.#resolve(location, from);
    return new RedirectError(status, target === undefined ? "an address that is no URL" : safeUrl(target));
  }

  /** It was followed; one that is for good is remembered. */
  moved(status: number, from: string, to: string): void {
    if (status === 308) this.#moved.set(from, to);
  }

  #resolve(location: string, from: string): URL | undefined {
    try {
      return new URL(location, new URL(from, this.#base));
    } catch {
      return undefined;
    }
  }
}
