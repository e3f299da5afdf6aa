// One message that a sharer holds, from its arrival until its reply is with the broker: under which lease, whether its
// tool was started, and who is told what came of it. When to extend, cancel or give up is the sharer's to say.

import type { CallStart, Principal } from "../../contracts/caller.js";
import type { MailboxAnswer, MailboxCall } from "../../contracts/mailbox.js";
import { Fault, OUTCOME_UNKNOWN } from "../../protocol/errors.js";
import { BrokerLost } from "../peer/broker-error.js";
import type { BrokerLine, SentMessage } from "../peer/line.js";
import type { ReceivedMessage } from "../wire/broker-frames.js";
import { type Journal, type JournalCall, JournalFull } from "./journal.js";
import { LARGE_BYTES } from "./limits.js";

/** What calls of one sharer share. */
export interface CallKeeper {
  readonly journal: Journal;
  /** Rejects with a Fault where the call may not start: its lease is gone, or a person says no. */
  permit(call: SharedCall, start: CallStart): Promise<void>;
  /** Its reply is with the broker, or nobody waits for it. */
  callEnded(call: SharedCall): void;
  /** The broker did not take a reply. */
  refused(call: SharedCall, why: string): void;
  /** A reply came that nobody waited for any more. */
  cameLate(call: SharedCall): void;
}

export interface SharedCallOptions {
  readonly keeper: CallKeeper;
  readonly key: string;
  /** The id of the token of whoever sent it. */
  readonly owner: string;
  readonly digest: string;
  readonly principal: Principal;
  readonly message: ReceivedMessage;
  /** On the sharer's clock, and on the journal's. */
  readonly deadlineMs: number;
  readonly endMs: number;
}

export class SharedCall implements MailboxCall, JournalCall {
  readonly key: string;
  readonly owner: string;
  readonly digest: string;
  readonly principal: Principal;
  readonly body: string;
  readonly deadlineMs: number;
  readonly endMs: number;
  onCancel: ((reason: string | undefined) => void) | undefined = undefined;
  /** Where its reply goes; undefined while its message is with nobody, or with somebody else. */
  line: BrokerLine | undefined;
  name: SentMessage;
  /** When the broker last said that the message is ours. */
  confirmedMs: number;
  readonly #keeper: CallKeeper;
  #isStarted: boolean = false;
  /** It was begun, and nothing was written down of that. */
  #isRepeatable: boolean = false;
  /** What can be said of it where its reply does not reach its sender. */
  #outcome: "unknown" | "not run" = "not run";
  #isOver: boolean = false;
  #isWanted: boolean = true;
  #isTakenBack: boolean = false;
  /** Made when the call is about to start: only then somebody may have to be asked. */
  #unwanted: AbortController | undefined;
  /** Its message came again since its reply was last given to the broker. */
  #isAskedAgain: boolean = false;

  constructor({ keeper, key, owner, digest, principal, message, deadlineMs, endMs }: SharedCallOptions, nowMs: number) {
    this.#keeper = keeper;
    this.key = key;
    this.owner = owner;
    this.digest = digest;
    this.principal = principal;
    this.body = message.body;
    this.deadlineMs = deadlineMs;
    this.endMs = endMs;
    this.name = { id: message.id, from: message.from };
    this.confirmedMs = nowMs;
  }

  /** Its tool has been sent the call, or is about to be. */
  get isStarted(): boolean {
    return this.#isStarted;
  }

