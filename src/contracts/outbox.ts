// Writes that are kept until their server has them: what the config says of such a tool, what became of a write, and
// what an operator may do about it. The outbox implements it; endpoints, control and status ask.

import type { Reply } from "../protocol/reply.js";
import type { Caller } from "./caller.js";
import type { OwnToolName } from "./names.js";
import type { AgentCall } from "./service.js";

/** The tool by which agents ask. It has our prefix in every mode, so that no server's is called so by accident. */
export const RECEIPT_TOOL = "toolway__receipt";

/** What the URIs of receipts begin with. */
export const RECEIPT_URI = "toolway://receipts/";

/** In place of a session's name in the id of a task that is a receipt: no session is called so. */
export const RECEIPT_PLACE = "receipt";

/** Claude Code and opencode give a call up that was silent for 60 s, and not every client shows that it waits. */
export const MAX_RECEIPT_WAIT_S = 45;

/** More receipts than this are a history, and a page of so many is some 40 kB. */
export const MAX_RECEIPTS_LISTED = 100;
export const DEFAULT_RECEIPTS_LISTED = 20;

/**
 * Where the server wants the key by which it knows a write that it has had before. `argument`: at a path below `arguments`;
 * `meta`: under a name in `_meta`; `message`: nowhere in the call, since the id of the message that carries it is the key.
 */
export type KeyPlace =
  | { readonly in: "argument" | "meta"; readonly path: readonly string[] }
  | { readonly in: "message" };

/**
 * Writes of one lane are delivered one at a time, in their order. `principal`: one lane for each principal and server;
 * `argument`: one for each value of an argument, shared by all agents; `none`: no order at all.
 */
export type LaneTerms =
  | { readonly by: "principal" }
  | { readonly by: "argument"; readonly path: readonly string[] }
  | { readonly by: "none" };

/** A read-only tool of the server that says whether a write took effect. */
export interface ConfirmTerms {
  readonly tool: OwnToolName;
  /** JSON text; `{key}` in its strings stands for the write's key. */
  readonly arguments: string;
  /** A JSON pointer into the structured result: what is there proves that the write was done. */
  readonly found: string;
}

/** What the config says of a tool whose calls may be kept for later. */
export interface OutboxTerms {
  /** Undefined where the server knows no keys: what may have happened is then never sent again. */
  readonly key: KeyPlace | undefined;
  readonly lane: LaneTerms;
  readonly maxAgeMs: number;
  /** `skip`: a write whose outcome is unknown is held and its lane goes on; `hold`: the lane waits for a person. */
  readonly onUnknown: "skip" | "hold";
  readonly confirm: ConfirmTerms | undefined;
  /** Whether later results tell of what became of earlier writes. */
  readonly tells: boolean;
}

/** How much may wait at one time. One principal has half at most. */
export interface OutboxLimits {
  readonly maxWrites: number;
  readonly maxBytes: number;
}

/** What became of a write. The last five are ends. */
export type WriteState = "queued" | "sending" | "done" | "failed" | "unknown" | "expired" | "cancelled";

/** A write as its principal may see it. */
export interface Receipt {
  /** 128 random bits. */
  readonly id: string;
  readonly server: string;
  readonly tool: OwnToolName;
  readonly state: WriteState;
  readonly idempotencyKey: string;
  /** How many of its lane come before it. Undefined where it no longer waits. */
  readonly position: number | undefined;
  /** The wall clock at which it was taken, and at which its state became what it is. */
  readonly takenMs: number;
  readonly sinceMs: number;
  /** Why it waits or ended as it did, as a sentence. */
  readonly why: string | undefined;
  readonly attempts: number;
  /** The server's whole result or error, as JSON text, once there is one. */
  readonly result: string | undefined;
  readonly error: string | undefined;
  /** How many bytes the server's result had, where it is not kept; 0 where that is not known. */
  readonly lostBytes?: number | undefined;
}

/** What a principal may ask of its own writes. @public */
export interface Receipts {
  get(principal: string, id: string): Receipt | undefined;
  /** The newest first, without their results. A promise, which never rejects, where others are asked. */
  of(principal: string, limit: number): readonly Receipt[] | Promise<readonly Receipt[]>;
  /** Takes back a write that has not been sent. Gives what it is then. */
  cancel(principal: string, id: string): Promise<Receipt | undefined>;
  /** Called whenever a write of the principal has become something else. The returned function ends it. */
  onChange(listener: (principal: string, receipt: Receipt) => void): () => void;
}

/** Where agents ask after their writes. It stands before the catalog: what it takes is about no server. @public */
export interface ReceiptHandler {
  /** True where the request is about receipts: it is answered, now or later. Throws a Fault where it cannot be. */
  handle(call: AgentCall): boolean;
  /** What an agent gets whose write has no result yet: a result that says so, or a task where the agent knows them. */
  taken(caller: Caller, receipt: Receipt): Reply;
  /** The same reply with what became of the agent's earlier writes, where there is something that it was not told. */
  withNews(caller: Caller, reply: Reply): Reply;
}

