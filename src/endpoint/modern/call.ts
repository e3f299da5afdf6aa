// One call of a modern agent, as the service sees it. What a server asks meanwhile goes out as an `input_required`
// result; the call then waits, parked, until a retry brings the answers and becomes the way of its reply.

import type { AgentProfile, Caller, NotificationText, Principal } from "../../contracts/caller.js";
import type { AgentCall } from "../../contracts/service.js";
import { replySize, WholeReply } from "../../protocol/arrived.js";
import { Fault, type FaultCode, toRpcError } from "../../protocol/errors.js";
import { ErrorCode, isObject, type JsonObject, type RpcError } from "../../protocol/jsonrpc.js";
import { isAtLeast } from "../../protocol/log-levels.js";
import {
  locate,
  placeOfProgressToken,
  type RequestMessage,
  type ResponseMessage,
  rewrite,
} from "../../protocol/message.js";
import { Meta } from "../../protocol/modern.js";
import type { ParamHeader } from "../../protocol/param-headers.js";
import { type BytesReply, editedReply, type Reply, responseOf, resultBytes } from "../../protocol/reply.js";
import { findAnchor } from "../../protocol/reply-id.js";
import type { Clock } from "../../runtime/clock.js";
import { NOWHERE } from "../../runtime/containers/table.js";
import type { HeldBytes, Holder } from "../../runtime/memory/held-bytes.js";
import { collect } from "../session/bounded-reply.js";
import { cutOff } from "../session/call.js";
import type { EndpointLimits } from "../session/limits.js";
import type { Outlet } from "./outlet.js";
import type { Parkable, ParkedCalls } from "./parked.js";
import type { Ongoing, Presence } from "./presence.js";
import { CallQuestions, isInputRequest, lackingFor } from "./questions.js";
import { errorOf, failureTexts, missingCapability, toModern, URL_ELICITATION_REQUIRED } from "./reply.js";
import { type RequestStates, requestDigest } from "./request-state.js";

/** What calls of one endpoint share. */
export interface CallContext {
  readonly limits: EndpointLimits;
  readonly held: HeldBytes;
  readonly clock: Clock;
  readonly parked: ParkedCalls<ModernCall>;
  readonly states: RequestStates;
  /** Replies of legacy servers go as these wrote them. */
  readonly asWritten?: true | undefined;
}

/** The only requests that `input_required` may answer. */
const IN_ROUNDS: ReadonlySet<string> = new Set(["tools/call", "prompts/get", "resources/read"]);

const ASKS = '"input_required"';
/** A question is short, and its state some KiB at most; what is longer is a result. */
const MAX_QUESTION_BYTES = 256 * 1024;

/** What never belongs to one request, or is no more in this era. */
const NOT_OF_A_CALL =
  /^notifications\/(?:[a-z]+\/list_changed|resources\/updated|cancelled|initialized|elicitation\/complete)$/;

const NO_HEADERS: readonly ParamHeader[] = [];

export class ModernCall implements AgentCall, Caller, Ongoing, Parkable {
  readonly era = "modern";
  readonly message: RequestMessage;
  onCancel: ((reason: string | undefined) => void) | undefined = undefined;
  readonly #context: CallContext;
  readonly #presence: Presence;
  #outlet: Outlet | undefined;
  #meta: Outlet["meta"];
  place = NOWHERE;
  #done = false;
  #questions: CallQuestions | undefined;
  #gathering: NodeJS.Timeout | undefined;
  #parkedId: string | undefined;
  #digest: string | undefined;
  /** What the tool's schema wants in headers. A retry is held to it too. */
  #declaredHeaders: readonly ParamHeader[] = NO_HEADERS;
  /** A reply that came while nobody waited for it here. */
  #held: Reply | Promise<Reply> | undefined;
  /** Counts it. */
  #holder: Holder | undefined;
  /** What the agent was not asked, for want of a capability. */
  #unasked: { readonly message: string; readonly lacking: JsonObject }[] | undefined;

  /** `message` is what the server gets: the outlet's own, but for what is between the agent and us. */
  constructor(context: CallContext, presence: Presence, outlet: Outlet, message: RequestMessage) {
    this.#context = context;
    this.#presence = presence;
    this.message = message;
    this.#meta = outlet.meta;
    presence.calls.add(this);
    this.message.held?.claim();
    this.#attach(outlet);
  }

