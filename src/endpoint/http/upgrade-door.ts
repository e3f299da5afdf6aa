// Where others than agents dial in by WebSocket: each kind has a door, with a path, a rule, and somebody who adopts the
// sockets. Checked here are host, token and number; what is then said on a socket is not known here.

import { type IncomingMessage, type Server, STATUS_CODES } from "node:http";
import type { Server as TlsServer } from "node:https";
import type { Duplex } from "node:stream";
import type { WebSocketServer } from "ws";
import type { Principal } from "../../contracts/caller.js";
import { CLOSING, DENIED, LIMIT, UNAUTHORIZED, UNAVAILABLE } from "../../protocol/errors.js";
import { ErrorCode } from "../../protocol/jsonrpc.js";
import { capital } from "../../runtime/words/sentence.js";
import { SESSION_HEADER } from "../../sockets/protocol.js";
import { SOCKET_OPTIONS, Socket } from "../../sockets/socket.js";
import { UnfinishedMessages } from "../../sockets/unfinished-messages.js";
import type { EndpointEvent } from "../session/endpoint-event.js";
import { bearer, type HostCheck, hasTokenInQuery, pathOf } from "./checks.js";

/** One kind of visitor: where it dials in, what lets it in, and who takes it over. */
export interface Door {
  /** `executors` for /executors/<name>. Those who come here are called so, and so is their part of the config. */
  readonly path: string;
  /** The role of the tokens that are for this door, and open nothing else. */
  readonly role: string;
  /** They dial in at /<path>/<name>, or at /<path> alone. */
  readonly hasNames: boolean;
  /** They may dial in at / as well. */
  readonly isAtRoot?: boolean;
  /** A token may also come later, with the first message. */
  readonly takesTokenLater: boolean;
  /** Connections that may be open at once. */
  readonly maxConnections: number;
  /** Why one that came with its token is not let in. */
  judge(visit: Visit): Refused | undefined;
  /** How one gets in, for whoever was refused. */
  howToGetIn(name: string): string;
  adopt(name: string, socket: Socket, upgrade: Upgrade): void;
}

/** Somebody at a door. */
export interface Visit {
  /** "" where the door has no names. */
  readonly name: string;
  readonly principal: Principal;
  /** Nobody is asked for a token here. */
  readonly isEverybody: boolean;
  /** What the token is for: the path of a door, or `agents`. */
  readonly isFor: string;
}

/** A request that has become a WebSocket. */
export interface Upgrade {
  readonly req: IncomingMessage;
  /** Undefined where the token comes later. */
  readonly principal: Principal | undefined;
  /** The address and the port that it came from. */
  readonly address: string;
  /**
   * For a token that came later: the connection counts among those of this one from now on. Returns why it cannot stay, where they
   * are too many.
   */
  claim(principal: Principal): string | undefined;
}

/** Said with 503: which of them were revoked meanwhile is known elsewhere. */
export const TOKENS_STALE =
  "The gateway has been without the engine that keeps its tokens for too long to go by what it knew. Try again later.";

export interface UpgradeDoorsOptions {
  readonly hosts: HostCheck;
  /** Whose token this is. Undefined for one that is nobody's. */
  readonly authenticate: (token: string) => Principal | undefined;
  /** Who everybody is where nobody is asked for a token. */
  readonly everybody: Principal | undefined;
  /** What is known of tokens is too old to go by. */
  readonly isStale?: () => boolean;
  readonly log?: ((event: EndpointEvent) => void) | undefined;
}

export interface Refused {
  readonly status: 401 | 403 | 404 | 503;
  readonly code: number;
  readonly why: string;
}

interface Admitted {
  readonly door: Door;
  readonly name: string;
  readonly principal: Principal | undefined;
}

/** What an open connection is counted under; undefined once it has closed. */
interface Place {
  of: string | undefined;
}

/** Of the places of a door, what one token may hold: the others always find some. */
export const OWN_PLACES = 3 / 4;

/** What is said to those who come while the gateway stops. */
export const STOPPING = "The gateway is stopping. Come back in a few seconds: as a rule another one is here by then.";
/** A restart with nothing in flight takes about so long. */
export const RETRY_AFTER_S = "5";

/** The doors of one endpoint. */
export class UpgradeDoors {
  readonly #options: UpgradeDoorsOptions;
  readonly #doors = new Map<string, Door>();
  /** Connections by the path that they came in at, and by that and their token. They count also at a closed door. */
  readonly #connections = new Map<string, number>();
  readonly #unfinished = new UnfinishedMessages();
  #refusesNew = false;
  #webSockets: Promise<WebSocketServer> | undefined;

  constructor(options: UpgradeDoorsOptions) {
    this.#options = options;
  }

