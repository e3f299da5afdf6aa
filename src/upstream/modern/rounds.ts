// A modern server's `input_required` for a legacy agent: its input requests become real requests to the agent, and the
// call is sent again with the answers, until the server is content. Modern agents do that themselves.

import { randomUUID } from "node:crypto";
import type { Caller } from "../../contracts/caller.js";
import type { OwnName } from "../../contracts/names.js";
import type { WayNotes } from "../../contracts/service.js";
import type { MessageKey, UpstreamCall } from "../../contracts/upstream.js";
import { Fault, type FaultOptions, toRpcError } from "../../protocol/errors.js";
import { ErrorCode, isObject, type JsonObject } from "../../protocol/jsonrpc.js";
import {
  type HopChanges,
  locate,
  makeNotification,
  type RequestMessage,
  type ResponseMessage,
  type Scans,
  toMessage,
} from "../../protocol/message.js";
import { faultReply, type Reply, responseOf } from "../../protocol/reply.js";
import { type MemberTexts, scanMembers } from "../../protocol/scan.js";
import { IndexedSet, NOWHERE } from "../../runtime/containers/table.js";
import { sleepUnref } from "../../runtime/wait.js";
import type { CallSender } from "../link/own-call.js";
import { toLegacyError } from "./translate.js";

/**
 * So many rounds may one call have. Dialogues have two or three; a server that never has enough would keep the agent
 * for ever.
 */
const MAX_ROUNDS = 10;
/** So many input requests may one round have; more come from a server gone wild. */
const MAX_INPUTS = 100;
/**
 * The wait before a call is repeated that the server wants no input for: it is busy, and asked again at growing
 * distances.
 */
const REPEAT_MS = 100;

/** The server has had the call, and asked something about it. */
const LEFT: FaultOptions = { wire: { left: true } };

const METHODS = new Set(["tools/call", "prompts/get", "resources/read"]);
const MARK = '"input_required"';

export class InputRounds {
  readonly #sender: CallSender;
  readonly #open = new IndexedSet<CallInRounds>();

  constructor(sender: CallSender) {
    this.#sender = sender;
  }

