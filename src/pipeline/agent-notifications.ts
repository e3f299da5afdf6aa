// The agents that are there, by session or presence: their log levels and what they have subscribed to. Decides who
// hears of what a server says outside a call, and who is sent list_changed; how it reaches them is the Caller's.

import type { AgentProfile, Caller, NotificationText } from "../contracts/caller.js";
import type { ListKind } from "../contracts/upstream.js";
import { Fault } from "../protocol/errors.js";
import { isObject, type JsonObject } from "../protocol/jsonrpc.js";
import { isAtLeast, isLoggingLevel, LOGGING_LEVELS, type LoggingLevel } from "../protocol/log-levels.js";
import { makeNotification, type NotificationMessage } from "../protocol/message.js";
import { MAX_URI_CHARS } from "../protocol/resource-uris.js";
import { SharedRoom } from "../runtime/memory/shared-room.js";
import { MIB } from "../runtime/sizes.js";
import { Listeners } from "./listeners.js";

/** So many subscriptions may one session have. An editor with every file of a project open stays far below. */
const MAX_SUBSCRIPTIONS = 5_000;
/**
 * What subscriptions of all sessions take in memory, of which one principal has half: more than a hundred thousand of a common
 * length. They stay for as long as their sessions do.
 */
const SUBSCRIBED_BYTES = 64 * MIB;
/** A character takes two bytes at most, and the rest is what keeps it. */
const bytesOf = (uri: string): number => 2 * uri.length + 100;

const ROOM = `the gateway's room for the subscriptions of all agents (${SUBSCRIBED_BYTES / MIB} MiB)`;
const TOO_LONG = `The URI is too long to be subscribed to: ${MAX_URI_CHARS} characters are the limit.`;
const TOO_MANY = `This session has ${MAX_SUBSCRIPTIONS} subscriptions, which is the limit: unsubscribe from some.`;
const HALF = `Your subscriptions take half of ${ROOM}, and nobody gets more: unsubscribe from some, or close sessions.`;
const NO_ROOM = `No more fits into ${ROOM}. It is not yours alone that fill it: try again when others have ended some of theirs.`;
const refused = (why: string): Fault => new Fault("limit", why);

/** A server that announces without end is passed on no more often than this, for each list. */
const DISTANCE_MS = 1_000;
/** So many lists are kept in mind: three for each server, of more servers than anybody has. */
const MAX_LISTS = 10_000;

/** In place of a server's name: what is subscribed to is the gateway's own. No server has an empty name. */
const OURS = "";

interface Member {
  readonly session: Caller;
  readonly scope: string | undefined;
  /** server → URIs. */
  readonly subscriptions: Map<string, Set<string>>;
  subscribed: number;
}

export const LIST_CHANGED: Record<ListKind, NotificationText> = {
  tools: makeNotification("notifications/tools/list_changed"),
  prompts: makeNotification("notifications/prompts/list_changed"),
  resources: makeNotification("notifications/resources/list_changed"),
  resourceTemplates: makeNotification("notifications/resources/list_changed"),
};

export class AgentNotifications {
  readonly #members = new Map<string, Member>();
  readonly #sees: (session: Caller, server: string) => boolean;
  /** Who has subscribed to what, by server. Updates come by the thousand, and hardly anybody listens to most of them. */
  readonly #listeners = new Map<string, Listeners<Member>>();
  readonly #room = new SharedRoom(() => SUBSCRIBED_BYTES);

  /** `sees`: whether the session's principal may know of a server. */
  constructor(sees: (session: Caller, server: string) => boolean) {
    this.#sees = sees;
  }