/** A write that has ended, as `state` says. */
export interface EndedWrite {
  readonly facts: {
    readonly id: string;
    readonly server: string;
    readonly tool: OwnToolName;
    readonly principal: { readonly id: string; readonly role: string };
  };
  readonly state: WriteState;
  /** The log has said that it waits: its server was away when it came. */
  readonly isQueueLogged: boolean;
  /** Its agent was given a receipt in place of a result, so that no record of a call says what came of it. */
  readonly isTold: boolean;
}

export type WriteEnded = (write: EndedWrite) => void;

/** One step of what became of a write. The same again and again is one step, from its first time to its last. */
export interface LifeStep {
  readonly atMs: number;
  readonly state: WriteState;
  readonly why?: string | undefined;
  /** Absent where it was once. */
  readonly times?: number | undefined;
  readonly lastMs?: number | undefined;
}

/** A write as the operator sees it: whose it is, and what holds it. */
export interface OutboxEntry extends Receipt {
  /** What became of it since it was taken, the oldest first. Absent in lists. */
  readonly life?: readonly LifeStep[] | undefined;
  readonly principal: string;
  readonly lane: string;
  /** Undefined where a person need not do anything. */
  readonly heldFor: string | undefined;
  readonly nextTryMs: number | undefined;
  readonly bytes: number;
}

/** Some lanes of those that there are. */
export interface OutboxLanes {
  readonly lanes: readonly OutboxLane[];
  /** How many there are beside them. */
  readonly more: number;
}

export interface OutboxLane {
  readonly server: string;
  readonly lane: string;
  readonly depth: number;
  readonly oldestMs: number | undefined;
  /** Undefined where it goes on by itself. */
  readonly heldFor: string | undefined;
  /** By an operator, with all of its lanes: one by itself is not released then. */
  readonly isServerHeld: boolean;
  /** False for a write without an order, which is a lane by itself, of a name that nobody gave. */
  readonly isOrdered: boolean;
}

/** What there is of kept writes, as counted while they change: nothing is walked to tell it. */
export interface OutboxTotals {
  /** Writes that wait or are being sent. */
  readonly waiting: number;
  readonly oldestMs: number | undefined;
  readonly unknown: number;
  /** Since when the first of these is. */
  readonly unknownMs?: number | undefined;
  /** The lanes that do not go on by themselves, the first of them. */
  readonly held: readonly OutboxLane[];
  readonly heldCount: number;
}

/** What one gateway keeps, read at once. */
export interface OutboxView {
  list(filter: OutboxFilter): readonly OutboxEntry[];
  lanes(): readonly OutboxLane[];
}

export interface OutboxFilter {
  readonly server?: string;
  readonly principal?: string;
  readonly state?: WriteState;
  readonly limit: number;
}

/** What an operator may do; where others are asked, promises. Each throws an ExpectedError that says why not. @public */
export interface OutboxOperator {
  /** Of what this gateway itself keeps. */
  readonly own: OutboxView;
  list(filter: OutboxFilter): readonly OutboxEntry[] | Promise<readonly OutboxEntry[]>;
  show(id: string): OutboxEntry | undefined | Promise<OutboxEntry | undefined>;
  /** At most `max` are read, however many there are. */
  firstLanes(max: number): OutboxLanes | Promise<OutboxLanes>;
  /** Of what this gateway keeps. At most `maxHeld` lanes that are on hold are named. */
  totals(maxHeld: number): OutboxTotals;
  /** A failed, expired or held write goes back to its place in its lane. */
  retry(id: string): Promise<OutboxEntry>;
  drop(id: string): Promise<OutboxEntry>;
  hold(server: string, lane: string | undefined): Promise<number>;
  release(server: string, lane: string | undefined): Promise<number>;
  /** Answers an unknown outcome. */
  resolve(id: string, as: "done" | "failed" | "again"): Promise<OutboxEntry>;
  onChange(listener: (principal: string, receipt: Receipt) => void): () => void;
}

/** Where the pipeline hands over calls of tools that are kept, past all that could refuse them. */
export interface OutboxIntake {
  /**
   * False where the call is none of its own, and goes its way. Throws a Fault where it is refused. What was charged for a
   * call that is not sent for its sake (refused later, or known by its key) is given back by whoever takes it.
   */
  take(call: AgentCall, server: string, tool: OwnToolName): boolean;
}

/** What `toolway status` says of kept writes: what waits, and what waits for a person. */
export interface OutboxStatus {
  /** Writes that wait or are being sent. */
  readonly waiting: number;
  /** Since when the oldest waits, as a time. */
  readonly oldestAt: string | undefined;
  /** Writes whose outcome is unknown. */
  readonly unknown: number;
  /** Since when the first of these is, as a time. */
  readonly unknownAt?: string | undefined;
  /** The lanes that do not go on by themselves, the first of them. */
  readonly held: readonly {
    readonly server: string;
    readonly lane: string;
    readonly depth: number;
    readonly why: string;
    /** Since when the oldest of them waits. */
    readonly oldestAt?: string | undefined;
  }[];
  readonly heldCount: number;
}