  /** Counts the calls that wait for their agent: nothing of them is in flight. */
  get waiting(): number {
    let count = 0;
    for (const round of this.#open.all()) if (!round.inFlight) count++;
    return count;
  }

  /** True where it is sent here. */
  send(call: UpstreamCall): boolean {
    const { caller } = call;
    if (caller === undefined || caller.era !== "legacy" || !METHODS.has(call.method)) return false;
    const round = new CallInRounds(call, caller, this.#sender, this.#open);
    this.#open.add(round);
    try {
      round.send();
    } catch (error) {
      this.#open.delete(round);
      throw error;
    }
    return true;
  }

  /** True where it was one of ours. */
  cancel(call: UpstreamCall, reason: string | undefined): boolean {
    const round = this.#open.all().find((one) => one.carries(call));
    round?.cancel(reason);
    return round !== undefined;
  }

  /** The connection is gone, and calls in flight have been answered: those that wait for an agent are too. */
  end(fault: Fault): void {
    for (const round of this.#open.all()) round.end(fault);
  }
}

/** One call, from its first request to its last reply. As an UpstreamCall it is whichever request is under way. */
class CallInRounds implements UpstreamCall {
  readonly caller: Caller;
  readonly #call: UpstreamCall;
  readonly #sender: CallSender;
  readonly #open: IndexedSet<CallInRounds>;
  place = NOWHERE;
  /** It is made when the agent is first asked: most calls end without. */
  #asking: AbortController | undefined;
  #rounds = 0;
  /** What the request's params carry beyond what the agent sent. */
  #added: MemberTexts = [];
  /** Elicitations that the agent gave no answer to, by their text: what ends the call if they are asked again. */
  #unanswered: Map<string, Reply> | undefined;
  /** Pages that the user was sent to, by the text of their elicitations, until the server goes on without them. */
  #pages: Map<string, Page> | undefined;
  #done: boolean = false;
  /** Nobody is asked for it any more. */
  #isTakenBack: boolean = false;
  inFlight: boolean = false;

  constructor(call: UpstreamCall, caller: Caller, sender: CallSender, open: IndexedSet<CallInRounds>) {
    this.#call = call;
    this.caller = caller;
    this.#sender = sender;
    this.#open = open;
  }

  carries(call: UpstreamCall): boolean {
    return this.#call === call;
  }

  get method(): string {
    return this.#call.method;
  }

  get subject(): OwnName | undefined {
    return this.#call.subject;
  }

  get params(): JsonObject | undefined {
    return this.#call.params;
  }

  get progressToken(): string | undefined {
    return this.#call.progressToken;
  }

  get notes(): WayNotes | undefined {
    return this.#call.notes;
  }

  /** With an answer of the agent's in it, it is another call. */
  get messageKey(): MessageKey | undefined {
    return this.#rounds === 0 ? this.#call.messageKey : undefined;
  }

  get isKept(): boolean {
    return this.#call.isKept === true;
  }

  get isOfTool(): boolean {
    return this.#call.isOfTool === true;
  }

  refusal(): Fault | undefined {
    return this.#call.refusal?.();
  }

  get wasSent(): boolean {
    return this.#rounds > 0 || this.#call.wasSent === true;
  }

  repeated(): void {
    this.#call.repeated?.();
  }

  /** The agent's call, where nothing of it has reached the server yet: it may be sent anew elsewhere. */
  release(): UpstreamCall | undefined {
    if (this.#rounds > 0) return undefined;
    this.#done = true;
    this.#open.delete(this);
    return this.#call;
  }

  send(): void {
    this.inFlight = true;
    this.#sender.send(this);
  }

  render(id: number, changes?: HopChanges): string {
    return this.#call.render(id, this.#added.length === 0 ? changes : { ...changes, params: this.#added });
  }

  reply(reply: Reply): void {
    this.inFlight = false;
    if (this.#done) return;
    const message = inputRequired(reply);
    if (message === undefined || this.#isTakenBack) this.#finish(reply);
    else {
      // The server goes on when its agent has answered: that is its time still.
      this.notes?.enter("server");
      void this.#next(message);
    }
  }

  cancel(reason: string | undefined): void {
    this.#isTakenBack = true;
    if (this.inFlight) this.#sender.cancel(this, reason);
    else this.end(new Fault("cancelled", reason ?? "Cancelled."));
  }

  end(fault: Fault): void {
    this.#asking?.abort(fault);
    this.#finish(faultReply(fault));
  }

  #finish(reply: Reply): void {
    if (this.#done) return;
    this.#done = true;
    this.#open.delete(this);
    if (reply.kind !== "error") this.#completePages();
    const marked: Reply = this.#rounds > 0 && reply.kind === "bytes" ? { ...reply, afterRounds: true } : reply;
    this.#call.reply(this.method === "resources/read" ? toLegacyError(marked) : marked);
  }

  async #next(message: ResponseMessage): Promise<void> {
    try {
      if (++this.#rounds > MAX_ROUNDS) {
        throw new Fault("limit", `The server asked for more input ${MAX_ROUNDS} times; the call was given up.`, LEFT);
      }
      const responses = await this.#gather(message);
      if (this.#done) return;
      if (responses === undefined) await sleepUnref(REPEAT_MS * 2 ** (this.#rounds - 1));
      if (this.#done) return;
      const added: [string, string][] = responses === undefined ? [] : [["inputResponses", responses]];
      const state = locate(message, ["result", "requestState"]);
      if (state !== undefined) added.push(["requestState", message.text.slice(state.start, state.end)]);
      this.#added = added;
      this.send();
    } catch (error) {
      this.#asking?.abort(error);
      this.#finish(
        faultReply(error instanceof Fault ? error : new Fault("protocol", toRpcError(error).message, { cause: error })),
      );
    }
  }

  /** JSON text of all answers; undefined where nothing was asked. */
  async #gather(message: ResponseMessage): Promise<string | undefined> {
    const at = locate(message, ["result", "inputRequests"]);
    if (at === undefined || message.text.startsWith("null", at.start)) return undefined;
    const members = scanMembers(message.text, at.start);
    if (members.length === 0) return undefined;
    const requests = (message.result as { inputRequests: unknown }).inputRequests;
    if (members.length > MAX_INPUTS) {
      throw new Fault(
        "limit",
        `The server asked for ${members.length} inputs at once; ${MAX_INPUTS} is the limit.`,
        LEFT,
      );
    }
    const scans: Scans = [];
    const inputs = members.map(({ key }) =>
      toInput(message, key, isObject(requests) ? requests[key] : undefined, scans),
    );
    const again = inputs.find(({ paramsJson }) => this.#unanswered?.has(paramsJson) === true);
    const failed = again === undefined ? undefined : this.#unanswered?.get(again.paramsJson);
    if (failed !== undefined) {
      this.#finish(failed);
      return undefined;
    }
    this.#completePages(new Set(inputs.map(({ paramsJson }) => paramsJson)));
    const answers = await Promise.all(
      inputs.map(async (input) => `${JSON.stringify(input.key)}:${await this.#answer(input)}`),
    );
    return `{${answers.join(",")}}`;
  }

  /** The agent's result as JSON text. */
  async #answer(input: Input): Promise<string> {
    const { method, paramsJson } = input;
    const page = input.isPage ? this.#page(paramsJson) : undefined;
    this.#asking ??= new AbortController();
    const { signal } = this.#asking;
    try {
      const response = await this.caller.ask(toQuestion(input, page?.id), signal);
      const at = locate(response, ["result"]);
      if (response.error === undefined && at !== undefined) {
        if (page !== undefined && isAccept(response.result)) page.wasOpened = true;
        return response.text.slice(at.start, at.end);
      }
      if (method === "elicitation/create") return this.#unansweredBy(paramsJson, errorReply(response));
      const why = response.error === undefined ? "" : `: ${response.error.message} (${response.error.code})`;
      throw new Fault("no-caller", `The agent did not answer ${method}${why}.`);
    } catch (error) {
      if (signal.aborted) throw error;
      // That an agent does not answer is no fault of the server, whatever it was that kept the agent from it.
      if (method !== "elicitation/create") throw new Fault("no-caller", toRpcError(error).message, { cause: error });
      const cannot = error instanceof Fault && error.code === "no-caller";
      return cannot ? this.#unansweredBy(paramsJson, faultReply(error)) : CANCELLED;
    }
  }

  /** Nobody decided anything: to the server that is neither a yes nor a no. */
  #unansweredBy(paramsJson: string, reply: Reply): string {
    this.#unanswered ??= new Map();
    this.#unanswered.set(paramsJson, reply);
    return CANCELLED;
  }

  #page(paramsJson: string): Page {
    this.#pages ??= new Map();
    const page = this.#pages.get(paramsJson) ?? { id: randomUUID(), wasOpened: false };
    this.#pages.set(paramsJson, page);
    return page;
  }

  /** The legacy era is told when a page has served its purpose: the server goes on, and does not ask for it again. */
  #completePages(askedAgain?: ReadonlySet<string>): void {
    if (this.#pages === undefined) return;
    for (const [paramsJson, { id, wasOpened }] of this.#pages) {
      if (askedAgain?.has(paramsJson) === true) continue;
      this.#pages.delete(paramsJson);
      if (!wasOpened) continue;
      const params = { elicitationId: id };
      const method = "notifications/elicitation/complete";
      this.caller.notify(makeNotification(method, params));
    }
  }
}

/**
 * The agent's call, to be sent again; undefined where an earlier round has reached the server, and it is answered here.
 */
export function callToRepeat(call: UpstreamCall, fault: Fault): UpstreamCall | undefined {
  if (!(call instanceof CallInRounds)) return call;
  const own = call.release();
  if (own === undefined) call.reply(faultReply(fault));
  return own;
}

const CANCELLED = '{"action":"cancel"}';
const QUESTIONS = new Set(["elicitation/create", "sampling/createMessage", "roots/list"]);

/** One of a server's input requests. */
interface Input {
  readonly key: string;
  readonly method: string;
  readonly params: JsonObject;
  /** As the server wrote them. */
  readonly paramsJson: string;
  /** It sends the user to a page, and leaves the page's name to us. */
  readonly isPage: boolean;
}

/** A page that the user is sent to. */
interface Page {
  readonly id: string;
  wasOpened: boolean;
}

/** Throws a Fault where two members on the way have one name: which of them was read is not known. */
function toInput(message: ResponseMessage, key: string, value: unknown, scans: Scans): Input {
  const at = locate(message, ["result", "inputRequests", key, "params"], scans);
  const method = isObject(value) ? value["method"] : undefined;
  if (typeof method !== "string" || !QUESTIONS.has(method)) {
    throw new Fault("protocol", `The server asked for an input that is not known: ${JSON.stringify(method)}.`);
  }
  const given = (value as JsonObject)["params"];
  const params = isObject(given) ? given : {};
  const paramsJson = isObject(given) && at !== undefined ? message.text.slice(at.start, at.end) : "{}";
  const isPage = params["mode"] === "url" && params["elicitationId"] === undefined;
  return { key, method, params, paramsJson, isPage };
}

/** An input request as the request that a legacy agent knows. That era names pages; the modern one has no such name. */
function toQuestion({ key, method, params, paramsJson }: Input, pageId: string | undefined): RequestMessage {
  const rest = paramsJson.slice(paramsJson.indexOf("{") + 1);
  const named = pageId === undefined ? paramsJson : `{"elicitationId":"${pageId}",${rest}`;
  const text = `{"jsonrpc":"2.0","id":${JSON.stringify(key)},"method":"${method}","params":${named}}`;
  const asked = pageId === undefined ? params : { ...params, elicitationId: pageId };
  return toMessage(text, { jsonrpc: "2.0", id: key, method, params: asked }) as RequestMessage;
}

function isAccept(result: unknown): boolean {
  return isObject(result) && result["action"] === "accept";
}

/** The agent's own error, as the answer to its call. */
function errorReply({ error }: ResponseMessage): Reply {
  const none = { code: ErrorCode.invalidRequest, message: "The agent answered elicitation/create with no result." };
  return { kind: "error", error: error ?? none };
}

/** The message, where the reply asks for input. Only such replies are parsed. */
function inputRequired(reply: Reply): ResponseMessage | undefined {
  if (reply.kind !== "bytes" || !reply.bytes.includes(MARK)) return undefined;
  const message = responseOf(reply);
  return isObject(message?.result) && message.result["resultType"] === "input_required" ? message : undefined;
}
