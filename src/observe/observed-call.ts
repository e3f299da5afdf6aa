// The one place where calls end: an agent's call that gathers what becomes known of it, and whose first reply makes one
// record of it all. The log of calls, and a span where the call is traced, are made from that record.

import type { Caller } from "../contracts/caller.js";
import type { AgentCall, CallNotes, CallPhase, Mending } from "../contracts/service.js";
import { replySize } from "../protocol/arrived.js";
import { isObject, type RpcError } from "../protocol/jsonrpc.js";
import type { RequestMessage } from "../protocol/message.js";
import type { Era } from "../protocol/modern.js";
import type { ParamHeader } from "../protocol/param-headers.js";
import type { Reply } from "../protocol/reply.js";
import type { Clock } from "../runtime/clock.js";
import { type CallRecord, clearRecord, emptyRecord, type Transport } from "./call-record.js";
import type { CallRecorder } from "./call-recorder.js";
import { type CallTimes, CallTimesPool } from "./call-times.js";
import { readOutcome } from "./outcome.js";
import { spanName } from "./span-facts.js";
import type { Span, Tracer } from "./traces.js";

/** Who keeps arguments and results, while a person wants that. */
interface Recordings {
  capture(server: string, tool: string | undefined, message: RequestMessage, reply: Reply): CallRecord["recorded"];
}

export interface CallObserverOptions {
  readonly clock: Clock;
  /** Undefined where calls are not traced. */
  readonly tracer: Tracer | undefined;
  /** A server's era, asked for when a call ends: before the first one nobody may know it. */
  readonly eraOf: (server: string) => Era | undefined;
  /** The name of a tool as it may be shown; undefined where its server does not list it. */
  readonly toolName?: ((server: string, tool: string) => string | undefined) | undefined;
  /** A name without what its server's entry keeps secret, for a tool that is not listed. */
  readonly redact?: ((server: string, tool: string) => string) | undefined;
  /** How a server is reached. */
  readonly transportOf?: ((server: string) => Transport | undefined) | undefined;
  /** Whether a server is not up now whose tools its agent was given all the same. */
  readonly isAnyAway?: ((list: Pick<AgentCall, "caller" | "scope">) => boolean) | undefined;
}

/** Longer requests are measured by their characters: counting the bytes of a long text takes milliseconds. */
const MAX_COUNTED_CHARACTERS = 1_024;

/** So much of a tool's name is looked at for secrets: an agent may ask for one that is as long as it likes. */
const MAX_NAME_READ = 4_096;

/** So many calls under way can be looked at: more than a gateway holds. Those beyond go on, and are not shown. */
const MAX_UNDER_WAY = 20_000;

/** What can be seen of a call that has not ended. */
export interface CallUnderWayFacts extends Pick<AgentCall, "caller" | "message"> {
  readonly startMs: number;
  readonly server: string | undefined;
  readonly tool: string | undefined;
  readonly attempt: number;
  readonly phase: CallPhase;
  readonly span: Span | undefined;
}

export class CallObserver {
  readonly #clock: Clock;
  readonly #tracer: Tracer | undefined;
  readonly #eraOf: (server: string) => Era | undefined;
  readonly #toolName: (server: string, tool: string) => string | undefined;
  readonly #redact: (server: string, tool: string) => string;
  readonly #transportOf: (server: string) => Transport | undefined;
  readonly #isAnyAway: (list: Pick<AgentCall, "caller" | "scope">) => boolean;
  readonly #times = new CallTimesPool();
  /** What records have of what was asked; undefined where nobody wants it. */
  argumentsOf: ((message: RequestMessage) => CallRecord["asked"]) | undefined;
  /** Undefined while nobody records. */
  recordings: Recordings | undefined;
  /** Calls under way are a chain through their own objects, so that no call costs an entry in a table. */
  #oldest: ObservedCall | undefined;
  #newest: ObservedCall | undefined;
  #underWay = 0;
  #recorder: CallRecorder | undefined;
  /** For a traced call that no recorder has a record for. It is filled and read in one turn. */
  readonly #scratch = emptyRecord();

  constructor({ clock, tracer, eraOf, toolName, redact, transportOf, isAnyAway }: CallObserverOptions) {
    this.#clock = clock;
    this.#tracer = tracer;
    this.#eraOf = eraOf;
    this.#toolName = toolName ?? (() => undefined);
    this.#redact = redact ?? ((_, tool) => tool);
    this.#transportOf = transportOf ?? (() => undefined);
    this.#isAnyAway = isAnyAway ?? (() => false);
  }

