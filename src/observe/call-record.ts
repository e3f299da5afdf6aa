// What is kept of a call when it has ended, and the ring that keeps it until somebody has read it. Who, where to, what
// came of it and how long it took; never arguments, results, messages of errors or addresses of resources. The log of
// calls and spans are made from it, and so is whatever else wants to know of every call.

import type { Principal } from "../contracts/caller.js";
import type { RecordedBodies } from "../contracts/control/record.js";
import type { Mending } from "../contracts/service.js";
import type { RefusalRule } from "../protocol/errors.js";
import type { JsonObject, RpcId } from "../protocol/jsonrpc.js";
import type { RequestMessage } from "../protocol/message.js";
import type { Era } from "../protocol/modern.js";
import type { Outcome } from "./outcome.js";
import type { CacheUse } from "./traces.js";

/** The objects of a ring are used again: whoever wants to keep one copies what is needed. */
export interface CallRecord {
  /** When it ended, in milliseconds since 1970. */
  endedAt: number;
  /** How long it took, until its reply was there; of one that is too large to be held, until it began. */
  ms: number;
  principal: Principal;
  /** What the agent says of itself. */
  clientInfo: JsonObject;
  agentEra: Era;
  method: string;
  /** Undefined where the call was answered or refused before a server was chosen. */
  server: string | undefined;
  /** The server's own name of the tool; what the agent asked for where there is none. Undefined for what is no tool. */
  tool: string | undefined;
  /** The server's; undefined where it never came up, or there is none. */
  era: Era | undefined;
  /** 1, or 2 where the call was sent again. */
  attempt: number;
  outcome: Outcome;
  /** Where the answer came from; undefined where it was not asked for in the cache. */
  cache: CacheUse | undefined;
  /** The JSON-RPC code of the error that the server answered with; 0 where it did not. */
  errorCode: number;
  /** The rule of ours that refused it; undefined where none did. */
  refusedBy: RefusalRule | undefined;
  /** Of the write that its agent was given in place of a result; undefined where it has its result. */
  receipt: string | undefined;
  /** What was mended on its way. */
  mended: Mending | undefined;
  /** Of the request; of a long one its characters. */
  bytesIn: number;
  /** Of the reply, as the server sent it. Undefined where nobody knows without making the text. */
  bytes: number | undefined;
  /** Where its time went; what is left of `ms` we were at it ourselves. */
  queuedMs: number;
  startingMs: number;
  credentialMs: number;
  serverMs: number;
  returningMs: number;
  /** How its server is reached; undefined where there is none. */
  transport: Transport | undefined;
  /** Of the protocol, as the agent speaks it. */
  version: string;
  sessionKey: string;
  /** Undefined where it was not traced. */
  traceId: string | undefined;
  /** The agent's own id of the request. */
  id: RpcId;
  /** Undefined where nobody wants what was asked: only the audit log may, and it is never kept beyond the moment. */
  asked: AskedArguments | undefined;
  /** Undefined unless a person records this call. */
  recorded: RecordedCall | undefined;
}

/** The arguments of a call for the audit log: the request, or what the log shows of it where that is made already. */
export interface AskedArguments {
  readonly message?: RequestMessage;
  readonly shown?: unknown;
}

/** What was recorded of a call, until the recording is over. */
interface RecordedCall {
  readonly isKept: boolean;
  /** Without the secrets of its server's entry. */
  read(): RecordedBodies | undefined;
}

/** As OpenTelemetry calls them. */
export type Transport = "pipe" | "tcp";

/** What of a call's time was ours. */
export function ownMs({ ms, queuedMs, startingMs, credentialMs, serverMs }: CallRecord): number {
  return Math.max(0, ms - queuedMs - startingMs - credentialMs - serverMs);
}

const NOBODY: Principal = { id: "", role: "" };
const NOTHING: JsonObject = {};

/** Of a fixed size. It has no clock and writes nothing. */
export class CallRing {
  readonly #records: CallRecord[];
  /** The next to be read, and how many wait. */
  #first = 0;
  #waiting = 0;
  #dropped = 0;

  constructor(size: number) {
    this.#records = Array.from({ length: size }, emptyRecord);
  }

  get waiting(): number {
    return this.#waiting;
  }

  /** A record to be filled at once. Undefined where all of them wait to be read: the call is counted as dropped. */
  next(): CallRecord | undefined {
    const size = this.#records.length;
    if (this.#waiting === size) {
      this.#dropped++;
      return undefined;
    }
    const at = this.#first + this.#waiting++;
    return this.#records[at < size ? at : at - size];
  }

  /** Gives every record that waits, oldest first, and forgets what was in it. */
  read(take: (record: CallRecord) => void): void {
    const size = this.#records.length;
    while (this.#waiting > 0) {
      const record = this.#records[this.#first] as CallRecord;
      this.#first = this.#first + 1 < size ? this.#first + 1 : 0;
      this.#waiting--;
      try {
        take(record);
      } finally {
        clearRecord(record);
      }
    }
  }

  /** How many calls found no room since this was asked last. */
  takeDropped(): number {
    const dropped = this.#dropped;
    this.#dropped = 0;
    return dropped;
  }
}

/** An agent's texts are not held by a record that nobody fills any more. */
export function clearRecord(record: CallRecord): void {
  record.clientInfo = NOTHING;
  record.principal = NOBODY;
  record.method = "";
  record.tool = undefined;
  record.version = "";
  record.sessionKey = "";
  record.traceId = undefined;
  record.receipt = undefined;
  record.id = 0;
  record.asked = undefined;
  record.recorded = undefined;
}

export function emptyRecord(): CallRecord {
  return {
    endedAt: 0,
    ms: 0,
    principal: NOBODY,
    clientInfo: NOTHING,
    agentEra: "legacy",
    method: "",
    server: undefined,
    tool: undefined,
    era: undefined,
    attempt: 1,
    outcome: "ok",
    cache: undefined,
    errorCode: 0,
    refusedBy: undefined,
    receipt: undefined,
    mended: undefined,
    bytesIn: 0,
    bytes: undefined,
    queuedMs: 0,
    startingMs: 0,
    credentialMs: 0,
    serverMs: 0,
    returningMs: 0,
    transport: undefined,
    version: "",
    sessionKey: "",
    traceId: undefined,
    id: 0,
    asked: undefined,
    recorded: undefined,
  };
}

/** Member by member: a copy by the language's own means costs several times as much. */
export function copyRecord(from: CallRecord, to: CallRecord): void {
  to.endedAt = from.endedAt;
  to.ms = from.ms;
  to.principal = from.principal;
  to.clientInfo = from.clientInfo;
  to.agentEra = from.agentEra;
  to.method = from.method;
  to.server = from.server;
  to.tool = from.tool;
  to.era = from.era;
  to.attempt = from.attempt;
  to.outcome = from.outcome;
  to.cache = from.cache;
  to.errorCode = from.errorCode;
  to.refusedBy = from.refusedBy;
  to.receipt = from.receipt;
  to.mended = from.mended;
  to.bytesIn = from.bytesIn;
  to.bytes = from.bytes;
  to.queuedMs = from.queuedMs;
  to.startingMs = from.startingMs;
  to.credentialMs = from.credentialMs;
  to.serverMs = from.serverMs;
  to.returningMs = from.returningMs;
  to.transport = from.transport;
  to.version = from.version;
  to.sessionKey = from.sessionKey;
  to.traceId = from.traceId;
  to.id = from.id;
  to.recorded = from.recorded;
}
