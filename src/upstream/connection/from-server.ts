// What a server says that is no reply (progress, other notifications, requests), passed to the agent that it concerns:
// which agent that is, and the requests that wait for an agent's answer.

import type { Caller } from "../../contracts/caller.js";
import { weightOfText } from "../../protocol/bytes/weight.js";
import { Fault, toRpcError } from "../../protocol/errors.js";
import { ErrorCode, type RpcError, type RpcId } from "../../protocol/jsonrpc.js";
import {
  edited,
  locate,
  type NotificationMessage,
  type RequestMessage,
  type ResponseMessage,
  rewrite,
  withValueAt,
} from "../../protocol/message.js";
import { RELATED_TASK, relatedTask } from "../../protocol/modern.js";
import { BODY_COST, type Holder, NO_ROOM, ownHolder } from "../../runtime/memory/held-bytes.js";
import type { Ticket } from "../link/link.js";
import type { ModernSide } from "../modern/side.js";
import type { AbandonedCalls, PendingCall, PendingCalls } from "./in-flight.js";

/** So many questions of one server may be open. More come from a server gone wild, not from one that needs answers. */
const MAX_OPEN_QUESTIONS = 100;

const PROGRESS_TOKEN = ["params", "_meta", "progressToken"];
/** In a notification of progress. */
const TOLD_TOKEN = ["params", "progressToken"];
const RELATED = ["_meta", RELATED_TASK, "taskId"];

/** Finds whose call caused a message of a server. */
export class CallerLookup {
  readonly #inFlight: PendingCalls;
  readonly #abandoned: AbandonedCalls;
  /** The one agent of a connection that is not shared. */
  readonly #owner: Caller | undefined;

  constructor(inFlight: PendingCalls, abandoned: AbandonedCalls, owner: Caller | undefined) {
    this.#inFlight = inFlight;
    this.#abandoned = abandoned;
    this.#owner = owner;
  }

  /**
   * The caller of the exchange that the message came on, and then of no other, even if that call has ended. On a pipe
   * it is the one session that is calling; calls that nobody waits for any more count too.
   */
  callerOf(ticket: Ticket | undefined): Caller | undefined {
    if (ticket !== undefined) return this.#inFlight.get(ticket.id)?.call.caller ?? this.#owner;
    const found = this.#newest();
    if (this.#owner !== undefined) return found ?? this.#owner;
    return this.#abandoned.hasOtherThan(found?.sessionKey) ? undefined : found;
  }

  /**
   * The calls that may have made the server ask this caller: their time stands still until it has its answer. Over HTTP
   * the exchange says which one it is. On a pipe nothing does, so it may be any call that the session has in flight;
   * one that it makes later is none of them.
   */
  waitingFor(ticket: Ticket | undefined, caller: Caller): readonly PendingCall[] {
    if (ticket === undefined) return this.#inFlight.ofSession(caller.sessionKey);
    const pending = this.#inFlight.get(ticket.id);
    return pending === undefined ? [] : [pending];
  }

  /** All who may be meant by a message that names its task, the likeliest first. */
  candidates(ticket: Ticket | undefined): Caller[] {
    const likeliest = this.callerOf(ticket);
    const callers = likeliest === undefined ? [] : [likeliest];
    if (ticket !== undefined) return callers;
    const calling = [...this.#inFlight.values()].flatMap(({ call }) =>
      call.caller === undefined ? [] : [call.caller],
    );
    return [...callers, ...calling.reverse()];
  }

  /** The caller of the newest call, the likeliest to be at work; undefined while several sessions are calling. */
  #newest(): Caller | undefined {
    let found: Caller | undefined;
    let newest = 0;
    for (const { id, call } of this.#inFlight.values()) {
      if (call.caller === undefined) continue;
      if (found !== undefined && found.sessionKey !== call.caller.sessionKey) return undefined;
      if (id < newest) continue;
      newest = id;
      found = call.caller;
    }
    return found;
  }
}

interface Question {
  readonly request: RequestMessage;
  readonly caller: Caller;
  /** The calls whose time stands still meanwhile. */
  readonly calls: readonly PendingCall[];
  readonly abort: AbortController;
  /** The progress token that the agent sees, and the server's own, as JSON. */
  readonly token: { readonly ours: string; readonly json: string } | undefined;
  /** The server's own id of the task that it is about, as JSON. */
  readonly task: string | undefined;
  readonly holder: Holder;
}

/** Servers choose their tokens without knowing of each other; an agent must see different ones. */
let tokens = 0;

/**
 * A server's requests to agents (sampling, elicitation, roots) while they wait for their answer. How long that may take
 * is the caller's: `ask` ends by itself.
 */
class Questions {
  readonly #open = new Map<RpcId, Question>();
  readonly #inFlight: PendingCalls;
  readonly #send: (text: string) => void;
  readonly #now: () => number;
  readonly #newHolder: () => Holder;

  constructor({ inFlight, send, now, newHolder = ownHolder }: QuestionsOptions) {
    this.#inFlight = inFlight;
    this.#send = send;
    this.#now = now;
    this.#newHolder = newHolder;
  }

