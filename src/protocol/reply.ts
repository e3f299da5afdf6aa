// An answer on its way to whoever asked. It carries no id of its own: whoever writes it puts the asker's in:
// here in one that is held whole, in reply-id.ts in one that still arrives.

import type { Readable } from "node:stream";
import { replySize } from "./arrived.js";
import { Fault, toRpcError } from "./errors.js";
import { isObject, type RpcError } from "./jsonrpc.js";
import { idSpan, parseBytes, type ResponseMessage, type ScannedText } from "./message.js";
import { type Edit, movedBy, splice } from "./scan.js";

export type Reply =
  | { readonly kind: "result"; readonly result: unknown }
  /** `fault`: what went wrong on our side of the wire, where it was not the server that answered so. */
  | { readonly kind: "error"; readonly error: RpcError; readonly fault?: Fault }
  | BytesReply
  | StreamReply;

/** A whole response message as bytes; bytes[idStart, idEnd) is the id to replace. */
export interface BytesReply {
  readonly kind: "bytes";
  /** Of a modern server: the result has `resultType` and the rest already. Absent where it is as a legacy server wrote it. */
  readonly era?: "modern" | undefined;
  readonly bytes: Buffer;
  readonly idStart: number;
  readonly idEnd: number;
  /** The server asked for input on the way, so it is an answer to more than the request: not to be kept. */
  readonly afterRounds?: true | undefined;
  /** Of the error that it is, where somebody had to read it anyway. */
  readonly errorCode?: number | undefined;
  /** True where it is a result that does not say it failed, and somebody had to look at all of it anyway. */
  readonly succeeded?: boolean | undefined;
  /** The bytes, a character a byte, where somebody had to make that anyway. */
  readonly latin1?: string | undefined;
}

/** A response too large to hold: a message of the asker's id, read with back-pressure. */
export interface StreamReply {
  readonly kind: "stream";
  /** As in BytesReply. */
  readonly era?: "modern";
  /** How many bytes open() will bring, where that is known. */
  size?(idText: string): number;
  /** `idText` is the asker's id as JSON. To be called once; destroying the stream abandons the reply. */
  open(idText: string): Readable;
}

export function faultReply(fault: Fault): Reply {
  return { kind: "error", error: toRpcError(fault), fault };
}

const HEAD = '{"jsonrpc":"2.0","id":';

/**
 * A result of ours that is sent many times, and was cut at its id once. What a copy with other bytes must not take along is
 * behind accessors, as in arrived.ts.
 */
export class PreparedReply implements BytesReply {
  readonly kind = "bytes";
  readonly era: "modern" | undefined;
  readonly bytes: Buffer;
  readonly idStart = HEAD.length;
  readonly idEnd = HEAD.length + 1;
  readonly #behind: Buffer;

  /** `json` is the result. */
  constructor(json: string, era?: "modern") {
    this.era = era;
    this.bytes = Buffer.from(`${HEAD}0,"result":${json}}`);
    this.#behind = this.bytes.subarray(this.idEnd);
  }

  /** All that is before an id, and the id. */
  headOf(idText: string): string {
    return HEAD + idText;
  }

  get succeeded(): true {
    return true;
  }

  get behind(): Buffer {
    return this.#behind;
  }
}

/** A reply from the JSON text of a result, under any id: built once, spliced each time. */
export function resultBytes(json: string): BytesReply {
  return {
    kind: "bytes",
    bytes: Buffer.from(`${HEAD}0,"result":${json}}`),
    idStart: HEAD.length,
    idEnd: HEAD.length + 1,
  };
}

/** The reply as one buffer of its own. For `stream` use open(). */
export function renderReply(reply: Exclude<Reply, StreamReply>, idText: string): Buffer {
  switch (reply.kind) {
    case "result":
      return Buffer.from(`${HEAD}${idText},"result":${JSON.stringify(reply.result)}}`);
    case "error":
      return Buffer.from(`${HEAD}${idText},"error":${JSON.stringify(reply.error)}}`);
    case "bytes": {
      const idLength = Buffer.byteLength(idText);
      const tail = reply.bytes.length - reply.idEnd;
      const out = Buffer.allocUnsafe(reply.idStart + idLength + tail);
      reply.bytes.copy(out, 0, 0, reply.idStart);
      out.write(idText, reply.idStart);
      reply.bytes.copy(out, reply.idStart + idLength, reply.idEnd);
      return out;
    }
  }
}

/** The same reply after edits of `message`, which was read of it: the new text is not read again. */
export function editedReply(reply: BytesReply, message: ScannedText, edits: readonly Edit[]): BytesReply {
  if (edits.length === 0) return reply;
  const text = splice(message.text, edits);
  const span = idSpan({ text, members: movedBy(edits, message.members) });
  const { era, afterRounds } = reply;
  return span === undefined ? reply : { kind: "bytes", bytes: Buffer.from(text), ...span, era, afterRounds };
}

