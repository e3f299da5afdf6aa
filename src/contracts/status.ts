// What `toolway status` and the control socket tell of a running gateway.

import type { AskShown } from "./control/asks.js";
import type { AuditHeadAnswer } from "./control/audit.js";
import type { RecordingShown } from "./control/record.js";
import type { ExecutorStatus } from "./executors.js";
import type { OutboxStatus } from "./outbox.js";
import type { UnlistedRoles } from "./settings.js";
import type { ListKind } from "./upstream.js";

/**
 * `misconfigured`: its entry in the config cannot be used, and `lastError` says why. `waiting`: the executor that it is
 * reached through is not connected.
 */
export type ServerState =
  | "idle"
  | "starting"
  | "waiting"
  | "ready"
  | "backoff"
  | "ejected"
  | "stopped"
  | "misconfigured";

/** What became of a server, as a program that reads the log is told it. */
export interface StateFacts {
  readonly state: ServerState;
  /** How it was before. */
  readonly from: ServerState;
  /** The kind of what is wrong. */
  readonly reason?: string | undefined;
  /** Undefined where nothing is tried by itself. */
  readonly nextTryInMs?: number | undefined;
  readonly readyAfterMs?: number | undefined;
}

/** The engine that a gateway shares with others, as the operator is shown it. */
export interface EngineSeen {
  readonly state: "connecting" | "connected" | "away" | "refused" | "closed";
  /** By which the others know this gateway; another with each start. */
  readonly gateway: string;
  readonly node: string | undefined;
  readonly version: string | undefined;
  readonly since: string;
  readonly problem: string | undefined;
  /** When it is dialled again; undefined while it is there. */
  readonly nextTry: string | undefined;
  /** It has been away for so long that tokens are not taken any more. */
  readonly isStale: boolean;
  /** Records that cannot be read, of a newer version for instance: they are left alone. */
  readonly held: number;
  /** Other gateways that go by another config, a sentence for each. */
  readonly differences: readonly string[];
  /** All that are on it, this one first. */
  readonly gateways: readonly EngineGatewaySeen[];
}

/**
 * A gateway that is drained goes on answering for so long after its /readyz said so: balancers look every second or two, and what
 * they send it until then must not be refused.
 */
export const DRAIN_NOTICE_MS = 5_000;

/** One of the gateways that share an engine. */
export interface EngineGatewaySeen {
  readonly gateway: string;
  /** The one that was asked. */
  readonly isThis: boolean;
  /** It hands over, and takes nothing any more. */
  readonly isLeaving: boolean;
  /** Where it is, in words that people have for it; undefined of one that has not said so, as brokers do not. */
  readonly place: GatewayPlace | undefined;
  /** The share of the queues that it acts for. */
  readonly partitions: number;
  /** Of Toolway; undefined of one that has not said so, as brokers do not. */
  readonly version: string | undefined;
  /** The beginning of a hash of what it goes by: servers, roles and menus. The same where these are the same. */
  readonly config: string | undefined;
}

/** Where a gateway is: its name among gateways is drawn anew with each start, and tells nobody which one it is. */
export interface GatewayPlace {
  /** The machine, as it calls itself. */
  readonly host: string;
  /** The name of its config's file, without the folder. */
  readonly file?: string | undefined;
  /** Where agents reach it, as `127.0.0.1:7420`; undefined until it listens. */
  readonly address?: string | undefined;
}

/** A state directory that cannot be written, as the operator is shown it. */
export interface StoreSeen {
  readonly path: string;
  /** What to do is said in it. */
  readonly problem: string;
  readonly since: string;
  /** Whether it is the disk that has no room. */
  readonly isDiskFull: boolean;
}

/** What the cache did for one server. */
export interface CacheStats {
  /** Calls that were answered from what was kept. */
  readonly hits: number;
  /** Calls that were sent to the server. */
  readonly misses: number;
  /** Calls that were answered with the reply to another call. */
  readonly coalesced: number;
  readonly entries: number;
  readonly bytes: number;
}

