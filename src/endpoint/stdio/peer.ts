// An agent at the other end of one pipe: stdio, or the old HTTP+SSE. Its texts are read here, and each message goes to
// the era that it is of. Where the texts come from and how they are framed is not its concern.

import type { AgentProfile, Principal } from "../../contracts/caller.js";
import { Fault, LIMIT, toRpcError } from "../../protocol/errors.js";
import { ErrorCode, isObject } from "../../protocol/jsonrpc.js";
import type { Message, RequestMessage } from "../../protocol/message.js";
import { Meta } from "../../protocol/modern.js";
import { type Holder, NO_ROOM } from "../../runtime/memory/held-bytes.js";
import { ownTurn } from "../../runtime/turns/turns.js";
import { saysModern } from "../modern/checks.js";
import { idText } from "../session/call.js";
import { profileOf } from "../session/profile.js";
import { hasRequest, heldBy, PIPED, readLongMessage, readMessage } from "../session/read-message.js";
import { boundCapabilities } from "../session/session-id.js";
import { LegacyPipe, type LegacyPipeOptions } from "./legacy-pipe.js";
import type { ModernPipe } from "./modern-pipe.js";

export interface PipePeerOptions extends LegacyPipeOptions {
  /** Undefined where the pipe is of a transport that only legacy agents use. */
  readonly modern?: ModernPipe;
  /** Is told what the agent can be asked, before the message that says so is taken. */
  readonly introduced?: ((profile: AgentProfile | undefined) => void) | undefined;
}

export class PipePeer {
  readonly #options: PipePeerOptions;
  readonly #legacy: LegacyPipe;
  #isIntroduced = false;
  #isClosed = false;
  /** Texts that were taken for what they say: what is in them may have been begun. */
  takenLines = 0;

  constructor(options: PipePeerOptions) {
    this.#options = options;
    this.#legacy = new LegacyPipe(options);
  }

  get principal(): Principal {
    return this.#options.principal;
  }

  get inFlight(): number {
    return this.#legacy.inFlight + (this.#options.modern?.inFlight ?? 0);
  }

  /** Nothing more comes from the agent: what servers ask it has no answer. What it called for may still end. */
  agentLeft(): void {
    this.#legacy.agentLeft();
  }

  /**
   * Takes one message or batch as text; `holder` counts `cost` for it while one of its requests is kept. It never
   * throws: what is wrong with the text is answered.
   */
  receive(text: string, holder: Holder, cost: number): void {
    this.takenLines++;
    try {
      this.#takeRead(readMessage(text, this.#options.limits, PIPED), holder, cost);
    } catch (error) {
      this.#fail(error);
    }
  }

  /** The same for a text of megabytes, with a turn of the loop for each step. The caller keeps the order of texts. */
  async receiveLong(text: string, holder: Holder, cost: number): Promise<void> {
    let take: () => void;
    try {
      const read = await readLongMessage(text, this.#options.limits, PIPED, ownTurn);
      await ownTurn();
      take = () => this.#takeRead(read, holder, cost);
    } catch (error) {
      take = () => this.#fail(error);
    }
    if (this.#isClosed) return;
    this.takenLines++;
    try {
      take();
    } catch (error) {
      this.#fail(error);
    }
  }

  #takeRead(read: ReturnType<typeof readMessage>, holder: Holder, cost: number): void {
    if (hasRequest(read)) {
      if (!holder.hold(cost)) {
        this.#refuseRequests(Array.isArray(read) ? read : [read]);
        return;
      }
      heldBy(read, holder);
    }
    if (Array.isArray(read)) this.takeBatch(read);
    else if (read.kind === "unreadable") this.#options.out.refuse(read.code, read.why);
    else this.take(read);
  }

  #fail(error: unknown): void {
    const { out, failed } = this.#options;
    if (error instanceof Fault) out.refuse(ErrorCode.invalidRequest, error.message);
    else {
      failed(error);
      out.refuse(ErrorCode.internal, toRpcError(error).message);
    }
  }

  #refuseRequests(messages: readonly Message[]): void {
    const { out } = this.#options;
    for (const message of messages)
      if (message.kind === "request") out.refuse(LIMIT, `The request was not taken: ${NO_ROOM}`, idText(message));
  }

  take(message: Message): void {
    const { modern } = this.#options;
    if (!this.#isIntroduced && message.kind === "request") this.#introduce(message);
    if (modern === undefined || !takenBy(modern, message)) this.#legacy.message(message);
  }

  #introduce(message: RequestMessage): void {
    const { method, params } = message;
    const isModern = saysModern(message);
    if (!isModern && method !== "initialize") return;
    this.#isIntroduced = true;
    const meta = params?.["_meta"];
    const declared = isModern && isObject(meta) ? meta[Meta.capabilities] : params?.["capabilities"];
    this.#options.introduced?.(profileOf(boundCapabilities(declared)));
  }

  takeBatch(messages: readonly Message[]): void {
    this.#legacy.batch(messages);
  }

  /** What is in flight is answered with `fault`, if anybody still reads; or `last` is written, and nothing behind it. */
  close(fault: Fault, last?: string): void {
    this.#isClosed = true;
    if (last !== undefined) {
      this.#options.out.send(last);
      this.#options.out.end();
    }
    this.#legacy.close(fault);
    this.#options.modern?.close(fault);
    this.#options.out.end();
  }
}

/** True where the message is of the modern era, and was taken. */
function takenBy(modern: ModernPipe, message: Message): boolean {
  if (message.kind === "response") return false;
  if (message.kind === "notification") {
    if (message.method === "notifications/cancelled" && modern.cancel(message)) return true;
    if (!saysModern(message)) return false;
    modern.notified(message);
    return true;
  }
  if (!saysModern(message) && message.method !== "server/discover") return false;
  modern.request(message);
  return true;
}
