// The operator's door: HTTP on a loopback port, for the page and for nobody else. It listens while a session lives or a
// link waits to be followed, and not otherwise. Owns the listener and the sessions' records; who may come in is decided
// in sessions.ts, what may be asked in guard.ts, and what the routes do is given by the caller.

import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { DurableMap } from "../../contracts/store.js";
import type { Clock } from "../../runtime/clock.js";
import { answererOf, ControlError, type ControlRoutes, errorBody, jsonLines, type RouteAnswerer } from "../server.js";
import { PageFiles } from "./files.js";
import { refusalOf, SAFE_HEADERS } from "./guard.js";
import { DoorSessions, type PageSession, type Power, type SessionKept } from "./sessions.js";
import { Tabs } from "./tabs.js";

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
/** A nonce of the page's, which is 32 characters; the rest is room. */
const MAX_NONCE = 128;

/** What is kept over a restart: the sessions by their ids, and the port under PORT_KEY. */
export type DoorRecord = SessionKept | { readonly port: number };

const PORT_KEY = "port";

export { PageFiles };

export interface OperatorDoorOptions {
  readonly kept: DurableMap<DoorRecord>;
  readonly files: PageFiles;
  /** Without change to anything: for viewers too. */
  readonly seeing: ControlRoutes;
  readonly acting: ControlRoutes;
  /** What the page shows, as a whole. It is asked for while a page is open, and else never. */
  readonly look: () => Readonly<Record<string, unknown>>;
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
  readonly #tabs: Tabs;
  readonly #answers: Readonly<Record<Power, RouteAnswerer>>;
  readonly #answerKnock: RouteAnswerer;
  #server: Server | undefined;
  #port = 0;
  #opening: Promise<void> | undefined;
  #sweep: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor({ kept, files, seeing, acting, look, clock }: OperatorDoorOptions) {
    this.#kept = kept;
    this.#files = files;
    this.#clock = clock;
    this.#sessions = new DoorSessions(sessionsIn(kept));
    this.#tabs = new Tabs(look);
    const withFeed = (power: Power): ControlRoutes => ({
      "GET /feed": ({ signal }) => jsonLines(this.#tabs.follow(power, signal)),
    });
    this.#answers = {
      viewer: answererOf({ ...seeing, ...withFeed("viewer") }, MAX_BODY_BYTES),
      operator: answererOf({ ...seeing, ...acting, ...withFeed("operator") }, MAX_BODY_BYTES),
    };
    this.#answerKnock = answererOf(this.#knocks(), MAX_BODY_BYTES);
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
    if (this.#sessions.size > 0) await this.#open();
  }

