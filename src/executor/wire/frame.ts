// Messages to text and back. Pieces of bodies are most of the bytes, so they are written and read without a JSON parser
// where they look as both ends write them; anything else goes the long way and means the same.

import { KIB, MIB } from "../../runtime/sizes.js";
import { isObject } from "../../runtime/words/json-object.js";
import { BODY_DELTA, type BodyDelta, type MessageId, type RpcFailure, UPLOAD } from "./protocol.js";

export type Frame =
  | { readonly kind: "request"; readonly id: MessageId; readonly method: string; readonly params: unknown }
  | { readonly kind: "result"; readonly id: MessageId; readonly result: unknown }
  | { readonly kind: "error"; readonly id: MessageId | null; readonly error: RpcFailure }
  | { readonly kind: "notification"; readonly method: string; readonly params: unknown }
  | { readonly kind: "delta"; readonly method: typeof BODY_DELTA | typeof UPLOAD; readonly delta: BodyDelta }
  /** It is no JSON, or no message: `why` is for the log and the peer. */
  | { readonly kind: "broken"; readonly why: string };

const AFTER_ID = '","seq":';
const AFTER_SEQ = ',"deltaBase64":"';
const MORE_END = Buffer.from('","done":false}}');
const LAST_END = Buffer.from('","done":true}}');
/** How a delta can end; the exec-server writes the error also where there is none. */
const ENDS = [
  { text: MORE_END, done: false },
  { text: LAST_END, done: true },
  { text: Buffer.from('","done":false,"error":null}}'), done: false },
  { text: Buffer.from('","done":true,"error":null}}'), done: true },
];
const PREFIXES = {
  [BODY_DELTA]: Buffer.from(`{"method":"${BODY_DELTA}","params":{"requestId":"`),
  [UPLOAD]: Buffer.from(`{"method":"${UPLOAD}","params":{"requestId":"`),
};
const QUOTE = 0x22;
/** Characters of ids and numbers between prefix and data: ours are far shorter. */
const MAX_MIDDLE = 256;

/** An id is kept as long as its request is under way, and sent back. */
const MAX_ID_CHARS = 256;
/** A message beyond this can only be large by its body in base64: the rest of it is headers at most. */
const LARGE_BYTES = 1 * MIB;
/** Marks of JSON, which base64 has not, and which cost time and memory to read: as many as 64 KiB of headers have. */
const MAX_MARKS = 64 * KIB;
const MARKS = [..."{[,"].map((mark) => mark.charCodeAt(0));

/** Renders a piece of a body that has no error. The text is put together once, and not scanned again. */
export function renderDelta(
  method: typeof BODY_DELTA | typeof UPLOAD,
  requestId: string,
  seq: number,
  data: Buffer,
  done: boolean,
): Buffer {
  const prefix = PREFIXES[method];
  const id = JSON.stringify(requestId);
  // The prefix has the opening quote.
  const middle = `${id.slice(1, -1)}${AFTER_ID}${seq}${AFTER_SEQ}`;
  const end = done ? LAST_END : MORE_END;
  const encodedLength = Math.ceil(data.length / 3) * 4;
  const middleLength = Buffer.byteLength(middle);
  const frame = Buffer.allocUnsafeSlow(prefix.length + middleLength + encodedLength + end.length);
  prefix.copy(frame, 0);
  let at = prefix.length;
  at += frame.write(middle, at);
  at += frame.write(data.toString("base64"), at, "latin1");
  end.copy(frame, at);
  return frame;
}

/** Renders the last piece of a body that broke off. */
export function renderBrokenDelta(
  method: typeof BODY_DELTA | typeof UPLOAD,
  requestId: string,
  seq: number,
  error: string,
): string {
  return JSON.stringify({ method, params: { requestId, seq, deltaBase64: "", done: true, error } });
}

export function renderRequest(id: MessageId, method: string, params: unknown): string {
  return JSON.stringify({ id, method, params });
}

export function renderResult(id: MessageId, result: unknown): string {
  return JSON.stringify({ id, result });
}

export function renderError(id: MessageId | null, error: RpcFailure): string {
  return JSON.stringify({ id, error });
}

export function renderNotification(method: string, params?: unknown): string {
  return JSON.stringify(params === undefined ? { method } : { method, params });
}

