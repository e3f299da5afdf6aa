// What agents asked of servers that outlives a request: log levels and subscriptions. Kept in the sessions; sent on
// as the lowest level that anyone asked for, and told again to every new connection.

import type { Caller } from "../contracts/caller.js";
import type { ServerHandle, Servers } from "../contracts/servers.js";
import type { AgentCall } from "../contracts/service.js";
import type { ServerIntro, Upstream } from "../contracts/upstream.js";
import { Fault } from "../protocol/errors.js";
import { isObject, type JsonObject } from "../protocol/jsonrpc.js";
import type { LoggingLevel } from "../protocol/log-levels.js";
import { isRefusal, isUndecided } from "../protocol/reply.js";
import { sleepUnref } from "../runtime/wait.js";
import type { AgentNotifications } from "./agent-notifications.js";
import { CallWrapper } from "./call-wrapper.js";

/**
 * How long an agent's setLevel waits for the servers to take it: long for a healthy one, and no bad one holds it up.
 */
const LEVEL_WAIT_MS = 1_000;

/**
 * Levels of one connection go one after another, or two requests over HTTP overtake each other; only the newest waits.
 */
interface LevelLine {
  next: LoggingLevel | undefined;
  done: Promise<void>;
}

export class Subscriptions {
  readonly #sessions: AgentNotifications;
  readonly #servers: Servers;
  readonly #log: (text: string) => void;
  readonly #levels = new WeakMap<Upstream, LevelLine>();

  constructor(sessions: AgentNotifications, servers: Servers, log: (text: string) => void) {
    this.#sessions = sessions;
    this.#servers = servers;
    this.#log = log;
  }

