// The operator's door: HTTP on a port of its own, for the page and for those who have a token of it. It listens while a
// session lives or a link waits to be followed, and always where the config holds it open. Owns the listener and the
// sessions' records; who may come in is decided in sessions.ts, what may be asked in guard.ts, and what the routes do is
// given by the caller.

import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Principal } from "../../contracts/caller.js";
import type { AdminPower } from "../../contracts/settings.js";
import type { DurableMap } from "../../contracts/store.js";
import { isLoopback } from "../../runtime/addresses.js";
import type { Clock } from "../../runtime/clock.js";
import { demandText } from "../body.js";
import {
  answererOf,
  ControlError,
  type ControlHandler,
  type ControlRoutes,
  errorBody,
  jsonLines,
  type RouteAnswerer,
} from "../server.js";
import { PageFiles } from "./files.js";
import { bodyRefusal, type OwnNames, refusalOf, SAFE_HEADERS } from "./guard.js";
import { MetricsAnswers, type MetricsText } from "./metrics.js";
import { DoorSessions, type Power, type SessionKept } from "./sessions.js";
import { type Look, Tabs } from "./tabs.js";

/** Where it is looked for first. Any other is taken where somebody has this one: several gateways run beside each other. */
const USUAL_PORT = 7421;
/** A browser opens six to one host; 32 pages may be open, each with a stream. */
const MAX_CONNECTIONS = 128;
/** Whoever says less in this time is no browser of this machine. */
const HEADERS_MS = 10_000;
const REQUEST_MS = 30_000;
/** Sessions and links end within this of their time. `close` from the CLI does not wait for it. */
const SWEEP_MS = 5_000;
/** What the page sends is names and small words. Whoever has no session yet is any program of the machine. */
const MAX_BODY_BYTES = 16 * 1024;
/** Of an operator: the arguments of a call that they try. What is longer is called from a terminal. */
const MAX_OPERATOR_BYTES = 1024 * 1024;
/** A nonce of the page's, which is 32 characters; the rest is room. */
const MAX_NONCE = 128;

/** What is kept over a restart: the sessions by their ids, and the port under PORT_KEY. */
export type DoorRecord = SessionKept | { readonly port: number };

const PORT_KEY = "port";

export { PageFiles };

/** Who comes by a token of the door: what the role of its principal opens. */
export interface DoorTokens {
  authenticate(token: string, nowMs: number): Principal | undefined;
  isCurrent(principal: Principal, nowMs: number): boolean;
  /** Ends the secrets from before rotations whose time is over. */
  dropOldSecrets(nowMs: number): void;
}

/** Where the config holds it open. */
export interface HeldOpen {
  readonly host: string;
  readonly port: number;
  readonly hosts: readonly string[];
  /** Undefined where it is spoken to in clear. */
  readonly tls: { readonly cert: Buffer; readonly key: Buffer } | undefined;
}

export interface OperatorDoorOptions {
  readonly kept: DurableMap<DoorRecord>;
  readonly files: PageFiles;
  /** Without change to anything: for viewers too. */
  readonly seeing: ControlRoutes;
  readonly acting: ControlRoutes;
  /** What the page shows, as a whole. It is asked for while a page is open, and else never. */
  readonly look: Look;
  readonly tokens: DoorTokens;
  readonly metrics: MetricsText;
  /** Undefined where it opens for links alone. */
  readonly held?: HeldOpen | undefined;
  /** Told of whoever shows a token or a session that is none. `path` is without its query. */
  readonly refused: (address: string, path: string, why: string) => void;
  readonly clock: Clock;
}

export interface DoorLink {
  /** Its fragment has the code, which a browser sends to nobody. */
  readonly url: string;
  readonly power: Power;
}

