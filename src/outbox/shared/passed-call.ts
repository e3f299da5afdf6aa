// A call that is passed from the gateway that an agent came to, to the one that owns what it is about; and its reply on the way
// back. A reply's bytes are passed on as they are.

import { Buffer } from "node:buffer";
import { randomBytes } from "node:crypto";
import type { Caller, Principal } from "../../contracts/caller.js";
import type { AgentCall } from "../../contracts/service.js";
import { Fault, toRpcError } from "../../protocol/errors.js";
import type { JsonObject, RpcError } from "../../protocol/jsonrpc.js";
import { parseMessage, type RequestMessage, type ResponseMessage } from "../../protocol/message.js";
import type { Era } from "../../protocol/modern.js";
import { type Reply, renderReply, replyText } from "../../protocol/reply.js";
import { scanMembers } from "../../protocol/scan.js";
import { MIB } from "../../runtime/sizes.js";
import { placedText } from "../key.js";

/** A larger answer is not passed on: its receipt has what became of the write. */
const MAX_REPLY_BYTES = 8 * MIB;

/** What the owner has to know of a call. */
export interface CallFacts {
  /** The id of this pass, so that it can be taken back. */
  readonly pass: string;
  readonly principal: Principal;
  readonly sessionKey: string;
  readonly era: Era;
  readonly version: string;
  readonly capabilities: JsonObject;
  readonly clientInfo: JsonObject;
  readonly scope: string | undefined;
  readonly text: string;
}

export function factsOf(call: AgentCall): CallFacts {
  const { caller, message, scope } = call;
  const { principal, sessionKey, era, version, capabilities, clientInfo } = caller;
  return {
    pass: randomBytes(12).toString("base64url"),
    principal: { id: principal.id, role: principal.role },
    sessionKey,
    era,
    version,
    capabilities,
    clientInfo,
    scope,
    text: placedText(message, call),
  };
}

/** The agent of a call that came by another gateway: it waits for the answer, and can be told and asked nothing else. */
class PassedCaller implements Caller {
  readonly principal: Principal;
  readonly sessionKey: string;
  readonly era: Era;
  readonly version: string;
  readonly capabilities: JsonObject;
  readonly clientInfo: JsonObject;
  readonly logLevel = undefined;
  readonly hearsNothing = true;

  constructor({ principal, sessionKey, era, version, capabilities, clientInfo }: CallFacts) {
    this.principal = principal;
    this.sessionKey = sessionKey;
    this.era = era;
    this.version = version;
    this.capabilities = capabilities;
    this.clientInfo = clientInfo;
  }

  setLogLevel(): void {}

  notify(): void {}

  ask({ method }: RequestMessage): Promise<ResponseMessage> {
    const text = `The server asked for ${method}, and the agent of this call is at another gateway: it cannot be asked.`;
    return Promise.reject(new Fault("no-caller", text));
  }
}

export class PassedCall implements AgentCall {
  readonly caller: Caller;
  readonly message: RequestMessage;
  readonly scope: string | undefined;
  onCancel: ((reason: string | undefined) => void) | undefined = undefined;
  /** What was charged for it is given back where it was charged. */
  isGivenBack = false;
  #onReply: ((reply: Reply) => void) | undefined;
  /** Another gateway keeps it by now, and nothing was begun: whoever passed it on passes it there. */
  readonly moved: (mayBeKept: boolean) => void;

  constructor(facts: CallFacts, onReply: (reply: Reply) => void, moved: PassedCall["moved"]) {
    const message = parseMessage(facts.text);
    if (message.kind !== "request") throw new Fault("invalid", "What another gateway passed on is no request.");
    this.caller = new PassedCaller(facts);
    this.message = message;
    this.scope = facts.scope;
    this.#onReply = onReply;
    this.moved = moved;
  }

  reply(reply: Reply): void {
    const onReply = this.#onReply;
    this.#onReply = undefined;
    onReply?.(reply);
  }
}

/** A line of JSON, and bytes behind it. */
export function frame(head: object, bytes: Uint8Array = NOTHING): Uint8Array {
  return Buffer.concat([Buffer.from(`${JSON.stringify(head)}\n`), bytes]);
}

export function unframe<T>(body: Uint8Array): [head: T, bytes: Buffer] {
  const buffer = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  const end = buffer.indexOf(0x0a);
  return [JSON.parse(buffer.toString("utf8", 0, end)) as T, buffer.subarray(end + 1)];
}

/** What comes back for a call that was passed on. */
export type PassedReply =
  /** Another gateway owns it by now: nothing was begun. `mayBeKept`: but it may be written down. */
  | { readonly kind: "not-owner"; readonly mayBeKept?: boolean | undefined }
  /** It is none of what is kept: whoever passed it on sends it. */
  | { readonly kind: "not-kept" }
  | { readonly kind: "replied"; readonly reply: Reply; readonly isGivenBack: boolean };

interface ReplyHead {
  readonly kind: PassedReply["kind"];
  readonly mayBeKept?: boolean;
  readonly isGivenBack?: boolean;
  readonly error?: RpcError;
  readonly era?: "modern";
  /** The gateway's own words, as a receipt is, and no server's: they are not rewritten for an agent. Absent from older gateways. */
  readonly isOwn?: boolean;
  readonly idStart?: number;
  readonly idEnd?: number;
}

export async function encodeReply(reply: Reply, isGivenBack: boolean): Promise<Uint8Array> {
  const head = { kind: "replied" as const, isGivenBack };
  if (reply.kind === "error") return frame({ ...head, error: reply.error });
  if (reply.kind === "bytes" && reply.bytes.length <= MAX_REPLY_BYTES) {
    const { era, idStart, idEnd } = reply;
    return frame({ ...head, era, idStart, idEnd }, reply.bytes);
  }
  try {
    const text = reply.kind === "stream" ? await replyText(reply, "0", { maxBytes: MAX_REPLY_BYTES }) : rendered(reply);
    const id = scanMembers(text, text.indexOf("{")).find(({ key }) => key === "id");
    if (id === undefined) throw new Fault("protocol", "The server's answer has no id.");
    const idStart = Buffer.byteLength(text.slice(0, id.start));
    const idEnd = idStart + Buffer.byteLength(text.slice(id.start, id.end));
    const isOwn = reply.kind === "result";
    const era = isOwn ? undefined : reply.era;
    return frame({ ...head, era, isOwn, idStart, idEnd }, Buffer.from(text));
  } catch (error) {
    return frame({ ...head, error: toRpcError(error) });
  }
}

function rendered(reply: Exclude<Reply, { kind: "stream" }>): string {
  const bytes = renderReply(reply, "0");
  if (bytes.length > MAX_REPLY_BYTES) throw new Fault("limit", `The answer has more than ${MAX_REPLY_BYTES} bytes.`);
  return bytes.toString();
}

export function decodeReply(body: Uint8Array): PassedReply {
  const [head, bytes] = unframe<ReplyHead>(body);
  const { kind, isGivenBack = false, error, era, idStart = 0, idEnd = 0 } = head;
  if (kind === "not-owner") return { kind, mayBeKept: head.mayBeKept };
  if (kind !== "replied") return { kind };
  if (error !== undefined) return { kind, isGivenBack, reply: { kind: "error", error } };
  if (head.isOwn === true) {
    const { result } = JSON.parse(bytes.toString()) as { result: unknown };
    return { kind, isGivenBack, reply: { kind: "result", result } };
  }
  return { kind, isGivenBack, reply: { kind: "bytes", era, bytes, idStart, idEnd } };
}

const NOTHING = new Uint8Array(0);