  /** How many agents of an era are there, and programs with those of the legacy one. */
  count(era: Caller["era"]): number {
    let found = 0;
    for (const { session } of this.#members.values()) if (session.era === era) found++;
    return found;
  }

  open(session: Caller, scope: string | undefined): void {
    const member: Member = { session, scope, subscriptions: new Map(), subscribed: 0 };
    for (const [server, uris] of session.subscribed ?? []) {
      member.subscriptions.set(server, new Set(uris));
      member.subscribed += uris.size;
      for (const uri of uris) {
        this.#room.change(session.principal.id, bytesOf(uri));
        this.#watch(server, uri, member);
      }
    }
    this.#members.set(session.sessionKey, member);
  }

  /** What it had subscribed to: [server, URI] pairs. */
  close(sessionKey: string): [server: string, uri: string][] {
    const member = this.#members.get(sessionKey);
    this.#members.delete(sessionKey);
    if (member === undefined) return [];
    const left: [string, string][] = [];
    for (const [server, uris] of member.subscriptions) {
      for (const uri of uris) {
        this.#unwatch(server, uri, member);
        this.#room.change(member.session.principal.id, -bytesOf(uri));
        left.push([server, uri]);
      }
    }
    return left;
  }

  /** All of them, programs too. */
  all(): Iterable<{ readonly session: Caller; readonly scope: string | undefined }> {
    return this.#members.values();
  }

  /** Those of one principal, with the server of `/mcp/<server>` where they are of one. */
  ofPrincipal(id: string): { readonly session: Caller; readonly scope: string | undefined }[] {
    return [...this.#members.values()].filter(({ session }) => session.principal.id === id);
  }

  hasProfile(profile: AgentProfile): boolean {
    for (const { session } of this.#members.values()) if (session.profile === profile) return true;
    return false;
  }

  /** Whether all that are open can do what this one can; programs do not count, they are asked nothing. */
  areAllLike({ profile, sessionKey }: Caller): boolean {
    for (const { session } of this.#members.values()) {
      const isAsked = session.era === "modern" || session.profile !== undefined;
      if (isAsked && session.sessionKey !== sessionKey && session.profile !== profile) return false;
    }
    return profile !== undefined;
  }

  levelOf(sessionKey: string): LoggingLevel | undefined {
    const level = this.#members.get(sessionKey)?.session.logLevel;
    return isLoggingLevel(level) ? level : undefined;
  }

  /** The lowest that anyone asked for; undefined where nobody did. */
  lowestLevel(): LoggingLevel | undefined {
    let lowest: number = LOGGING_LEVELS.length;
    for (const { session } of this.#members.values()) {
      if (isLoggingLevel(session.logLevel)) lowest = Math.min(lowest, LOGGING_LEVELS.indexOf(session.logLevel));
    }
    return LOGGING_LEVELS.find((_, i) => i === lowest);
  }

  /** The session's own way back, which outlives its calls. */
  sessionOf(caller: Caller): Caller {
    return this.#members.get(caller.sessionKey)?.session ?? caller;
  }

  /** A Fault `limit` says which bound was met; this one is not kept then. */
  subscribe(sessionKey: string, server: string, uri: string): "new" | "known" | Fault {
    const member = this.#members.get(sessionKey);
    if (member === undefined) return "known";
    const uris = member.subscriptions.get(server) ?? new Set();
    if (uris.has(uri)) return "known";
    if (uri.length > MAX_URI_CHARS) return refused(TOO_LONG);
    if (member.subscribed >= MAX_SUBSCRIPTIONS) return refused(TOO_MANY);
    const { id } = member.session.principal;
    const full = this.#room.refusal(id, bytesOf(uri), false);
    if (full !== undefined) return refused(full === "half" ? HALF : NO_ROOM);
    this.#room.change(id, bytesOf(uri));
    member.subscribed++;
    member.subscriptions.set(server, uris.add(uri));
    this.#watch(server, uri, member);
    member.session.setSubscribed?.(member.subscriptions);
    return "new";
  }

  unsubscribe(sessionKey: string, server: string, uri: string): void {
    const member = this.#members.get(sessionKey);
    const uris = member?.subscriptions.get(server);
    if (member === undefined || uris?.delete(uri) !== true) return;
    this.#room.change(member.session.principal.id, -bytesOf(uri));
    member.subscribed--;
    this.#unwatch(server, uri, member);
    if (uris.size === 0) member.subscriptions.delete(server);
    member.session.setSubscribed?.(member.subscriptions);
  }

  /** Subscriptions to what is the gateway's own, at whatever path. Who may read it was asked when it was subscribed to. */
  readonly ours = {
    subscribe: (sessionKey: string, uri: string): "new" | "known" | Fault => this.subscribe(sessionKey, OURS, uri),
    unsubscribe: (sessionKey: string, uri: string): void => this.unsubscribe(sessionKey, OURS, uri),
    updated: (uri: string): void => {
      const members = this.#listeners.get(OURS)?.of(uri);
      if (members === undefined) return;
      const told = makeNotification("notifications/resources/updated", { uri });
      for (const { session } of members) session.notify(told);
    },
  };

  #watch(server: string, uri: string, member: Member): void {
    let listeners = this.#listeners.get(server);
    if (listeners === undefined) {
      listeners = new Listeners();
      this.#listeners.set(server, listeners);
    }
    listeners.add(uri, member);
  }

  #unwatch(server: string, uri: string, member: Member): void {
    const listeners = this.#listeners.get(server);
    listeners?.delete(uri, member);
    if (listeners?.isEmpty === true) this.#listeners.delete(server);
  }

  /** Whether one of those that `isFor` names has subscribed. */
  hasSubscriber(server: string, uri: string, isFor: (session: Caller) => boolean): boolean {
    for (const { session } of this.#listeners.get(server)?.of(uri) ?? []) if (isFor(session)) return true;
    return false;
  }

  /** Everything that is subscribed to on a server, by those that `isFor` names. */
  subscriptions(server: string, isFor: (session: Caller) => boolean): Set<string> {
    const all = new Set<string>();
    for (const { session, subscriptions } of this.#members.values()) {
      const uris = subscriptions.get(server);
      if (uris === undefined || !isFor(session)) continue;
      for (const uri of uris) all.add(uri);
    }
    return all;
  }

  /** `servers`: whose part of the list changed; undefined: for all we know, it is another list for everybody. */
  listChanged(kind: ListKind, servers: readonly string[] | undefined): void {
    for (const { session, scope } of this.#members.values()) {
      const concerned =
        servers === undefined || servers.some((server) => (scope ?? server) === server && this.#sees(session, server));
      if (concerned) session.notify(LIST_CHANGED[kind]);
    }
  }

  /** Whatever a session knows may be old: each list that it was told to hear of, and each resource that it subscribed to. */
  catchUp(sessionKey: string, capabilities: JsonObject): void {
    const member = this.#members.get(sessionKey);
    if (member === undefined) return;
    const { session, scope } = member;
    for (const kind of ["tools", "prompts", "resources"] as const) {
      const capability = capabilities[kind];
      if (isObject(capability) && capability["listChanged"] === true) session.notify(LIST_CHANGED[kind]);
    }
    for (const [server, uris] of member.subscriptions) {
      if (server !== OURS && ((scope ?? server) !== server || !this.#sees(session, server))) continue;
      for (const uri of uris) session.notify(makeNotification("notifications/resources/updated", { uri }));
    }
  }

  /** The server announced a change and there is none: who subscribed to its announcements hears it. */
  listAnnounced(kind: ListKind, server: string): void {
    this.#all(server, ({ session }) => {
      // A legacy session has no such subscription, and would read its lists anew for nothing.
      if (session.era === "modern") session.notify(LIST_CHANGED[kind]);
    });
  }

  /** `caller` is for whom, where that can be told; `isFor`: those whose connection it came by. */
  notify(
    server: string,
    message: NotificationMessage,
    caller: Caller | undefined,
    isFor: (session: Caller) => boolean = () => true,
  ): void {
    switch (message.method) {
      case "notifications/message":
        this.#log(server, message, caller, isFor);
        return;
      case "notifications/resources/updated":
        this.#updated(server, message, caller, isFor);
        return;
      case "notifications/elicitation/complete":
        // It comes after the call that caused it; its id says nothing to whom it does not concern.
        if (caller === undefined) this.#all(server, (member) => member.session.notify(message));
        else caller.notify(message);
        return;
      default:
        // What we do not know goes to whom it is for; where nobody can tell, to nobody.
        caller?.notify(message);
    }
  }

  /** Every session that may know of the server. */
  each(server: string, act: (session: Caller) => void): void {
    this.#all(server, ({ session }) => act(session));
  }

  /** Every session at whose path the server is, whatever it may see of it: who tells them decides that by itself. */
  eachAt(server: string, act: (session: Caller) => void): void {
    for (const { session, scope } of this.#members.values()) if ((scope ?? server) === server) act(session);
  }

  #log(
    server: string,
    message: NotificationMessage,
    caller: Caller | undefined,
    isFor: (session: Caller) => boolean,
  ): void {
    const level = message.params?.["level"];
    if (caller !== undefined) {
      if (caller.logLevel === undefined || isAtLeast(level, caller.logLevel)) caller.notify(message);
      return;
    }
    // It belongs to no call: those who asked for logs by setting a level get it. Without a gateway, an agent that set
    // none would hear its server's logs, too; here they may be another's, so it hears them where there is no other.
    const isOnePrincipals = this.#isOnePrincipals(server);
    this.#all(server, ({ session }) => {
      const wanted = session.logLevel;
      const isWanted = wanted === undefined ? isOnePrincipals : isLoggingLevel(wanted) && isAtLeast(level, wanted);
      if (isWanted && isFor(session)) session.notify(message);
    });
  }

  /** Whether all who may use the server are one principal. */
  #isOnePrincipals(server: string): boolean {
    const principals = new Set<string>();
    this.#all(server, ({ session }) => principals.add(session.principal.id));
    return principals.size === 1;
  }