  /** Aborts when nobody waits for the call any more. */
  get unwanted(): AbortSignal {
    this.#unwanted ??= new AbortController();
    if (!this.#isWanted) this.#unwanted.abort();
    return this.#unwanted.signal;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Made from the request's, so that a reply that is sent twice is known for the same one. */
  get replyId(): string {
    return `r-${this.key}`;
  }

  async begin(start: CallStart): Promise<void> {
    if (this.#isStarted) return;
    this.#demandWanted();
    await this.#keeper.permit(this, start);
    this.#demandWanted();
    if (start.mayRepeat) {
      this.#outcome = "unknown";
      this.#isRepeatable = true;
      this.line?.repeatable(this.name);
      return;
    }
    const what = start.tool ?? start.message.method;
    try {
      await this.#keeper.journal.start(this, what);
    } catch (error) {
      if (error instanceof JournalFull) throw new Fault("limit", error.message);
      throw new Fault("unavailable", `The sharer could not write down that it begins "${what}". Not run.`, {
        cause: error,
      });
    }
    this.#isStarted = true;
    this.#outcome = "unknown";
    this.#demandWanted();
  }

  #demandWanted(): void {
    if (!this.#isWanted) throw new Fault("cancelled", "Nobody waits for this call any more. Not run.");
  }

  notify(text: string): void {
    // What is too long or finds the line behind is dropped there.
    if (!this.#isOver) this.line?.live(this.name.from, this.name.id, notificationBody(text));
  }

  reply(answer: MailboxAnswer): void {
    if (this.#isOver) this.#keeper.cameLate(this);
    else {
      this.#isOver = true;
      void this.#finish(answer);
    }
  }

  /** Its server is told that the answer is no longer wanted; its sender why there is none. */
  abandon(why: string, code: string): void {
    if (this.#isOver) return;
    this.#isTakenBack = code === "cancelled";
    this.#takeBack(why);
    void this.#finish({ kind: "body", json: failureBody(why, this.#outcome, code) });
  }

  /** The message is somebody else's, or goes back: it does not run here. Not for one that was started. */
  drop(why: string): void {
    if (this.#isOver) return;
    this.#takeBack(why);
    this.#keeper.callEnded(this);
  }

  #takeBack(why: string): void {
    this.#isOver = true;
    this.#isWanted = false;
    this.#unwanted?.abort();
    const { onCancel } = this;
    this.onCancel = undefined;
    onCancel?.(why);
  }

  /** Its message was handed out once more: where its reply is on its way already, the sender may have had it, and asks again. */
  cameAgain(line: BrokerLine, name: SentMessage): void {
    this.line = line;
    this.name = name;
    this.#isAskedAgain = true;
    if (this.#isRepeatable) line.repeatable(name);
  }

  /** Answers from what is known already, also of how it ended: nothing is run, and nothing is written down. */
  answerAgain(body: string, outcome: "unknown" | "not run"): void {
    this.#isOver = true;
    this.#outcome = outcome;
    void this.#deliver(body);
  }

  async #finish(answer: MailboxAnswer): Promise<void> {
    await this.#deliver(await this.#written(answer));
  }

  /** The body of the reply, once it is written down what came of a call that must not run twice. */
  async #written(answer: MailboxAnswer): Promise<string> {
    const { journal } = this.#keeper;
    const isLarge = answer.kind === "response" && answer.bytes.length > LARGE_BYTES;
    try {
      if (isLarge) {
        const large = await journal.finishLarge(this, answer.bytes, this.#isStarted);
        return largeBody(large);
      }
      const body = answer.kind === "body" ? answer.json : `{"message":${answer.bytes.toString()}}`;
      if (this.#isStarted) await journal.finish(this, body, true);
      return body;
    } catch (error) {
      const why = (error as Error).message;
      this.#keeper.refused(this, `its reply could not be kept: ${why}`);
      if (!isLarge) return answer.kind === "body" ? answer.json : `{"message":${answer.bytes.toString()}}`;
      return failureBody(`The reply could not be kept for you to draw it: ${why}`, "unknown", "limit");
    }
  }

  async #deliver(body: string): Promise<void> {
    let next: BrokerLine | undefined = this.line;
    while (next !== undefined) {
      const line: BrokerLine = next;
      this.#isAskedAgain = false;
      try {
        await this.#deliverOn(line, body);
        next = this.#isAskedAgain ? this.line : undefined;
      } catch (error) {
        if (!(error instanceof BrokerLost)) {
          this.#refused(line, error as Error, body);
          break;
        }
        // The message may have come again by a new line meanwhile.
        next = this.line === line ? undefined : this.line;
      }
    }
    this.#keeper.callEnded(this);
  }

  #deliverOn(line: BrokerLine, body: string, id = this.replyId): Promise<void> {
    const { name } = this;
    return line.deliver({
      to: name.from,
      id,
      kind: "mcp_reply",
      body,
      correlationId: name.id,
      acknowledges: name,
    });
  }

  /**
   * A reply that the broker does not take, for want of room as a rule, is followed by a short one that says so. Where that is
   * refused as well, the message is kept: it comes back to this journal when its lease has run out, and is answered again.
   */
  #refused(line: BrokerLine, error: Error, body: string): void {
    const why = error.message;
    this.#keeper.refused(this, `the broker did not take its reply: ${why}`);
    const short = failureBody(`The reply of ${body.length} bytes did not reach you: ${why}`, this.#outcome, "limit");
    this.#deliverOn(line, short, `${this.replyId}-refused`).catch(() => {
      // Its sender took it back, and it was not begun: it must not run when it comes again.
      if (this.#isTakenBack && this.#outcome === "not run") line.ack(this.name);
    });
  }
}

export function notificationBody(text: string): string {
  return `{"op":"notification","message":${text}}`;
}

export function failureBody(error: string, outcome: "unknown" | "not run", code: string): string {
  return JSON.stringify({ error, outcome, code });
}

export function unknownBody(what: string): string {
  const error = `"${what}" was started before this machine's sharer was stopped, and its end was not seen. ${OUTCOME_UNKNOWN}`;
  return failureBody(error, "unknown", "outcome-unknown");
}

export function largeBody(large: { readonly bytes: number; readonly sha256: string }): string {
  return JSON.stringify({ large });
}