/** The credential that goes with requests to a server, and never the credential itself. */
export interface CredentialStatus {
  /** Where it comes from, in words. */
  readonly source: string;
  /** `unread`: nobody has needed it yet; `absent`: requests go out without. */
  readonly state: "unread" | "known" | "absent" | "refused" | "failed";
  /** Why it cannot be had. */
  readonly problem?: string | undefined;
  /** Whether a person has to log in: `toolway login`. Absent where no login is meant. */
  readonly needsLogin?: boolean | undefined;
  /** Whether the token is followed by another without a person. Absent where no login is meant. */
  readonly isRenewed?: boolean | undefined;
  /** Until when the token is good, where it says so. */
  readonly until?: string | undefined;
}

export interface ServerStatus {
  readonly name: string;
  /** Undefined where the entry of a misconfigured server does not say. */
  readonly kind: "stdio" | "http" | "sse" | "mailbox" | undefined;
  readonly isolation: "shared" | "session";
  /** The executor that makes its requests, where it is in another network. */
  readonly via: string | undefined;
  /** Of one that a single gateway runs for all: which does, undefined while none does. Absent where each has its own. */
  readonly placement?: { readonly gateway: string | undefined; readonly isHere: boolean } | undefined;
  /** Absent where its entry has none, or has it in its headers. */
  readonly credential?: CredentialStatus | undefined;
  readonly state: ServerState;
  /** Since when it answers, does not though it was wanted, or is stopped. Undefined where nobody has wanted it. */
  readonly since?: string | undefined;
  /** Undefined until it has been up. */
  readonly era: "legacy" | "modern" | undefined;
  /** Protocol version of the handshake, and what the server calls itself. */
  readonly version: string | undefined;
  readonly serverInfo: { readonly name?: string; readonly version?: string } | undefined;
  readonly counts: { tools: number; prompts: number; resources: number; resourceTemplates: number };
  /** Of its tools that the config shows: how many no agent may use, since their definition changed or cannot be pinned. */
  readonly quarantined: number;
  /** Since when the first of those that a person has to decide about is hidden; absent where there is none. */
  readonly quarantinedAt?: string | undefined;
  /** True until every list was read since the gateway started, and none has failed since. */
  readonly listsFromBefore: boolean;
  /** The lists that have something in them which this server has not confirmed since the gateway started. */
  readonly oldLists: readonly ListKind[];
  /** Live connections: at most one when shared, else one for each session. */
  readonly connections: number;
  readonly inFlight: number;
  /** Of those in flight, how many wait for it to come up. */
  readonly waiting: number;
  readonly restarts: number;
  /** It was restarted too often: nothing is started until it is reloaded, or probed. */
  readonly ejected: boolean;
  /** The breaker: `open` refuses calls until `nextTryInMs`, `half-open` has one under way. */
  readonly circuit: "closed" | "open" | "half-open";
  /** Faults in a row that the breaker counts. */
  readonly failures: number;
  /** It is not started before it is wanted. */
  readonly lazy: boolean;
  /** How often programs hold it: a host's spawns that have not been stopped. */
  readonly refs: number;
  /** What the server says of itself before anybody connects. */
  readonly card: Readonly<Record<string, unknown>> | undefined;
  readonly readyAfterMs: number | undefined;
  readonly lastError: string | undefined;
  readonly nextTryInMs: number | undefined;
  readonly pid: number | undefined;
  readonly url: string | undefined;
  /** What the cache answered for it, and what is kept. Undefined where it is looked at outside of a gateway. */
  readonly cache: CacheStats | undefined;
  /** What came on stdout that was no message. */
  readonly noise: { readonly count: number; readonly sample: string | undefined };
  readonly stderr: readonly string[];
  /** What is wrong and does not keep it from working: tools that are left out, changes that it does not tell of. */
  readonly problems: readonly string[];
}

