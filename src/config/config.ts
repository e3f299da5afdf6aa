// The config as the rest of Toolway sees it: resolved, with every default filled in. How a file becomes one is
// load.ts; this file holds types and defaults only, so that importing it costs nothing.

import type { OutboxLimits } from "../contracts/outbox.js";
import type { MisconfiguredSpec, ServerSpec, Supervision, Target } from "../contracts/server-spec.js";
import type {
  AdminSettings,
  CacheLimits,
  CallBudget,
  EngineSettings,
  MenuMode,
  MenuRule,
  NameMode,
  Override,
  RoleRules,
  UnlistedRoles,
} from "../contracts/settings.js";

import type { Input } from "./inputs/inputs.js";

/** What an entry says of one of its tools, which a server's own annotations do not decide. */
export interface ToolOverride extends Override {
  /** It changes nothing: it may be called again, and its results may be shared. */
  readonly readOnly: boolean;
  /** To call it twice has the effect of once. */
  readonly idempotent: boolean;
  /** Results that carry a `ttlMs` of their own may be kept. */
  readonly cache: boolean;
  /** A person is asked before it is called through a mailbox. */
  readonly ask: boolean;
}

/** The records have no prototype: a tool may be called `constructor`. */
export interface ServerConfig extends ServerSpec, ServerMenu {
  /** Of all callers together. Undefined where there is no limit. */
  readonly budget: CallBudget | undefined;
}

/** What of a server agents are shown, as far as its entry decides that. */
export interface ServerMenu {
  /** By the server's own name of the tool. */
  readonly tools: Readonly<Record<string, ToolOverride>>;
  readonly prompts: Readonly<Record<string, Override>>;
  /** Patterns of the tools that are shown, by their own names. Undefined where all are that are not hidden. */
  readonly only: readonly string[] | undefined;
}

/** An entry that is wrong in itself. All others are used. */
export interface WrongEntry extends MisconfiguredSpec {
  /** So many of `servers` stand before it in the file. */
  readonly place: number;
  /** Undefined where the mistake may be about what is shown: then nothing is. */
  readonly menu: ServerMenu | undefined;
}

/** Those who make HTTP requests for servers of another network. */
export interface ExecutorConfig {
  readonly name: string;
  /** Where they are dialled. Empty where they dial in. */
  readonly urls: readonly string[];
  /** What they are shown when they are dialled. */
  readonly token: string | undefined;
  /** They may dial in without a token, where the gateway asks nobody for one. */
  readonly noAuth: boolean;
}

/** A mailbox of a broker, in which a gateway's tools are shared. */
export interface ShareConfig {
  readonly broker: string;
  /** The mailbox that the tools are in. */
  readonly as: string;
  readonly token: string | undefined;
  /** So many at once; undefined for as many as a sharer takes by itself. */
  readonly calls?: number | undefined;
}

export interface ListenAddress {
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
}

export interface Limits {
  readonly bodyBytes: number;
  readonly batch: number;
  readonly depth: number;
  readonly headerMs: number;
  readonly connections: number;
  readonly outputBytes: number;
  readonly questionMs: number;
  readonly heldBytes: number;
}

export interface SessionLimits {
  readonly idleMs: number;
  readonly max: number;
}

export interface Config {
  /** Undefined for a config that was passed as an object. */
  readonly path: string | undefined;
  /** Where relative paths start: the file's folder, or the project of a `.vscode` or `.cursor` folder. */
  readonly dir: string;
  /** In the order of the file, which decides precedence. */
  readonly servers: readonly ServerConfig[];
  /** The entries that cannot be used. Empty where such a one makes the whole config wrong (`wrongEntries`). */
  readonly misconfigured: readonly WrongEntry[];
  /** Inputs that entries ask for, and nobody has answered: those entries are misconfigured. */
  readonly unanswered: readonly Input[];
  /** Names of the servers that the file switches off. */
  readonly disabled: readonly string[];
  readonly executors: readonly ExecutorConfig[];
  /** What several gateways share in place of a state directory of each. Undefined where this one is alone. */
  readonly engine: EngineSettings | undefined;
  /** Where the operator's door is held open. Undefined where it opens when it is asked for; false: it never does. */
  readonly admin: AdminSettings | false | undefined;
  /** Where the tools are shared; undefined for nowhere. */
  readonly share: ShareConfig | undefined;
  /** Whether mailboxes are kept. */
  readonly mailboxes: boolean;
  readonly listen: ListenAddress;
  readonly names: NameMode;
  readonly menu: MenuMode;
  readonly allowedHosts: readonly string[];
  readonly allowedOrigins: readonly string[];
  readonly tls: { readonly cert: string; readonly key: string } | undefined;
  /** The state directory; undefined where the usual one is meant. */
  readonly stateDir: string | undefined;
  readonly roles: Readonly<Record<string, RoleRules>>;
  /** What a role without an entry in `roles` gets. */
  readonly unlistedRoles: UnlistedRoles;
  /** What is left of a role's tools, by the context of a principal. */
  readonly menus: readonly MenuRule[];
  readonly sessions: SessionLimits;
  readonly limits: Limits;
  /** How long calls in flight have when the gateway is asked to stop. */
  readonly drainMs: number;
  readonly pageSize: number;
  readonly cache: CacheLimits;
  readonly outbox: OutboxLimits;
  /** Where spans go, by OTLP over HTTP. Undefined where calls are not traced. */
  readonly telemetry: { readonly otlp: string; readonly metrics: boolean } | undefined;
  /** Undefined where none is kept. */
  readonly audit: AuditConfig | undefined;
  /** `calls`: a line for each; undefined where whoever starts the gateway decides. */
  readonly log: { readonly calls?: boolean | undefined };
  /** Ready to print: where, which key, what about it. */
  readonly warnings: readonly string[];
}

