// What a connection does differently with a modern server: `_meta` and headers on every request, answers that such a
// server does not give, rounds for legacy agents, and listening. Ids, deadlines and replies stay the connection's.

import type { Caller } from "../../contracts/caller.js";
import type { ListKind, ServerIntro, UpstreamCall } from "../../contracts/upstream.js";
import { replySize } from "../../protocol/arrived.js";
import { Fault } from "../../protocol/errors.js";
import { ErrorCode, isObject, type JsonObject } from "../../protocol/jsonrpc.js";
import { type HopChanges, makeNotification, type NotificationMessage, withChanges } from "../../protocol/message.js";
import {
  encodeHeaderValue,
  Meta,
  MODERN_VERSION,
  ModernError,
  NAME_PARAMS,
  TASKS_EXTENSION,
} from "../../protocol/modern.js";
import { paramHeaders } from "../../protocol/param-headers.js";
import { faultReply, type Reply, responseOf } from "../../protocol/reply.js";
import { discover, statusOf } from "../era/meeting.js";
import { classify, type EraMemory, noEraMemory } from "../era/verdict.js";
import type { CallSender } from "../link/own-call.js";
import { readList } from "../lists/read.js";
import { ServerListen } from "./listen.js";
import { InputRounds } from "./rounds.js";
import { ToolHeaders } from "./tool-headers.js";

/** An error is a few hundred bytes; what is larger is not looked into. */
const MAX_ERROR_BYTES = 4 * 1024;

/** A server that refuses as one of the other era would is asked again for its era, but not more often than this. */
const ERA_CHECK_MS = 5_000;
/** What a legacy server, or the framework around it, answers to a request that is outside of any session. */
const LEGACY_STATUSES = new Set([400, 404, 405]);

/** What an agent says of itself goes with each call: a name, a version and a title have room, and a picture has not. */
const MAX_AGENT_CHARS = 1_024;

const VERSION_JSON = JSON.stringify(MODERN_VERSION);

/** Notifications of agents that the modern era has given up. */
const LEGACY_NOTIFICATIONS = new Set(["notifications/initialized", "notifications/roots/list_changed"]);

type MetaText = readonly [key: string, json: string];

/** What all connections of a server share for the modern era. */
export interface ModernParts {
  readonly eras: EraMemory;
  readonly toolHeaders: ToolHeaders;
  readonly random: () => number;
  onProblem(text: string): void;
}

/** The parts of a connection that shares them with no other. */
export function unsharedParts(): ModernParts {
  return { eras: noEraMemory, toolHeaders: new ToolHeaders(), random: Math.random, onProblem: () => {} };
}

/** What it needs of its connection. */
export interface ModernSideOptions {
  readonly now: () => number;
  /**
   * Gives a call an id and sends it, as a modern server wants it. What it cancels is answered with a fault `cancelled`.
   */
  readonly direct: CallSender;
  onNotification(message: NotificationMessage): void;
  /** The other end is a gateway for others, which shows its operator what agents say of themselves. */
  readonly namesAgents?: boolean | undefined;
  /** The server behind the address is a legacy one by now. */
  onOtherEra(): void;
}

export class ModernSide {
  readonly #parts: ModernParts;
  readonly #overHttp: boolean;
  readonly #clientInfo: MetaText;
  /** A modern agent's request needs no more. */
  readonly #sender: HopChanges;
  readonly #options: ModernSideOptions;
  readonly #rounds: InputRounds;
  #listen: ServerListen | undefined;
  #hasLogging: boolean = false;
  /** Calls that were refused for their headers wait here while the tools are read anew. Each has that chance once. */
  readonly #relisting = new Set<UpstreamCall>();
  readonly #retried = new WeakSet<UpstreamCall>();
  readonly #ended = new AbortController();
  #eraCheckedMs = Number.NEGATIVE_INFINITY;

