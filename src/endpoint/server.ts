// The HTTP endpoint: it listens, checks who comes, and hands each request to what serves its path.
// What is answered at the paths of MCP is in mcp.ts; how a server ends is in drain.ts.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Principal } from "../contracts/caller.js";
import type { Homes } from "../contracts/engine/homes.js";
import type { Service } from "../contracts/service.js";
import type { SessionRecord } from "../contracts/session-record.js";
import { EXECUTOR_ROLE, SHARER_ROLE } from "../contracts/settings.js";
import type { DurableMap } from "../contracts/store.js";
import { CLOSING, DENIED, Fault, UNAUTHORIZED, UNAVAILABLE } from "../protocol/errors.js";
import { ErrorCode } from "../protocol/jsonrpc.js";
import { type Clock, systemClock } from "../runtime/clock.js";
import { HeldBytes } from "../runtime/memory/held-bytes.js";
import type { Sealer } from "../runtime/seal.js";
import { BACKLOG, drain } from "./drain.js";
import { bearer, HostCheck, hasTokenInQuery, pathOf } from "./http/checks.js";
import { allowReading, answerPreflight, isPreflight } from "./http/cors.js";
import { EXECUTOR_PATH, type ExecutorRegistry, executorDoor } from "./http/executor-door.js";
import { MAILBOX_PATH, type MailboxRegistry, mailboxDoor } from "./http/mailbox-door.js";
import { OpenBodies } from "./http/open-bodies.js";
import { PAIR_PATH, type Pair, pairDoor } from "./http/pair-door.js";
import { closeWithConnection } from "./http/queued-answers.js";
import type { BodyReading } from "./http/read-post.js";
import { SlowReaders } from "./http/slow-readers.js";
import {
  ignoreUpgrade,
  isTls,
  offersWebSocket,
  RETRY_AFTER_S,
  STOPPING,
  TOKENS_STALE,
  UpgradeDoors,
} from "./http/upgrade-door.js";
import { WaitingPosts } from "./http/waiting-posts.js";
import { refuse, refuseMethod, sendJson } from "./http/write-reply.js";
import { LegacyPosts } from "./legacy/post.js";
import { HttpSessions } from "./legacy/sessions.js";
import { LegacySse } from "./legacy/sse.js";
import type { AskedSession, EventStream, StreamContext } from "./legacy/streams/event-stream.js";
import { Retained } from "./legacy/streams/retained.js";
import { McpPaths, routeOf } from "./mcp.js";
import { ModernEra } from "./modern/era.js";
import type { HttpOutlet } from "./modern/http-outlet.js";
import { ModernPosts } from "./modern/post.js";
import type { EndpointEvent } from "./session/endpoint-event.js";
import { ENDPOINT_LIMITS, type EndpointLimits } from "./session/limits.js";

/** What may change while the endpoint runs. */
export interface EndpointSettings {
  readonly limits?: Partial<EndpointLimits>;
  readonly sessions?: { readonly idleMs?: number; readonly max?: number };
  /** Names by which clients reach us, beside loopback and the bound address; with or without a port. */
  readonly allowedHosts?: readonly string[];
  readonly allowedOrigins?: readonly string[];
}

export interface HttpEndpointOptions extends EndpointSettings {
  readonly service: Service;
  /** Whose token this is; undefined for one that is unknown, expired or revoked. It is needed unless `noAuth`. */
  readonly authenticate?: (token: string, nowMs: number) => Principal | undefined;
  /** Whether the token that somebody came in by is still good. */
  readonly isCurrent?: (principal: Principal, nowMs: number) => boolean;
  /** Everybody who can connect is the principal `local`. It is for loopback only; the caller sees to that. */
  readonly noAuth?: boolean;
  readonly sealer: Sealer;
  /** Where the ends of sessions are kept. Undefined where nothing outlives the process. */
  readonly records?: DurableMap<SessionRecord> | undefined;
  /** The other gateways that serve the same sessions, where there are any. */
  readonly homes?: Homes | undefined;
  /** The gateway's count of the bytes that it holds. By default the endpoint has one of its own. */
  readonly held?: HeldBytes;
  readonly tls?: { readonly cert: string | Buffer; readonly key: string | Buffer };
  /** Undefined while what is known of tokens is current; else in how many milliseconds to ask again. */
  readonly staleForMs?: (() => number | undefined) | undefined;
  /** Decides `/readyz`, beside draining. */
  readonly ready?: () => boolean;
  /** It keeps mailboxes and has no servers, nor ever will: whoever looks for tools here is shown the way. */
  readonly isBroker?: boolean;
  readonly clock?: Clock;
  readonly log?: (event: EndpointEvent) => void;
  /** `open`: how many there are now. Undefined where nobody wants to know. */
  readonly onConnection?: ((what: "opened" | "closed", peer: string | undefined, open: number) => void) | undefined;
}

