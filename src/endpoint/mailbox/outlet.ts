// Where one request of a mailbox's message goes, and its answer comes from: the outlet of a modern request. Answers are
// whole, since a message is.

import type { Caller } from "../../contracts/caller.js";
import { Fault } from "../../protocol/errors.js";
import type { RequestMessage } from "../../protocol/message.js";
import type { RequestMeta } from "../../protocol/modern.js";
import { faultReply, type Reply, renderReply } from "../../protocol/reply.js";
import type { HeldBytes } from "../../runtime/memory/held-bytes.js";
import type { Outlet } from "../modern/outlet.js";
import { bounded, brokenOff, collect } from "../session/bounded-reply.js";
import { idText } from "../session/call.js";
import type { EndpointLimits } from "../session/limits.js";

export interface MailboxOutletOptions {
  readonly message: RequestMessage;
  readonly meta: RequestMeta;
  readonly limits: EndpointLimits;
  readonly held: HeldBytes;
  readonly owner: string;
  readonly beforeSend?: Caller["beforeSend"];
  notify(text: string): void;
  /** Called once, with a whole JSON-RPC response; not after cancel(). */
  answer(response: Buffer): void;
}

export class MailboxOutlet implements Outlet {
  readonly message: RequestMessage;
  readonly meta: RequestMeta;
  readonly beforeSend: Caller["beforeSend"];
  onGone: ((reason: string | undefined) => void) | undefined = undefined;
  readonly #options: MailboxOutletOptions;
  #isOver: boolean = false;

  constructor(options: MailboxOutletOptions) {
    this.#options = options;
    this.message = options.message;
    this.meta = options.meta;
    this.beforeSend = options.beforeSend;
    this.message.held?.claim();
  }

  notify(text: string): void {
    if (!this.#isOver) this.#options.notify(text);
  }

  reply(reply: Reply): void {
    if (!this.#end()) return;
    const { limits, held, owner } = this.#options;
    const fitting = bounded(reply, limits, held, owner);
    if (fitting.kind === "stream") void this.#collect(fitting);
    else this.#options.answer(renderReply(fitting, idText(this.message)));
  }

  async #collect(reply: Extract<Reply, { kind: "stream" }>): Promise<void> {
    const { limits, held, owner, answer } = this.#options;
    const id = idText(this.message);
    const size = reply.size?.(id);
    if (size !== undefined && size > limits.outputBytes) {
      reply.open(id).destroy();
      const why = `The reply has ${size} bytes; the limit is ${limits.outputBytes}.`;
      answer(renderReply(faultReply(new Fault("limit", why)) as Exclude<Reply, { kind: "stream" }>, id));
      return;
    }
    const bytes = await collect(reply.open(id), limits.outputBytes, held.holder(owner));
    answer(bytes ?? brokenOff(id));
  }

  /** Whoever asked wants no answer any more, and gets none. */
  cancel(reason: string | undefined): void {
    if (this.#end()) this.onGone?.(reason);
  }

  #end(): boolean {
    if (this.#isOver) return false;
    this.#isOver = true;
    this.message.held?.drop();
    return true;
  }
}