export class OperatorDoor {
  readonly #kept: DurableMap<DoorRecord>;
  readonly #files: PageFiles;
  readonly #clock: Clock;
  readonly #sessions: DoorSessions;
  /** Pages make of it, and of their secrets, what they send: another with each start. */
  readonly #start = randomBytes(16).toString("base64url");
  readonly #tabs: Tabs;
  readonly #answers: Readonly<Record<Power, RouteAnswerer>>;
  readonly #answerOpen: RouteAnswerer;
  readonly #tokens: DoorTokens;
  readonly #metrics: MetricsAnswers;
  readonly #held: HeldOpen | undefined;
  readonly #refused: OperatorDoorOptions["refused"];
  /** Whose pages are open by a token. They are looked at with each sweep: a token may end while its page is open. */
  readonly #byToken = new Map<string, Principal>();
  #own: OwnNames = { port: 0, secure: false, hosts: [] };
  #server: Server | undefined;
  #port = 0;
  #opening: Promise<void> | undefined;
  #sweep: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor({ kept, files, seeing, acting, look, tokens, metrics, held, refused, clock }: OperatorDoorOptions) {
    this.#kept = kept;
    this.#tokens = tokens;
    this.#metrics = new MetricsAnswers(metrics);
    this.#held = held;
    this.#refused = refused;
    this.#files = files;
    this.#clock = clock;
    this.#sessions = new DoorSessions(this.#start, sessionsIn(kept));
    this.#tabs = new Tabs(look);
    const withFeed = (power: Power): ControlRoutes => ({
      "GET /feed": ({ signal }) => jsonLines(this.#tabs.follow(power, signal)),
    });
    this.#answers = {
      viewer: answererOf(guarded({ ...seeing, ...withFeed("viewer") }), MAX_BODY_BYTES),
      operator: answererOf(guarded({ ...seeing, ...acting, ...withFeed("operator") }), MAX_OPERATOR_BYTES),
    };
    this.#answerOpen = answererOf(this.#openRoutes(), MAX_BODY_BYTES);
  }

  /** Its port; undefined while it is shut. */
  get port(): number | undefined {
    return this.#server === undefined ? undefined : this.#port;
  }

  get sessions(): number {
    return this.#sessions.size;
  }

  /** Opens at the port of before where sessions of before live. Resolves when that is done, or there are none. */
  async resume(): Promise<void> {
    await this.#forget(this.#sessions.sweep(this.#clock.wall()));
    if (this.#held !== undefined || this.#sessions.size > 0) await this.#open();
  }

  /** Another certificate, for connections from now on. Throws where it cannot be used. */
  setCertificate(pair: { readonly cert: Buffer; readonly key: Buffer }): void {
    if (this.#server !== undefined && "setSecureContext" in this.#server) {
      (this.#server as import("node:https").Server).setSecureContext(pair);
    }
  }

  /** Opens, and makes a link of one use. */
  async link(power: Power): Promise<DoorLink> {
    if (this.#isClosed) throw new ControlError("closing", "The gateway is stopping.");
    const code = randomBytes(16).toString("base64url");
    // Before it opens: an open door that nobody may come in by would shut itself.
    this.#sessions.addCode(code, power, this.#clock.now());
    await this.#open();
    return { url: `${this.#origin()}/#code=${code}`, power };
  }

  /** Ends every session and link, and shuts. */
  async endAll(): Promise<number> {
    const ended = this.#sessions.endAll();
    await this.#forget(ended);
    if (this.#held === undefined) await this.#shut();
    else for (const id of ended) this.#tabs.endOf(id);
    return ended.length;
  }

  /** As a person would type it: by the first of the names that the config gives, if any. */
  #origin(): string {
    const { host, hosts = [] } = this.#held ?? {};
    const isAnywhere = host === undefined || host === "0.0.0.0" || host === "::";
    const name = hosts[0] ?? (isAnywhere ? "127.0.0.1" : host.includes(":") ? `[${host}]` : host);
    // A name of the config for what listens on loopback is that of a proxy, which speaks TLS at its own port.
    const isProxied = hosts[0] !== undefined && !this.#own.secure;
    const hasPort = isProxied || /^(\[.*\]|[^:]*):\d+$/.test(name);
    return `${this.#own.secure || isProxied ? "https" : "http"}://${hasPort ? name : `${name}:${this.#port}`}`;
  }

  /** With the gateway: the sessions stay, and the next gateway of this state opens to them. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#shut();
  }

  #open(): Promise<void> {
    this.#opening ??= this.#listen().finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  async #listen(): Promise<void> {
    if (this.#server !== undefined) return;
    const held = this.#held;
    const onRequest = (request: IncomingMessage, response: ServerResponse) => void this.#answer(request, response);
    // Few doors speak TLS themselves.
    const server: Server =
      held?.tls === undefined
        ? createServer(onRequest)
        : process.getBuiltinModule("node:https").createServer({ ...held.tls }, onRequest);
    server.maxConnections = MAX_CONNECTIONS;
    server.headersTimeout = HEADERS_MS;
    server.requestTimeout = REQUEST_MS;
    // Nothing here is upgraded to.
    server.on("upgrade", (_request, socket) => socket.destroy());
    const places = held === undefined ? this.#freePlaces() : [held];
    for (const { host, port } of places) {
      if (await listens(server, port, host)) break;
    }
    if (!server.listening) {
      const where = held === undefined ? "No port of this machine is free" : `${held.host}:${held.port} is not free`;
      throw new ControlError("unavailable", `${where} for the operator's door. \`ss -ltnp\` shows who listens there.`);
    }
    server.on("error", () => {});
    this.#port = (server.address() as AddressInfo).port;
    this.#own = { port: this.#port, secure: held?.tls !== undefined, hosts: namesOf(held) };
    this.#server = server;
    this.#sweep = setInterval(() => void this.#look().catch(() => {}), SWEEP_MS);
    this.#sweep.unref();
    if (held === undefined) await this.#kept.put(PORT_KEY, { port: this.#port });
  }

  /** The port of before, the usual one, any. */
  #freePlaces(): { readonly host: string; readonly port: number }[] {
    const before = this.#kept.get(PORT_KEY);
    const wanted = before !== undefined && "port" in before ? before.port : USUAL_PORT;
    return [...new Set([wanted, USUAL_PORT, 0])].map((port) => ({ host: "127.0.0.1", port }));
  }

  async #shut(): Promise<void> {
    await this.#opening;
    clearInterval(this.#sweep);
    this.#tabs.end();
    const server = this.#server;
    this.#server = undefined;
    if (server === undefined) return;
    const closed = once(server, "close");
    server.close();
    server.closeAllConnections();
    await closed;
  }

  /** Ends what is over, and shuts where nobody may come in any more. */
  async #look(): Promise<void> {
    const ended = this.#sessions.sweep(this.#clock.wall());
    for (const id of ended) this.#tabs.endOf(id);
    await this.#forget(ended);
    // A gateway that is killed writes nothing more: its pages are to find their sessions all the same.
    await Promise.all(this.#sessions.seenLately(this.#clock.wall()).map(([id, kept]) => this.#kept.put(id, kept)));
    this.#tokens.dropOldSecrets(this.#clock.wall());
    for (const [page, principal] of this.#byToken) {
      if (!this.#tokens.isCurrent(principal, this.#clock.wall())) this.#tabs.endOf(page);
    }
    if (this.#held === undefined && !this.#sessions.isWanted(this.#clock.now())) await this.#shut();
  }

  async #forget(ids: readonly string[]): Promise<void> {
    await Promise.all(ids.map((id) => this.#kept.delete(id)));
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    for (const [name, value] of Object.entries(SAFE_HEADERS)) response.setHeader(name, value);
    const { method = "GET", url = "/", headers } = request;
    const refusal = refusalOf(
      {
        method,
        host: headers.host,
        origin: headers.origin,
        fetchSite: headers["sec-fetch-site"]?.toString(),
        contentType: headers["content-type"],
        hasBody: (headers["content-length"] ?? "0") !== "0" || headers["transfer-encoding"] !== undefined,
      },
      this.#own,
    );
    if (refusal !== undefined) return refuse(response, 403, "denied", refusal);
    const path = url.split(/[?#]/, 1)[0] ?? "/";
    if (path === "/metrics") return this.#answerMetrics(request, response);
    if (!path.startsWith("/api/")) return this.#files.answer(path, request, response);
    response.setHeader("Cache-Control", "no-store");
    const asked = url.slice("/api".length);
    if (path === "/api/session" || path === "/api/proof") return this.#answerOpen(asked, request, response);
    const visitor = this.#visitorOf(headers.authorization);
    if (visitor === undefined) {
      this.#tellRefused(request, path);
      return refuse(response, 401, "denied", SESSION_ENDED);
    }
    if (visitor.power === "metrics") return refuse(response, 403, "denied", METRICS_ALONE);
    if (visitor.power === "viewer" && method !== "GET") {
      return refuse(
        response,
        403,
        "denied",
        "Who looks by this sees, and does nothing: `toolway dashboard` gives a link that acts.",
      );
    }
    if (path === "/api/feed") this.#holdPage(visitor, response);
    await this.#answers[visitor.power](asked, request, response);
  }

  /** For tokens of the door alone, of any power: a program that scrapes has no page. */
  async #answerMetrics(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== "GET" && request.method !== "HEAD") {
      response.setHeader("Allow", "GET, HEAD");
      return refuse(response, 405, "wrong-method", "The metrics are read by GET.");
    }
    if (this.#holderOf(request.headers.authorization) === undefined) {
      this.#tellRefused(request, "/metrics");
      response.setHeader("WWW-Authenticate", 'Bearer realm="toolway"');
      return refuse(response, 401, "denied", NO_TOKEN);
    }
    await this.#metrics.answer(request, response).catch((error: unknown) => {
      if (response.headersSent) response.destroy();
      else refuse(response, 500, "internal", errorBody(error).error.message);
    });
  }

  /** Who shows nothing has tried nothing. */
  #tellRefused({ socket, headers }: IncomingMessage, path: string): void {
    if (headers.authorization === undefined) return;
    this.#refused(socket.remoteAddress ?? "", path, "The token or session is unknown at the operator's door, or over.");
  }

  /** A page is open while its stream is. */
  #holdPage({ id, holder }: Visitor, response: ServerResponse): void {
    if (holder !== undefined) {
      // Each is another page: one that ends takes no other of its token with it.
      const page = `token/${id}/${randomBytes(8).toString("base64url")}`;
      this.#byToken.set(page, holder);
      this.#tabs.hold(page, response);
      response.once("close", () => this.#byToken.delete(page));
      return;
    }
    this.#sessions.pageOpened(id);
    this.#tabs.hold(id, response);
    response.once("close", () => {
      const kept = this.#sessions.pageClosed(id, this.#clock.wall());
      // Where it cannot be written, the session ends a little earlier after a restart.
      if (kept !== undefined) this.#kept.put(id, kept).catch(() => {});
    });
  }

  #visitorOf(authorization: string | undefined): Visitor | undefined {
    const secret = /^Bearer ([\w-]{43})$/.exec(authorization ?? "")?.[1];
    const session = secret === undefined ? undefined : this.#sessions.find(secret, this.#clock.wall());
    if (session !== undefined) return session;
    const holder = this.#holderOf(authorization);
    return holder === undefined ? undefined : { id: holder.id, power: holder.role as AdminPower, holder };
  }

  #holderOf(authorization: string | undefined): Principal | undefined {
    const token = /^Bearer (\S+)$/i.exec(authorization ?? "")?.[1];
    return token === undefined ? undefined : this.#tokens.authenticate(token, this.#clock.wall());
  }

  /** What may be asked without a session: for one, by a code; and for a proof that we are who the page knows. */
  #openRoutes(): ControlRoutes {
    return {
      "POST /session": async ({ body }) => {
        const code = memberOf(body, "code");
        const [id, secret] = [randomBytes(16).toString("base64url"), randomBytes(32).toString("base64url")];
        const redeemed = this.#sessions.redeem(code, id, secret, this.#clock.now(), this.#clock.wall());
        if ("refused" in redeemed) throw new ControlError("denied", redeemed.refused === "full" ? TOO_MANY : LINK_OVER);
        if (redeemed.ended !== undefined) await this.#forget([redeemed.ended]);
        await this.#kept.put(id, redeemed.kept);
        return { id, secret, power: redeemed.kept.power };
      },
      "POST /proof": ({ body }) => {
        const [id, nonce] = [memberOf(body, "id"), memberOf(body, "nonce")];
        if (nonce.length > MAX_NONCE) throw new ControlError("invalid", '"nonce" is too long.');
        const proof = this.#sessions.prove(id, nonce, this.#clock.wall());
        // As every other request of it is answered: the page stops to try.
        if (proof === undefined) throw new ControlError("session-ended", SESSION_ENDED);
        return { proof, start: this.#start };
      },
    };
  }
}

