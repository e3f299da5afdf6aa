// A call whose end is recorded: the same call to everybody, but its first reply fills a record.

import type { Caller } from "../contracts/caller.js";
import type { AgentCall, CallNotes } from "../contracts/service.js";
import type { RpcError } from "../protocol/jsonrpc.js";
import type { RequestMessage } from "../protocol/message.js";
import type { ParamHeader } from "../protocol/param-headers.js";
import type { Reply } from "../protocol/reply.js";

/** Is told of every call that ends. */
export interface CallEnds {
  /** In milliseconds that only go forward. */
  now(): number;
  ended(call: RecordedCall, reply: Reply): void;
}

/** It is its own notes, so that a call costs one object and not two. It is not used again: replies may come late. */
export class RecordedCall implements AgentCall, CallNotes {
  server: string | undefined = undefined;
  tool: string | undefined = undefined;
  cache: CallNotes["cache"] = undefined;
  readonly startMs: number;
  readonly #outer: AgentCall;
  #ends: CallEnds | undefined;

  constructor(outer: AgentCall, ends: CallEnds) {
    this.#outer = outer;
    this.#ends = ends;
    this.startMs = ends.now();
  }

  get notes(): CallNotes {
    return this;
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
    const ends = this.#ends;
    if (ends !== undefined) {
      this.#ends = undefined;
      ends.ended(this, reply);
    }
    this.#outer.reply(reply);
  }
}
