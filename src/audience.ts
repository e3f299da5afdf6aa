// Who listens: the open sessions, their log levels and what they have subscribed to. Decides who hears of what a
// server says outside a call; how it reaches them is the Caller's.

import type { Caller } from "./caller.js";
import type { NotificationMessage } from "./protocol/message.js";
import type { ListKind } from "./upstream.js";

/** From chatty to grave, as MCP has them. */
const LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"] as const;

export type LogLevel = (typeof LEVELS)[number];

/** Subscriptions of one session. An editor with every file of a project open stays far below. */
const MAX_SUBSCRIPTIONS = 5_000;

interface Member {
  readonly session: Caller;
  readonly scope: string | undefined;
  /** server → URIs. */
  readonly subscriptions: Map<string, Set<string>>;
  subscribed: number;
}

const LIST_CHANGED: Record<ListKind, string> = {
  tools: notification("notifications/tools/list_changed"),
  prompts: notification("notifications/prompts/list_changed"),
  resources: notification("notifications/resources/list_changed"),
  resourceTemplates: notification("notifications/resources/list_changed"),
};

export class Audience {
  readonly #members = new Map<string, Member>();
  readonly #sees: (session: Caller, server: string) => boolean;

  /** `sees`: whether the session's principal may know of a server. */
  constructor(sees: (session: Caller, server: string) => boolean) {
    this.#sees = sees;
  }

  get size(): number {
    return this.#members.size;
  }

  open(session: Caller, scope: string | undefined): void {
    const member = { session, scope, subscriptions: new Map(), subscribed: 0 };
    this.#members.set(session.sessionKey, member);
  }

  /** What nobody listens to any more: [server, URI] pairs. */
  close(sessionKey: string): [server: string, uri: string][] {
    const member = this.#members.get(sessionKey);
    this.#members.delete(sessionKey);
    if (member === undefined) return [];
    const left: [string, string][] = [];
    for (const [server, uris] of member.subscriptions) {
      for (const uri of uris) if (!this.hasSubscriber(server, uri)) left.push([server, uri]);
    }
    return left;
  }

  levelOf(sessionKey: string): LogLevel | undefined {
    const level = this.#members.get(sessionKey)?.session.logLevel;
    return isLogLevel(level) ? level : undefined;
  }

  /** The lowest that anyone asked for; undefined where nobody did. */
  lowestLevel(): LogLevel | undefined {
    let lowest: number = LEVELS.length;
    for (const { session } of this.#members.values()) {
      if (isLogLevel(session.logLevel)) lowest = Math.min(lowest, LEVELS.indexOf(session.logLevel));
    }
    return LEVELS.find((_, i) => i === lowest);
  }

  /** False where the session has too many. */
  subscribe(sessionKey: string, server: string, uri: string): boolean {
    const member = this.#members.get(sessionKey);
    if (member === undefined) return true;
    const uris = member.subscriptions.get(server) ?? new Set();
    if (uris.has(uri)) return true;
    if (member.subscribed >= MAX_SUBSCRIPTIONS) return false;
    member.subscribed++;
    member.subscriptions.set(server, uris.add(uri));
    return true;
  }

  unsubscribe(sessionKey: string, server: string, uri: string): void {
    const member = this.#members.get(sessionKey);
    if (member?.subscriptions.get(server)?.delete(uri) === true) member.subscribed--;
  }

  hasSubscriber(server: string, uri: string): boolean {
    for (const { subscriptions } of this.#members.values()) {
      if (subscriptions.get(server)?.has(uri) === true) return true;
    }
    return false;
  }

  /** Everything that is subscribed to on a server, by anyone or by one session. */
  subscriptions(server: string, sessionKey?: string): Set<string> {
    const all = new Set<string>();
    for (const { session, subscriptions } of this.#members.values()) {
      if (sessionKey !== undefined && session.sessionKey !== sessionKey) continue;
      for (const uri of subscriptions.get(server) ?? []) all.add(uri);
    }
    return all;
  }

  /** `servers`: whose part of the list changed. */
  listChanged(kind: ListKind, servers: readonly string[]): void {
    for (const { session, scope } of this.#members.values()) {
      const concerned = servers.some((server) => (scope ?? server) === server && this.#sees(session, server));
      if (concerned) session.notify(LIST_CHANGED[kind]);
    }
  }

  /** `caller` is for whom, where that can be told. */
  notify(server: string, message: NotificationMessage, caller: Caller | undefined): void {
    switch (message.method) {
      case "notifications/message":
        this.#log(server, message, caller);
        return;
      case "notifications/resources/updated":
        this.#updated(server, message, caller);
        return;
      case "notifications/elicitation/complete":
        // It comes after the call that caused it; its id says nothing to whom it does not concern.
        if (caller === undefined) this.#all(server, (member) => member.session.notify(message.text));
        else caller.notify(message.text);
        return;
      default:
        // What we do not know goes to whom it is for; where nobody can tell, to nobody.
        caller?.notify(message.text);
    }
  }

  #log(server: string, message: NotificationMessage, caller: Caller | undefined): void {
    const level = message.params?.["level"];
    if (caller !== undefined) {
      if (passes(level, isLogLevel(caller.logLevel) ? caller.logLevel : undefined)) caller.notify(message.text);
      return;
    }
    // Nobody's call: those who asked for logs by setting a level get it.
    this.#all(server, (member) => {
      const wanted = member.session.logLevel;
      if (isLogLevel(wanted) && passes(level, wanted)) member.session.notify(message.text);
    });
  }

  #updated(server: string, message: NotificationMessage, caller: Caller | undefined): void {
    const uri = message.params?.["uri"];
    if (typeof uri !== "string") {
      caller?.notify(message.text);
      return;
    }
    this.#all(server, ({ session, subscriptions }) => {
      const uris = subscriptions.get(server);
      // The update may be of a part of what was subscribed to.
      if (uris?.has(uri) || (uris !== undefined && [...uris].some((one) => uri.startsWith(one)))) {
        session.notify(message.text);
      }
    });
  }

  #all(server: string, act: (member: Member) => void): void {
    for (const member of this.#members.values()) {
      if ((member.scope ?? server) === server && this.#sees(member.session, server)) act(member);
    }
  }
}

export function isLogLevel(value: unknown): value is LogLevel {
  return (LEVELS as readonly unknown[]).includes(value);
}

function passes(level: unknown, wanted: LogLevel | undefined): boolean {
  return wanted === undefined || !isLogLevel(level) || LEVELS.indexOf(level) >= LEVELS.indexOf(wanted);
}

function notification(method: string): string {
  return `{"jsonrpc":"2.0","method":"${method}"}`;
}
