// The endpoint of agents that come by a mailbox: each message is one request of the modern era, which has no handshake,
// so that nothing is lost when a part is started again. Knows no broker: messages come as MailboxCalls.

import type { Caller, Principal } from "../../contracts/caller.js";
import type { MailboxCall, MailboxService } from "../../contracts/mailbox.js";
import type { Service } from "../../contracts/service.js";
import { weightOfText } from "../../protocol/bytes/weight.js";
import { Fault, toRpcError } from "../../protocol/errors.js";
import type { RpcError } from "../../protocol/jsonrpc.js";
import { parseMessage, type RequestMessage, type ResponseMessage } from "../../protocol/message.js";
import type { RequestMeta } from "../../protocol/modern.js";
import { faultReply, type Reply, renderReply } from "../../protocol/reply.js";
import type { Clock } from "../../runtime/clock.js";
import { type HeldBytes, NO_ROOM } from "../../runtime/memory/held-bytes.js";
import type { Sealer } from "../../runtime/seal.js";
import { KIB, MIB } from "../../runtime/sizes.js";
import { checkRequest } from "../modern/checks.js";
import { ModernEra } from "../modern/era.js";
import type { Outlet } from "../modern/outlet.js";
import { bounded, brokenOff, collect } from "../session/bounded-reply.js";
import { idText } from "../session/call.js";
import { ENDPOINT_LIMITS, type EndpointLimits } from "../session/limits.js";
import { costOf, SHORT_BYTES } from "../session/read-message.js";
import { callRequest, errorBody, listRequest, manifestBody, manifestPage, resultBody } from "./bare.js";
import { type Arguments, BadBody, type MailboxRequest, readBody, readBodyMessage } from "./body.js";

export interface MailboxEndpointOptions {
  readonly service: Service;
  readonly sealer: Sealer;
  readonly limits?: Partial<EndpointLimits>;
  readonly held: HeldBytes;
  readonly clock: Clock;
  /** The one server that is meant, whose tools then have their own names; undefined where there are several. */
  readonly scope: () => string | undefined;
  readonly lists: () => ListsRead;
  readonly failed: (error: unknown) => void;
}

/** How far it is known what the servers have. */
export interface ListsRead {
  /** The first tries of those whose lists were not read: under way, or failed. */
  readonly unread: readonly Promise<void>[];
  readonly areAnyRead: boolean;
}

const LISTEN = "subscriptions/listen";

/** A bare client draws no pieces: what it is told fits into one frame, with room for what stands around it. */
const MAX_BARE_BYTES = 1 * MIB - 16 * KIB;
/** A list that has no end by then has none. */
const MAX_PAGES = 1_000;

/** Names no server: whoever asks may not be allowed to see any. */
const NOTHING_KNOWN =
  "It is not known which tools this machine has: none of its servers could be asked yet. Ask again later; the machine's log says why.";

export class MailboxEndpoint implements MailboxService {
  readonly #options: MailboxEndpointOptions;
  readonly #limits: EndpointLimits;
  readonly #era: ModernEra;

  constructor(options: MailboxEndpointOptions) {
    this.#options = options;
    this.#limits = { ...ENDPOINT_LIMITS, ...options.limits };
    this.#era = new ModernEra({ ...options, limits: this.#limits });
  }