/** What comes back holds nothing of the message that it was read from. */
export function readFrame(bytes: Buffer): Frame {
  return readPlainDelta(bytes, BODY_DELTA) ?? readPlainDelta(bytes, UPLOAD) ?? readJson(bytes);
}

/** Undefined where it is not written as both ends write it; then a JSON parser decides what it is. */
function readPlainDelta(bytes: Buffer, method: typeof BODY_DELTA | typeof UPLOAD): Frame | undefined {
  const prefix = PREFIXES[method];
  const idAt = prefix.length;
  if (bytes.length < idAt || prefix.compare(bytes, 0, idAt) !== 0) return undefined;
  const middle = bytes.toString("latin1", idAt, idAt + MAX_MIDDLE);
  const found = /^([\w.:-]+)","seq":(0|[1-9]\d{0,14}),"deltaBase64":"/.exec(middle);
  if (found === null) return undefined;
  const dataAt = idAt + found[0].length;
  // The data's end is where its quote is: nothing is known of what stands between it and an end that looks right.
  const dataEnd = bytes.indexOf(QUOTE, dataAt);
  if (dataEnd < 0) return undefined;
  const end = endAt(bytes, dataEnd);
  if (end === undefined) return undefined;
  const data = decoded(bytes.toString("latin1", dataAt, dataEnd));
  if (data === undefined) return undefined;
  const delta = { requestId: found[1] as string, seq: Number(found[2]), data, done: end.done, error: undefined };
  return { kind: "delta", method, delta };
}

function endAt(bytes: Buffer, at: number): (typeof ENDS)[number] | undefined {
  for (const end of ENDS) if (end.text.length === bytes.length - at && end.text.compare(bytes, at) === 0) return end;
  return undefined;
}

function readJson(bytes: Buffer): Frame {
  if (bytes.length > LARGE_BYTES && isIntricate(bytes)) {
    return { kind: "broken", why: "a large message that is more than a body and its headers" };
  }
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString());
  } catch {
    return { kind: "broken", why: "not JSON" };
  }
  if (!isObject(value)) return { kind: "broken", why: "not a JSON-RPC message" };
  const { id, method, params } = value;
  if (typeof method === "string") {
    if (isId(id)) return { kind: "request", id, method, params };
    if (id !== undefined)
      return { kind: "broken", why: "an id that is neither a whole number nor text of a few letters" };
    if (method === BODY_DELTA || method === UPLOAD) return deltaFrame(method, params);
    return { kind: "notification", method, params };
  }
  if (isObject(value["error"]) && (isId(id) || id === null)) {
    const { code, message, data } = value["error"];
    const error = {
      code: typeof code === "number" ? code : 0,
      message: typeof message === "string" ? message : "no message",
    };
    return { kind: "error", id, error: data === undefined ? error : { ...error, data } };
  }
  if (isId(id) && "result" in value) return { kind: "result", id, result: value["result"] };
  return { kind: "broken", why: "not a JSON-RPC message" };
}

function deltaFrame(method: typeof BODY_DELTA | typeof UPLOAD, params: unknown): Frame {
  if (!isObject(params)) return { kind: "broken", why: `${method} without params` };
  const { requestId, seq, deltaBase64, done, error } = params;
  const data = typeof deltaBase64 === "string" ? decoded(deltaBase64) : undefined;
  if (typeof requestId !== "string" || !Number.isSafeInteger(seq) || data === undefined) {
    return { kind: "broken", why: `${method} without requestId, seq or deltaBase64` };
  }
  const why = typeof error === "string" ? error : undefined;
  return { kind: "delta", method, delta: { requestId, seq: seq as number, data, done: done === true, error: why } };
}

/** Undefined where it is no base64 with its padding. Node ignores what is not base64, so the length must tell. */
export function decoded(text: string): Buffer | undefined {
  if (text.length % 4 !== 0) return undefined;
  const length = (text.length / 4) * 3 - (text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0);
  const data = Buffer.from(text, "base64");
  return data.length === length ? data : undefined;
}

function isId(id: unknown): id is MessageId {
  return typeof id === "string" ? id.length <= MAX_ID_CHARS : Number.isSafeInteger(id);
}

function isIntricate(bytes: Buffer): boolean {
  let left = MAX_MARKS;
  for (const mark of MARKS) {
    for (let at = bytes.indexOf(mark); at >= 0; at = bytes.indexOf(mark, at + 1)) if (left-- === 0) return true;
  }
  return false;
}