  #attach(outlet: Outlet): void {
    this.#outlet = outlet;
    this.#meta = outlet.meta;
    outlet.onGone = (reason) => this.cancel(reason);
  }

  get caller(): Caller {
    return this;
  }

  get scope(): string | undefined {
    return this.#presence.scope;
  }

  get principal(): Principal {
    return this.#presence.principal;
  }

  get traceHeaders(): AgentCall["traceHeaders"] {
    return this.#outlet?.traceHeaders;
  }

  get principalId(): string {
    return this.#presence.principal.id;
  }

  get sessionKey(): string {
    return this.#presence.sessionKey;
  }

  get privateTo(): string | undefined {
    return this.#presence.privateTo;
  }

  get beforeSend(): Caller["beforeSend"] {
    return this.#outlet?.beforeSend;
  }

  get logLevel(): string | undefined {
    return this.#meta.logLevel;
  }

  get version(): string {
    return this.#meta.version;
  }

  get capabilities(): JsonObject {
    return this.#meta.capabilities;
  }

  get profile(): AgentProfile | undefined {
    return this.#presence.profiles.of(this.#meta.capabilities);
  }

  get clientInfo(): JsonObject {
    return this.#meta.clientInfo;
  }

  get digest(): string {
    this.#digest ??= requestDigest(this.message, this.scope);
    return this.#digest;
  }

  headerMismatch(declared: readonly ParamHeader[]): RpcError | undefined {
    this.#declaredHeaders = declared;
    return this.#outlet?.headerMismatch?.(declared);
  }

  setLogLevel(): void {}

  notify(notification: NotificationText): void {
    const { method, params, text } = notification;
    const outlet = this.#outlet;
    if (this.#done || outlet === undefined) return;
    if (method === "notifications/progress") this.#progress(outlet, notification);
    else if (method === "notifications/message") {
      const { logLevel } = this;
      if (logLevel !== undefined && isAtLeast(params?.["level"], logLevel)) outlet.notify(text);
    } else if (!NOT_OF_A_CALL.test(method)) outlet.notify(text);
  }

  /** A retry has a token of its own, or wants no progress. */
  #progress(outlet: Outlet, notification: NotificationText): void {
    if (outlet.message === this.message) outlet.notify(notification.text);
    else {
      const token = placeOfProgressToken(outlet.message);
      if (token === undefined) return;
      const json = outlet.message.text.slice(token.start, token.end);
      outlet.notify(rewrite(notification, [{ path: ["params", "progressToken"], json }]));
    }
  }

  ask(request: RequestMessage, signal: AbortSignal): Promise<ResponseMessage> {
    const { method } = request;
    const refused = this.#cannotAsk(request) ?? (signal.aborted ? takenBack(method) : undefined);
    if (refused !== undefined) return Promise.reject(refused);
    this.#questions ??= new CallQuestions();
    const questions = this.#questions;
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        questions.drop(key);
        reject(takenBack(method));
      };
      const settle = () => signal.removeEventListener("abort", onAbort);
      const key = questions.add(
        request,
        (response) => {
          settle();
          resolve(response);
        },
        (fault) => {
          settle();
          reject(fault);
        },
      );
      signal.addEventListener("abort", onAbort, { once: true });
      this.#gather();
    });
  }

  #cannotAsk(request: RequestMessage): Fault | undefined {
    const { method } = request;
    if (this.#done) return new Fault("no-caller", `${method} came after the call it belongs to was over.`);
    if (!isInputRequest(method) || !IN_ROUNDS.has(this.message.method)) {
      return new Fault("no-caller", `${method} cannot be asked during ${this.message.method}.`);
    }
    const lacking = lackingFor(request, this.capabilities);
    if (lacking !== undefined) {
      const names = JSON.stringify(lacking);
      const message = `The agent cannot be asked for ${method}: its request did not declare the capability ${names}.`;
      this.#unasked ??= [];
      this.#unasked.push({ message, lacking });
      return new Fault("no-caller", message);
    }
    if ((this.#questions?.size ?? 0) >= this.#context.limits.asksPerSession) {
      return new Fault("limit", "Too many requests of servers already wait for this agent's answer.");
    }
    this.#parkedId ??= this.#context.parked.enter(this);
    if (this.#parkedId !== undefined) return undefined;
    return new Fault("limit", "Too many calls already wait for answers of agents. Try again later.");
  }

  /** Sends the questions soon, so that what is asked together goes out together. */
  #gather(): void {
    if (this.#outlet === undefined) return;
    this.#gathering ??= setTimeout(() => this.#park(), this.#context.limits.gatherMs);
  }

  #park(): void {
    this.#gathering = undefined;
    const outlet = this.#outlet;
    const id = this.#parkedId;
    if (this.#done || outlet === undefined || id === undefined || this.#questions?.unshown !== true) return;
    this.#outlet = undefined;
    outlet.onGone = undefined;
    this.#context.parked.wait(id);
    outlet.reply(this.#inputRequired(this.#questions.show(), id));
  }

  #inputRequired(inputRequests: string, parked: string | undefined): Reply {
    const { clock, limits, states } = this.#context;
    const expires = clock.wall() + limits.parkedMs;
    const state = states.seal({ parked, principalId: this.principalId, digest: this.digest, expires });
    const meta = JSON.stringify({ [Meta.serverInfo]: this.#presence.serverInfo });
    const rest = `"requestState":${JSON.stringify(state)},"_meta":${meta}`;
    return {
      ...resultBytes(`{"resultType":"input_required","inputRequests":${inputRequests},${rest}}`),
      era: "modern",
    };
  }

  /** Takes a retry for the parked call; the error where it brings what cannot be used. */
  resume(outlet: Outlet): RpcError | undefined {
    const mismatch = outlet.headerMismatch?.(this.#declaredHeaders);
    if (mismatch !== undefined) return mismatch;
    const problem = this.#questions?.problem(outlet.message);
    if (problem !== undefined) return { code: ErrorCode.invalidParams, message: problem };
    if (this.#parkedId !== undefined) this.#context.parked.resume(this.#parkedId);
    this.#attach(outlet);
    if (this.#held !== undefined) this.#deliver(outlet, this.#held);
    else {
      this.#questions?.answer(outlet.message);
      if ((this.#questions?.size ?? 0) > 0) this.#gather();
    }
    return undefined;
  }

  reply(reply: Reply): void {
    if (this.#done) return;
    const modern = this.#toModern(reply);
    const outlet = this.#outlet;
    this.#end("closing", "The call is over.");
    if (outlet !== undefined) this.#deliver(outlet, modern);
    else if (modern.kind === "stream") this.#held = this.#kept(modern);
    else this.#held = modern.kind !== "bytes" || this.#keeps(replySize(modern)) ? modern : notKept();
  }

  #deliver(outlet: Outlet, reply: Reply | Promise<Reply>): void {
    this.#leave();
    outlet.onGone = undefined;
    this.#outlet = undefined;
    this.#held = undefined;
    if (reply instanceof Promise) void reply.then((kept) => outlet.reply(kept));
    else outlet.reply(reply);
  }

  /** Reads the reply to its end although nobody waits for it now: a server must not be held up by that. */
  async #kept(reply: Extract<Reply, { kind: "stream" }>): Promise<Reply> {
    const holder = this.#context.held.holder(this.principalId);
    const bytes = await collect(reply.open("0"), this.#context.limits.replayBytes, holder);
    const id = bytes === undefined ? undefined : findAnchor(bytes);
    if (bytes === undefined || id === undefined || !this.#keeps(bytes.length)) return notKept();
    return new WholeReply(bytes, id, "modern");
  }

  /** Counts a reply that waits for the retry. Once the retry is there, the reply goes out at once. */
  #keeps(bytes: number): boolean {
    if (this.#parkedId === undefined) return true;
    this.#holder = this.#context.held.holder(this.principalId);
    return this.#holder.hold(bytes);
  }

  #toModern(reply: Reply): Reply {
    const error = errorOf(reply);
    const isAsWritten = this.#context.asWritten === true && !("era" in reply && reply.era === "modern");
    if (error?.code === URL_ELICITATION_REQUIRED && !isAsWritten) return this.#openFirst(error);
    if (this.#unasked !== undefined) {
      const unasked = this.#failedForWantOf(this.#unasked, error, reply);
      const lacking = Object.assign({}, ...this.#unasked.map((one) => one.lacking)) as JsonObject;
      if (unasked !== undefined) return { kind: "error", error: missingCapability(unasked, lacking) };
    }
    if (isAsWritten) return reply;
    const { method, params } = this.message;
    const mayAsk = error === undefined && reply.kind === "bytes" && reply.era === "modern" && IN_ROUNDS.has(method);
    return toModern(
      mayAsk ? this.#bound(reply) : reply,
      { method, uri: params?.["uri"], serverInfo: this.#presence.serverInfo },
      error,
    );
  }

  /** A modern server's reply, with the state of its question sealed for this principal. All else is as it came. */
  #bound(reply: BytesReply): BytesReply {
    if (replySize(reply) > MAX_QUESTION_BYTES || !(reply.latin1 ?? reply.bytes).includes(ASKS)) return reply;
    const message = responseOf(reply);
    if (!isObject(message?.result) || message.result["resultType"] !== "input_required") return reply;
    const at = locate(message, ["result", "requestState"]);
    if (at === undefined || message.text[at.start] !== '"') return reply;
    const json = message.text.slice(at.start, at.end);
    const state = this.#context.states.sealServers({ principalId: this.principalId, json });
    return editedReply(reply, message, [{ start: at.start, end: at.end, text: JSON.stringify(state) }]);
  }

  /** The server failed because of a question that was not asked, where its answer says so in our words. */
  #failedForWantOf(
    unasked: readonly { readonly message: string }[],
    error: RpcError | undefined,
    reply: Reply,
  ): string | undefined {
    const texts = error === undefined ? failureTexts(reply) : [error.message];
    return unasked.find(({ message }) => texts?.some((text) => text.includes(message)))?.message;
  }

  /** The user has to open a page; then the call is made again, from the beginning. */
  #openFirst(error: RpcError): Reply {
    const data = isObject(error.data) ? error.data["elicitations"] : undefined;
    const wanted = Array.isArray(data) ? data.filter(isObject) : [];
    const { elicitation } = this.capabilities;
    if (!isObject(elicitation) || !isObject(elicitation["url"])) {
      return { kind: "error", error: missingCapability(error.message, { elicitation: { url: {} } }) };
    }
    if (wanted.length === 0 || !IN_ROUNDS.has(this.message.method)) {
      return { kind: "error", error: { code: ErrorCode.internal, message: error.message } };
    }
    const requests: JsonObject = {};
    for (const [index, { elicitationId: _, ...params }] of wanted.entries()) {
      requests[`page-${index + 1}`] = { method: "elicitation/create", params: { ...params, mode: "url" } };
    }
    return this.#inputRequired(JSON.stringify(requests), undefined);
  }

  /** The agent cancelled the request, by leaving or by saying so: it ends without a reply. */
  cancel(reason: string | undefined): void {
    const wasDone = this.#done;
    const { onCancel } = this;
    this.#end("cancelled", reason ?? "The agent took its request back.");
    this.#leave();
    this.#outlet = undefined;
    if (!wasDone) onCancel?.(reason);
  }

  expire(): void {
    this.cancel("The agent did not come back with the answers in time.");
  }

  close(fault: Fault): void {
    const outlet = this.#outlet;
    const done = this.#done;
    this.cancel(fault.message);
    if (outlet === undefined || done) return;
    outlet.onGone = undefined;
    const told = cutOff(this.message.method, fault);
    outlet.reply({ kind: "error", error: toRpcError(told), fault: told });
  }

  #end(code: FaultCode, message: string): void {
    if (this.#done) return;
    this.#done = true;
    this.onCancel = undefined;
    clearTimeout(this.#gathering);
    this.#presence.calls.delete(this);
    this.message.held?.drop();
    // A fault has a stack, which costs as much as the rest of a call: it is made where somebody is to be told.
    if (this.#questions !== undefined) this.#questions.rejectAll(new Fault(code, message));
  }

  #leave(): void {
    this.#holder?.release();
    if (this.#parkedId !== undefined) this.#context.parked.leave(this.#parkedId);
    this.#parkedId = undefined;
  }
}

function takenBack(method: string): Fault {
  return new Fault("cancelled", `${method} was taken back.`);
}

function notKept(): Reply {
  const message = "The reply came while the call waited for its retry, and is too large to be kept.";
  const fault = new Fault("limit", message);
  return { kind: "error", error: toRpcError(fault), fault };
}