  serve(call: MailboxCall): void {
    let request: MailboxRequest;
    try {
      request = readBody(call.body, this.#limits);
    } catch (error) {
      if (!(error instanceof BadBody)) throw error;
      call.reply({ kind: "body", json: errorBody(`bad mcp request: ${error.message}`) });
      return;
    }
    if (request.op === "manifest") this.#answerBare(call, this.#manifest(call));
    else if (request.op === "call") this.#answerBare(call, this.#bareCall(call, request.tool, request.args));
    else this.#rpc(call, request);
  }

  notified(principal: Principal, body: string): void {
    try {
      const message = readBodyMessage(body, this.#limits);
      if (message.kind === "notification") this.#era.notified(message, principal, this.#options.scope());
    } catch (error) {
      // Nobody waits for an answer.
      if (!(error instanceof BadBody)) this.#options.failed(error);
    }
  }

  /** Forgets agents that have been quiet for long. It is to be called now and then. */
  sweep(): void {
    this.#era.sweep();
  }

  /** Ends what is under way. */
  close(fault: Fault): void {
    this.#era.close(fault);
  }

  #rpc(call: MailboxCall, { op, message, session }: Extract<MailboxRequest, { op: "rpc" | "listen" }>): void {
    const wrong =
      message.kind === "request" ? wrongOp(op, message.method) : "a message carries a request, and nothing else";
    if (wrong !== undefined || message.kind !== "request") {
      call.reply({ kind: "body", json: errorBody(`bad mcp request: ${wrong}`) });
      return;
    }
    const answer = (bytes: Buffer) => call.reply({ kind: "response", bytes });
    const held = this.#options.held.holder(call.principal.id);
    const { body } = call;
    if (body.length >= SHORT_BYTES && !held.hold(costOf(body.length, weightOfText(body)))) {
      answer(rendered(faultReply(new Fault("limit", `The message was not taken: ${NO_ROOM}`)), message));
      return;
    }
    message.held = held;
    const { params } = message;
    if (typeof params?.["requestState"] !== "string") {
      this.#serve(call, message, session, answer);
      held.releaseUnclaimed();
      return;
    }
    // The answer to a question goes on with a call that was begun: what it does is written down as the call was.
    held.claim();
    const tool = params["name"];
    const start = { server: undefined, tool: typeof tool === "string" ? tool : undefined, message, mayRepeat: false };
    call
      .begin(start)
      .then(
        () => this.#serve(call, message, session, answer),
        (error: unknown) => answer(rendered({ kind: "error", error: toRpcError(error) }, message)),
      )
      .finally(() => held.drop())
      .catch(this.#options.failed);
  }

  #serve(
    call: MailboxCall,
    message: RequestMessage,
    session: string | undefined,
    answer: (response: Buffer) => void,
  ): void {
    const meta = checkRequest(message, undefined);
    if ("code" in meta) {
      answer(rendered({ kind: "error", error: meta }, message));
      return;
    }
    const { held } = this.#options;
    const outlet = new MailboxOutlet({
      message,
      meta,
      limits: this.#limits,
      held,
      owner: call.principal.id,
      beforeSend: (start) => call.begin(start),
      notify: (text) => call.notify(text),
      answer,
    });
    call.onCancel = (reason) => outlet.cancel(reason);
    this.#era.serve(outlet, call.principal, this.#options.scope(), session);
  }

  // ── The bare requests ────────────────────────────────────────────────────────────────────────────────────────────

  /** Whoever asked is answered, whatever fails here. */
  #answerBare(call: MailboxCall, answer: Promise<string>): void {
    answer
      .catch((error: unknown) => {
        this.#options.failed(error);
        return errorBody("the gateway failed at this message; its log has the details");
      })
      .then((json) => this.#replyBare(call, json))
      .catch(this.#options.failed);
  }

  /**
   * A bare client is not told when a list changes, and takes an empty one for an answer: while nothing is listed, it waits
   * for servers that are still starting, and where none has said what it has, it is told that, and not that there is nothing.
   */
  async #manifest(call: MailboxCall): Promise<string> {
    const { lists } = this.#options;
    let found = await this.#manifestEntries(call);
    const { unread } = lists();
    if (isEmpty(found) && unread.length > 0) {
      await Promise.all(unread);
      found = await this.#manifestEntries(call);
    }
    if ("error" in found) return errorBody(found.error);
    const isKnown = lists().unread.length === 0 || lists().areAnyRead;
    return isEmpty(found) && !isKnown ? errorBody(NOTHING_KNOWN) : manifestBody(found.entries);
  }

  async #manifestEntries(call: MailboxCall): Promise<Manifest> {
    const entries: string[] = [];
    let cursor: string | undefined;
    for (let page = 0; page < MAX_PAGES; page++) {
      const response = await this.#ask(call, listRequest(cursor));
      if (response.error !== undefined) return { error: response.error.message };
      const { entries: found, next } = manifestPage(response);
      entries.push(...found);
      cursor = next;
      if (cursor === undefined) break;
    }
    return { entries };
  }

  async #bareCall(call: MailboxCall, tool: string, args: Arguments): Promise<string> {
    const response = await this.#ask(call, callRequest(tool, args));
    return resultBody(response, tool, call.principal.role);
  }

  #replyBare(call: MailboxCall, json: string): void {
    const bytes = Buffer.byteLength(json);
    const fits = bytes <= MAX_BARE_BYTES;
    const why = `the answer has ${bytes} bytes, and one message at most ${MAX_BARE_BYTES}: ask by "op":"rpc", and draw it in pieces`;
    call.reply({ kind: "body", json: fits ? json : errorBody(why) });
  }

  /** Never resolves where the call was cancelled. */
  #ask(call: MailboxCall, message: RequestMessage): Promise<ResponseMessage> {
    return new Promise<string>((resolve) => {
      this.#serve(call, message, undefined, (bytes) => resolve(bytes.toString()));
    }).then((response) => parseMessage(response) as ResponseMessage);
  }
}

/** What lasts as long as both are connected comes live, and what is answered once by a message. */
function wrongOp(op: "rpc" | "listen", method: string): string | undefined {
  if ((op === "listen") === (method === LISTEN)) return undefined;
  return op === "listen" ? `${method} goes by "op":"rpc"` : `${LISTEN} goes by a live frame, as "op":"listen"`;
}

/** A reply that is small and made here. */
function rendered(reply: Reply | { kind: "error"; error: RpcError }, message: RequestMessage): Buffer {
  return renderReply(reply as Exclude<Reply, { kind: "stream" }>, idText(message));
}

type Manifest = { readonly entries: readonly string[] } | { readonly error: string };

function isEmpty(manifest: Manifest): boolean {
  return "entries" in manifest && manifest.entries.length === 0;
}

interface OutletOptions {
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

/** Where one request goes, and its answer comes from. Answers are whole, since a message is. */
class MailboxOutlet implements Outlet {
  readonly message: RequestMessage;
  readonly meta: RequestMeta;
  readonly beforeSend: Caller["beforeSend"];
  onGone: ((reason: string | undefined) => void) | undefined = undefined;
  readonly #options: OutletOptions;
  #isOver: boolean = false;

  constructor(options: OutletOptions) {
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