export interface EndpointStats {
  readonly connections: number;
  readonly sessions: number;
  readonly streams: number;
  /** The same by what they are: of legacy sessions, of the old HTTP+SSE, of modern requests. */
  readonly streamsBy: Readonly<Record<"legacy" | "sse" | "modern", number>>;
  /** Notifications that slow readers had no room for. */
  readonly leftOut: number;
  readonly inFlight: number;
  readonly retainedBytes: number;
  readonly draining: boolean;
}

export interface HttpEndpoint {
  listen(host: string, port: number): Promise<AddressInfo>;
  /** Waits up to `drainMs` for what is in flight, then ends it. Never rejects. */
  close(options: { drainMs: number }): Promise<void>;
  /** The streams of those whose token is no longer good end, and their calls are cancelled. */
  closePrincipals(ended: (principal: Principal) => boolean): void;
  /** Who takes executors in from now on. Undefined for nobody; those who are in stay. */
  admitExecutors(registry: ExecutorRegistry | undefined): void;
  admitMailboxes(registry: MailboxRegistry | undefined): void;
  /** Nobody is asked for a token here. */
  readonly isForEverybody: boolean;
  /** What is kept of a session by now, whoever wrote it; see `records`. */
  sessionTold(key: string, record: SessionRecord | undefined): void;
  /** A connection of another gateway, which passes on what belongs here. */
  takePassed(stream: Duplex): void;
  /** Other settings from here on; those that are not named are the default ones. */
  configure(settings: EndpointSettings): void;
  /** New connections are shown this certificate. It does nothing where the endpoint does not speak TLS. */
  setCertificate(pair: { readonly cert: string | Buffer; readonly key: string | Buffer }): void;
  stats(): EndpointStats;
}

/** Who calls when nobody needs to prove it. */
const LOCAL: Principal = { id: "local", role: "default" };

const ONLY_A_BROKER =
  "This is a broker: it keeps mailboxes, and has no tools of its own. Use those of a machine by `toolway join --broker URL --from " +
  'MAILBOX`, or by an entry {"mailbox": "…", "broker": "…"} in the config of a gateway, and point the agent there.';

/** What is answered to calls that a token's end cuts off. */
const TOKEN_ENDED = 'The token has expired or was revoked. Come back with a new one ("toolway token create" makes it).';

/** Slow headers are looked for this often; a connection lives at most so much longer than `headerMs`. */
const REAP_MS = 2000;
/** The timer ticks every third of `quietMs`, so that comments are late by that much at most. */
const TICK_SHARE = 3;
/** Slow bodies and readers are looked for this often; what is cut after 10 s is cut after 13 s at most. */
const LOOK_MS = 2500;
/** Sessions expire after hours; being minutes late is no matter. */
const SWEEP_MS = 60_000;

export function createHttpEndpoint(options: HttpEndpointOptions): HttpEndpoint {
  return new Endpoint(options);
}

class Endpoint implements HttpEndpoint {
  readonly #options: HttpEndpointOptions;
  readonly #clock: Clock;
  readonly #limits: EndpointLimits;
  readonly #server: Server;
  readonly #hosts: HostCheck;
  readonly #sessions: HttpSessions;
  readonly #mcp: McpPaths;
  readonly #modern: ModernEra;
  readonly #waiting: WaitingPosts;
  /** Tells the operator that something inside went wrong. */
  readonly #failed: (error: unknown) => void;
  /** Connections of other gateways. */
  readonly #passed = new Set<Duplex>();
  readonly #streams = new Set<EventStream>();
  readonly #leftOut = { count: 0 };
  readonly #asked = new Set<AskedSession>();
  readonly #modernStreams = new Set<HttpOutlet>();
  readonly #retained: Retained;
  readonly #readers: SlowReaders;
  readonly #reading: BodyReading;
  readonly #sse: LegacySse;
  readonly #doors: UpgradeDoors;
  #timer: NodeJS.Timeout | undefined;
  #lookTimer: NodeJS.Timeout | undefined;
  #sweptAt: number;
  #connections = 0;
  #closing: Promise<void> | undefined;
  /** Undefined where no mailboxes are kept. */
  #pair: Pair | undefined;
  /** Connections that came after the drain began. Undefined until then. */
  #late: WeakSet<Socket> | undefined;

