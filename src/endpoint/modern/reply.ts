// Replies as a modern agent reads them: `resultType`, caching hints and error codes that a legacy server does not
// have. What a modern server wrote passes as it is. Pure.

import { Transform, type TransformCallback } from "node:stream";
import { PiecedReply, replySize } from "../../protocol/arrived.js";
import { ErrorCode, isObject, isRpcError, type JsonObject, type RpcError } from "../../protocol/jsonrpc.js";
import { locate, parseMessage } from "../../protocol/message.js";
import { Meta, ModernError } from "../../protocol/modern.js";
import { type BytesReply, type Reply, withResultMembers } from "../../protocol/reply.js";
import { scanMembers } from "../../protocol/scan.js";
import { MIB } from "../../runtime/sizes.js";

/** A server of 2025-11-25 says by this that the user has to open a page first. */
export const URL_ELICITATION_REQUIRED = -32042;

/** Up to here a reply is parsed where splicing cannot help; larger ones pass as they are, and mean `complete` too. */
const PARSED_BYTES = 1 * MIB;

/** What replies to a request need to become modern. */
export interface ReplyShape {
  readonly method: string;
  readonly uri: unknown;
  readonly serverInfo: JsonObject;
}

/** Nobody knows how long a result of a legacy server is good, nor for whom. */
const UNKNOWN_FRESHNESS = { ttlMs: 0, cacheScope: "private" } as const;

/** Results that must say how long they are good. Lists come from the service with all of it, as a rule. */
const CACHEABLE: ReadonlySet<string> = new Set([
  "resources/read",
  "tools/list",
  "prompts/list",
  "resources/list",
  "resources/templates/list",
]);

function addedMembers(method: string): JsonObject {
  return { resultType: "complete", ...(CACHEABLE.has(method) ? UNKNOWN_FRESHNESS : {}) };
}

/** `error` is what errorOf() says of the reply, so that it is read once. */
export function toModern(reply: Reply, shape: ReplyShape, error = errorOf(reply)): Reply {
  switch (reply.kind) {
    case "error":
      return { ...reply, error: modernError(reply.error, shape) };
    case "result":
      return { kind: "result", result: ownResult(reply.result, shape) };
    case "stream": {
      if (reply.era === "modern") return reply;
      const { open } = reply;
      const members = membersText(shape.method);
      return { kind: "stream", open: (id) => open.call(reply, id).pipe(new HeadSplice(members, id.length)) };
    }
    case "bytes":
      return error === undefined ? modernBytes(reply, shape) : errorBytes(reply, shape, error);
  }
}

function membersText(method: string): string {
  return JSON.stringify(addedMembers(method)).slice(1, -1);
}

/** A result that the gateway made itself. */
function ownResult(result: unknown, shape: ReplyShape): unknown {
  if (!isObject(result)) return result;
  const meta = isObject(result["_meta"]) ? result["_meta"] : {};
  return { ...addedMembers(shape.method), ...result, _meta: { [Meta.serverInfo]: shape.serverInfo, ...meta } };
}

function modernBytes(reply: BytesReply, shape: ReplyShape): Reply {
  const small = replySize(reply) <= PARSED_BYTES;
  // An error that cannot be read passes as it came, too.
  if (small && isError(reply)) return reply;
  if (reply.era === "modern") return reply;
  const added = addedMembers(shape.method);
  // A legacy server may have such members by chance; two of one name would be read differently by different parsers.
  const doubled = small && Object.keys(added).some((key) => reply.bytes.includes(`"${key}"`));
  const spliced = doubled ? undefined : withResultMembers(reply, membersText(shape.method));
  return spliced ?? (small ? scanned(reply, added) : undefined) ?? reply;
}

/** As the server wrote it, unless its code is one that the modern era does not have. */
function errorBytes(reply: BytesReply, shape: ReplyShape, error: RpcError): Reply {
  const changed = modernError(error, shape);
  return changed === error ? { ...reply, errorCode: error.code } : { kind: "error", error: changed };
}

/** Finds the result wherever it stands, and adds what it lacks. Undefined for what is no result. */
function scanned(reply: BytesReply, added: JsonObject): BytesReply | undefined {
  const text = reply.bytes.toString();
  let at: number | undefined;
  try {
    const message = parseMessage(text);
    at = message.kind === "response" && isObject(message.result) ? locate(message, ["result"])?.start : undefined;
  } catch {
    return undefined;
  }
  if (at === undefined) return undefined;
  const present = scanMembers(text, at);
  const lacking = Object.entries(added).filter(([key]) => !present.some((member) => member.key === key));
  const members = JSON.stringify(Object.fromEntries(lacking)).slice(1, -1);
  const inserted = Buffer.from(members === "" || present.length === 0 ? members : `${members},`);
  const before = Buffer.byteLength(text.slice(0, at + 1));
  const shift = before <= reply.idStart ? inserted.length : 0;
  return {
    kind: "bytes",
    bytes: Buffer.concat([reply.bytes.subarray(0, before), inserted, reply.bytes.subarray(before)]),
    idStart: reply.idStart + shift,
    idEnd: reply.idEnd + shift,
    era: "modern",
  };
}