/** A mailbox of a broker, in which a gateway's tools are shared. */
export interface SharedMailbox {
  readonly broker: string;
  readonly mailbox: string;
  /** `refused`: the broker does not want us, and nothing is tried again. */
  readonly state: "dialling" | "connected" | "waiting" | "refused" | "stopped";
  /** Since when it is in this state. */
  readonly since?: string | undefined;
  /** Why it is not connected. */
  readonly why?: string;
  /** When the broker is dialled again, from when this was said. */
  readonly nextInMs?: number;
  /** Calls under way, and those since the start. */
  readonly running: number;
  readonly calls: number;
  /** Messages that came again, and were answered by what was known of them. */
  readonly repeated: number;
  /** Calls whose outcome nobody knows. */
  readonly unknown: number;
  /** Replies that came when nobody waited for them any more. */
  readonly late: number;
}

export interface GatewayStatus {
  readonly toolway: string;
  readonly pid: number;
  readonly startedAt: string;
  readonly endpoint: string | undefined;
  /** Its address is for runs: `toolway run` started it and it ends with the last, or it speaks over stdio otherwise. */
  readonly forRuns?: boolean;
  readonly stateDir: string | undefined;
  readonly config: {
    readonly path: string | undefined;
    /** The edit that could not be applied, while the config before it goes on. */
    readonly error: string | undefined;
    /** When that was, or one before it that could not be applied either. */
    readonly errorAt?: string | undefined;
    /** Servers that go on by the entry that they had, with why the one in the file cannot be used. */
    readonly keptEntries?: Readonly<Record<string, string>>;
    readonly warnings: readonly string[];
    /** What of roles, menus and entries fits no tool of the servers whose tools are known, and what may have been meant. */
    readonly unusedPatterns: readonly string[];
    /** Since when each of them fits none. */
    readonly unusedSince?: Readonly<Record<string, string>> | undefined;
    /** Keys that were edited and take effect at the next start only. */
    readonly waitsForRestart: readonly string[];
    /** What the last edit that was applied has changed. Undefined where none was since the start. */
    readonly lastEdit?: { readonly at: string; readonly changes: readonly string[] } | undefined;
  };
  /** Where the endpoint speaks TLS itself: its certificate, and why a newer one is not in use. */
  readonly certificate?: { readonly file: string; readonly error: string | undefined } | undefined;
  readonly names: "prefixed" | "plain";
  readonly menu: "full" | "search";
  /** Of agents of the legacy era. */
  readonly sessions: number;
  /** Agents of the modern era that called lately. They have no sessions; those of one token at one path count once. */
  readonly presences: number;
  readonly draining: boolean;
  /** Bytes of bodies, replies and streams that are held, of those that may be (`limits.heldBytes`). */
  readonly memory: { readonly heldBytes: number; readonly limitBytes: number };
  readonly servers: readonly ServerStatus[];
  /** The mailboxes in which its tools are shared. */
  readonly shares: readonly SharedMailbox[];
  /** What is in its mailboxes; undefined where it keeps none. */
  readonly mailboxes: MailboxesStatus | undefined;
  /** Why nothing more can be kept in its state directory; undefined while it can. */
  readonly store?: StoreSeen | undefined;
  /** Calls that are kept while their servers are away; undefined where none are. */
  readonly outbox?: OutboxStatus | undefined;
  /** What it shares with other gateways; undefined where it is alone. */
  readonly engine?: EngineSeen | undefined;
  /** Those who make requests in other networks. */
  readonly executors: readonly ExecutorStatus[];
  /** Undefined where no audit log is kept. */
  readonly audit?: AuditHeadAnswer | undefined;
  /** What a person records now: its calls' arguments and results are kept for a while. */
  readonly recordings: readonly RecordingShown[];
  /** Calls of tools that a person is asked about, and that nobody has answered yet. */
  readonly asks: readonly AskShown[];
  /** Tokens that end within a week. */
  readonly endingTokens: readonly { readonly id: string; readonly at: string }[];
  /** Names and URIs that two servers claim, and what became of them; those of one cause are one line. */
  readonly conflicts: readonly string[];
  /** Entries of lists that are left out, and settings of the config that fit nothing. */
  readonly notes: readonly string[];
}