  /**
   * Asks, and sends the answer (or why there is none) to the server under the server's own id. The time of `calls`
   * stands still meanwhile. `shown`: the request as the agent is to see it.
   */
  ask(request: RequestMessage, caller: Caller, calls: readonly PendingCall[], shown: RequestMessage = request): void {
    const { id } = request;
    if (this.#open.size >= MAX_OPEN_QUESTIONS || this.#open.has(id)) {
      const message = this.#open.has(id) ? `Request id ${id} is in use.` : "Too many open requests to agents.";
      this.refuse(request, { code: ErrorCode.invalidRequest, message });
      return;
    }
    // Its text, what was parsed of it, and the text for the agent, for as long as a person takes to answer; and its many small values.
    const holder = this.#newHolder();
    if (!holder.hold(request.text.length * BODY_COST + weightOfText(request.text))) {
      this.refuse(request, toRpcError(new Fault("limit", `The request was not passed on: ${NO_ROOM}`)));
      return;
    }
    const abort = new AbortController();
    const at = locate(request, PROGRESS_TOKEN);
    const json = at === undefined ? undefined : request.text.slice(at.start, at.end);
    const token = json === undefined ? undefined : { ours: `question-${++tokens}`, json };
    const related = relatedTask(request.params);
    const task = related === undefined ? undefined : JSON.stringify(related);
    const question: Question = { request, caller, calls, abort, token, task, holder };
    this.#open.set(id, question);
    for (const call of calls) {
      call.questions++;
      call.asked = true;
    }
    caller.ask(token === undefined ? shown : withToken(shown, token.ours), abort.signal).then(
      (response) => this.#answer(question, response),
      (error: unknown) => {
        // A request that the server took back has no answer.
        if (this.#close(question) && !abort.signal.aborted) this.refuse(request, unanswered(error));
      },
    );
  }

  refuse(request: RequestMessage, error: RpcError): void {
    this.#send(`{"jsonrpc":"2.0","id":${idText(request)},"error":${JSON.stringify(error)}}`);
  }

  /** The server no longer wants the answer. */
  cancel(id: unknown): void {
    const question = typeof id === "string" || typeof id === "number" ? this.#open.get(id) : undefined;
    question?.abort.abort();
  }

  /** Progress that an agent reports on a question of ours is passed on; false where it is none of ours. */
  progress(sessionKey: string, message: NotificationMessage): boolean {
    const reported = message.params?.["progressToken"];
    for (const { caller, token, task } of this.#open.values()) {
      if (token === undefined || token.ours !== reported || caller.sessionKey !== sessionKey) continue;
      try {
        const changes = [{ path: ["params", "progressToken"], json: token.json }];
        if (task !== undefined) changes.push({ path: ["params", ...RELATED], json: task });
        this.#send(rewrite(message, changes));
      } catch {
        // Two tokens in one notification: there is nobody to tell, and nothing is lost.
      }
      return true;
    }
    return false;
  }

  /**
   * A call was cancelled or timed out. What was asked for it, and for none that is still in flight, is taken back from
   * the agent, and the server is told.
   */
  callEnded(call: PendingCall): void {
    for (const question of [...this.#open.values()]) {
      const { calls } = question;
      if (!calls.includes(call) || calls.some((one) => this.#inFlight.get(one.id) === one)) continue;
      this.#close(question);
      question.abort.abort();
      const message = `The call that ${question.request.method} was about has ended without an answer of the agent.`;
      this.refuse(question.request, toRpcError(new Fault("cancelled", message)));
    }
  }

  cancelAll(): void {
    for (const question of [...this.#open.values()]) {
      this.#close(question);
      question.abort.abort();
    }
  }

  #answer(question: Question, response: ResponseMessage): void {
    if (!this.#close(question)) return;
    const changes = [{ path: ["id"], json: idText(question.request) }];
    if (question.task !== undefined) changes.push({ path: ["result", ...RELATED], json: question.task });
    this.#send(rewrite(response, changes));
  }

  /** The time of its calls goes on. False where it was closed before. */
  #close(question: Question): boolean {
    const { id } = question.request;
    if (this.#open.get(id) !== question) return false;
    this.#open.delete(id);
    question.holder.release();
    const nowMs = this.#now();
    for (const call of question.calls) if (--call.questions === 0) call.extend(nowMs);
    return true;
  }
}

function withToken(request: RequestMessage, token: string): RequestMessage {
  const at = locate(request, PROGRESS_TOKEN);
  if (at === undefined) return request;
  const params = withValueAt(request.params ?? {}, PROGRESS_TOKEN.slice(1), token);
  return edited(request, [{ start: at.start, end: at.end, text: JSON.stringify(token) }], params);
}

/** For a client that cannot do what it is asked, the protocol has a code; what else went wrong has one of ours. */
function unanswered(error: unknown): RpcError {
  const told = toRpcError(error);
  return error instanceof Fault && error.code === "no-caller" ? { ...told, code: ErrorCode.methodNotFound } : told;
}

/** The id as the server wrote it: 1.0 stays 1.0. */
function idText(request: RequestMessage): string {
  const at = locate(request, ["id"]);
  return at === undefined ? JSON.stringify(request.id) : request.text.slice(at.start, at.end);
}

/** As `UpstreamEvents.aboutTask`, of one server. */
export type AboutTask = <M extends RequestMessage | NotificationMessage>(message: M, caller: Caller) => M | undefined;

/** The connection that the messages came on. */
export interface ServerMessagesOptions {
  readonly server: string;
  readonly inFlight: PendingCalls;
  readonly callers: CallerLookup;
  readonly now: () => number;
  /** Sends a message to the server. */
  readonly send: (text: string) => void;
  /** A notification that is not progress; `caller` is undefined where nobody can tell whose it is. */
  readonly onNotification: (message: NotificationMessage, caller: Caller | undefined) => void;
  readonly aboutTask: AboutTask;
  /** For what is held of the server's requests. Undefined where nothing else is counted. */
  readonly newHolder?: (() => Holder) | undefined;
}

type QuestionsOptions = Pick<ServerMessagesOptions, "inFlight" | "send" | "now" | "newHolder">;

/** Passes on the server's notifications and requests. */
export class ServerMessages {
  readonly #options: ServerMessagesOptions;
  readonly questions: Questions;

  constructor(options: ServerMessagesOptions) {
    this.#options = options;
    this.questions = new Questions(options);
  }

  /** `modern` is given where the server is a modern one. */
  notified(message: NotificationMessage, ticket: Ticket | undefined, modern: ModernSide | undefined): void {
    const { method, params } = message;
    if (method === "notifications/progress") {
      this.#progressed(message);
    } else if (modern !== undefined) {
      const passed = modern.notified(message);
      // What came by listening belongs to no call.
      if (passed === message) this.#toCaller(message, ticket);
      else if (passed !== undefined) this.#options.onNotification(passed, undefined);
    } else if (method === "notifications/cancelled") {
      this.questions.cancel(params?.["requestId"]);
    } else {
      this.#toCaller(message, ticket);
    }
  }

  /** A request of a legacy server; modern ones send none. */
  asked(request: RequestMessage, ticket: Ticket | undefined): void {
    if (request.method === "ping") {
      this.#options.send(`{"jsonrpc":"2.0","id":${idText(request)},"result":{}}`);
      return;
    }
    if (relatedTask(request.params) !== undefined) {
      this.#askedForTask(request, ticket);
      return;
    }
    const caller = this.#options.callers.callerOf(ticket);
    if (caller === undefined) this.#refuse(request);
    else this.questions.ask(request, caller, this.#options.callers.waitingFor(ticket, caller));
  }

  /** The owner of the task is asked, where it has a call under way; the task says who that is. */
  #askedForTask(request: RequestMessage, ticket: Ticket | undefined): void {
    for (const caller of this.#options.callers.candidates(ticket)) {
      const shown = this.#options.aboutTask(request, caller);
      if (shown === undefined) continue;
      this.questions.ask(request, caller, this.#options.callers.waitingFor(ticket, caller), shown);
      return;
    }
    this.#refuse(request);
  }

  #refuse(request: RequestMessage): void {
    const why = `Toolway cannot tell which agent ${request.method} is for: it came outside any call, or while several agents were calling.`;
    // An empty list would be believed: stock servers keep it, and do not ask again when an agent is there that has roots.
    const instead =
      request.method === "roots/list" ? ', or "declare": ["sampling", "elicitation"] so that it does not ask' : "";
    const hint = `Set "isolation": "session" for server "${this.#options.server}" to give each agent a connection of its own${instead}.`;
    this.questions.refuse(request, toRpcError(new Fault("no-caller", `${why} ${hint}`)));
  }

  #toCaller(message: NotificationMessage, ticket: Ticket | undefined): void {
    const caller = this.#options.callers.callerOf(ticket);
    this.#options.onNotification(message, caller);
    if (caller === undefined && message.method === "notifications/message") this.#logToModern(message);
  }

  /**
   * A log message while several agents are calling. It goes to those who set a level for their session; modern agents
   * have none, and say with each call what they want to hear.
   */
  #logToModern(message: NotificationMessage): void {
    const told = new Set<string>();
    for (const { call } of this.#options.inFlight.values()) {
      const { caller } = call;
      if (caller?.era !== "modern" || caller.logLevel === undefined || told.has(caller.sessionKey)) continue;
      told.add(caller.sessionKey);
      caller.notify(message);
    }
  }

  #progressed(message: NotificationMessage): void {
    const token = message.params?.["progressToken"];
    const pending = this.#options.inFlight.get(typeof token === "string" ? Number(token) : (token as number));
    if (pending === undefined) return;
    const { progressToken, caller } = pending.call;
    if (progressToken === undefined || caller === undefined) return;
    pending.extend(this.#options.now());
    const isOfTask = relatedTask(message.params) !== undefined;
    const shown = isOfTask ? this.#options.aboutTask(message, caller) : message;
    if (shown === undefined) return;
    const at = locate(shown, TOLD_TOKEN);
    if (at === undefined) return;
    caller.notify(edited(shown, [{ start: at.start, end: at.end, text: progressToken }], shown.params ?? {}));
  }
}