/** Who asks: a page by its session, or whoever has a token. */
interface Visitor {
  readonly id: string;
  readonly power: AdminPower;
  /** Undefined for a session. */
  readonly holder?: Principal | undefined;
}

/** Besides the loopback names: those of the config, and where it listens, unless that is everywhere. */
function namesOf(held: HeldOpen | undefined): string[] {
  if (held === undefined) return [];
  const isPlace = held.host !== "0.0.0.0" && held.host !== "::" && !isLoopback(held.host);
  const own = held.host.includes(":") ? `[${held.host}]` : held.host;
  return isPlace ? [...held.hosts, own.toLowerCase()] : [...held.hosts];
}

const NO_TOKEN = "The metrics need a token of this door: `toolway token create --id prometheus --admin metrics`.";
const METRICS_ALONE =
  "This token opens /metrics alone: `toolway token create --id ID --admin viewer` makes one that sees.";
const SESSION_ENDED = "This session has ended: `toolway dashboard` gives a new link.";
const LINK_OVER = "This link was used before, or is older than a minute: `toolway dashboard` gives a new one.";
const TOO_MANY =
  "16 sessions have a page open, and no more may: close one, or `toolway dashboard --close` ends them all.";

function memberOf(body: unknown, key: string): string {
  return demandText((body as Readonly<Record<string, unknown>> | null | undefined)?.[key], key);
}

