// A write on its way to its server as a call: with its agent, while that waits for the result, or without.

import type { AgentProfile, Caller, NotificationText, Principal, SubscribedUris } from "../contracts/caller.js";
import type { AgentCall, CallNotes } from "../contracts/service.js";
import type { EarlyTrial, MessageKey } from "../contracts/upstream.js";
import { hashText } from "../protocol/canonical.js";
import { Fault } from "../protocol/errors.js";
import type { JsonObject } from "../protocol/jsonrpc.js";
import type { RequestMessage, ResponseMessage } from "../protocol/message.js";
import type { Era } from "../protocol/modern.js";
import type { Reply } from "../protocol/reply.js";
import type { KeptResult } from "./journal.js";
import type { KeptWrite } from "./lanes/lane.js";
import { ANSWER_MS, MESSAGE_LIFE_MS } from "./lanes/limits.js";
import type { WriteFacts, WriteMessage } from "./lanes/write.js";

/** What is known of a write while somebody waits for it, or it is on its way. */
export interface Flight {
  readonly write: KeptWrite;
  readonly waiters: Waiter[];
  /** As it was taken; it is read from disk where nobody waits any more. */
  message: RequestMessage | undefined;
  delivery: DeliveryCall | undefined;
  /** That it is being sent is being written down: its delivery follows. */
  isMarking: boolean;
  /** What came of it, until whoever waits has it. */
  reply: Reply | undefined;
  kept: KeptResult | undefined;
  /** When the disk must have taken it; undefined once it has. */
  commitByMs: number | undefined;
  /** As they were when it was taken, unpacked; undefined where it was taken before. */
  facts: WriteFacts | undefined;
}

export function newFlight(write: KeptWrite): Flight {
  return {
    write,
    waiters: [],
    message: undefined,
    delivery: undefined,
    isMarking: false,
    reply: undefined,
    kept: undefined,
    commitByMs: undefined,
    facts: undefined,
  };
}

/** An agent that waits for what comes of a write. */
export class Waiter {
  readonly call: AgentCall;
  readonly #now: () => number;
  /** It gets a receipt then. */
  #dueMs: number;
  /** Questions that the agent is being asked: its time stands still. */
  #asked = 0;
  #leftMs = 0;
  isAnswered = false;

  constructor(call: AgentCall, now: () => number) {
    this.call = call;
    this.#now = now;
    this.#dueMs = now() + ANSWER_MS;
  }

  isDue(nowMs: number): boolean {
    return this.#asked === 0 && nowMs >= this.#dueMs;
  }

  /** The agent has heard of it, or begins to wait: its time begins anew. */
  renew(): void {
    this.#dueMs = this.#now() + ANSWER_MS;
    this.#leftMs = ANSWER_MS;
  }

