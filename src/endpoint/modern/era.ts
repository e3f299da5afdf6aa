// What the modern era is at one endpoint: a request that has passed its checks comes in with its outlet, and is
// answered here, by the service, or by the parked call that it is a retry of. Knows no HTTP and no pipes.

import type { Principal } from "../../contracts/caller.js";
import type { Service } from "../../contracts/service.js";
import { Fault, toRpcError } from "../../protocol/errors.js";
import { ErrorCode, isObject, type RpcError } from "../../protocol/jsonrpc.js";
import { edited, locate, type NotificationMessage, type RequestMessage } from "../../protocol/message.js";
import { Meta } from "../../protocol/modern.js";
import type { Clock } from "../../runtime/clock.js";
import type { HeldBytes } from "../../runtime/memory/held-bytes.js";
import type { Sealer } from "../../runtime/seal.js";
import type { EndpointLimits } from "../session/limits.js";
import { type CallContext, ModernCall } from "./call.js";
import { SUPPORTED_VERSIONS } from "./checks.js";
import { ListenRequest, readFilter } from "./listen.js";
import type { Outlet } from "./outlet.js";
import { ParkedCalls } from "./parked.js";
import { type Presence, Presences } from "./presence.js";
import { type ForwardedState, type RequestState, RequestStates, requestDigest } from "./request-state.js";

export interface ModernEraOptions {
  readonly service: Service;
  readonly sealer: Sealer;
  readonly limits: EndpointLimits;
  readonly held: HeldBytes;
  readonly clock: Clock;
  readonly failed: (error: unknown) => void;
  /** This gateway, where there are several. */
  readonly home?: string | undefined;
  /** Replies of legacy servers go as these wrote them: whoever asks makes them modern. */
  readonly asWritten?: true | undefined;
}

const REQUEST_STATE = ["params", "requestState"];

/** Methods of the legacy era that this one has no more. */
const REMOVED: ReadonlySet<string> = new Set([
  "initialize",
  "ping",
  "logging/setLevel",
  "resources/subscribe",
  "resources/unsubscribe",
]);

/** Notifications of clients that mean nothing here. On HTTP, leaving is the way to cancel. */
const IGNORED: ReadonlySet<string> = new Set([
  "notifications/cancelled",
  "notifications/initialized",
  "notifications/progress",
  "notifications/roots/list_changed",
]);

/** Servers come and go, and roles see different ones, so that nothing of it may be kept. */
const DISCOVERED = { ttlMs: 0, cacheScope: "private" } as const;

export class ModernEra {
  readonly #service: Service;
  readonly #limits: EndpointLimits;
  readonly #clock: Clock;
  readonly #failed: (error: unknown) => void;
  readonly #presences: Presences;
  readonly #calls: CallContext;

  constructor({ service, sealer, limits, held, clock, failed, home, asWritten }: ModernEraOptions) {
    this.#service = service;
    this.#limits = limits;
    this.#clock = clock;
    this.#failed = failed;
    this.#presences = new Presences(service, limits);
    const parked = new ParkedCalls<ModernCall>(limits, clock);
    this.#calls = { limits, held, clock, parked, states: new RequestStates(sealer, home), asWritten };
  }

  /** Principals at paths that have been used of late. */
  get presences(): number {
    return this.#presences.size;
  }

  /** The gateway that has asked the server, and at which a call may wait for this retry. Undefined where it is no retry, or needs none. */
  homeOf({ params }: RequestMessage): string | undefined {
    const text = params?.["requestState"];
    const state = typeof text === "string" ? this.#calls.states.read(text) : undefined;
    return typeof state === "object" ? state.home : undefined;
  }

  /** `session` tells apart the agents that a principal stands for, where it says so. */
  serve(outlet: Outlet, principal: Principal, scope: string | undefined, session?: string): void {
    const { method } = outlet.message;
    if (REMOVED.has(method)) {
      fail(outlet, { code: ErrorCode.methodNotFound, message: `Method not found in this version: ${method}.` });
      return;
    }
    const presence = this.#presences.use(principal, scope, this.#clock.now(), session);
    if (presence === undefined) {
      fail(outlet, toRpcError(new Fault("limit", "Too many principals use this endpoint. Try again later.")));
      return;
    }
    presence.introduced(outlet.meta.capabilities);
    if (method === "server/discover") this.#discover(outlet, presence);
    else if (method === "subscriptions/listen") this.#listen(outlet, presence);
    else this.#request(outlet, presence);
  }

  notified(message: NotificationMessage, principal: Principal, scope: string | undefined): void {
    if (IGNORED.has(message.method)) return;
    const presence = this.#presences.use(principal, scope, this.#clock.now());
    if (presence !== undefined) this.#service.handleNotification(presence, message, scope);
  }

