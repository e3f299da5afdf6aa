// Requests of the gateway's own to a server: the handshake, lists, levels, subscriptions. Off the hot path.

import type { Upstream, UpstreamCall } from "../../contracts/upstream.js";
import { excessOf, excessOfLong, MESSAGE_BOUNDS, type TextBounds } from "../../protocol/bytes/text-bounds.js";
import { Fault } from "../../protocol/errors.js";
import { isObject, type JsonObject } from "../../protocol/jsonrpc.js";
import {
  type HopChanges,
  locate,
  type Message,
  parseMessage,
  type ResponseMessage,
  requestText,
  scanText,
} from "../../protocol/message.js";
import { type Reply, replyText } from "../../protocol/reply.js";
import { ownTurn } from "../../runtime/turns/turns.js";
import { within } from "../../runtime/wait.js";

/** Who sends calls to a server: a connection, or what stands before it. */
export type CallSender = Pick<Upstream, "send" | "cancel">;

/** A text from here on takes milliseconds to be parsed. */
const LONG_CHARS = 1_000_000;
/** A list or a handshake that is larger is an attack; parsed, it would take many times as much. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;

/**
 * A page of a list may have more in it than one message: 15,000 tools were seen, with some 20 values each. It is parsed
 * over many turns, and only as far as it is taken. How deep one entry may be is judged entry by entry.
 */
const PAGE_BOUNDS: TextBounds = { depth: Number.POSITIVE_INFINITY, values: 2_000_000, names: 100_000 };

/** In a shorter text there is room for no excess, not even of levels. */
const COUNTED_CHARS = 256;

/** The deadline of an answer that comes as a stream: once it has begun, the call's own deadline is over. */
const READ_MS = 30_000;

class OwnCall implements UpstreamCall {
  readonly caller = undefined;
  readonly method: string;
  readonly subject = undefined;
  readonly progressToken: string | undefined = undefined;
  readonly params: JsonObject | undefined;
  readonly #reply: (reply: Reply) => void;

  constructor(method: string, params: JsonObject | undefined, reply: (reply: Reply) => void) {
    this.method = method;
    this.params = params;
    this.#reply = reply;
  }

  render(id: number, changes?: HopChanges): string {
    return requestText(id, this.method, this.params, changes);
  }

  reply(reply: Reply): void {
    this.#reply(reply);
  }
}

/** An error that the server itself answered with, as opposed to no answer. */
export class ServerError extends Error {
  override readonly name = "ServerError";
  readonly code: number;
  readonly data: unknown;

  constructor(code: number, message: string, data?: unknown) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

/**
 * The response message: `result` parsed, and the text for those who need it as it was written.
 * Rejects with a ServerError when the server refuses, with a Fault when there is no answer.
 */
export async function ask(
  sender: CallSender,
  method: string,
  params: JsonObject | undefined,
  /** Where it is undefined, only the connection's own deadline ends the call. */
  signal: AbortSignal | undefined,
): Promise<ResponseMessage & { result: JsonObject }> {
  return toResult(parseMessage(await textOf(sender, method, params, signal, MESSAGE_BOUNDS)), method);
}

/** A page of a list: what the result has beside it, and the JSON text of its entries, which are yet to be parsed. */
export interface ListPage {
  /** The list itself is empty in it. Absent where the result had none. */
  readonly result: JsonObject;
  /** Starts with its bracket; undefined where there is no list. */
  readonly list: string | undefined;
  /** How long the whole answer was. */
  readonly chars: number;
}

/**
 * As `ask`, for an answer that has a list of thousands as the member `kind` of its result: parsing that is too much for
 * one turn of the event loop, so its entries are left to the caller, to be parsed one by one.
 */
export async function askPage(
  sender: CallSender,
  method: string,
  params: JsonObject | undefined,
  signal: AbortSignal | undefined,
  kind: string,
): Promise<ListPage> {
  const text = await textOf(sender, method, params, signal, PAGE_BOUNDS);
  // It need not be JSON, and is only looked through for where the list stands. What is around it is parsed.
  const at = locate(scanText(text), ["result", kind]);
  const isList = at !== undefined && text[at.start] === "[";
  const around = isList ? `${text.slice(0, at.start)}[]${text.slice(at.end)}` : text;
  if (text.length > LONG_CHARS) await ownTurn();
  refuseExcess(around, method, MESSAGE_BOUNDS);
  const { result } = toResult(parseMessage(around), method);
  return { result, list: isList ? text.slice(at.start, at.end) : undefined, chars: text.length };
}

async function textOf(
  sender: CallSender,
  method: string,
  params: JsonObject | undefined,
  signal: AbortSignal | undefined,
  bounds: TextBounds,
): Promise<string> {
  signal?.throwIfAborted();
  const reply = await new Promise<Reply>((resolve, reject) => {
    const call = new OwnCall(method, params, (answer) => {
      signal?.removeEventListener("abort", onAbort);
      resolve(answer);
    });
    const onAbort = () => {
      reject(signal?.reason as Error);
      sender.cancel(call, "timeout");
    };
    signal?.addEventListener("abort", onAbort, { once: true });
    sender.send(call);
  });
  if (reply.kind === "error" && reply.fault !== undefined) throw reply.fault.withoutOutcome();
  const reading = reply.kind === "stream" ? withLimit(signal) : signal;
  const text = await replyText(reply, "0", { maxBytes: MAX_ANSWER_BYTES, signal: reading });
  // Making a long text, counting what is in it and parsing it are work for a turn of the loop each.
  if (text.length <= LONG_CHARS) {
    refuseExcess(text, method, bounds);
    return text;
  }
  await ownTurn();
  refuse(await excessOfLong(text, bounds, ownTurn), method);
  await ownTurn();
  return text;
}

function refuseExcess(text: string, method: string, bounds: TextBounds): void {
  if (text.length >= COUNTED_CHARS) refuse(excessOf([Buffer.from(text)], bounds), method);
}

function refuse(excess: string | undefined, method: string): void {
  if (excess !== undefined) throw new Fault("limit", `The answer to ${method} ${excess}.`);
}

/** Throws a ServerError where the server refused. */
function toResult(message: Message, method: string): ResponseMessage & { result: JsonObject } {
  if (message.kind !== "response") throw new Fault("protocol", `The answer to ${method} is not a response.`);
  const { error } = message;
  if (error !== undefined) throw new ServerError(error.code, error.message, error.data);
  if (!isObject(message.result)) throw new Fault("protocol", `The result of ${method} is not an object.`);
  return message as ResponseMessage & { result: JsonObject };
}

function withLimit(signal: AbortSignal | undefined): AbortSignal {
  return signal === undefined ? AbortSignal.timeout(READ_MS) : within(READ_MS, signal);
}