/** What is shared with whom, as `toolway share` tells it at its start. */
export interface SharePlan {
  readonly servers: readonly { readonly name: string; readonly tools: number }[];
  /** As agents elsewhere call them. */
  readonly tools: readonly string[];
  /** How many of the tools each role of the config sees. */
  readonly roles: readonly { readonly role: string; readonly tools: number }[];
  /** What a role gets that the config does not name. */
  readonly unlistedRoles: UnlistedRoles;
  /** Tools before whose calls a person is asked. */
  readonly asked: readonly string[];
}

/** What a person is asked, and what they are told. */
export type ShareLine =
  | ({ readonly kind: "sharing" } & SharePlan)
  | { readonly kind: "state"; readonly state: string; readonly why?: string; readonly nextInMs?: number }
  | {
      readonly kind: "ask";
      readonly id: number;
      readonly worker: string;
      readonly role: string;
      readonly server: string;
      readonly tool: string;
      /** JSON, as it was sent. */
      readonly arguments: string;
    }
  /** Nobody waits for the answer any more. */
  | { readonly kind: "asked"; readonly id: number }
  | { readonly kind: "error"; readonly message: string };

// ── Mailboxes: counts, ids and times, and never what a message says ────────────────────────────────────────────────────

export interface MailboxSummary {
  readonly mailbox: string;
  /** Messages that nobody has now: never handed out, or given back. */
  readonly waiting: number;
  /** Messages that somebody is at. */
  readonly leased: number;
  /** Dead letters: messages that failed too often, or whose outcome is unknown. */
  readonly dead: number;
  readonly bytes: number;
  /** When its oldest message came. */
  readonly oldestAt: string | undefined;
  /** Connections that take from it. */
  readonly connections: number;
  /** Since when somebody takes requests from it, or nobody does; undefined where nobody ever did. */
  readonly since: string | undefined;
}

/**
 * `returned`: it was handed out and is not finished; its consumer is away, or gave it back. It waits for that consumer's
 * journal, or for anybody where there is none.
 */
export type MessageState = "waiting" | "leased" | "returned";

export interface MessageSummary {
  readonly id: string;
  readonly from: string;
  readonly kind: string;
  readonly bytes: number;
  readonly at: string;
  /** It ends by itself after this. */
  readonly leftMs: number;
  readonly state: MessageState;
  readonly failures: number;
}

export interface DeadLetterSummary {
  readonly id: string;
  readonly from: string;
  readonly kind: string;
  readonly bytes: number;
  readonly at: string;
  readonly failedAt: string;
  readonly reason: string;
}

/** A part of a long list. */
export interface Page<T> {
  readonly items: readonly T[];
  /** How many there are in all. */
  readonly total: number;
}

export interface MailboxesStatus {
  /** Mailboxes with something in them, or with somebody who takes from them. */
  readonly inUse: number;
  readonly waiting: number;
  readonly leased: number;
  readonly dead: number;
  /** When the oldest dead letter became one. Absent where there is none, or nobody has looked at all of them. */
  readonly deadSince?: string | undefined;
  /** Of sharers, workers and others. */
  readonly connections: number;
  /** Of them, those of sharers. Absent where nobody tells them apart. */
  readonly sharers?: number;
  /** The mailbox whose oldest message has waited longest. */
  readonly oldest: { readonly mailbox: string; readonly at: string } | undefined;
  /** The fullest ones. */
  readonly mailboxes: readonly MailboxSummary[];
  /** Why they cannot be kept now. Absent where they are. */
  readonly problem?: string;
  /** When it is tried again. */
  readonly nextTryInMs?: number;
}