  #updated(
    server: string,
    message: NotificationMessage,
    caller: Caller | undefined,
    isFor: (session: Caller) => boolean,
  ): void {
    const uri = message.params?.["uri"];
    if (typeof uri !== "string") {
      caller?.notify(message);
      return;
    }
    for (const member of this.#listeners.get(server)?.hearing(uri) ?? []) {
      // What another session's own process has is none of this one's.
      if (this.#isAt(member, server) && isFor(member.session)) member.session.notify(message);
    }
  }

  #all(server: string, act: (member: Member) => void): void {
    for (const member of this.#members.values()) if (this.#isAt(member, server)) act(member);
  }

  /** Whether the server is at the member's path, and its principal may know of it. */
  #isAt({ scope, session }: Member, server: string): boolean {
    return (scope ?? server) === server && this.#sees(session, server);
  }
}

/**
 * What servers announced of their lists and turned out to be no change. Who subscribed to a list's changes hears of it
 * all the same, since the server may mean more than its definitions; everybody else is told of real changes alone.
 */
export class Announcements {
  /** Announced, and being read. */
  readonly #open = new Set<string>();
  /** When an announcement without a change was last passed on. */
  readonly #passedMs = new Map<string, number>();

  announced(server: string, kinds: readonly ListKind[]): void {
    for (const kind of kinds) if (this.#open.size < MAX_LISTS) this.#open.add(keyOf(server, kind));
  }

  /** The list was read, and is another: everybody is told. */
  changed(server: string, kind: ListKind): void {
    this.#open.delete(keyOf(server, kind));
  }

  /** The list was read, and is what it was. True where those who subscribed are to be told. */
  unchanged(server: string, kind: ListKind, nowMs: number): boolean {
    const key = keyOf(server, kind);
    if (!this.#open.delete(key)) return false;
    if (nowMs - (this.#passedMs.get(key) ?? Number.NEGATIVE_INFINITY) < DISTANCE_MS) return false;
    if (this.#passedMs.size >= MAX_LISTS) this.#passedMs.clear();
    this.#passedMs.set(key, nowMs);
    return true;
  }
}

/** Templates are told of with resources. No server's name has a line break in it. */
function keyOf(server: string, kind: ListKind): string {
  return `${kind === "resourceTemplates" ? "resources" : kind}\n${server}`;
}