/** A reply that is there as `latin1`, under the asker's id; a character a byte again. */
export function spliceLatin1({ idStart, idEnd }: BytesReply, latin1: string, idText: string): string {
  const id = ASCII.test(idText) ? idText : Buffer.from(idText).toString("latin1");
  return latin1.slice(0, idStart) + id + latin1.slice(idEnd);
}

const ASCII = /^[\x20-\x7e]*$/;

/** What is held of an answer that somebody reads rather than passes on: as much as one line of stdio may have. */
const MAX_HELD_BYTES = 64 * 1024 * 1024;

/** Any reply as text, under `idText`: for those who read an answer. Rejects with a Fault `limit` for a larger one. */
export async function replyText(
  reply: Reply,
  idText: string,
  options: { readonly maxBytes?: number; readonly signal?: AbortSignal | undefined } = {},
): Promise<string> {
  const { maxBytes = MAX_HELD_BYTES, signal } = options;
  const tooLarge = () => new Fault("limit", `The answer has more than ${maxBytes} bytes.`);
  if (reply.kind !== "stream") {
    if (reply.kind === "bytes" && replySize(reply) > maxBytes) throw tooLarge();
    return renderReply(reply, idText).toString();
  }
  const body = reply.open(idText);
  const stop = () => void body.destroy(signal?.reason as Error);
  signal?.addEventListener("abort", stop, { once: true });
  if (signal?.aborted) stop();
  try {
    const chunks: Buffer[] = [];
    let bytes = 0;
    for await (const chunk of body as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > maxBytes) throw tooLarge();
      chunks.push(chunk);
    }
    return Buffer.concat(chunks).toString();
  } finally {
    signal?.removeEventListener("abort", stop);
  }
}

/** What is read of replies is small: errors, questions, acknowledgements. A picture may be in a question. */
const MAX_READ_BYTES = 4 * 1024 * 1024;

/**
 * The message of a reply that is held whole, for those who read it; undefined where it cannot be read. Off the hot
 * path.
 */
export function responseOf(reply: Reply): ResponseMessage | undefined {
  if (reply.kind === "stream") return undefined;
  try {
    if (reply.kind === "bytes" && replySize(reply) > MAX_READ_BYTES) return undefined;
    const message = parseBytes(renderReply(reply, "0"));
    return message.kind === "response" ? message : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Whether the answer is an error, or nothing that can be read. Parses it: for small answers, off the hot path. One
 * that comes as a stream is large, so a result.
 */
export function isRefusal(reply: Reply): boolean {
  if (reply.kind !== "bytes") return reply.kind === "error";
  try {
    const message: unknown = JSON.parse(reply.bytes.toString());
    return !isObject(message) || "error" in message;
  } catch {
    return true;
  }
}

/** The server did not answer, and may yet have it: a subscription is asked for again when the server is there. */
const UNDECIDED: ReadonlySet<string> = new Set(["unavailable", "timeout", "outcome-unknown"]);

/** True of a failure by which nothing was decided about what was asked for. */
export function isUndecided(reply: Reply): boolean {
  return reply.kind === "error" && reply.fault !== undefined && UNDECIDED.has(reply.fault.code);
}

// Where a result's members begin: behind the id, or at the head with the id at the tail.
const RESULT_AFTER_ID = /^\s*,\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"result"\s*:\s*\{\s*(\})?/;
const RESULT_AT_HEAD = /^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"result"\s*:\s*\{\s*(\})?/;
/** The fixed words and some white space. */
const RESULT_WINDOW = 96;

/**
 * The reply with members put in front of its result's own, given as JSON text without braces. Undefined where it is
 * an error, or where the result cannot be found without parsing.
 */
export function withResultMembers(reply: BytesReply, members: string): BytesReply | undefined {
  const { bytes, idStart, idEnd } = reply;
  const behind = RESULT_AFTER_ID.exec(bytes.toString("latin1", idEnd, idEnd + RESULT_WINDOW));
  const head = behind === null ? RESULT_AT_HEAD.exec(bytes.toString("latin1", 0, RESULT_WINDOW)) : null;
  const match = behind ?? head;
  if (match === null) return undefined;
  const empty = match[1] !== undefined;
  const at = (behind === null ? 0 : idEnd) + match[0].length - (empty ? 1 : 0);
  const added = Buffer.from(empty ? members : `${members},`);
  const shift = behind === null ? added.length : 0;
  return {
    kind: "bytes",
    bytes: Buffer.concat([bytes.subarray(0, at), added, bytes.subarray(at)]),
    idStart: idStart + shift,
    idEnd: idEnd + shift,
    era: "modern",
  };
}
