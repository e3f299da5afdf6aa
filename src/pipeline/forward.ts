// An agent's request on its way to a server: the agent's own text, with our id, the server's own name of the tool,
// and our progress token in it. Everything else in it is passed on as it came.

import type { Caller } from "../contracts/caller.js";
import type { OwnName, OwnToolName } from "../contracts/names.js";
import type { AgentCall, WayNotes } from "../contracts/service.js";
import type { EarlyTrial, MessageKey, Upstream, UpstreamCall } from "../contracts/upstream.js";
import { traceEdits, traceMembers } from "../observe/trace/trace-meta.js";
import type { Fault } from "../protocol/errors.js";
import { isObject, type JsonObject } from "../protocol/jsonrpc.js";
import { type HopChanges, hopEdits, locate, placeOfProgressToken, type Scans } from "../protocol/message.js";
import type { Reply } from "../protocol/reply.js";
import type { Member } from "../protocol/scan.js";

/** The value of a request that policy judged, e.g. `params.name`, and what the server itself calls it. */
export interface NamedValue {
  readonly path: readonly string[];
  /** Undefined where it is as the agent wrote it. */
  readonly own: OwnName | undefined;
}

/** Where a call goes, and what it is about. */
export interface Destination {
  readonly server: string;
  /** What policy knows it by; undefined for what is no tool. */
  readonly tool: OwnToolName | undefined;
  /** It is for logs and headers. */
  readonly subject: OwnName | undefined;
  readonly named: NamedValue | undefined;
}

/** The tool by which a call is judged: what a tool began before it changed can still be ended. */
export function judgedTool({ message }: AgentCall, { tool }: Destination): OwnToolName | undefined {
  return message.method === "tasks/cancel" ? undefined : tool;
}

/** Judges once more a call that waited until its server's tools were read. */
export interface SecondJudge {
  refusal(call: AgentCall, to: Destination): Fault | undefined;
  /**
   * True where the call is taken over that a server refused for want of a login. Absent where it is made again after
   * one: that happens once.
   */
  mends?(call: AgentCall, to: Destination, chargedMs: number | undefined, refused: Reply): boolean;
  /** Gives back what the call was charged. `chargedMs` is when; undefined where it was not. */
  refund(call: AgentCall, to: Destination, chargedMs: number | undefined): void;
}

const ID = ["id"];

/** A place in the agent's text, and what goes there; undefined where that is our id. */
interface Replacement {
  readonly start: number;
  readonly end: number;
  json: string | undefined;
  readonly isOfTrace?: true;
}

/** There are a handful: a place among them is found sooner than they are sorted. */
function insert(into: Replacement[], one: Replacement): void {
  let at = into.push(one) - 1;
  for (let before = into[at - 1]; before !== undefined && before.start > one.start; before = into[at - 1]) {
    into[at] = before;
    at--;
  }
  into[at] = one;
}

export class Forward implements UpstreamCall {
  readonly progressToken: string | undefined;
  readonly #call: AgentCall;
  readonly #to: Destination;
  readonly #judge: SecondJudge;
  readonly #chargedMs: number | undefined;
  /** They are in the order in which they stand. */
  readonly #replacements: Replacement[] = [];
  /** What stands in the replacements; undefined where the call is not traced. */
  #traceparent: string | undefined = undefined;
  /** Why it may not be sent after all, as was last said. */
  #refusal: Fault | undefined = undefined;
  wasSent: boolean = false;