const ERROR_AFTER_ID = /^\s*,\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"error"\s*:/;
const ERROR_AT_HEAD = /^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"error"\s*:/;
/** The fixed words and some white space. */
const WINDOW = 96;

const PLAIN_ID = '{"jsonrpc":"2.0","id":'.length;
const COMMA = 0x2c;
const QUOTE = 0x22;
const LETTER_R = 0x72;

export function isError(reply: BytesReply): boolean {
  const { idStart, idEnd } = reply;
  const bytes = reply instanceof PiecedReply ? reply.first : reply.bytes;
  // How nearly every result begins: `{"jsonrpc":"2.0","id":1,"r`.
  const isPlain = idStart === PLAIN_ID && bytes[idEnd] === COMMA && bytes[idEnd + 1] === QUOTE;
  if (isPlain && bytes[idEnd + 2] === LETTER_R) return false;
  return (
    ERROR_AFTER_ID.test(bytes.toString("latin1", idEnd, idEnd + WINDOW)) ||
    ERROR_AT_HEAD.test(bytes.toString("latin1", 0, WINDOW))
  );
}

/** What went wrong, where it did and can be told without holding much. */
export function errorOf(reply: Reply): RpcError | undefined {
  if (reply.kind === "error") return reply.error;
  if (reply.kind !== "bytes" || replySize(reply) > PARSED_BYTES || !isError(reply)) return undefined;
  try {
    const { error } = JSON.parse(reply.bytes.toString()) as JsonObject;
    return isRpcError(error) ? error : undefined;
  } catch {
    return undefined;
  }
}

/** The texts of a tool's result that says of itself that it failed; undefined for any other. */
export function failureTexts(reply: Reply): string[] | undefined {
  if (reply.kind !== "bytes" || replySize(reply) > PARSED_BYTES || !reply.bytes.includes('"isError"')) return undefined;
  try {
    const { result } = JSON.parse(reply.bytes.toString()) as { result?: unknown };
    if (!isObject(result) || result["isError"] !== true || !Array.isArray(result["content"])) return undefined;
    return result["content"].map((item: unknown) => (isObject(item) ? String(item["text"] ?? "") : ""));
  } catch {
    return undefined;
  }
}

/** Codes of the legacy era that a modern server must not send. */
function modernError(error: RpcError, { method, uri }: ReplyShape): RpcError {
  const notFound = error.code === ErrorCode.resourceNotFound;
  if (!notFound && (method !== "resources/read" || error.code !== ErrorCode.invalidParams)) return error;
  const code = ErrorCode.invalidParams;
  const { data } = error;
  if (typeof uri !== "string" || (data !== undefined && !isObject(data))) return { ...error, code };
  return { ...error, code, data: { uri, ...data } };
}

export function missingCapability(message: string, requiredCapabilities: JsonObject): RpcError {
  return { code: ModernError.missingCapability, message, data: { requiredCapabilities } };
}

// As in protocol/reply.ts, with an id that is the agent's own.
const RESULT_IN_STREAM =
  /^\s*\{\s*(?:"(?:jsonrpc|id)"\s*:\s*(?:"(?:[^"\\]|\\.)*"|-?[\d.eE+-]+)\s*,\s*){0,2}"result"\s*:\s*\{\s*(\})?/;

/** Puts members in front of the result's own, in the head of a reply that is passed on as it comes. */
class HeadSplice extends Transform {
  readonly #members: string;
  readonly #window: number;
  #head: Buffer | undefined = Buffer.alloc(0);

  constructor(members: string, idLength: number) {
    super();
    this.#members = members;
    this.#window = WINDOW + idLength;
    // pipe() passes no errors on: a body that breaks off must not look like one that ended.
    this.once("pipe", (source) => {
      source.once("error", (error: Error) => this.destroy(error));
      source.once("close", () => {
        if (!source.readableEnded) this.destroy();
      });
      this.once("close", () => source.destroy());
    });
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    if (this.#head === undefined) {
      done(null, chunk);
      return;
    }
    this.#head = this.#head.length === 0 ? chunk : Buffer.concat([this.#head, chunk]);
    if (this.#head.length < this.#window) done();
    else done(null, this.#spliced(this.#head));
  }

  override _flush(done: TransformCallback): void {
    if (this.#head === undefined) done();
    else done(null, this.#spliced(this.#head));
  }

  #spliced(head: Buffer): Buffer {
    this.#head = undefined;
    const match = RESULT_IN_STREAM.exec(head.toString("latin1", 0, this.#window));
    if (match === null) return head;
    const empty = match[1] !== undefined;
    const at = match[0].length - (empty ? 1 : 0);
    return Buffer.concat([
      head.subarray(0, at),
      Buffer.from(empty ? this.#members : `${this.#members},`),
      head.subarray(at),
    ]);
  }
}
