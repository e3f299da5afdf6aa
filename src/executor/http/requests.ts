// The HTTP of an executor: makes requests to the places that its rules allow, side by side and within bounds. Knows
// nothing of who asked for them.

import { Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import type { LookupFunction } from "node:net";
import { IndexedSet } from "../../runtime/containers/table.js";
import type { Destinations } from "../allow/destinations.js";
import { pinnedLookup, type Resolve, resolveBySystem } from "../allow/resolve.js";
import { IDLE_REQUEST_MS, MAX_REQUESTS } from "../wire/limits.js";
import type { RequestHandle } from "../wire/types.js";
import { failure } from "./failure.js";
import { HttpRequest, type RequestContext, type ResponseHandler } from "./request.js";
import type { CheckedRequest } from "./request-check.js";

export type { RequestFailure } from "./failure.js";
export type { ResponseHandler } from "./request.js";
export type { CheckedRequest } from "./request-check.js";

/** Requests of all connections together; each is a socket. Several gateways may each have their full number. */
const MAX_OPEN = 4 * MAX_REQUESTS;
/** A connect that takes longer is given up: every place that is up answers sooner. */
const CONNECT_MS = 10_000;
/** Idle sockets: below the 5 s after which common servers close theirs, so that we seldom write to a closed one. */
const IDLE_SOCKET_MS = 4_000;
/** Of one origin, and of all of them; they only save a handshake. */
const MAX_IDLE_SOCKETS_OF_ORIGIN = 64;
const MAX_IDLE_SOCKETS = 256;
/** Origins whose verdict is kept; it saves some microseconds. */
const MAX_LOOKUPS = 1_024;
/** TCP keep-alive, so that a peer that vanished under a silent stream is noticed in minutes. */
const TCP_KEEPALIVE_MS = 15_000;
/** How often silence is looked for; the bound on it is an hour. */
const SWEEP_MS = 60_000;

export interface HttpRequestsOptions {
  readonly destinations: Destinations;
  /** How names become addresses; by the system, where nothing is said. */
  readonly resolve?: Resolve;
  /** Authorities that https servers may be vouched for by, instead of the system's. */
  readonly ca?: string;
  readonly connectMs?: number;
  readonly idleMs?: number;
}

export class HttpRequests {
  readonly #open = new IndexedSet<HttpRequest>();
  readonly #destinations: Destinations;
  readonly #resolve: Resolve;
  readonly #agents: { readonly http: HttpAgent; readonly https: HttpsAgent };
  readonly #context: RequestContext;
  readonly #sweep: NodeJS.Timeout;
  /** By origin, so that a place is judged once: the rules do not change. What is refused is not kept. */
  readonly #lookups = new Map<string, LookupFunction>();
  #closed: boolean = false;

  constructor(options: HttpRequestsOptions) {
    const settings = {
      keepAlive: true,
      keepAliveMsecs: TCP_KEEPALIVE_MS,
      maxFreeSockets: MAX_IDLE_SOCKETS_OF_ORIGIN,
      timeout: IDLE_SOCKET_MS,
      scheduling: "lifo" as const,
    };
    const { ca, connectMs = CONNECT_MS, idleMs = IDLE_REQUEST_MS } = options;
    this.#destinations = options.destinations;
    this.#resolve = options.resolve ?? resolveBySystem;
    const agents = {
      http: new HttpAgent(settings),
      https: new HttpsAgent(ca === undefined ? settings : { ...settings, ca }),
    };
    this.#agents = agents;
    for (const agent of [agents.http, agents.https]) agent.on("free", () => dropSurplus(agent));
    this.#context = {
      connectMs,
      idleMs,
      agentFor: ({ protocol }) => (protocol === "https:" ? agents.https : agents.http),
      lookupFor: (url) => this.#lookupFor(url),
      left: (request) => this.#open.delete(request),
    };
    this.#sweep = setInterval(() => this.#checkIdle(), Math.min(SWEEP_MS, idleMs / 4)).unref();
  }

  /** Requests that have not ended. */
  get open(): number {
    return this.#open.size;
  }

  /** Never throws, and the handler hears nothing before it returns. */
  start(request: CheckedRequest, handler: ResponseHandler): RequestHandle {
    const made = new HttpRequest(this.#context, request, handler);
    if (this.#closed) {
      queueMicrotask(() => made.fail(failure("cancelled", "the executor is closing", false)));
    } else if (this.#open.size >= MAX_OPEN) {
      queueMicrotask(() => made.fail(failure("busy", `${MAX_OPEN} requests are open: try again later`, false)));
    } else {
      this.#open.add(made);
      made.begin();
    }
    return made;
  }

  /** What is open fails; resolves when no socket is left. */
  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#sweep);
    for (const request of this.#open.all()) request.fail(failure("cancelled", "the executor is closing", true));
    this.#agents.http.destroy();
    this.#agents.https.destroy();
    // Sockets that were destroyed close in the turn after this one.
    await new Promise((resolve) => setImmediate(resolve));
  }

  #lookupFor(url: URL): LookupFunction {
    // A user or a password belongs to no origin, and is for the rules to refuse.
    const isBare = url.username === "" && url.password === "";
    const kept = isBare ? this.#lookups.get(url.origin) : undefined;
    if (kept !== undefined) return kept;
    const lookup = pinnedLookup(url, this.#destinations, this.#resolve);
    if (this.#lookups.size >= MAX_LOOKUPS) this.#lookups.clear();
    this.#lookups.set(url.origin, lookup);
    return lookup;
  }

  #checkIdle(): void {
    const nowMs = performance.now();
    for (const request of this.#open.all()) request.checkIdle(nowMs);
  }
}

/** More idle sockets than are worth having: one goes of the origin that has had some for longest. */
function dropSurplus({ freeSockets }: HttpAgent): void {
  let count = 0;
  for (const name in freeSockets) count += freeSockets[name]?.length ?? 0;
  if (count <= MAX_IDLE_SOCKETS) return;
  for (const name in freeSockets) {
    freeSockets[name]?.[0]?.destroy();
    return;
  }
}
