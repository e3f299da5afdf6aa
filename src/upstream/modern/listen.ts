// The one `subscriptions/listen` of a connection to a modern server: kept open, renewed when agents subscribe to other
// resources, opened again when it ends. A subscription is answered when the server has it. What the messages mean is
// the connection's.

import type { ListKind, UpstreamCall } from "../../contracts/upstream.js";
import { Fault } from "../../protocol/errors.js";
import { ErrorCode, isObject, type JsonObject } from "../../protocol/jsonrpc.js";
import { type HopChanges, requestText } from "../../protocol/message.js";
import { faultReply, type Reply, responseOf } from "../../protocol/reply.js";
import { type BackoffLimits, backoffCeiling } from "../../runtime/backoff.js";
import type { CallSender } from "../link/own-call.js";

/** Subscriptions that come together (a reconnect repeats them all) are one renewal. */
const GATHER_MS = 20;
/** The acknowledgement is the first thing that a server sends; one that takes longer is not listening. */
const ACKNOWLEDGE_MS = 10_000;
/** The wait before it is opened again. Half of it is left to chance, so that many do not return together. */
const REOPEN: BackoffLimits = { baseMs: 1_000, maxMs: 60_000 };
/** One that lived this long was a good one: the next wait is the short one again. */
const GOOD_MS = 10_000;
/** So many resources of one server may be subscribed to, by all agents together: a request of some MiB at most. */
const MAX_URIS = 20_000;
/** So many subscriptions may wait for the server's word; the next are answered without it. As many as resources. */
const MAX_WAITING = MAX_URIS;

const SUBSCRIBED: Reply = { kind: "result", result: {} };
const NOT_TOLD = new Fault("not-found", "The server does not tell of changes of resources.");

const LISTS: readonly { field: string; capability: string; kinds: readonly ListKind[] }[] = [
  { field: "toolsListChanged", capability: "tools", kinds: ["tools"] },
  { field: "promptsListChanged", capability: "prompts", kinds: ["prompts"] },
  { field: "resourcesListChanged", capability: "resources", kinds: ["resources", "resourceTemplates"] },
];

export interface ServerListenOptions {
  readonly direct: CallSender;
  readonly now: () => number;
  readonly random: () => number;
  /** It listens again after a time without: these lists may have changed meanwhile. */
  onMissed(kinds: readonly ListKind[]): void;
  onProblem(text: string): void;
}

class ListenCall implements UpstreamCall {
  readonly caller = undefined;
  readonly method = "subscriptions/listen";
  readonly subject = undefined;
  readonly progressToken = undefined;
  readonly filter: JsonObject;
  readonly params: JsonObject;
  readonly uris: ReadonlySet<unknown>;
  readonly #onEnd: (reply: Reply) => void;
  id = 0;
  openedMs = 0;
  timer: NodeJS.Timeout | undefined;

  constructor(filter: JsonObject, onEnd: (call: ListenCall, reply: Reply) => void) {
    this.filter = filter;
    this.params = { notifications: filter };
    const uris = filter["resourceSubscriptions"];
    this.uris = new Set<unknown>(Array.isArray(uris) ? uris : []);
    this.#onEnd = (reply) => onEnd(this, reply);
  }

  render(id: number, changes?: HopChanges): string {
    this.id = id;
    return requestText(id, this.method, this.params, changes);
  }

  reply(reply: Reply): void {
    this.#onEnd(reply);
  }
}

export class ServerListen {
  readonly #options: ServerListenOptions;
  readonly #lists: JsonObject;
  /** The server lets single resources be subscribed to. */
  readonly canSubscribe: boolean;
  readonly #uris = new Set<string>();
  /** The subscriptions that are answered when the server has them, by their calls. */
  readonly #waiting = new Map<UpstreamCall, string>();
  /** The request that the server has acknowledged. */
  #current: ListenCall | undefined;
  /** The request that was sent and is not acknowledged yet. */
  #next: ListenCall | undefined;
  #heard: readonly ListKind[] = [];
  #changed: boolean = false;
  #missed: boolean = false;
  #badStreams = 0;
  /** The last one ended, and the next is waited for. */
  #isBackingOff: boolean = false;
  #timer: NodeJS.Timeout | undefined;
  #over: boolean = false;

