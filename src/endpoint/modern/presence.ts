// A modern agent has no session: what it has instead is its principal at one path. The service knows it as long as it
// is used, so that servers which keep state keep it by principal, and list changes find those who listen.

import { randomBytes } from "node:crypto";
import type { AgentProfile, Caller, NotificationText, Principal } from "../../contracts/caller.js";
import type { Service } from "../../contracts/service.js";
import { Fault, toRpcError } from "../../protocol/errors.js";
import type { JsonObject } from "../../protocol/jsonrpc.js";
import { makeMessage, type RequestMessage } from "../../protocol/message.js";
import { MODERN_VERSION } from "../../protocol/modern.js";
import { isUndecided, type Reply } from "../../protocol/reply.js";
import { IndexedSet, type Placed } from "../../runtime/containers/table.js";
import type { EndpointLimits } from "../session/limits.js";
import { LastProfile } from "../session/profile.js";
import { errorOf } from "./reply.js";

/** Something of a presence that is under way. */
export interface Ongoing {
  /** The presence ends: the agent is told, if it can be told, and servers need not go on. */
  close(fault: Fault): void;
}

export interface Listening extends Ongoing {
  /** `uri` is that of a resource that was updated. */
  hear(notification: NotificationText, uri: string | undefined): void;
}

interface Subscription {
  listeners: number;
  readonly honoured: Promise<boolean>;
}

export class Presence implements Caller {
  readonly era = "modern";
  readonly logLevel = undefined;
  readonly version = MODERN_VERSION;
  readonly capabilities: JsonObject = {};
  readonly clientInfo: JsonObject = {};
  /** Those of its calls: it declares with each what it can be asked. */
  readonly profiles = new LastProfile();
  /** That of its first request: what it subscribes to is told where its calls go, and stays there. */
  profile: AgentProfile | undefined = undefined;
  #isIntroduced = false;
  /** As it was authenticated last, because a role may change. */
  principal: Principal;
  readonly sessionKey: string;
  readonly scope: string | undefined;
  /** Which agent of its principal, where that stands for several. */
  readonly session: string | undefined;
  readonly calls = new IndexedSet<Ongoing & Placed>();
  readonly listeners = new Set<Listening>();
  readonly #service: Service;
  readonly #subscriptions = new Map<string, Subscription>();
  #serverInfo: JsonObject | undefined;
  lastUsedMs = 0;

  constructor(
    service: Service,
    principal: Principal,
    scope: string | undefined,
    session: string | undefined,
    sessionKey: string,
  ) {
    this.#service = service;
    this.principal = principal;
    this.scope = scope;
    this.session = session;
    this.sessionKey = sessionKey;
  }

  get privateTo(): string | undefined {
    return this.session === undefined ? undefined : this.sessionKey;
  }

  get idle(): boolean {
    return this.calls.size === 0 && this.listeners.size === 0;
  }

  /** What the gateway calls itself; asked for once. */
  get serverInfo(): JsonObject {
    this.#serverInfo ??= this.#service.introduce(this, this.scope).serverInfo;
    return this.#serverInfo;
  }