function* sessionsIn(kept: DurableMap<DoorRecord>): IterableIterator<[string, SessionKept]> {
  for (const [id, record] of kept.entries()) if ("hash" in record) yield [id, record];
}

/** Whether it listens there now: somebody else may. */
function listens(server: Server, port: number, host: string): Promise<boolean> {
  return new Promise((done, fail) => {
    const failed = (error: NodeJS.ErrnoException) => {
      server.off("listening", listening);
      if (error.code === "EADDRINUSE" || error.code === "EACCES") done(false);
      else fail(error);
    };
    const listening = () => {
      server.off("error", failed);
      done(true);
    };
    server.once("error", failed);
    server.once("listening", listening);
    server.listen(port, host);
  });
}

function refuse(response: ServerResponse, status: number, code: string, message: string): void {
  const text = JSON.stringify(errorBody(new ControlError(code, message)));
  response.writeHead(status, {
    "Content-Type": "application/json",
    "Content-Length": Buffer.byteLength(text),
    Connection: "close",
  });
  response.end(text);
}

/** Each looks at its body before anything else does. */
function guarded(routes: ControlRoutes): ControlRoutes {
  return Object.fromEntries(
    Object.entries(routes).map(([key, handler]): [string, ControlHandler] => [
      key,
      (request) => {
        const why = bodyRefusal(request.body);
        if (why !== undefined) throw new ControlError("invalid", why);
        return handler(request);
      },
    ]),
  );
}