  constructor(capabilities: JsonObject, options: ServerListenOptions) {
    this.#options = options;
    const wanted = LISTS.filter(({ capability }) => flag(capabilities[capability], "listChanged"));
    this.#lists = Object.fromEntries(wanted.map(({ field }) => [field, true]));
    this.canSubscribe = flag(capabilities["resources"], "subscribe");
  }

  start(): void {
    this.#open();
  }

  stop(): void {
    this.#over = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#current?.timer);
    clearTimeout(this.#next?.timer);
  }

  /** Counts its own requests in flight. */
  get inFlight(): number {
    return (this.#current === undefined ? 0 : 1) + (this.#next === undefined ? 0 : 1);
  }

  /** True where the server has promised to tell of changes. */
  hears(kind: ListKind): boolean {
    return this.#current !== undefined && this.#heard.includes(kind);
  }

  /** A list was read: where nobody listened yet, a change since would not be heard of, and it is read once more. */
  wasRead(): void {
    if (this.#current === undefined) this.#missed = true;
  }

  /**
   * Answers the call when the server has acknowledged the resource: an update right after the answer is heard. Where
   * it does not listen at the moment, the call is not held up; the resource is asked for when it listens again.
   */
  subscribe(uri: string, call: UpstreamCall): void {
    if (!this.#uris.has(uri)) {
      if (this.#uris.size >= MAX_URIS) {
        call.reply(faultReply(new Fault("limit", "Too many resources of this server are subscribed to.")));
        return;
      }
      this.#uris.add(uri);
      this.#renew();
    }
    if (this.#over) call.reply(faultReply(NOT_TOLD));
    else if (this.#isBackingOff || this.#waiting.size >= MAX_WAITING || asksFor(this.#current, uri)) {
      call.reply(SUBSCRIBED);
    } else this.#waiting.set(call, uri);
  }

  unsubscribe(uri: string): void {
    if (!this.#uris.delete(uri)) return;
    for (const [call, waited] of this.#waiting) if (waited === uri) this.#answer(call, SUBSCRIBED);
    this.#renew();
  }

  /** True where the call was one that waits. */
  cancel(call: UpstreamCall, fault: Fault): boolean {
    if (!this.#waiting.has(call)) return false;
    this.#answer(call, faultReply(fault));
    return true;
  }

  /** The connection is gone: what waits is answered. */
  end(fault: Fault): void {
    for (const call of this.#waiting.keys()) this.#answer(call, faultReply(fault));
  }

  /** Counts the subscriptions that wait for the server. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** The server sent `notifications/subscriptions/acknowledged`. */
  acknowledged(id: unknown, filter: unknown): void {
    const call = this.#next;
    if (call === undefined || call.id !== id) return;
    clearTimeout(call.timer);
    const old = this.#current;
    this.#current = call;
    this.#next = undefined;
    call.openedMs = this.#options.now();
    const agreed = isObject(filter) ? filter : {};
    const heard = LISTS.filter(({ field }) => agreed[field] === true && call.filter[field] === true);
    this.#heard = heard.flatMap(({ kinds }) => kinds);
    this.#complain(call, agreed);
    this.#answerWaiting(call, agreed["resourceSubscriptions"]);
    if (old !== undefined) this.#options.direct.cancel(old, "renewed");
    if (this.#missed) this.#options.onMissed(this.#heard);
    this.#missed = false;
    if (this.#changed) this.#renew();
  }

  /** The server sent `notifications/cancelled`, by which some end it. True where it was ours. */
  endedByServer(id: unknown): boolean {
    const call = [this.#current, this.#next].find((one) => one !== undefined && one.id === id);
    if (call === undefined) return false;
    // The connection answers it, which comes back as an end.
    this.#options.direct.cancel(call, undefined);
    return true;
  }

  get #filter(): JsonObject {
    const uris = this.#uris.size > 0 && this.canSubscribe ? { resourceSubscriptions: [...this.#uris] } : {};
    return { ...this.#lists, ...uris };
  }

  #renew(): void {
    this.#changed = true;
    // While one is being opened, or waited for, its end looks at what has changed.
    if (this.#over || this.#next !== undefined || this.#timer !== undefined) return;
    this.#later(GATHER_MS);
  }

  #later(ms: number): void {
    if (this.#over || this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#open();
    }, ms).unref();
  }

  #open(): void {
    this.#isBackingOff = false;
    this.#changed = false;
    const filter = this.#filter;
    if (Object.keys(filter).length === 0) {
      const old = this.#current;
      this.#current = undefined;
      if (old !== undefined) this.#options.direct.cancel(old, "nothing is listened to");
      return;
    }
    const call = new ListenCall(filter, (one, reply) => this.#ended(one, reply));
    this.#next = call;
    call.timer = setTimeout(() => this.#options.direct.cancel(call, "not acknowledged"), ACKNOWLEDGE_MS).unref();
    this.#options.direct.send(call);
  }

  #ended(call: ListenCall, reply: Reply): void {
    clearTimeout(call.timer);
    if (call === this.#next) {
      this.#next = undefined;
      const isOver = this.#over || this.#refused(reply);
      // Nobody is held up for as long as the server does not listen.
      for (const waiting of this.#waiting.keys()) this.#answer(waiting, isOver ? faultReply(NOT_TOLD) : SUBSCRIBED);
      if (isOver) return;
      this.#badStreams++;
    } else if (call === this.#current) {
      this.#current = undefined;
      const lived = this.#options.now() - call.openedMs >= GOOD_MS;
      this.#badStreams = lived ? 0 : this.#badStreams + 1;
    } else return;
    this.#missed = true;
    if (this.#next !== undefined) return;
    const ceiling = backoffCeiling(Math.max(0, this.#badStreams - 1), REOPEN);
    this.#isBackingOff = true;
    this.#later(ceiling * (0.5 + 0.5 * this.#options.random()));
  }

  /** A server that does not know the method will not learn it on this connection. */
  #refused(reply: Reply): boolean {
    const error = responseOf(reply)?.error;
    if (error?.code !== ErrorCode.methodNotFound) return false;
    this.#over = true;
    this.#options.onProblem(`It does not take subscriptions/listen: ${error.message}`);
    return true;
  }

  /** A resource that the server leaves out of what it acknowledges is one that it does not tell of. */
  #answerWaiting(listening: ListenCall, agreed: unknown): void {
    const honoured = new Set<unknown>(Array.isArray(agreed) ? agreed : []);
    const left = new Set<string>();
    for (const [call, uri] of this.#waiting) {
      if (honoured.has(uri)) this.#answer(call, SUBSCRIBED);
      else if (asksFor(listening, uri)) {
        left.add(uri);
        this.#answer(call, faultReply(new Fault("not-found", `The server does not tell of changes of ${uri}.`)));
      }
    }
    for (const uri of left) this.#uris.delete(uri);
  }

  #answer(call: UpstreamCall, reply: Reply): void {
    this.#waiting.delete(call);
    call.reply(reply);
  }

  #complain(call: ListenCall, agreed: JsonObject): void {
    const left = Object.keys(call.filter).filter((field) => agreed[field] === undefined || agreed[field] === false);
    if (left.length > 0)
      this.#options.onProblem(`It does not tell of all that was listened to: no ${left.join(", ")}.`);
  }
}

/** Whether the request names the resource. */
function asksFor(call: ListenCall | undefined, uri: string): boolean {
  return call?.uris.has(uri) === true;
}

function flag(capability: unknown, name: string): boolean {
  return isObject(capability) && capability[name] === true;
}