  introduced(capabilities: JsonObject): void {
    if (this.#isIntroduced) return;
    this.#isIntroduced = true;
    this.profile = this.profiles.of(capabilities);
  }

  setLogLevel(): void {}

  /** Only who listens hears of what is said outside any request. */
  notify(notification: NotificationText): void {
    if (this.listeners.size === 0) return;
    const uri = notification.params?.["uri"];
    for (const listener of this.listeners) listener.hear(notification, typeof uri === "string" ? uri : undefined);
  }

  ask(request: RequestMessage): Promise<never> {
    const message = `${request.method} cannot be asked of a modern agent outside one of its calls.`;
    return Promise.reject(new Fault("no-caller", message));
  }

  /** False where the resource cannot be subscribed to. Listeners to one resource share a subscription. */
  subscribe(uri: string): Promise<boolean> {
    const known = this.#subscriptions.get(uri);
    if (known !== undefined) {
      known.listeners++;
      return known.honoured;
    }
    const honoured = this.#request("resources/subscribe", uri).then((reply) => {
      if (reply.kind === "error" && reply.fault !== undefined) return isUndecided(reply);
      return errorOf(reply) === undefined;
    });
    this.#subscriptions.set(uri, { listeners: 1, honoured });
    return honoured;
  }

  unsubscribe(uri: string): void {
    const known = this.#subscriptions.get(uri);
    if (known === undefined || --known.listeners > 0) return;
    this.#subscriptions.delete(uri);
    void this.#request("resources/unsubscribe", uri);
  }

  #request(method: string, uri: string): Promise<Reply> {
    const message = makeMessage({ jsonrpc: "2.0", id: 0, method, params: { uri } }) as RequestMessage;
    return new Promise<Reply>((reply) => {
      this.#service.handle({ caller: this, message, scope: this.scope, reply, onCancel: undefined });
    }).catch((error: unknown) => ({ kind: "error", error: toRpcError(error) }));
  }

  close(fault: Fault): void {
    for (const ongoing of [...this.calls.all(), ...this.listeners]) ongoing.close(fault);
  }
}

/** The presences of one endpoint. */
export class Presences {
  readonly #service: Service;
  readonly #limits: EndpointLimits;
  /** Two endpoints of one gateway must not take each other's sessions for their own. */
  readonly #tag = randomBytes(6).toString("base64url");
  readonly #byKey = new Map<string, Presence>();
  /** Whoever came last comes again, as a rule. */
  #last: Presence | undefined;

  constructor(service: Service, limits: EndpointLimits) {
    this.#service = service;
    this.#limits = limits;
  }

  get size(): number {
    return this.#byKey.size;
  }

  values(): Iterable<Presence> {
    return this.#byKey.values();
  }

  /** Undefined where there are too many; there are as many as tokens and paths. */
  use(principal: Principal, scope: string | undefined, nowMs: number, session?: string): Presence | undefined {
    let presence = this.#last;
    if (
      presence === undefined ||
      presence.principal.id !== principal.id ||
      presence.scope !== scope ||
      presence.session !== session
    ) {
      presence = this.#find(principal, scope, session);
      this.#last = presence;
    }
    if (presence === undefined) return undefined;
    presence.principal = principal;
    presence.lastUsedMs = nowMs;
    return presence;
  }

  #find(principal: Principal, scope: string | undefined, session: string | undefined): Presence | undefined {
    const key = JSON.stringify(["modern", this.#tag, principal.id, scope ?? null, session ?? null]);
    const known = this.#byKey.get(key);
    if (known !== undefined || this.#byKey.size >= this.#limits.sessions) return known;
    const presence = new Presence(this.#service, principal, scope, session, key);
    this.#byKey.set(key, presence);
    this.#service.sessionOpened(presence, scope);
    return presence;
  }

  /** Forgets those that nobody has used for long. It is to be called now and then. */
  sweep(nowMs: number): void {
    for (const presence of [...this.#byKey.values()]) {
      if (!presence.idle) presence.lastUsedMs = nowMs;
      else if (nowMs - presence.lastUsedMs > this.#limits.sessionIdleMs) this.#remove(presence);
    }
  }

  /** Ends what is under way, of these principals or of all. */
  close(fault: Fault, whose?: (principal: Principal) => boolean): void {
    for (const presence of this.#byKey.values()) {
      if (whose !== undefined && !whose(presence.principal)) continue;
      presence.close(fault);
      this.#remove(presence);
    }
  }

  #remove(presence: Presence): void {
    this.#byKey.delete(presence.sessionKey);
    if (this.#last === presence) this.#last = undefined;
    this.#service.sessionClosed(presence);
  }
}