  constructor(parts: ModernParts, overHttp: boolean, clientInfo: JsonObject, options: ModernSideOptions) {
    this.#parts = parts;
    this.#overHttp = overHttp;
    this.#clientInfo = [Meta.clientInfo, JSON.stringify(clientInfo)];
    this.#sender = { meta: [this.#clientInfo] };
    this.#options = options;
    this.#rounds = new InputRounds({
      send: (call) => options.direct.send(call),
      cancel: (call, reason) => {
        if (!this.#cancelRelisting(call, reason)) options.direct.cancel(call, reason);
      },
    });
  }

  /** The server has introduced itself: calls may come. */
  start(intro: ServerIntro): void {
    this.#hasLogging = isObject(intro.capabilities["logging"]);
    this.#listen = new ServerListen(intro.capabilities, {
      direct: this.#options.direct,
      now: this.#options.now,
      random: this.#parts.random,
      onMissed: (kinds) => this.#missed(kinds),
      onProblem: (text) => this.#parts.onProblem(text),
    });
    this.#listen.start();
  }

  /** The connection is gone: nothing is opened again. */
  stop(): void {
    this.#listen?.stop();
  }

  /** The calls in flight have been answered; those that wait for something else are answered here. */
  end(fault: Fault): void {
    this.#ended.abort(fault);
    for (const call of this.#relisting) call.reply(faultReply(fault));
    this.#relisting.clear();
    this.#listen?.end(fault);
    this.#rounds.end(fault);
  }

  /** Counts calls that are under way with nothing in flight, less what is in flight for us alone. */
  get extraInFlight(): number {
    const listen = this.#listen;
    const listening = listen === undefined ? 0 : listen.waiting - listen.inFlight;
    return this.#rounds.waiting + this.#relisting.size + listening;
  }

  hears(kind: ListKind): boolean {
    return this.#listen?.hears(kind) ?? false;
  }

  /** True where the call is taken care of here. */
  send(call: UpstreamCall): boolean {
    switch (call.method) {
      case "ping":
      case "logging/setLevel":
        // Every request carries the level that its caller wants.
        call.reply({ kind: "result", result: {} });
        return true;
      case "resources/subscribe":
      case "resources/unsubscribe":
        this.#subscribe(call);
        return true;
      default:
        return this.#rounds.send(call);
    }
  }

  cancel(call: UpstreamCall, reason: string | undefined): boolean {
    if (this.#listen?.cancel(call, new Fault("cancelled", reason ?? "Cancelled.")) === true) return true;
    return this.#cancelRelisting(call, reason) || this.#rounds.cancel(call, reason);
  }

  /** What a modern server wants in the request. */
  changes(call: UpstreamCall): HopChanges {
    const { caller } = call;
    const info = this.#infoOf(caller);
    if (caller?.era === "modern" && saysWhoAsks(call.params)) {
      return info === this.#clientInfo ? this.#sender : { meta: [info] };
    }
    const level = this.#levelFor(caller);
    return this.#senderAnd(
      info,
      caller === undefined ? {} : capabilitiesOf(caller),
      level === undefined ? undefined : JSON.stringify(level),
    );
  }

  /** Who sends it: this gateway, or the agent where the other end wants to know. */
  #infoOf(caller: Caller | undefined): MetaText {
    if (caller === undefined || this.#options.namesAgents !== true) return this.#clientInfo;
    const { name } = caller.clientInfo;
    const json = JSON.stringify(caller.clientInfo);
    return typeof name === "string" && json.length <= MAX_AGENT_CHARS ? [Meta.clientInfo, json] : this.#clientInfo;
  }

  #senderAnd(info: MetaText, capabilities: unknown, levelJson?: string): HopChanges {
    return {
      meta: [
        [Meta.version, VERSION_JSON],
        info,
        [Meta.capabilities, JSON.stringify(capabilities)],
        [Meta.logLevel, levelJson],
      ],
    };
  }

  /**
   * A legacy agent that never set a level hears its server's logs; a modern server says nothing unless it is asked. What
   * a server would say by itself is not known: `info` is what most begin with.
   */
  #levelFor(caller: Caller | undefined): string | undefined {
    if (caller === undefined || caller.logLevel !== undefined) return caller?.logLevel;
    return caller.era === "legacy" && this.#hasLogging && caller.hearsNothing === undefined ? "info" : undefined;
  }

  /** True where the reply is not for the caller yet. */
  intercepts(call: UpstreamCall, reply: Reply): boolean {
    if (call.caller === undefined && call.method.endsWith("/list")) this.#listen?.wasRead();
    if (!this.#overHttp || call.method !== "tools/call" || reply.kind !== "bytes") return false;
    // Nearly all are: they are not searched for the code of an error.
    if (reply.succeeded === true) return false;
    if (replySize(reply) > MAX_ERROR_BYTES || !reply.bytes.includes(String(ModernError.headerMismatch))) return false;
    if (this.#retried.has(call) || responseOf(reply)?.error?.code !== ModernError.headerMismatch) return false;
    this.#retried.add(call);
    this.#relisting.add(call);
    void this.#relist(call, reply);
    return true;
  }

  /** A call was refused over HTTP, before it was read. */
  refused(fault: Fault): void {
    if (LEGACY_STATUSES.has(statusOf(fault) ?? 0)) this.checkEra();
  }

  /** A server of the other era answers like this, so it is asked again: there is no session whose end would tell. */
  checkEra(): void {
    const nowMs = this.#options.now();
    if (!this.#overHttp || this.#listen === undefined || nowMs - this.#eraCheckedMs < ERA_CHECK_MS) return;
    this.#eraCheckedMs = nowMs;
    void discover(this.#options.direct, "http", this.#ended.signal).then((outcome) => {
      if (!this.#ended.signal.aborted && classify("http", outcome).kind === "legacy") this.#options.onOtherEra();
    });
  }

  /** The message to pass on; undefined where the notification was for us. */
  notified(message: NotificationMessage): NotificationMessage | undefined {
    const { method, params } = message;
    const meta = params?.["_meta"];
    const id = isObject(meta) ? meta[Meta.subscriptionId] : undefined;
    if (method === "notifications/subscriptions/acknowledged") {
      this.#listen?.acknowledged(id, params?.["notifications"]);
      return undefined;
    }
    if (method === "notifications/cancelled") {
      this.#listen?.endedByServer(params?.["requestId"]);
      return undefined;
    }
    return id === undefined ? message : withoutSubscription(message);
  }

  /** An agent's notification as a modern server wants it; undefined where that era has none of the kind. */
  renderNotification(message: NotificationMessage, from: Caller): string | undefined {
    if (LEGACY_NOTIFICATIONS.has(message.method)) return undefined;
    const meta = message.params?.["_meta"];
    const declared = from.era === "modern" && isObject(meta) ? meta[Meta.capabilities] : undefined;
    return withChanges(message, this.#senderAnd(this.#infoOf(from), declared ?? from.capabilities));
  }

  notificationHeaders(method: string): readonly string[] | undefined {
    return this.#overHttp
      ? ["mcp-protocol-version", MODERN_VERSION, "mcp-method", encodeHeaderValue(method)]
      : undefined;
  }

  /** What goes beside the request's text, over HTTP: names and values in turn. */
  headers(call: UpstreamCall): readonly string[] | undefined {
    if (!this.#overHttp) return undefined;
    const { method, subject, params } = call;
    const headers = ["mcp-protocol-version", MODERN_VERSION, "mcp-method", method];
    const field = NAME_PARAMS.get(method);
    if (field === undefined) return headers;
    const annotated =
      method === "tools/call" && subject !== undefined ? this.#parts.toolHeaders.of(subject) : undefined;
    const known = field === "taskId" ? undefined : subject;
    if (known !== undefined && annotated === undefined) {
      headers.push("mcp-name", encodeHeaderValue(known));
      return headers;
    }
    const name = known ?? params?.[field];
    if (typeof name === "string") headers.push("mcp-name", encodeHeaderValue(name));
    if (annotated !== undefined) headers.push(...Object.entries(paramHeaders(annotated, params?.["arguments"])).flat());
    return headers;
  }

  #subscribe(call: UpstreamCall): void {
    const uri = call.subject ?? call.params?.["uri"];
    if (this.#listen?.canSubscribe !== true) {
      const message = `The server has no subscriptions: ${call.method}`;
      call.reply({ kind: "error", error: { code: ErrorCode.methodNotFound, message } });
    } else if (typeof uri !== "string") {
      call.reply(faultReply(new Fault("invalid", `${call.method} needs "uri".`)));
    } else if (call.method === "resources/subscribe") this.#listen.subscribe(uri, call);
    else {
      this.#listen.unsubscribe(uri);
      call.reply({ kind: "result", result: {} });
    }
  }

  /**
   * The headers did not fit the body: the tool's schema may have changed. It was refused unread, so it may be repeated.
   */
  async #relist(call: UpstreamCall, reply: Reply): Promise<void> {
    try {
      this.#parts.toolHeaders.learn(await readList(this.#options.direct, "tools", this.#ended.signal));
    } catch {
      if (this.#relisting.delete(call)) call.reply(reply);
      return;
    }
    if (!this.#relisting.delete(call)) return;
    this.#options.direct.send(call);
    // Those who keep the list have an old one.
    this.#missed(["tools"]);
  }

  #cancelRelisting(call: UpstreamCall, reason: string | undefined): boolean {
    if (!this.#relisting.delete(call)) return false;
    call.reply(faultReply(new Fault("cancelled", reason ?? "Cancelled.")));
    return true;
  }

  #missed(kinds: readonly ListKind[]): void {
    for (const kind of kinds) {
      if (kind === "resourceTemplates") continue;
      this.#options.onNotification(notification(`notifications/${kind}/list_changed`));
    }
  }
}

/** A modern agent's own `_meta` is right, but for who sends it. */
function saysWhoAsks(params: JsonObject | undefined): boolean {
  const meta = params?.["_meta"];
  return isObject(meta) && Meta.version in meta && Meta.capabilities in meta;
}

/** A legacy agent cannot be answered with a task of the modern era, whatever it said at its handshake. */
function capabilitiesOf({ era, capabilities }: Caller): JsonObject {
  const { extensions } = capabilities;
  if (era === "modern" || !isObject(extensions) || !(TASKS_EXTENSION in extensions)) return capabilities;
  const { [TASKS_EXTENSION]: _, ...others } = extensions;
  return { ...capabilities, extensions: others };
}

/** The subscription's id belongs to our hop: the next one has its own. */
function withoutSubscription(message: NotificationMessage): NotificationMessage {
  const { [Meta.subscriptionId]: _, ...meta } = (message.params?.["_meta"] ?? {}) as JsonObject;
  const { _meta, ...params } = message.params ?? {};
  const kept = Object.keys(meta).length === 0 ? params : { ...params, _meta: meta };
  return makeNotification(message.method, kept);
}

const ownNotifications = new WeakSet<NotificationMessage>();

/** True where we said it, not the server: a list may have changed while nobody listened. */
export function isOwnNotification(message: NotificationMessage): boolean {
  return ownNotifications.has(message);
}

function notification(method: string): NotificationMessage {
  const message = makeNotification(method);
  ownNotifications.add(message);
  return message;
}