  /**
   * Throws a Fault `invalid` where a value that matters stands in the text twice: a server might read the one that was
   * not judged. So all is found here, and nothing can go wrong any more when the text is rendered.
   */
  constructor(call: AgentCall, to: Destination, judge: SecondJudge, chargedMs: number | undefined) {
    this.#call = call;
    this.#to = to;
    this.#judge = judge;
    this.#chargedMs = chargedMs;
    const { named } = to;
    const scans: Scans = [];
    this.#add(locate(call.message, ID), undefined);
    if (named !== undefined) {
      const at = locate(call.message, named.path, scans);
      if (named.own !== undefined) this.#add(at, JSON.stringify(named.own));
    }
    const token = placeOfProgressToken(call.message, scans);
    this.#add(token, undefined);
    this.progressToken = token === undefined ? undefined : call.message.text.slice(token.start, token.end);
    const trace = call.notes?.trace;
    if (trace !== undefined) {
      this.#traceparent = trace.metaTraceparent;
      for (const { start, end, text } of traceEdits(call.message, trace, scans)) {
        insert(this.#replacements, { start, end, json: text, isOfTrace: true });
      }
    }
  }

  #add(at: Member | undefined, json: string | undefined): void {
    if (at !== undefined) insert(this.#replacements, { start: at.start, end: at.end, json });
  }

  get caller(): Caller {
    return this.#call.caller;
  }

  get method(): string {
    return this.#call.message.method;
  }

  get subject(): OwnName | undefined {
    return this.#to.subject;
  }

  get params(): JsonObject | undefined {
    const { params } = this.#call.message;
    const { named } = this.#to;
    return named?.own === undefined ? params : withAt(params ?? {}, named.path.slice(1), named.own);
  }

  get isOfTool(): boolean {
    return judgedTool(this.#call, this.#to) !== undefined;
  }

  get notes(): WayNotes | undefined {
    return this.#call.notes;
  }

  get messageKey(): MessageKey | undefined {
    return this.#call.messageKey;
  }

  get earlyTrial(): EarlyTrial | undefined {
    return this.#call.earlyTrial;
  }

  get isKept(): boolean {
    return this.#call.isKept === true;
  }

  refusal(): Fault | undefined {
    this.#refusal = this.#judge.refusal(this.#call, this.#to);
    return this.#refusal;
  }

  sendTo(upstream: Upstream): void {
    this.#call.onCancel = (reason) => upstream.cancel(this, reason);
    upstream.send(this);
  }

  render(id: number, changes?: HopChanges): string {
    if (changes !== undefined) return this.#spliced(id, this.#changedBy(changes));
    if (this.#traceparent !== undefined) this.#renewTrace(this.#traceparent);
    return this.#spliced(id, this.#replacements);
  }

  #spliced(id: number, replacements: readonly Replacement[]): string {
    const { text } = this.#call.message;
    let out = "";
    let from = 0;
    for (const { start, end, json } of replacements) {
      out += text.slice(from, start) + (json ?? id);
      from = end;
    }
    return out + text.slice(from);
  }

  /** Both put members into `_meta`, so the trace's are found anew, among the hop's. */
  #changedBy({ params, meta = [] }: HopChanges): readonly Replacement[] {
    const trace = this.#call.notes?.trace;
    const replacements = this.#replacements.filter(({ isOfTrace }) => isOfTrace !== true);
    const changes = { params, meta: trace === undefined ? meta : [...meta, ...traceMembers(trace)] };
    for (const { start, end, text } of hopEdits(this.#call.message, changes)) {
      insert(replacements, { start, end, json: text });
    }
    return replacements;
  }

  /** Each sending has a place of its own in the trace. Where it stands was found before. */
  #renewTrace(before: string): void {
    const now = this.#call.notes?.trace?.metaTraceparent;
    if (now === undefined || now === before) return;
    for (const one of this.#replacements) if (one.json !== undefined) one.json = one.json.replace(before, now);
    this.#traceparent = now;
  }

  repeated(): void {
    this.wasSent = true;
    this.#call.notes?.repeated("outcome_unknown");
  }

  reply(reply: Reply): void {
    this.#call.onCancel = undefined;
    // What is refused so was not sent.
    if (this.#refusal !== undefined) this.#judge.refund(this.#call, this.#to, this.#chargedMs);
    if (reply.kind === "error" && reply.fault?.reason === "oauth") {
      if (this.#judge.mends?.(this.#call, this.#to, this.#chargedMs, reply) === true) return;
    }
    this.#call.reply(reply);
  }
}

/** A copy with `value` at `path`. */
function withAt(object: JsonObject, [name = "", ...rest]: readonly string[], value: string): JsonObject {
  const inner = object[name];
  return { ...object, [name]: rest.length === 0 ? value : withAt(isObject(inner) ? inner : {}, rest, value) };
}