  /** Opens, and makes a link of one use. */
  async link(power: Power): Promise<DoorLink> {
    if (this.#isClosed) throw new ControlError("closing", "The gateway is stopping.");
    const code = randomBytes(16).toString("base64url");
    // Before it opens: an open door that nobody may come in by would shut itself.
    this.#sessions.addCode(code, power, this.#clock.now());
    await this.#open();
    return { url: `http://127.0.0.1:${this.#port}/#code=${code}`, power };
  }

  /** Ends every session and link, and shuts. */
  async endAll(): Promise<number> {
    const ended = this.#sessions.endAll();
    await this.#forget(ended);
    await this.#shut();
    return ended.length;
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
    const before = this.#kept.get(PORT_KEY);
    const wanted = before !== undefined && "port" in before ? before.port : USUAL_PORT;
    const server = createServer((request, response) => void this.#answer(request, response));
    server.maxConnections = MAX_CONNECTIONS;
    server.headersTimeout = HEADERS_MS;
    server.requestTimeout = REQUEST_MS;
    // Nothing here is upgraded to.
    server.on("upgrade", (_request, socket) => socket.destroy());
    for (const port of [...new Set([wanted, USUAL_PORT, 0])]) {
      if (await listens(server, port)) break;
    }
    if (!server.listening) throw new ControlError("unavailable", "No port of this machine is free for the page.");
    server.on("error", () => {});
    this.#port = (server.address() as AddressInfo).port;
    this.#server = server;
    this.#sweep = setInterval(() => void this.#look().catch(() => {}), SWEEP_MS);
    this.#sweep.unref();
    await this.#kept.put(PORT_KEY, { port: this.#port });
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
    if (!this.#sessions.isWanted(this.#clock.now())) await this.#shut();
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
      this.#port,
    );
    if (refusal !== undefined) return refuse(response, 403, "denied", refusal);
    const path = url.split(/[?#]/, 1)[0] ?? "/";
    if (!path.startsWith("/api/")) return this.#files.answer(path, request, response);
    response.setHeader("Cache-Control", "no-store");
    const asked = url.slice("/api".length);
    if (path === "/api/session" || path === "/api/proof") return this.#answerKnock(asked, request, response);
    const visitor = this.#visitorOf(headers.authorization);
    if (visitor === undefined) return refuse(response, 401, "denied", SESSION_ENDED);
    if (visitor.power === "viewer" && method !== "GET") {
      return refuse(
        response,
        403,
        "denied",
        "This link sees, and does nothing: `toolway dashboard` gives one that acts.",
      );
    }
    if (path === "/api/feed") this.#holdPage(visitor, response);
    await this.#answers[visitor.power](asked, request, response);
  }

  /** A page is open while its stream is. */
  #holdPage({ id }: PageSession, response: ServerResponse): void {
    this.#sessions.pageOpened(id);
    this.#tabs.hold(id, response);
    response.once("close", () => {
      const kept = this.#sessions.pageClosed(id, this.#clock.wall());
      // Where it cannot be written, the session ends a little earlier after a restart.
      if (kept !== undefined) this.#kept.put(id, kept).catch(() => {});
    });
  }

  #visitorOf(authorization: string | undefined): PageSession | undefined {
    const secret = /^Bearer ([\w-]{43})$/.exec(authorization ?? "")?.[1];
    return secret === undefined ? undefined : this.#sessions.find(secret, this.#clock.wall());
  }

  /** What may be asked without a session: for one, by a code; and for a proof that we are who the page knows. */
  #knocks(): ControlRoutes {
    return {
      "POST /session": async ({ body }) => {
        const code = memberOf(body, "code");
        const [id, secret] = [randomBytes(16).toString("base64url"), randomBytes(32).toString("base64url")];
        const trade = this.#sessions.trade(code, id, secret, this.#clock.now(), this.#clock.wall());
        if ("refused" in trade) throw new ControlError("denied", trade.refused === "full" ? TOO_MANY : LINK_OVER);
        if (trade.ended !== undefined) await this.#forget([trade.ended]);
        await this.#kept.put(id, trade.kept);
        return { id, secret, power: trade.kept.power };
      },
      "POST /proof": ({ body }) => {
        const [id, nonce] = [memberOf(body, "id"), memberOf(body, "nonce")];
        if (nonce.length > MAX_NONCE) throw new ControlError("invalid", '"nonce" is too long.');
        const proof = this.#sessions.prove(id, nonce, this.#clock.wall());
        if (proof === undefined) throw new ControlError("denied", SESSION_ENDED);
        return { proof };
      },
    };
  }
}

const SESSION_ENDED = "This session has ended: `toolway dashboard` gives a new link.";
const LINK_OVER = "This link was used before, or is older than a minute: `toolway dashboard` gives a new one.";
const TOO_MANY =
  "16 sessions have a page open, and no more may: close one, or `toolway dashboard --close` ends them all.";

function memberOf(body: unknown, key: string): string {
  const value = (body as Readonly<Record<string, unknown>> | null | undefined)?.[key];
  if (typeof value !== "string") throw new ControlError("invalid", `"${key}" is a string.`);
  return value;
}

function* sessionsIn(kept: DurableMap<DoorRecord>): IterableIterator<[string, SessionKept]> {
  for (const [id, record] of kept.entries()) if ("hash" in record) yield [id, record];
}

/** Whether it listens there now: somebody else may. */
function listens(server: Server, port: number): Promise<boolean> {
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
    server.listen(port, "127.0.0.1");
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