  /** Resolves when the servers have taken it, or have had their time: what the agent calls next is logged by it. */
  async setLevel(caller: Caller, level: LoggingLevel): Promise<void> {
    const before = this.#sessions.lowestLevel();
    caller.setLogLevel(level);
    const told = this.#lowestChanged(before);
    for (const server of this.#servers.all) {
      if (server.isolation !== "session" || !hasLogging(server.intro)) continue;
      const connection = server.sessionConnection(caller);
      if (connection?.isReady === true) told.push(this.#level(connection, level));
    }
    if (told.length > 0) await Promise.race([Promise.all(told), sleepUnref(LEVEL_WAIT_MS)]);
  }

  /**
   * A subscription is kept before the server answers, so that no update is missed. It is taken back if the server
   * refuses (or, for a legacy agent, does not answer), and by `undo` if the watched call cannot be sent. Throws a Fault
   * `limit`.
   */
  subscribe(call: AgentCall, server: string, uri: string): { readonly watched: AgentCall; undo(): void } {
    const { sessionKey } = call.caller;
    const kept = this.#sessions.subscribe(sessionKey, server, uri);
    if (kept instanceof Fault) throw kept;
    const undo = () => {
      if (kept === "new") this.#sessions.unsubscribe(sessionKey, server, uri);
    };
    const watched = new CallWrapper(call, call.message, (reply) => {
      // A modern agent is told that it is subscribed: its server gets to know of it when it is there.
      const isKept = call.caller.era === "modern" && isUndecided(reply);
      if (!isKept && isRefusal(reply)) undo();
      return reply;
    });
    return { watched, undo };
  }

  /** A new connection knows nothing of what agents asked of the one before. */
  repeat(server: string, intro: ServerIntro, connection: Upstream, owner: Caller | undefined): void {
    // Where each session has a connection of its own, the one that is nobody's only reads the lists.
    const handle = this.#servers.get(server);
    if (owner === undefined && handle?.isolation === "session") return;
    const level = owner === undefined ? this.#sessions.lowestLevel() : this.#sessions.levelOf(owner.sessionKey);
    if (level !== undefined && hasLogging(intro)) void this.#level(connection, level);
    const isFor = (session: Caller) => isServedBy(session, handle, connection);
    for (const uri of this.#sessions.subscriptions(server, isFor)) {
      void this.#tell(connection, "resources/subscribe", { uri });
    }
  }

  /** Whether somebody else still listens to the resource by the connection that this session has. */
  isHeld(server: string, uri: string, session: Caller): boolean {
    const handle = this.#servers.get(server);
    const connection = handle?.sessionConnection(session);
    if (handle === undefined) return false;
    return this.#sessions.hasSubscriber(server, uri, (other) => handle.sessionConnection(other) === connection);
  }

  /** A session that was restored has its level and its subscriptions again; the servers that are up are told. */
  sessionOpened(session: Caller, scope: string | undefined): void {
    const before = session.logLevel === undefined ? undefined : this.#sessions.lowestLevel();
    this.#sessions.open(session, scope);
    if (session.logLevel !== undefined) void this.#lowestChanged(before);
    for (const [name, uris] of session.subscribed ?? []) {
      const server = this.#servers.get(name);
      const connection = server?.isolation === "shared" ? server.sessionConnection(session) : undefined;
      if (connection?.isReady !== true) continue;
      for (const uri of uris) void this.#tell(connection, "resources/subscribe", { uri });
    }
  }

  sessionClosed(session: Caller): void {
    const { sessionKey } = session;
    // Most sessions never set a level, and many may end at once.
    const hadLevel = this.#sessions.levelOf(sessionKey) !== undefined;
    const before = hadLevel ? this.#sessions.lowestLevel() : undefined;
    for (const [name, uri] of this.#sessions.close(sessionKey)) {
      const server = this.#servers.get(name);
      // A connection of the session's own ends with it.
      if (server?.isolation === "shared" && !this.isHeld(name, uri, session)) {
        const connection = server.sessionConnection(session);
        if (connection?.isReady === true) void this.#tell(connection, "resources/unsubscribe", { uri });
      }
    }
    if (hadLevel) void this.#lowestChanged(before);
  }

  /** A server that is down is not started for this: repeat() tells it when it is up. */
  #lowestChanged(before: LoggingLevel | undefined): Promise<void>[] {
    const told: Promise<void>[] = [];
    const level = this.#sessions.lowestLevel();
    if (level === undefined || level === before) return told;
    for (const server of this.#servers.all) {
      if (server.isolation !== "shared" || !hasLogging(server.intro)) continue;
      for (const connection of server.connections) {
        if (connection.isReady) told.push(this.#level(connection, level));
      }
    }
    return told;
  }

  #level(connection: Upstream, level: LoggingLevel): Promise<void> {
    const line = this.#levels.get(connection);
    if (line !== undefined) {
      line.next = level;
      return line.done;
    }
    const begun: LevelLine = { next: level, done: Promise.resolve() };
    this.#levels.set(connection, begun);
    begun.done = this.#tellLevels(connection, begun);
    return begun.done;
  }

  async #tellLevels(connection: Upstream, line: LevelLine): Promise<void> {
    for (let level = line.next; level !== undefined; level = line.next) {
      line.next = undefined;
      await this.#tell(connection, "logging/setLevel", { level });
    }
    this.#levels.delete(connection);
  }

  /** A request whose answer changes nothing: a server that refuses has been told all the same. */
  async #tell(connection: Upstream, method: string, params: JsonObject): Promise<void> {
    await connection.request(method, params).catch((error: unknown) => {
      this.#log(`server "${connection.server}" did not take ${method}: ${(error as Error).message}`);
    });
  }
}

/** Whether what comes by this connection of a server concerns the session: its calls go out on it. */
export function isServedBy(
  session: Caller,
  server: ServerHandle | undefined,
  connection: Upstream | undefined,
): boolean {
  const own = server?.sessionConnection(session);
  return own === undefined ? server?.isolation !== "session" : connection === undefined || own === connection;
}

function hasLogging(intro: ServerIntro | undefined): boolean {
  return isObject(intro?.capabilities["logging"]);
}