  pause(): void {
    if (this.#asked++ === 0) this.#leftMs = Math.max(0, this.#dueMs - this.#now());
  }

  resume(): void {
    if (--this.#asked === 0) this.#dueMs = this.#now() + this.#leftMs;
  }

  reply(reply: Reply): void {
    if (this.isAnswered) return;
    this.isAnswered = true;
    this.call.onCancel = undefined;
    this.call.reply(reply);
  }
}

/** The agent's own way back, for as long as it waits. */
export class WaitingCaller implements Caller {
  readonly #waiter: Waiter;
  readonly #caller: Caller;
  readonly principal: Principal;
  readonly sessionKey: string;
  readonly era: Era;
  readonly version: string;
  readonly capabilities: JsonObject;
  readonly profile: AgentProfile | undefined;
  readonly clientInfo: JsonObject;

  constructor(waiter: Waiter) {
    const { caller } = waiter.call;
    this.#waiter = waiter;
    this.#caller = caller;
    this.principal = caller.principal;
    this.sessionKey = caller.sessionKey;
    this.era = caller.era;
    this.version = caller.version;
    this.capabilities = caller.capabilities;
    this.profile = caller.profile;
    this.clientInfo = caller.clientInfo;
  }

  get logLevel(): string | undefined {
    return this.#caller.logLevel;
  }

  get subscribed(): SubscribedUris | undefined {
    return this.#caller.subscribed;
  }

  get hearsNothing(): true {
    return this.#caller.hearsNothing as true;
  }

  get takesAnyOutput(): true | undefined {
    return this.#caller.takesAnyOutput;
  }

  get privateTo(): string | undefined {
    return this.#caller.privateTo;
  }

  setLogLevel(level: string): void {
    this.#caller.setLogLevel(level);
  }

  notify(notification: NotificationText): void {
    if (this.#waiter.isAnswered) return;
    if (notification.method === "notifications/progress") this.#waiter.renew();
    this.#caller.notify(notification);
  }

  async ask(request: RequestMessage, signal: AbortSignal): Promise<ResponseMessage> {
    if (this.#waiter.isAnswered) throw noAgent(request.method);
    this.#waiter.pause();
    try {
      return await this.#caller.ask(request, signal);
    } finally {
      this.#waiter.resume();
    }
  }
}

/** The agent of a write that is delivered later: nobody hears, and nobody can be asked. */
export class AbsentCaller implements Caller {
  readonly principal: Principal;
  readonly sessionKey: string;
  readonly era: Era;
  readonly version: string;
  readonly capabilities: JsonObject = {};
  readonly clientInfo: JsonObject = { name: "toolway-outbox", version: "1" };
  readonly logLevel = undefined;
  readonly hearsNothing = true;

  constructor({ principal, id, era, version }: Pick<WriteFacts, "principal" | "id" | "era" | "version">) {
    this.principal = principal;
    this.sessionKey = `outbox ${id}`;
    this.era = era;
    this.version = version;
  }

  setLogLevel(): void {}

  notify(): void {}

  ask({ method }: RequestMessage): Promise<ResponseMessage> {
    return Promise.reject(noAgent(method));
  }
}

function noAgent(method: string): Fault {
  return new Fault("no-caller", `The server asked for ${method}, and the agent of this call does not wait any more.`);
}

/** One try to deliver a write, which is answered once. */
export class DeliveryCall implements AgentCall {
  readonly caller: Caller;
  readonly message: RequestMessage;
  readonly scope = undefined;
  readonly isKept = true;
  readonly notes: CallNotes | undefined;
  readonly messageKey: MessageKey | undefined;
  readonly earlyTrial: EarlyTrial;
  onCancel: ((reason: string | undefined) => void) | undefined = undefined;
  #onReply: ((reply: Reply) => void) | undefined;

  constructor(
    caller: Caller,
    message: RequestMessage,
    notes: CallNotes | undefined,
    messageKey: MessageKey | undefined,
    /** To make it twice does no harm. */
    isRepeatable: boolean,
    onReply: (reply: Reply) => void,
  ) {
    this.caller = caller;
    this.message = message;
    this.notes = notes;
    this.messageKey = messageKey;
    this.earlyTrial = isRepeatable ? "always" : "unreached";
    this.#onReply = onReply;
  }

  /** Its agent does not want it any more. */
  takeBack(reason: string | undefined): void {
    if (this.messageKey !== undefined) this.messageKey.isTakenBack = true;
    this.onCancel?.(reason);
  }

  reply(reply: Reply): void {
    const onReply = this.#onReply;
    this.#onReply = undefined;
    onReply?.(reply);
  }
}

/** Whom the message of a write is for that is about to be sent: undefined where the id of a message is not its key. */
export function messageFor(write: KeptWrite, journal: string | undefined, nowMs: number): WriteMessage | undefined {
  if (write.facts.terms.key?.in !== "message" || journal === undefined) return undefined;
  return { journal, untilAgeMs: nowMs - write.bornMs + MESSAGE_LIFE_MS };
}

/** The same for each repeat, also by another life of this process; another one where it begins anew. */
export function messageKeyOf(
  { facts, message, round, bornMs, maybe }: KeptWrite,
  nowMs: number,
): MessageKey | undefined {
  if (message === undefined) return undefined;
  const hash = hashText(`${facts.id} ${round}`).replaceAll("-", "_");
  const number = Buffer.from(hash, "base64url").readUIntBE(0, 6) + 1;
  return {
    id: `${hash}-${number}`,
    number,
    digest: facts.argumentsHash,
    journal: message.journal,
    leftMs: Math.max(1, bornMs + message.untilAgeMs - nowMs),
    isRepeat: maybe,
    isTakenBack: false,
  };
}