  /** Who gets the records; undefined for nobody. Calls under way are told to whoever is there when they end. */
  setRecorder(recorder: CallRecorder | undefined): void {
    this.#recorder = recorder;
  }

  /** The call as it goes on from here: the same one where nobody wants to know of it. */
  observed(call: AgentCall): AgentCall {
    const isWanted = this.#recorder !== undefined || this.#tracer !== undefined;
    if (!isWanted) return call;
    const nowMs = this.#clock.now();
    const observed = new ObservedCall(call, this, nowMs, this.#times.take(nowMs));
    if (this.#underWay < MAX_UNDER_WAY) this.#link(observed);
    return observed;
  }

  /**
   * A kept write as it goes to its server without its agent: each sending is a span below that of the call that was kept, and
   * nothing else is made of it. The same one where that is not traced, or where its agent's call is at hand.
   */
  delivered(call: AgentCall, server: string, tool: string): AgentCall {
    const span = call.notes === undefined ? this.begin(call, server, tool, true) : undefined;
    if (span === undefined) return call;
    const nowMs = this.#clock.now();
    return new ObservedCall(call, this, nowMs, this.#times.take(nowMs), { server, tool, span });
  }

  /** Those that have not ended, oldest first. */
  *underWay(): IterableIterator<CallUnderWayFacts> {
    for (let call = this.#oldest; call !== undefined; call = call.newer) yield call;
  }

  #link(call: ObservedCall): void {
    this.#underWay++;
    call.isLinked = true;
    call.older = this.#newest;
    if (this.#newest === undefined) this.#oldest = call;
    else this.#newest.newer = call;
    this.#newest = call;
  }

  #unlink(call: ObservedCall): void {
    const { older, newer } = call;
    this.#underWay--;
    call.isLinked = false;
    if (older === undefined) this.#oldest = newer;
    else older.newer = newer;
    if (newer === undefined) this.#newest = older;
    else newer.older = older;
    // One that has ended holds no others.
    call.older = undefined;
    call.newer = undefined;
  }

  get nowMs(): number {
    return this.#clock.now();
  }

  /** Undefined where the call is not traced. */
  begin(call: AgentCall, server: string, tool: string | undefined, isDelivery = false): Span | undefined {
    const { message, traceHeaders: headers } = call;
    if (this.#tracer === undefined) return undefined;
    const { method, params } = message;
    const known = tool === undefined ? undefined : this.#toolName(server, tool);
    return this.#tracer.begin({ name: spanName(method, known), params, headers, isDelivery });
  }

  ended(call: ObservedCall, times: CallTimes, reply: Reply): void {
    const { span } = call;
    if (call.isLinked) this.#unlink(call);
    const own = call.isDelivery ? undefined : this.#recorder?.next();
    const record = own ?? (span === undefined ? undefined : this.#scratch);
    if (record !== undefined) {
      this.#fill(record, call, times, reply);
      if (span !== undefined) this.#endSpan(span, record);
      if (own === undefined) clearRecord(record);
    }
    this.#times.giveBack(times);
  }

  /** A server may name a tool like a secret of its entry: a span leaves the gateway, and has the name as it may be shown. */
  #endSpan(span: Span, record: CallRecord): void {
    const { server, tool } = record;
    if (server !== undefined && tool !== undefined) {
      record.tool = this.#toolName(server, tool) ?? this.#redact(server, tool.slice(0, MAX_NAME_READ));
    }
    span.end(record);
    record.tool = tool;
  }

  #fill(record: CallRecord, call: ObservedCall, times: CallTimes, reply: Reply): void {
    const { caller, message, server, span } = call;
    const nowMs = this.#clock.now();
    times.enter("own", nowMs);
    record.endedAt = this.#clock.wall();
    record.ms = nowMs - call.startMs;
    record.queuedMs = times.of("queued");
    record.startingMs = times.of("starting");
    record.credentialMs = times.of("credential");
    record.serverMs = times.of("server");
    record.returningMs = times.of("returning");
    record.principal = caller.principal;
    record.clientInfo = caller.clientInfo;
    record.agentEra = caller.era;
    record.method = message.method;
    record.server = server;
    record.tool = call.tool ?? namedTool(message);
    record.era = server === undefined ? undefined : this.#eraOf(server);
    record.attempt = call.attempt;
    readOutcome(reply, record);
    record.receipt = call.receipt;
    const isList = message.method === "tools/list" && record.outcome === "ok";
    record.mended = isList && this.#isAnyAway(call) ? "menu" : call.mendedBy;
    record.cache = call.cache;
    const { text } = message;
    record.bytesIn = text.length <= MAX_COUNTED_CHARACTERS ? Buffer.byteLength(text) : text.length;
    record.bytes = reply.kind === "bytes" ? replySize(reply) : undefined;
    record.transport = server === undefined ? undefined : this.#transportOf(server);
    record.version = caller.version;
    record.sessionKey = caller.sessionKey;
    record.traceId = span?.traceId;
    record.id = message.id;
    if (call.isDelivery) return;
    record.asked = this.argumentsOf?.(message);
    record.recorded =
      this.recordings === undefined || server === undefined
        ? undefined
        : this.recordings.capture(server, record.tool, message, reply);
  }
}

/** It is its own notes, so that a call costs one object and not two. It is not used again: replies may come late. */
class ObservedCall implements AgentCall, CallNotes, CallUnderWayFacts {
  server: string | undefined = undefined;
  tool: string | undefined = undefined;
  cache: CallNotes["cache"] = undefined;
  receipt: string | undefined = undefined;
  attempt = 1;
  mendedBy: Mending | undefined = undefined;
  span: Span | undefined = undefined;
  /** Its neighbours among the calls under way. */
  older: ObservedCall | undefined = undefined;
  newer: ObservedCall | undefined = undefined;
  isLinked = false;
  readonly isDelivery: boolean;
  readonly startMs: number;
  readonly #outer: AgentCall;
  /** It is another call's once this one has ended. */
  readonly #times: CallTimes;
  /** Undefined once it has ended: the first reply counts. */
  #observer: CallObserver | undefined;

  constructor(
    outer: AgentCall,
    observer: CallObserver,
    startMs: number,
    times: CallTimes,
    delivery?: { readonly server: string; readonly tool: string; readonly span: Span },
  ) {
    this.isDelivery = delivery !== undefined;
    if (delivery !== undefined) {
      this.server = delivery.server;
      this.tool = delivery.tool;
      this.span = delivery.span;
    }
    this.#outer = outer;
    this.#observer = observer;
    this.#times = times;
    this.startMs = startMs;
  }

  get notes(): CallNotes {
    return this;
  }

  get trace(): CallNotes["trace"] {
    return this.span;
  }

  reaches(server: string, tool: string | undefined): void {
    this.server = server;
    this.tool = tool;
    this.span ??= this.#observer?.begin(this.#outer, server, tool);
  }

  enter(phase: CallPhase, nowMs?: number): void {
    const observer = this.#observer;
    if (observer === undefined) return;
    this.#times.enter(phase, nowMs ?? observer.nowMs);
    if (phase === "returning" || phase === "starting" || phase === "own") this.span?.received();
  }

  sent(nowMs: number): void {
    this.enter("server", nowMs);
    this.span?.sent();
  }

  repeated(error: string): void {
    this.attempt++;
    this.span?.received(error);
  }

  mended(by: Mending): void {
    this.mendedBy = by;
  }

  get phase(): CallPhase {
    return this.#times.phase;
  }

  get caller(): Caller {
    return this.#outer.caller;
  }

  get message(): RequestMessage {
    return this.#outer.message;
  }

  get scope(): string | undefined {
    return this.#outer.scope;
  }

  get traceHeaders(): AgentCall["traceHeaders"] {
    return this.#outer.traceHeaders;
  }

  get messageKey(): AgentCall["messageKey"] {
    return this.#outer.messageKey;
  }

  get earlyTrial(): AgentCall["earlyTrial"] {
    return this.#outer.earlyTrial;
  }

  get isKept(): boolean {
    return this.#outer.isKept === true;
  }

  get onCancel(): AgentCall["onCancel"] {
    return this.#outer.onCancel;
  }

  set onCancel(cancel: AgentCall["onCancel"]) {
    this.#outer.onCancel = cancel;
  }

  headerMismatch(declared: readonly ParamHeader[]): RpcError | undefined {
    return this.#outer.headerMismatch?.(declared);
  }

  reply(reply: Reply): void {
    const observer = this.#observer;
    if (observer !== undefined) {
      this.#observer = undefined;
      observer.ended(this, this.#times, reply);
    }
    this.#outer.reply(reply);
  }
}

/** What the agent called it, where no server has it. */
function namedTool({ method, params }: RequestMessage): string | undefined {
  if (method !== "tools/call" || !isObject(params)) return undefined;
  const { name } = params;
  return typeof name === "string" ? name : undefined;
}