/** The audit log: where it is, how large and how old it may become, what of arguments is in it. */
export interface AuditConfig {
  /** A folder; undefined for the one in the state directory. */
  readonly path: string | undefined;
  readonly maxFileBytes: number;
  readonly maxBytes: number;
  readonly maxAgeDays: number;
  readonly arguments: "none" | "hmac" | "redacted";
  /** What becomes of calls while there is no room for their lines. */
  readonly onFull: "drop" | "refuse";
}

/** Loopback by default: anything else is a decision. */
export const DEFAULT_LISTEN = "127.0.0.1:7420";
/** Of a broker that stands alone. */
export const DEFAULT_BROKER_LISTEN = "127.0.0.1:7440";

/** `npx` and `uvx` download on the first start; slower than half a minute is a server that does not come up. */
export const DEFAULT_CONNECT_TIMEOUT_MS = 30_000;

/** Tools that build or crawl take minutes. Progress extends it. */
export const DEFAULT_CALL_TIMEOUT_MS = 300_000;

export const DEFAULT_SESSIONS: SessionLimits = {
  // Most clients never say goodbye; an agent left open over night finds its session again.
  idleMs: 24 * 60 * 60 * 1000,
  // A few kB each: tens of MB at most, whoever floods us with initialize.
  max: 10_000,
};

export const DEFAULT_LIMITS: Limits = {
  // Requests carry arguments, at times a file or a picture in base64.
  bodyBytes: 16 * 1024 * 1024,
  // Batches exist in 2025-03-26 only, and its clients send a handful.
  batch: 100,
  // JSON.parse of hostile nesting costs stack; real arguments are far shallower.
  depth: 128,
  // Headers arrive in one packet; ten seconds forgive a bad network, and starve a slow-header attack.
  headerMs: 10_000,
  // Ten thousand idle streams, and room for the requests beside them.
  connections: 12_000,
  // Room for a large file in base64; each reply in flight may hold this much memory.
  outputBytes: 64 * 1024 * 1024,
  // A person has to read an elicitation and to answer it; who has not done so in ten minutes is not at the screen.
  questionMs: 600_000,
  // With it, resident memory stays within 256 MB of an idle gateway's, whoever sends or reads what.
  heldBytes: 128 * 1024 * 1024,
};

/** Orchestrators kill after 30 s as a rule; the rest is for the servers' own end. */
export const DEFAULT_DRAIN_MS = 22_000;

/** The longest that progress may keep a call going: builds take minutes, and a call of an hour is one that hangs. */
export const DEFAULT_CALL_CEILING_MS = 3_600_000;

/** Each may be a process of some 50 MB; more would fill a usual machine. */
export const DEFAULT_SESSION_CONNECTIONS = 200;

/** A crash now and then is forgiven; five in five minutes is a server that does not work. */
export const DEFAULT_RESTARTS: Supervision["restarts"] = { max: 5, windowMs: 300_000 };

/** 100 ms is unnoticed by an agent and enough to keep a crash loop cheap; 5 s is as long as a call likes to wait. */
export const DEFAULT_BACKOFF: Supervision["backoff"] = { baseMs: 100, maxMs: 5_000 };

/** Five in a row are no accident; half a minute lets a server recover, and an agent still comes back. */
export const DEFAULT_BREAKER: Supervision["breaker"] = { failures: 5, openMs: 30_000 };

