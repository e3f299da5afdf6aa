// A write as it is kept: its record on disk, and the same in memory while it lives. What it carries (the call's text, the
// server's result) is kept beside it, and is in memory only while it is used.

import type { OwnToolName } from "../../contracts/names.js";
import type { KeyPlace, LaneTerms, LifeStep, OutboxTerms, WriteState } from "../../contracts/outbox.js";
import { isObject, type JsonObject } from "../../protocol/jsonrpc.js";
import type { Era } from "../../protocol/modern.js";

export const RECORD_VERSION = 1;

/** What is said of a write: not every state is a word that "is" goes before. */
export const STATE_WORDS: Readonly<Record<WriteState, string>> = {
  queued: "is queued",
  sending: "is being sent",
  done: "is done",
  failed: "has failed",
  unknown: "has an unknown outcome",
  expired: "has expired",
  cancelled: "was cancelled",
};

/** Why a write or its lane waits for something that is no matter of time. */
export type HoldKind = "quarantine" | "login" | "forbidden" | "person" | "unknown" | "version";

/** What does not change from the moment in which a write is taken. */
export interface WriteFacts {
  readonly id: string;
  readonly server: string;
  readonly tool: OwnToolName;
  readonly principal: { readonly id: string; readonly role: string };
  /** Its principal had a token of its own, which may be revoked meanwhile. */
  readonly byToken?: true | undefined;
  /** Writes of one lane are delivered in their order. Undefined where there is no order. */
  readonly lane: string | undefined;
  /** The key as its agent knows it, and over what it counts: principal, server, tool and key in one hash. */
  readonly key: string;
  readonly keyHash: string;
  /** The key as the server knows it, where that is another one. */
  readonly sentKey?: string | undefined;
  /** Of the arguments without the key. */
  readonly argumentsHash: string;
  /** As they were when it was taken: a reload changes nothing about what is queued. */
  readonly terms: OutboxTerms;
  readonly era: Era;
  readonly version: string;
  /** Of several gateways: which server its name meant where it was taken, as a hash. It goes to no other. */
  readonly target?: string | undefined;
  readonly takenMs: number;
  /** Of its text. */
  readonly bytes: number;
}

export interface WriteMessage {
  readonly journal: string;
  readonly untilAgeMs: number;
}

/** What becomes of it, as it is kept. */
interface WriteProgress {
  readonly state: WriteState;
  /** The wall clock when it came into this state. */
  readonly sinceMs: number;
  readonly why?: string | undefined;
  /** How often a byte of it may have left. */
  readonly attempts: number;
  /** How many of these the server answered with "not done". */
  readonly notDone?: number | undefined;
  /** It may have taken effect: it is sent again only under its key, or once it is known that it did not. */
  readonly maybe?: true | undefined;
  /** The agent took it back: it is never sent again. */
  readonly takenBack?: true | undefined;
  /** A person must say that it may go on. */
  readonly held?: true | undefined;
  /** Where its message's id is its key: who writes the message down, and how old the write is when that is forgotten. */
  readonly message?: WriteMessage | undefined;
  /** How often it has begun anew, for an operator or because it was not done: each time is a message of its own. */
  readonly round?: number | undefined;
  /** How old it was when this was written, by the steady clock, and what the wall clock said then. */
  readonly ageMs: number;
  readonly agedAtMs: number;
  /** What became of it, in steps. */
  readonly life?: readonly LifeStep[] | undefined;
  readonly hasResult?: true | undefined;
  readonly resultBytes?: number | undefined;
  /** How large the result was that is not kept; 0 where that is not known. */
  readonly lostBytes?: number | undefined;
}

export interface WriteRecord extends WriteFacts, WriteProgress {
  readonly v: typeof RECORD_VERSION;
}

/** One that this program can read; undefined for one of another kind or version, which is held and shown. */
export function readRecord(value: unknown): WriteRecord | undefined {
  if (!isObject(value) || value["v"] !== RECORD_VERSION) return undefined;
  const { id, server, tool, principal, keyHash, terms, state, ageMs, agedAtMs } = value;
  const texts = [id, server, tool, keyHash, state];
  if (!texts.every((one) => typeof one === "string") || !isObject(principal) || !isObject(terms)) return undefined;
  if (typeof ageMs !== "number" || typeof agedAtMs !== "number" || !STATES.has(state as string)) return undefined;
  const { key, lane, onUnknown } = terms;
  if (key !== undefined && !KEY_PLACES.has(wordOf(key, "in"))) return undefined;
  if (!LANES.has(wordOf(lane, "by")) || !UNKNOWNS.has(onUnknown)) return undefined;
  return value as unknown as WriteRecord;
}

function wordOf(value: unknown, name: string): unknown {
  return isObject(value) ? value[name] : undefined;
}

const KEY_PLACES: ReadonlySet<unknown> = new Set<KeyPlace["in"]>(["argument", "meta", "message"]);
const LANES: ReadonlySet<unknown> = new Set<LaneTerms["by"]>(["principal", "argument", "none"]);
const UNKNOWNS: ReadonlySet<unknown> = new Set<OutboxTerms["onUnknown"]>(["skip", "hold"]);

const STATES: ReadonlySet<string> = new Set<WriteState>([
  "queued",
  "sending",
  "done",
  "failed",
  "unknown",
  "expired",
  "cancelled",
]);

const ENDS: ReadonlySet<WriteState> = new Set<WriteState>(["done", "failed", "unknown", "expired", "cancelled"]);

export function isEnd(state: WriteState): boolean {
  return ENDS.has(state);
}

/** What can be told of a record that cannot be read. */
export interface StrangeRecord {
  readonly sequence: number;
  readonly id: string;
  readonly server: string;
  readonly tool: string;
  readonly principal: string;
  readonly version: string;
}

export function strangeRecord(sequence: number, value: unknown): StrangeRecord {
  const record: JsonObject = isObject(value) ? value : {};
  const text = (name: string) => (typeof record[name] === "string" ? (record[name] as string) : "");
  const principal = isObject(record["principal"]) ? record["principal"]["id"] : undefined;
  return {
    sequence,
    id: text("id") || `record-${sequence}`,
    server: text("server"),
    tool: text("tool"),
    principal: typeof principal === "string" ? principal : "",
    version: JSON.stringify(record["v"]) ?? "none",
  };
}
