// What the two ends say to each other: JSON-RPC over WebSocket without a `jsonrpc` field, the exec-server's methods and
// field names. What is ours beyond them is under `toolway` at initialize, and used only where both ends said it.

/** Methods of the exec-server. */
export const INITIALIZE = "initialize";
export const INITIALIZED = "initialized";
export const REQUEST = "http/request";
export const BODY_DELTA = "http/request/bodyDelta";
/** Methods of ours, used where both ends agreed to them. */
export const CANCEL = "http/request/cancel";
export const UPLOAD = "http/request/upload";
export const CREDIT = "http/request/credit";
/** The executor is about to stop: it ends what is under way, and takes nothing more. */
export const STOPPING = "session/stopping";
/** The `code` of a request that came after that. */
export const STOPPING_CODE = "stopping";

/** The version of our extensions. Ends with different numbers do without them. */
export const EXTENSIONS_VERSION = 1;

export const RpcCode = {
  invalidRequest: -32600,
  unknownMethod: -32601,
  invalidParams: -32602,
  failed: -32603,
} as const;

export interface HttpHeader {
  readonly name: string;
  readonly value: string;
}

export interface HttpRequestParams {
  readonly method: string;
  readonly url: string;
  readonly headers: readonly HttpHeader[];
  readonly bodyBase64?: string | null;
  readonly timeoutMs?: number | null;
  /** With `stop`, a redirect is the answer; else it is followed. */
  readonly redirectPolicy?: "follow" | "stop" | null;
  readonly requestId: string;
  readonly streamResponse: boolean;
  /** An extension of ours: the body comes in `http/request/upload` messages. */
  readonly streamRequest?: boolean;
}

export interface HttpRequestResult {
  readonly status: number;
  readonly headers: readonly HttpHeader[];
  /** Empty where the answer is streamed. */
  readonly bodyBase64: string;
}

/** `http/request/bodyDelta` and, the other way, `http/request/upload`. `seq` counts from 1. */
export interface BodyDelta {
  readonly requestId: string;
  readonly seq: number;
  readonly data: Buffer;
  readonly done: boolean;
  readonly error: string | undefined;
}

export interface InitializeParams {
  readonly clientName: string;
  readonly resumeSessionId?: string | null;
  readonly toolway?: Offer;
}

export interface InitializeResult {
  readonly sessionId: string;
  readonly toolway?: Agreement;
}

/** What the client offers at initialize. */
export interface Offer {
  readonly version: number;
  /** Raw bytes of a response's body that may be sent before the first `http/request/credit`. */
  readonly window: number;
  /** How many messages of the conversation that `resumeSessionId` names have arrived here; 0 for a new one. */
  readonly received: number;
}

/** What the executor answers where both ends have credit, cancel, uploads and resume. */
export interface Agreement {
  readonly version: number;
  /** Raw bytes of a request's body that may be sent before the first `http/request/credit`. */
  readonly window: number;
  /** How long the conversation is kept without a socket. */
  readonly retentionMs: number;
  /** True where the conversation that was asked for goes on. */
  readonly resumed: boolean;
  /** How many messages of it have arrived at the executor. */
  readonly received: number;
}

/** What goes with the error of a request at our executor: enough to know whether it may be sent again. */
export interface FailureData {
  /**
   * As Node names it (`ECONNREFUSED`), or `forbidden`, `timeout`, `limit`, `redirect`, `cancelled`, `busy`, `stopping`, `invalid`.
   */
  readonly code: string;
  /** False where it is certain that the server saw nothing of the request. */
  readonly written: boolean;
}

export type MessageId = string | number;

export interface RpcFailure {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}

/** Whether a peer's number of bytes, messages or milliseconds can be one. */
export function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