/** Two of these pass before a frozen child is noticed; a child is asked over a pipe, which costs next to nothing. */
export const DEFAULT_PING_MS = 30_000;

/**
 * What kept a server from coming up may have passed, and no operator should have to say so. To ask one elsewhere costs
 * a connect; to start a program costs more, and it mends itself less often.
 */
export const DEFAULT_EJECTED_PROBE_MS = { program: 300_000, address: 60_000 };

/** Where writes are kept for an address that is ejected: they are not to wait much longer than it is away. */
export const OUTBOX_EJECTED_PROBE_MS = 5_000;

/** A machine that was closed for a walk to another room is back by then, and an agent still waits. */
export const DEFAULT_AWAY_WAIT_MS = 20_000;

/** Tokens that programs print are good for an hour or more; one that was revoked is refused, and fetched anew at once. */
export const DEFAULT_TOKEN_TTL_MS = 5 * 60_000;

/** More than happens: a machine that is away for a week is not broken. */
const NEVER = Number.MAX_SAFE_INTEGER;

/** What a server is supervised by unless its entry says otherwise. An HTTP server is not pinged: it has neighbours. */
export function defaultSupervision(kind: Target["kind"]): Supervision {
  const usual: Supervision = {
    restarts: DEFAULT_RESTARTS,
    backoff: DEFAULT_BACKOFF,
    breaker: DEFAULT_BREAKER,
    ejectedProbeMs: kind === "stdio" ? DEFAULT_EJECTED_PROBE_MS.program : DEFAULT_EJECTED_PROBE_MS.address,
    lazy: false,
    keepAliveMs: undefined,
    pingMs: kind === "stdio" ? DEFAULT_PING_MS : undefined,
    callCeilingMs: DEFAULT_CALL_CEILING_MS,
    sessionConnections: DEFAULT_SESSION_CONNECTIONS,
  };
  return kind === "mailbox" ? neverGivenUp(usual) : usual;
}

/** It comes back when its owner likes, and an attempt is a question to a broker that is connected. */
const MAILBOX_RETRY_MS = 5_000;

/** A machine behind a mailbox comes and goes as its owner likes: that is no fault of it, and it is never given up. */
export function neverGivenUp(supervision: Supervision): Supervision {
  const { restarts, breaker } = supervision;
  return {
    ...supervision,
    restarts: { ...restarts, max: NEVER },
    breaker: { ...breaker, failures: NEVER },
    ejectedProbeMs: undefined,
    pingMs: undefined,
    listRetryMs: MAILBOX_RETRY_MS,
  };
}

export const DEFAULT_CACHE: CacheLimits = {
  // Enough for thousands of usual results, and a fraction of what Node itself takes.
  maxBytes: 64 * 1024 * 1024,
  // An agent repeats its last few questions, not its last thousand.
  entriesPerTool: 64,
  // A server that says a year is not believed: an hour of staleness is what an operator can wait out.
  maxTtlMs: 3_600_000,
};

export const DEFAULT_OUTBOX: OutboxLimits = {
  // A day without a server, at more than one write a second. Each takes about a kB of memory beside its disk.
  maxWrites: 100_000,
  // Of disk. Writes are small; this is room for all of them at 2.5 kB each.
  maxBytes: 256 * 1024 * 1024,
};

/** A server that went away in the evening is back the next day, and the write still means something. */
export const DEFAULT_OUTBOX_AGE_MS = 24 * 3_600_000;

/** With 2 kB an entry, a page is a megabyte. */
export const DEFAULT_PAGE_SIZE = 500;

/** Longest server name: it is part of URLs, tool names and log lines. */
export const MAX_SERVER_NAME = 128;

/** Reads `HOST:PORT`, with brackets around an IPv6 host. Undefined where it is something else. */
export function parseListen(text: string): ListenAddress | undefined {
  const match = /^(?:\[([0-9A-Fa-f:.%\w]+)\]|([^:[\]\s/]+)):(\d{1,5})$/.exec(text.trim());
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  return host === undefined || port > 65_535 ? undefined : { host, port };
}

/** Puts entries that were set aside back among the others, where they stand in the file. */
export function inFileOrder<S, M extends { readonly place: number }>(
  servers: readonly S[],
  aside: readonly M[],
): (S | M)[] {
  const all: (S | M)[] = [...servers];
  // From the last to the first, so that each place still counts the servers alone.
  for (const one of [...aside].reverse()) all.splice(one.place, 0, one);
  return all;
}
