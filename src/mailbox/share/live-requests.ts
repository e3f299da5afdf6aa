// What workers ask of a sharer by live frames, which nobody keeps: to listen for as long as both are connected, and the
// pieces of a large reply. All of it ends with the line, and is asked for again on the next.

import type { Principal } from "../../contracts/caller.js";
import type { MailboxCall, MailboxService } from "../../contracts/mailbox.js";
import { isObject, type JsonObject } from "../../protocol/jsonrpc.js";
import { objectIn } from "../../runtime/words/json-values.js";
import type { BrokerLine } from "../peer/line.js";
import { ownerOf } from "../wire/address.js";
import type { ReceivedLive } from "../wire/broker-frames.js";
import { type Journal, PART_BYTES } from "./journal.js";
import { MAX_LISTENS } from "./limits.js";
import { notificationBody } from "./shared-call.js";

export interface LiveRequestsOptions {
  readonly service: MailboxService;
  readonly journal: Journal;
  /** The key of a message in the journal. */
  keyOf(from: string, id: string): string;
  principalOf(from: string, role: string | undefined): Principal;
}

interface Listen {
  /** The id of the worker's token. */
  readonly owner: string;
  readonly call: MailboxCall;
  /** Whoever listens is told, and may ask again. */
  tellEnd(why: string): void;
}

export class LiveRequests {
  readonly #options: LiveRequestsOptions;
  /** By who listens and the id that it gave. The oldest is first. */
  readonly #listens = new Map<string, Listen>();
  /** The same of each worker: their keys, the oldest first. */
  readonly #keysOf = new Map<string, Set<string>>();

  constructor(options: LiveRequestsOptions) {
    this.#options = options;
  }

  take(line: BrokerLine, frame: ReceivedLive): void {
    const body = objectIn(frame.body);
    const { from, role, correlationId } = frame;
    if (body === undefined) return;
    if (correlationId === undefined) {
      // What an agent tells a server is about no message of its own.
      if (body["op"] === "notification")
        this.#options.service.notified(this.#options.principalOf(from, role), frame.body);
    } else if (body["op"] === "listen") this.#listen(line, frame, correlationId);
    else if (body["op"] === "draw") line.live(from, correlationId, this.#piece(from, correlationId, body));
    else if (body["op"] === "drawn") this.#drawn(from, correlationId);
    else if (isCancel(body)) this.#end(listenKey(from, correlationId), "The agent no longer listens.");
  }

  /** The line has ended, or the sharer stops. */
  close(): void {
    for (const key of [...this.#listens.keys()]) this.#end(key, "The line to the broker has ended.");
  }

  #listen(line: BrokerLine, { from, role, body }: ReceivedLive, id: string): void {
    const key = listenKey(from, id);
    this.#end(key, "It was asked for again.");
    const owner = ownerOf(from);
    this.#makeRoom(owner);
    const call: MailboxCall = {
      principal: this.#options.principalOf(from, role),
      body,
      begin: () => Promise.resolve(),
      notify: (text) => void line.live(from, id, notificationBody(text)),
      reply: (answer) => {
        if (this.#listens.get(key)?.call === call) this.#forget(key);
        const message = answer.kind === "body" ? undefined : answer.bytes.toString();
        line.live(from, id, message === undefined ? withOp(answer as { json: string }) : replyBody(message));
      },
      onCancel: undefined,
    };
    const keys = this.#keysOf.get(owner);
    if (keys === undefined) this.#keysOf.set(owner, new Set([key]));
    else keys.add(key);
    this.#listens.set(key, {
      owner,
      call,
      tellEnd: (error) => void line.live(from, id, JSON.stringify({ op: "reply", error })),
    });
    this.#options.service.serve(call);
  }

  /** Who has listened longest makes room; where half of all are one worker's, that one's own. */
  #makeRoom(owner: string): void {
    const own = this.#keysOf.get(owner);
    const isOwn = own !== undefined && own.size * 2 >= MAX_LISTENS;
    if (!isOwn && this.#listens.size < MAX_LISTENS) return;
    const [oldest] = isOwn ? own : this.#listens.keys();
    if (oldest === undefined) return;
    const why = isOwn
      ? `${own.size} of your agents listen to this machine, which is half of its limit: the oldest made room.`
      : `${MAX_LISTENS} others listen to this machine, which is its limit: the oldest made room.`;
    this.#listens.get(oldest)?.tellEnd(why);
    this.#end(oldest, why);
  }

  #forget(key: string): void {
    const owner = this.#listens.get(key)?.owner ?? "";
    this.#listens.delete(key);
    const keys = this.#keysOf.get(owner);
    keys?.delete(key);
    if (keys?.size === 0) this.#keysOf.delete(owner);
  }

  /** What cannot be taken out now goes with its entry. */
  #drawn(from: string, id: string): void {
    const { journal, keyOf } = this.#options;
    void journal.drawn(keyOf(from, id)).catch(() => {});
  }

  #end(key: string, why: string): void {
    const listen = this.#listens.get(key);
    if (listen === undefined) return;
    this.#forget(key);
    listen.call.onCancel?.(why);
  }

  /** A piece of a reply to a message of whoever asks: nobody reads another's. */
  #piece(from: string, id: string, { offset, bytes }: JsonObject): string {
    const at = typeof offset === "number" && Number.isSafeInteger(offset) && offset >= 0 ? offset : undefined;
    if (at === undefined) return pieceError('"offset" is a whole number from 0 on');
    const most = typeof bytes === "number" && bytes > 0 ? Math.min(Math.floor(bytes), PART_BYTES) : PART_BYTES;
    const data = this.#options.journal.piece(this.#options.keyOf(from, id), at, Math.max(1, most));
    if (data === undefined) return pieceError("there is no such reply any more, or it has no byte there");
    return `{"op":"piece","offset":${at},"data":"${data}"}`;
  }
}

function listenKey(from: string, id: string): string {
  return `${from}\0${id}`;
}

function isCancel({ op, message }: JsonObject): boolean {
  if (op === "cancel") return true;
  return op === "notification" && isObject(message) && message["method"] === "notifications/cancelled";
}

function pieceError(error: string): string {
  return JSON.stringify({ op: "piece", error });
}

function replyBody(message: string): string {
  return `{"op":"reply","message":${message}}`;
}

/** A body that is an error of ours, as a live frame. */
function withOp({ json }: { readonly json: string }): string {
  return `{"op":"reply",${json.slice(1)}`;
}