  #discover(outlet: Outlet, presence: Presence): void {
    const { capabilities, serverInfo, instructions, own } = this.#service.introduce(presence, presence.scope);
    const meta = own?.more?.["_meta"];
    const result = {
      ...own?.more,
      resultType: "complete",
      supportedVersions: SUPPORTED_VERSIONS,
      capabilities,
      ...(instructions === undefined ? {} : { instructions }),
      ...DISCOVERED,
      _meta: { ...(isObject(meta) ? meta : {}), [Meta.serverInfo]: serverInfo },
    };
    outlet.reply({ kind: "result", result });
  }

  #listen(outlet: Outlet, presence: Presence): void {
    const filter = readFilter(outlet.message.params, this.#limits.listenUris);
    if (typeof filter === "string") fail(outlet, { code: ErrorCode.invalidParams, message: filter });
    else if (presence.listeners.size >= this.#limits.listensPerPrincipal) {
      const message = `${presence.listeners.size} subscriptions/listen are open, which is the limit.`;
      fail(outlet, toRpcError(new Fault("limit", message)));
    } else {
      const { capabilities } = this.#service.introduce(presence, presence.scope);
      new ListenRequest(presence, outlet, this.#limits).begin(filter, capabilities).catch(this.#failed);
    }
  }

  #request(outlet: Outlet, presence: Presence): void {
    const text = outlet.message.params?.["requestState"];
    const state = typeof text === "string" ? this.#calls.states.read(text) : "foreign";
    if (state === "foreign") this.#call(outlet, presence);
    else if (state === "broken") fail(outlet, stale("it was changed on its way"));
    else if ("json" in state) this.#withServers(outlet, presence, state);
    else this.#retry(outlet, presence, state);
  }

  /** The server has its own state back, byte for byte, from whom it was given for. */
  #withServers(outlet: Outlet, presence: Presence, { principalId, json }: ForwardedState): void {
    if (principalId !== presence.principal.id) fail(outlet, stale("it was given to somebody else"));
    else {
      this.#call(outlet, presence, withState(outlet.message, json));
    }
  }

  #call(outlet: Outlet, presence: Presence, message = outlet.message): void {
    if (presence.calls.size >= this.#limits.callsPerSession) {
      const message = `${presence.calls.size} requests are in flight, which is the limit.`;
      fail(outlet, toRpcError(new Fault("limit", message)));
      return;
    }
    const call = new ModernCall(this.#calls, presence, outlet, message);
    try {
      this.#service.handle(call);
    } catch (error) {
      this.#failed(error);
      call.reply({ kind: "error", error: toRpcError(error) });
    }
  }

  #retry(outlet: Outlet, presence: Presence, state: RequestState): void {
    const digest = requestDigest(outlet.message, presence.scope);
    const { principalId, parked, expires } = state;
    if (principalId !== presence.principal.id) fail(outlet, stale("it was given to somebody else"));
    else if (digest !== state.digest) fail(outlet, stale("it belongs to another request"));
    else if (parked === undefined) {
      if (expires <= this.#clock.wall()) fail(outlet, stale("its time is over"));
      else this.#again(outlet, presence);
    }
    // How long a parked call waits goes by the time that passed, not by a clock that may be set meanwhile.
    else {
      const call = this.#calls.parked.take(parked, principalId, digest);
      if (call === undefined) fail(outlet, stale("nothing waits for it any more"));
      else this.#resume(outlet, call);
    }
  }

  /** The roles may have changed while it waited: what a call would be refused now, an answer does not carry on. */
  #resume(outlet: Outlet, call: ModernCall): void {
    const fault = this.#service.refusal(call);
    if (fault !== undefined) call.cancel(fault.message);
    const error = fault === undefined ? call.resume(outlet) : toRpcError(fault);
    if (error !== undefined) fail(outlet, error);
  }

  /** The user was to open a page, and then the call is made as if for the first time. */
  #again(outlet: Outlet, presence: Presence): void {
    const responses = outlet.message.params?.["inputResponses"];
    const answers = isObject(responses) ? Object.values(responses) : [];
    if (answers.some((answer) => !isObject(answer) || answer["action"] !== "accept")) {
      const fault = new Fault("cancelled", "The server needs the user to open a page first, and the user did not.");
      fail(outlet, toRpcError(fault));
    } else this.#call(outlet, presence);
  }

  /** Forgets what has not been used for long. It is to be called now and then. */
  sweep(): void {
    this.#presences.sweep(this.#clock.now());
  }

  /** Ends what is under way, of these principals or of all. */
  close(fault: Fault, whose?: (principal: Principal) => boolean): void {
    this.#presences.close(fault, whose);
  }
}

function withState(message: RequestMessage, json: string): RequestMessage {
  const at = locate(message, REQUEST_STATE);
  if (at === undefined) return message;
  const params = { ...message.params, requestState: JSON.parse(json) as unknown };
  const changed = edited(message, [{ start: at.start, end: at.end, text: json }], params);
  changed.held = message.held;
  return changed;
}

function fail(outlet: Outlet, error: RpcError): void {
  outlet.reply({ kind: "error", error });
}

function stale(why: string): RpcError {
  const message = `This requestState cannot be used: ${why}. Repeat the call without requestState and inputResponses.`;
  return { code: ErrorCode.invalidParams, message };
}