  constructor(options: HttpEndpointOptions) {
    this.#options = options;
    const clock = options.clock ?? systemClock;
    this.#clock = clock;
    const limits = limitsOf(options);
    this.#limits = limits;
    this.#hosts = new HostCheck(options.allowedHosts ?? [], options.allowedOrigins ?? []);
    const held = options.held ?? new HeldBytes();
    this.#retained = new Retained(limits.retainedBytes, held);
    this.#readers = new SlowReaders(held, limits);
    const readers = this.#readers;
    this.#waiting = new WaitingPosts(clock);
    const streams: StreamContext = {
      gateway: options.homes?.self,
      limits,
      retained: this.#retained,
      readers,
      now: () => clock.now(),
      open: this.#streams,
      asked: this.#asked,
      leftOut: this.#leftOut,
    };
    const { service, sealer, homes } = options;
    const wall = () => clock.wall();
    const failed = (error: unknown) => options.log?.({ kind: "failed", error });
    this.#failed = failed;
    this.#sessions = new HttpSessions({ service, sealer, context: streams, wall, records: options.records, failed });
    this.#modern = new ModernEra({ service, sealer, limits, held, clock, failed, home: homes?.self });
    const modern = { readers, waiting: this.#waiting, open: this.#modernStreams, leftOut: this.#leftOut };
    const isStillAllowed = (res: ServerResponse, principal: Principal) => this.#isStillAllowed(res, principal);
    this.#reading = { limits, held, open: new OpenBodies(), failed, isStillAllowed };
    this.#sse = new LegacySse(service, this.#reading, clock);
    const eras = {
      legacy: new LegacyPosts({ service, sessions: this.#sessions, waiting: this.#waiting, wall, failed, homes }),
      modern: new ModernPosts(this.#modern, modern, homes),
    };
    this.#mcp = new McpPaths({ eras, sessions: this.#sessions, sse: this.#sse, reading: this.#reading, homes });
    this.#doors = new UpgradeDoors({
      hosts: this.#hosts,
      authenticate: (token) => options.authenticate?.(token, clock.wall()),
      everybody: options.noAuth === true ? LOCAL : undefined,
      isStale: () => options.staleForMs?.() !== undefined,
      log: options.log,
    });
    this.#sweptAt = clock.now();
    this.#server = this.#createServer();
  }

  #createServer(): Server {
    const limits = this.#limits;
    const settings = {
      headersTimeout: limits.headerMs,
      requestTimeout: Math.max(limits.bodyMs, limits.headerMs),
      keepAliveTimeout: limits.keepAliveMs,
      maxHeaderSize: limits.headerBytes,
      connectionsCheckingInterval: Math.min(REAP_MS, limits.headerMs),
      noDelay: true,
      // Newer Node asks which offers are taken up, and serves the others as it does where nobody listens for upgrades.
      // Older Node ignores this, and ignoreUpgrade() does that work.
      shouldUpgradeCallback: (req: IncomingMessage) =>
        this.#server.listenerCount("upgrade") > 0 && offersWebSocket(req),
    };
    const handler = (req: IncomingMessage, res: ServerResponse) => this.#handle(req, res);
    const { tls } = this.#options;
    const server =
      tls === undefined
        ? createServer(settings, handler)
        : // Loaded where there is a certificate: TLS is a part of a start.
          process
            .getBuiltinModule("node:https")
            .createServer({ ...settings, ...tls, handshakeTimeout: limits.headerMs }, handler);
    server.maxConnections = limits.connections;
    server.on(tls === undefined ? "connection" : "secureConnection", (socket: Socket) => this.#late?.add(socket));
    server.on("connection", (socket) => {
      this.#connections++;
      const { onConnection } = this.#options;
      // To ask for it is a call of the system.
      const peer = onConnection === undefined ? undefined : socket.remoteAddress;
      onConnection?.("opened", peer, this.#connections);
      socket.on("close", () => {
        this.#connections--;
        onConnection?.("closed", peer, this.#connections);
      });
    });
    return server;
  }

  async listen(host: string, port: number): Promise<AddressInfo> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen({ host, port, backlog: BACKLOG }, () => {
        this.#server.off("error", reject);
        resolve();
      });
    });
    const address = this.#server.address() as AddressInfo;
    this.#hosts.bind({ host, port: address.port });
    this.#timer = setInterval(() => this.#tick(), this.#limits.quietMs / TICK_SHARE);
    this.#timer.unref();
    this.#lookTimer = setInterval(() => this.#look(), LOOK_MS);
    this.#lookTimer.unref();
    return address;
  }

  /** One timer serves all keep-alive comments, all looks for agents that have gone, and all expiry. */
  #tick(): void {
    const now = this.#clock.now();
    this.#waiting.keepAlive(now, this.#limits.quietMs);
    for (const stream of this.#streams) stream.keepAlive(now);
    for (const stream of this.#modernStreams) stream.keepAlive(now, this.#limits.quietMs);
    this.#sse.keepAlive();
    for (const session of this.#asked) session.lookForAgent(now);
    if (now - this.#sweptAt < Math.min(SWEEP_MS, this.#limits.sessionIdleMs)) return;
    this.#sweptAt = now;
    this.#sessions.sweep();
    this.#modern.sweep();
  }

  /** Counts what waits for readers, and ends what comes too slowly and, while memory is short, readers that stand still. */
  #look(): void {
    this.#reading.open.sweep(this.#clock.now());
    for (const stream of this.#streams) stream.watchReader();
    for (const stream of this.#modernStreams) stream.watchReader();
    this.#readers.sweep();
    this.#sse.watchReaders(this.#readers.isShort);
  }

  #handle(req: IncomingMessage, res: ServerResponse): void {
    closeWithConnection(req, res);
    try {
      this.#route(req, res);
    } catch (error) {
      this.#failed(error);
      refuse(res, 500, ErrorCode.internal, "Internal error of the gateway; its log has the details.");
    }
  }

  #route(req: IncomingMessage, res: ServerResponse): void {
    const url = req.url ?? "/";
    const path = pathOf(url);
    // Not before those in the queue were taken in: who is told to close comes back, and would stand there again.
    if (this.#late !== undefined) res.shouldKeepAlive = false;
    if (path === "/healthz" || path === "/readyz") {
      this.#health(req, res, path);
      return;
    }
    const { headers } = req;
    const isPassed = this.#isPassed(req);
    const foreign = isPassed ? undefined : this.#hosts.refusal(headers.host, headers.origin, req.socket.localAddress);
    if (foreign !== undefined) {
      this.#options.log?.({ kind: "refused", status: 403, path, why: foreign });
      refuse(res, 403, DENIED, foreign);
      return;
    }
    if (headers.origin !== undefined && !isPassed && this.#answersBrowser(req, res, headers.origin)) return;
    // What another gateway passes here is about what is here, and is among what may end.
    if (!isPassed && this.#late?.has(req.socket) === true) {
      refuse(res, 503, CLOSING, STOPPING, ["Retry-After", RETRY_AFTER_S]);
      return;
    }
    if (path === PAIR_PATH && this.#pair !== undefined) {
      pairDoor(req, res, this.#pair, this.#failed);
      return;
    }
    const query = url.slice(path.length + 1);
    const route = routeOf(path);
    if (route === undefined) {
      refuse(
        res,
        404,
        ErrorCode.invalidRequest,
        "Nothing is here. MCP is at /mcp, or at /mcp/<server> for one server.",
      );
      return;
    }
    if (this.#options.isBroker === true) {
      refuse(res, 404, ErrorCode.invalidRequest, ONLY_A_BROKER);
      return;
    }
    const principal = this.#principal(req, res, path, query);
    if (principal === undefined) return;
    const why = noAgent(principal);
    if (why !== undefined) {
      this.#options.log?.({ kind: "refused", status: 403, path, why });
      refuse(res, 403, DENIED, `${why} Make one for the agent with "toolway token create".`);
      return;
    }
    const { scope } = route;
    if (scope !== undefined && !this.#options.service.hasScope(scope)) {
      refuse(res, 404, ErrorCode.invalidRequest, `There is no server ${JSON.stringify(scope)} here.`);
    } else this.#mcp.answer(route, { req, res, principal, isPassed }, query);
  }

  /** Another gateway passed it on, and has asked what there is to ask of whoever comes. */
  #isPassed({ socket }: IncomingMessage): boolean {
    return this.#options.homes !== undefined && this.#passed.has(socket);
  }

  /** Makes the answer readable for a page of an allowed origin. True where the request was only a browser's question. */
  #answersBrowser(req: IncomingMessage, res: ServerResponse, origin: string): boolean {
    const isAllowed = this.#hosts.mayRead(origin);
    if (isAllowed) allowReading(res, origin);
    if (!isPreflight(req)) return false;
    // It bears no token: a browser asks this of itself, before it shows one.
    if (isAllowed) answerPreflight(req, res);
    else refuse(res, 403, DENIED, `${JSON.stringify(origin.slice(0, 128))} is not in "allowedOrigins" of the config.`);
    return true;
  }

  #health(req: IncomingMessage, res: ServerResponse, path: string): void {
    if (req.method !== "GET" && req.method !== "HEAD") refuseMethod(res, "GET");
    else if (path === "/healthz") sendJson(res, 200, '{"status":"alive"}');
    else if (this.#closing !== undefined) sendJson(res, 503, '{"status":"draining"}');
    else if (this.#options.ready?.() === false) sendJson(res, 503, '{"status":"starting"}');
    else sendJson(res, 200, '{"status":"ready"}');
  }

  /** Who calls; undefined after the request has been refused. */
  #principal(req: IncomingMessage, res: ServerResponse, path: string, query: string): Principal | undefined {
    if (query !== "" && hasTokenInQuery(query)) {
      this.#unauthorized(res, path, "Tokens are not accepted in URLs, where logs would keep them.", "invalid_request");
      return undefined;
    }
    if (this.#options.noAuth === true) return LOCAL;
    const staleMs = this.#options.staleForMs?.();
    if (staleMs !== undefined) {
      this.#options.log?.({ kind: "refused", status: 503, path, why: TOKENS_STALE });
      refuse(res, 503, UNAVAILABLE, TOKENS_STALE, ["Retry-After", String(Math.ceil(staleMs / 1000))]);
      return undefined;
    }
    const token = bearer(req.headers.authorization);
    if (token === undefined) {
      this.#unauthorized(res, path, "A token is needed.", undefined);
      return undefined;
    }
    const principal = this.#options.authenticate?.(token, this.#clock.wall());
    if (principal === undefined)
      this.#unauthorized(res, path, "The token is unknown, expired or revoked.", "invalid_token");
    return principal;
  }

  /** A body may take minutes: who sent it is asked once more at its end. */
  #isStillAllowed(res: ServerResponse, principal: Principal): boolean {
    const { noAuth, isCurrent } = this.#options;
    if (noAuth === true || isCurrent === undefined || isCurrent(principal, this.#clock.wall())) return true;
    this.#unauthorized(res, res.req.url ?? "", "The token has ended while the body came.", "invalid_token");
    return false;
  }

  #unauthorized(res: ServerResponse, path: string, why: string, error: string | undefined): void {
    this.#options.log?.({ kind: "refused", status: 401, path, why, address: res.req.socket.remoteAddress });
    const challenge = error === undefined ? 'Bearer realm="toolway"' : `Bearer realm="toolway", error="${error}"`;
    const message = `${why} Send the header "Authorization: Bearer <token>"; "toolway token show" prints the default one.`;
    refuse(res, 401, UNAUTHORIZED, message, ["WWW-Authenticate", challenge]);
  }

  closePrincipals(ended: (principal: Principal) => boolean): void {
    const fault = new Fault("closing", TOKEN_ENDED);
    this.#sessions.dropPrincipals(ended, fault);
    this.#sse.closePrincipals(ended, fault);
    this.#modern.close(fault, ended);
  }

  takePassed(stream: Duplex): void {
    this.#passed.add(stream);
    stream.once("close", () => this.#passed.delete(stream));
    // Node's servers take any stream for a connection; this one is as good as encrypted already.
    this.#server.emit(isTls(this.#server) ? "secureConnection" : "connection", stream);
  }

  sessionTold(key: string, record: SessionRecord | undefined): void {
    this.#sessions.told(key, record);
  }

  configure(settings: EndpointSettings): void {
    // In place: everybody here has this one object, and looks when it is needed.
    Object.assign(this.#limits, limitsOf(settings));
    this.#hosts.allow(settings.allowedHosts ?? [], settings.allowedOrigins ?? []);
    const { connections, headerMs, bodyMs } = this.#limits;
    this.#server.maxConnections = connections;
    this.#server.headersTimeout = headerMs;
    this.#server.requestTimeout = Math.max(bodyMs, headerMs);
  }

  setCertificate(pair: { readonly cert: string | Buffer; readonly key: string | Buffer }): void {
    if (isTls(this.#server)) this.#server.setSecureContext(pair);
  }

  admitExecutors(registry: ExecutorRegistry | undefined): void {
    if (registry === undefined) this.#doors.close(EXECUTOR_PATH);
    else this.#doors.open(executorDoor(registry));
    this.#listenForUpgrades();
  }

  get isForEverybody(): boolean {
    return this.#options.noAuth === true;
  }

  admitMailboxes(registry: MailboxRegistry | undefined): void {
    if (registry === undefined) this.#doors.close(MAILBOX_PATH);
    else this.#doors.open(mailboxDoor(registry));
    this.#pair = registry?.pair;
    this.#listenForUpgrades();
  }

  /** Only while a door is open: Node itself ignores offers that nobody listens for. */
  #listenForUpgrades(): void {
    const server = this.#server;
    server.removeAllListeners("upgrade");
    if (!this.#doors.anyOpen) return;
    server.on("upgrade", (req, socket, head) => {
      if (offersWebSocket(req)) this.#doors.upgrade(req, socket, head);
      else ignoreUpgrade(server, req, socket, head);
    });
  }

  stats(): EndpointStats {
    return {
      connections: this.#connections,
      sessions: this.#sessions.size + this.#sse.size + this.#modern.presences,
      streams: this.#streams.size + this.#sse.size + this.#modernStreams.size,
      streamsBy: { legacy: this.#streams.size, sse: this.#sse.size, modern: this.#modernStreams.size },
      leftOut: this.#leftOut.count,
      inFlight: this.#waiting.size + this.#sse.inFlight,
      retainedBytes: this.#retained.bytes,
      draining: this.#closing !== undefined,
    };
  }

  close({ drainMs }: { drainMs: number }): Promise<void> {
    this.#closing ??= drain({
      server: this.#server,
      drainMs,
      inFlight: () => this.#waiting.size + this.#sse.inFlight,
      refuseNew: () => {
        this.#late = new WeakSet();
        this.#doors.refuseNew();
      },
      upgraded: () => this.#doors.connections,
      passed: () => this.#passed.size,
      endAll: () => {
        this.#sessions.closeAll();
        this.#sse.closeAll();
        this.#modern.close(new Fault("closing", "The gateway is closing."));
      },
    }).finally(() => {
      clearInterval(this.#timer);
      clearInterval(this.#lookTimer);
    });
    return this.#closing;
  }
}

function limitsOf({ limits, sessions }: EndpointSettings): EndpointLimits {
  return {
    ...ENDPOINT_LIMITS,
    ...limits,
    ...(sessions?.idleMs === undefined ? {} : { sessionIdleMs: sessions.idleMs }),
    ...(sessions?.max === undefined ? {} : { sessions: sessions.max }),
  };
}

/** Why somebody with a good token is not served as an agent. */
function noAgent({ role, onlyMailboxes }: Principal): string | undefined {
  if (onlyMailboxes === true) return "This token is for mailboxes alone: it was made by pairing.";
  if (role !== EXECUTOR_ROLE && role !== SHARER_ROLE) return undefined;
  const whom = role === EXECUTOR_ROLE ? "an executor" : "a sharer";
  return `This token is for ${whom} (its role is "${role}"), which is no agent.`;
}