  /** Opens a door, in place of the one that was open at its path. */
  open(door: Door): void {
    this.#doors.set(door.path, door);
  }

  close(path: string): void {
    this.#doors.delete(path);
  }

  /** From here on only those are let in who go on with a conversation: calls in flight may wait for them. */
  refuseNew(): void {
    this.#refusesNew = true;
  }

  get anyOpen(): boolean {
    return this.#doors.size > 0;
  }

  /** Connections that are no HTTP any more. */
  get connections(): number {
    let all = 0;
    for (const [of, count] of this.#connections) if (!of.includes(" ")) all += count;
    return all;
  }

  upgrade(req: IncomingMessage, socket: Duplex, head: Buffer): void {
    const url = req.url ?? "/";
    const path = pathOf(url);
    const found = this.#check(req, path, url.slice(path.length + 1));
    if ("why" in found) {
      const { status, why } = found;
      // A name that is wrong is worth a line only where the token was right.
      if (status === 401 || status === 403 || this.#doorAt(path) !== undefined) {
        this.#options.log?.({ kind: "refused", status, path, why });
      }
      refuseUpgrade(socket, found);
      return;
    }
    const { door, principal } = found;
    const place: Place = { of: placesOf(door, principal) };
    for (const one of [door.path, placesOf(door, principal)]) this.#count(one, 1);
    socket.once("close", () => {
      this.#count(door.path, -1);
      if (place.of !== undefined) this.#count(place.of, -1);
      place.of = undefined;
    });
    // Nobody else listens until it is a WebSocket.
    socket.on("error", () => {});
    // The library may be gone, where the gateway was installed anew while it runs.
    this.#admit(req, socket, head, found, place).catch(() => socket.destroy());
  }

  #count(of: string, change: 1 | -1): void {
    const count = (this.#connections.get(of) ?? 0) + change;
    if (count === 0) this.#connections.delete(of);
    else this.#connections.set(of, count);
  }

  async #admit(
    req: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    { door, name, principal }: Admitted,
    place: Place,
  ): Promise<void> {
    // The library is loaded with the first that comes.
    this.#webSockets ??= import("ws").then(
      (ws) => new ws.WebSocketServer({ ...SOCKET_OPTIONS, noServer: true, clientTracking: false }),
    );
    const server = await this.#webSockets;
    const { remoteAddress = "unknown", remotePort } = req.socket;
    const address = `${remoteAddress.replace(/^::ffff:/, "")}:${remotePort}`;
    server.handleUpgrade(req, socket, head, (ws) => {
      const tooMuch = (why: string) => {
        this.#options.log?.({ kind: "refused", status: 503, path: `/${door.path}`, why });
        ws.terminate();
      };
      const watched = { connections: door.maxConnections, wire: req.socket, messages: ws, tooMuch };
      const readFor = this.#unfinished.watch(placesOf(door, principal), watched);
      const claim = (owner: Principal) => this.#claim(door, owner, place, readFor);
      door.adopt(name, new Socket(ws, req.socket, "none"), { req, principal, address, claim });
    });
  }

  #claim(door: Door, owner: Principal, place: Place, readFor: (owner: string) => void): string | undefined {
    const of = placesOf(door, owner);
    if (place.of === undefined || place.of === of) return undefined;
    const tooMany = this.#tooManyOf(door, of);
    if (tooMany !== undefined) return tooMany;
    this.#count(place.of, -1);
    this.#count(of, 1);
    place.of = of;
    readFor(of);
    return undefined;
  }

  /** Why a token that has so many of the places gets no other. */
  #tooManyOf({ maxConnections }: Door, of: string): string | undefined {
    const own = Math.ceil(maxConnections * OWN_PLACES);
    if ((this.#connections.get(of) ?? 0) < own) return undefined;
    return `This token has ${own} connections here already, and the rest is for others.`;
  }

  #doorAt(path: string): { readonly door: Door; readonly name: string } | undefined {
    const [, kind = "", encoded = ""] = /^\/([^/]+)(?:\/([^/]+))?\/?$/.exec(path) ?? [];
    const door = path === "/" ? [...this.#doors.values()].find(({ isAtRoot }) => isAtRoot) : this.#doors.get(kind);
    if (door === undefined || door.hasNames !== (encoded !== "")) return undefined;
    try {
      return { door, name: decodeURIComponent(encoded) };
    } catch {
      return undefined;
    }
  }

  #check(req: IncomingMessage, path: string, query: string): Refused | Admitted {
    const { hosts, authenticate, everybody } = this.#options;
    const { headers } = req;
    const foreign = hosts.refusal(headers.host, undefined, req.socket.localAddress);
    if (foreign !== undefined) return refused(403, DENIED, foreign);
    const at = this.#doorAt(path);
    if (headers.origin !== undefined) {
      const who = at === undefined ? [...this.#doors.keys()].join(" and ") : at.door.path;
      return refused(403, DENIED, `${capital(who)} are no web pages: an Origin is refused.`);
    }
    if (at === undefined) {
      const doors = [...this.#doors.values()].map(
        (one) => `${capital(one.path)} dial in at /${one.path}${one.hasNames ? "/<name>" : ""}.`,
      );
      return refused(404, ErrorCode.invalidRequest, `Nothing is here for WebSockets. ${doors.join(" ")}`);
    }
    if (hasTokenInQuery(query)) {
      return refused(401, UNAUTHORIZED, "Tokens are not accepted in URLs, where logs would keep them.");
    }
    if (everybody === undefined && this.#options.isStale?.() === true) return refused(503, UNAVAILABLE, TOKENS_STALE);
    const { door, name } = at;
    const token = bearer(headers.authorization);
    const principal = everybody ?? (token === undefined ? undefined : authenticate(token));
    if (principal === undefined && !(token === undefined && door.takesTokenLater)) {
      const why = token === undefined ? "A token is needed." : "The token is unknown, expired or revoked.";
      return refused(401, UNAUTHORIZED, `${why} ${door.howToGetIn(name)}`);
    }
    if (principal !== undefined) {
      const isFor = [...this.#doors.values()].find(({ role }) => role === principal.role)?.path ?? "agents";
      const wrong = door.judge({ name, principal, isEverybody: principal === everybody, isFor });
      if (wrong !== undefined) return wrong;
    }
    if (this.#refusesNew && headers[SESSION_HEADER] === undefined) return refused(503, CLOSING, STOPPING);
    if ((this.#connections.get(door.path) ?? 0) >= door.maxConnections) {
      return refused(503, LIMIT, `There are ${door.maxConnections} ${door.path} here already.`);
    }
    const isOwn = principal !== undefined && principal !== everybody;
    const tooMany = isOwn ? this.#tooManyOf(door, placesOf(door, principal)) : undefined;
    return tooMany === undefined ? { door, name, principal } : refused(503, LIMIT, tooMany);
  }
}

/** What the connections of one token are counted under; a path has no blank in it. */
function placesOf({ path }: Door, principal: Principal | undefined): string {
  return `${path} ${principal?.id ?? ""}`;
}

/** Answers an upgrade that is refused; the connection ends with it. */
function refuseUpgrade(socket: Duplex, { status, code, why }: Refused): void {
  const body = JSON.stringify({ jsonrpc: "2.0", id: null, error: { code, message: why } });
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}`,
    "Content-Type: application/json",
    `Content-Length: ${Buffer.byteLength(body)}`,
    "Connection: close",
    ...(status === 503 ? [`Retry-After: ${RETRY_AFTER_S}`] : []),
    ...(status === 401 ? ['WWW-Authenticate: Bearer realm="toolway"'] : []),
  ];
  socket.on("error", () => socket.destroy());
  socket.once("finish", () => socket.destroy());
  socket.end(`${lines.join("\r\n")}\r\n\r\n${body}`);
}

export function refused(status: Refused["status"], code: number, why: string): Refused {
  return { status, code, why };
}

// A request that offers another protocol which we do not speak is served as if it had not offered it, as HTTP wants it:
// some clients offer HTTP/2 with every first request. Node does so by itself, until somebody listens for upgrades.

/** Tokens of `Connection` that belong to the offer. */
const OFFER = new Set(["upgrade", "http2-settings"]);

export function offersWebSocket(req: IncomingMessage): boolean {
  return req.headers.upgrade?.toLowerCase() === "websocket";
}

/** Gives the connection back to the server, with the request before it that it had read, less its offer. */
export function ignoreUpgrade(server: Server, req: IncomingMessage, socket: Duplex, head: Buffer): void {
  const lines = [`${req.method} ${req.url} HTTP/${req.httpVersion}`];
  for (let i = 0; i + 1 < req.rawHeaders.length; i += 2) {
    const name = req.rawHeaders[i] as string;
    const value = withoutOffer(name.toLowerCase(), req.rawHeaders[i + 1] as string);
    if (value !== undefined) lines.push(`${name}: ${value}`);
  }
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), head]));
  server.emit(isTls(server) ? "secureConnection" : "connection", socket);
}

/** Told without TLS itself, which is loaded where there is a certificate. */
export function isTls(server: Server): server is TlsServer {
  return "setSecureContext" in server;
}

function withoutOffer(name: string, value: string): string | undefined {
  if (name === "upgrade") return undefined;
  if (name !== "connection") return value;
  const kept = value.split(",").filter((token) => !OFFER.has(token.trim().toLowerCase()));
  return kept.length === 0 ? undefined : kept.join(",").trim();
}
