// The sessions at an HTTP server beside the one that all share: opens one for agents of a profile, closes what nobody
// uses, and says which of them reads a list that changed. profile-sessions.ts decides who has one.

import type { AgentProfile, Caller } from "../contracts/caller.js";
import type { ServerSpec } from "../contracts/server-spec.js";
import type { ListKind, ServerIntro } from "../contracts/upstream.js";
import type { Fault } from "../protocol/errors.js";
import type { NotificationMessage } from "../protocol/message.js";
import { type DriverEvents, type DriverParts, ServerDriver, type ToolsRead } from "./driver.js";
import { type HandshakeOffer, shareable } from "./era/handshake.js";
import { statusOf } from "./era/meeting.js";
import { Evictions } from "./evictions.js";
import { ServerError } from "./link/own-call.js";
import { CHANGE_ECHO_MS, ListSource } from "./lists/list-source.js";
import { ProfileSessions } from "./profile-sessions.js";
import type { UpstreamContext } from "./server-deps.js";

/** A session is opened within this, or its calls go out on the shared one: they wait meanwhile. */
const CONNECT_MS = 5_000;

const ONE_SESSION =
  'It keeps one session, as it seems: each that was opened for agents of another kind ended the one before. All agents share one for an hour. "declare" in its entry says what they can be asked, and ends the tries.';

/** The server, as far as its sessions need it. */
export interface ExtraSessionsOptions {
  readonly spec: ServerSpec;
  readonly clientInfo: HandshakeOffer["clientInfo"];
  readonly context: UpstreamContext;
  readonly shared: ServerDriver;
  /** What all its connections have in common. */
  readonly parts: DriverParts;
  readonly aboutTask: DriverEvents["aboutTask"];
  hasAgents(profile: AgentProfile): boolean;
  onReady(intro: ServerIntro, session: ServerDriver): ToolsRead | undefined;
  readTools(): ToolsRead;
  onNotification(session: ServerDriver, message: NotificationMessage, caller: Caller | undefined): void;
  onState(): void;
  /** A session is gone whose lists these were. */
  onListsLeft(kinds: readonly ListKind[]): void;
  /** Is to be closed: nobody uses it. */
  onUnused(session: ServerDriver): void;
  warn(text: string): void;
}

export class ExtraSessions {
  readonly #options: ExtraSessionsOptions;
  readonly #sessions: ProfileSessions<ServerDriver>;
  readonly #listSource = new ListSource<ServerDriver>();
  readonly #evictions = new Evictions<ServerDriver>();

  constructor(options: ExtraSessionsOptions) {
    this.#options = options;
    this.#sessions = new ProfileSessions((profile) => options.hasAgents(profile));
  }

  get all(): ServerDriver[] {
    return this.#sessions.all;
  }

  /** The session of these agents, if they have one now. */
  find(profile: AgentProfile): ServerDriver | undefined {
    const found = this.#sessions.find(profile);
    return found === "none" ? undefined : found;
  }

  /** The session of these agents, made if need be; undefined where they have to do with the shared one. */
  obtain(profile: AgentProfile): ServerDriver | undefined {
    const found = this.#sessions.find(profile) ?? this.#make(profile);
    return found === "none" ? undefined : found;
  }

  /** The shared session was opened: the server was met anew. */
  sharedIsUp(): void {
    this.#sessions.forgive();
    this.#evictions.opened(this.#options.shared, this.#options.context.now());
  }

  /** A session was up and is not any more, the shared one among them. */
  closed(session: ServerDriver, fault: Fault): void {
    const nowMs = this.#options.context.now();
    if (fault.reason !== "session-gone" || !this.#evictions.gone(session, nowMs)) return;
    this.#sessions.close(nowMs);
    this.#options.warn(ONE_SESSION);
    for (const one of this.#sessions.all) one.giveWay();
  }

  /** What is wrong with the server, though it works. */
  get problems(): readonly string[] {
    return this.#sessions.isClosed ? [ONE_SESSION] : [];
  }

  tick(nowMs: number): void {
    for (const unused of this.#sessions.look(nowMs)) this.#options.onUnused(unused);
    for (const session of this.#sessions.all) session.tick(nowMs);
  }

  /**
   * A session tells that lists have changed. There is one list, though several sessions tell of it: of a modern server
   * the shared connection reads all, of a legacy one what it was told of too.
   */
  changed(
    teller: ServerDriver,
    kinds: readonly ListKind[],
    isModern: boolean,
    read: (reader: ServerDriver, kinds: readonly ListKind[]) => void,
  ): void {
    const { shared, context } = this.#options;
    const toldMs = context.now();
    if (teller === shared) this.#listSource.sharedTold(kinds, toldMs);
    if (teller === shared || isModern) {
      read(shared, kinds);
      return;
    }
    const timer = setTimeout(() => {
      const alone = teller.isReady ? this.#listSource.toldAlone(teller, kinds, toldMs) : [];
      if (alone.length > 0) read(teller, alone);
    }, CHANGE_ECHO_MS);
    timer.unref();
  }

  /** The session beside whose list is the server's, if there is one. */
  listerOf(kind: ListKind): ServerDriver | undefined {
    const teller = this.#listSource.of(kind);
    return teller?.isReady === true ? teller : undefined;
  }

  #make(profile: AgentProfile): ServerDriver | "none" {
    const { has, left } = this.#sessions.makeRoom();
    if (left !== undefined) this.#options.onUnused(left);
    if (!has) return "none";
    const session = this.#drive(profile);
    this.#sessions.add(profile, session, this.#options.context.now());
    return session;
  }

  /** A legacy session: in the modern era each request says what its agent can be asked. */
  #drive({ capabilities }: AgentProfile): ServerDriver {
    const { spec, clientInfo, context, shared, parts, aboutTask } = this.#options;
    const session: ServerDriver = new ServerDriver(
      { ...spec, era: "legacy", connectTimeoutMs: Math.min(spec.connectTimeoutMs, CONNECT_MS) },
      undefined,
      { clientInfo, capabilities: shareable(capabilities) },
      context,
      {
        onReady: (intro) => {
          this.#evictions.opened(session, context.now());
          return this.#options.onReady(intro, session);
        },
        readTools: () => this.#options.readTools(),
        onNotification: (message, caller) => this.#options.onNotification(session, message, caller),
        aboutTask,
        onState: () => {
          const left = session.isReady ? [] : this.#listSource.left(session);
          if (left.length > 0) this.#options.onListsLeft(left);
          this.#options.onState();
        },
        onClosed: (fault) => this.closed(session, fault),
        onFailed: (fault) => this.#sessions.bar(session, !isUnreached(fault), context.now()),
      },
      { ...parts, instead: shared },
    );
    return session;
  }
}

/** The server did not say no: it could not be asked. */
function isUnreached(fault: Fault): boolean {
  if (statusOf(fault) !== undefined || fault.cause instanceof ServerError) return false;
  return fault.code === "unavailable" || fault.code === "closing";
}
