// One server of the config, resolved: where it is, how it is kept alive, and how far it is trusted.

import type { Era } from "../protocol/modern.js";
import type { OwnToolName } from "./names.js";
import type { OutboxTerms } from "./outbox.js";

/**
 * A value that came from outside of the config: a variable, a line of an env file, an answer. What the server says is shown
 * without it, unless it is a place and its name leaves room for one.
 */
export interface OutsideValue {
  /** Of the variable, the line or the question. */
  readonly name: string;
  readonly value: string;
}

export interface StdioTarget {
  readonly kind: "stdio";
  readonly command: string;
  readonly args: readonly string[];
  /** What the entry adds to the allowlisted environment. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string | undefined;
  readonly secrets?: readonly OutsideValue[];
}

/** Where the token comes from that goes with each request to a server, as `Authorization: Bearer`. */
export type BearerSource =
  | { readonly from: "env"; readonly name: string }
  | { readonly from: "file"; readonly path: string }
  /** What a program prints; it is run in `cwd`, without a shell, and kept for `ttlMs`. */
  | { readonly from: "command"; readonly line: readonly string[]; readonly ttlMs: number; readonly cwd: string };

/** The secret of a client, which stands in the config or comes from where tokens come from. */
export type ClientSecret = BearerSource | { readonly from: "text"; readonly value: string };

/** A login by OAuth, by a person in a browser. */
export interface OAuthLogin {
  readonly from: "oauth";
  /** Registered by hand; undefined where the protocol registers us. */
  readonly clientId?: string;
  readonly clientSecret?: ClientSecret;
  /** Undefined where those are asked for that the server names. */
  readonly scopes?: readonly string[];
  readonly clientMetadataUrl?: string;
  /** The port that the browser comes back to; undefined where any will do. */
  readonly redirectPort?: number;
}

/** A login by OAuth without a person. */
export interface ClientCredentials {
  readonly from: "clientCredentials";
  readonly clientId: string;
  readonly clientSecret: ClientSecret;
  readonly scopes?: readonly string[];
}

export type Auth = BearerSource | OAuthLogin | ClientCredentials;

export interface HttpTarget {
  /** `http`: streamable, with a fallback to the old HTTP+SSE; `sse`: the old one only. */
  readonly kind: "http" | "sse";
  readonly url: string;
  /** The Unix socket that it listens on. The host in the `url` is then no place, and says nothing. */
  readonly socketPath?: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  /** A credential that is read for each request. Undefined where `headers` have what there is. */
  readonly auth?: Auth | undefined;
  /** The executor that makes the requests; undefined where they are made from here. */
  readonly via?: string | undefined;
  readonly secrets?: readonly OutsideValue[];
}

/** A machine that shares its servers through a mailbox at a broker. */
export interface MailboxTarget {
  readonly kind: "mailbox";
  readonly mailbox: string;
  /** The broker's address, `ws://…` or `wss://…`; undefined is the broker of this gateway itself. */
  readonly broker: string | undefined;
  readonly token: string | undefined;
  /** How long a call waits for a machine that is away. */
  readonly awayWaitMs: number;
  readonly secrets?: readonly OutsideValue[];
}

export type Target = StdioTarget | HttpTarget | MailboxTarget;

/** `shared`: one connection for all; `session`: one for each agent session, for servers that keep state. */
export type Isolation = "shared" | "session";

/**
 * `pinned`: what a server says of its tools is a claim, and a changed tool is quarantined; `always`: it is believed.
 */
export type Trust = "pinned" | "always";

/** What the protocol lets a server ask of an agent, by the name of the capability. */
export type Askable = "roots" | "sampling" | "elicitation";

/** How a server is kept alive, and what happens when it cannot be. */
export interface Supervision {
  /** More restarts than `max` in `windowMs`, and it is ejected: left alone until it is probed or reloaded. */
  readonly restarts: { readonly max: number; readonly windowMs: number };
  /** The wait before a restart: anywhere up to a ceiling that doubles from `baseMs` to `maxMs`. */
  readonly backoff: { readonly baseMs: number; readonly maxMs: number };
  /** So many faults in a row, and calls are refused for `openMs`; then one call is tried. */
  readonly breaker: { readonly failures: number; readonly openMs: number };
  /** An ejected server is tried once more after this time; undefined: only by reload. */
  readonly ejectedProbeMs: number | undefined;
  /** Lists that could not be read are tried again after waits that grow up to this one; absent: up to a minute. */
  readonly listRetryMs?: number;
  /** It is not started before somebody wants it. */
  readonly lazy: boolean;
  /** A server that nobody used for so long is closed; the next call starts it. Undefined where it stays up. */
  readonly keepAliveMs: number | undefined;
  /** An idle connection is asked for a sign of life this often; undefined: never. */
  readonly pingMs: number | undefined;
  /** The longest that progress may keep a call going, in all. */
  readonly callCeilingMs: number;
  /** Where each session has a connection of its own, so many may be open. */
  readonly sessionConnections: number;
}

/** A server whose entry in the config cannot be used as it is: it is shown, says why, and is not started. */
export interface MisconfiguredSpec {
  readonly name: string;
  /** What is wrong with its entry, as an agent may hear it. It names keys and variables, and no values of theirs. */
  readonly why: string;
  /** The same with file, line, key and fix, a line for each mistake. */
  readonly forOperator: string;
}

/** One server of the config, resolved: variables expanded, paths absolute, defaults filled in. */
export interface ServerSpec {
  readonly name: string;
  readonly target: Target;
  readonly isolation: Isolation;
  /** The era that it is spoken to in; undefined where that is found out. */
  readonly era?: Era | undefined;
  /** What it is told that agents can be asked, whoever they are; undefined where they speak for themselves. */
  readonly declare?: readonly Askable[] | undefined;
  readonly connectTimeoutMs: number;
  readonly callTimeoutMs: number;
  readonly supervision: Supervision;
  readonly trust: Trust;
  /** Tools that the config calls read-only or idempotent: to call one twice does no harm. */
  readonly repeatable: ReadonlySet<OwnToolName>;
  /** Tools whose calls are kept while the server is away. Undefined where there are none. */
  readonly outbox?: ReadonlyMap<OwnToolName, OutboxTerms> | undefined;
  /** `one`: of several gateways on an engine one runs it for all; undefined: each has its own. */
  readonly placement?: "one" | undefined;
  /** Where the server's card is: an absolute path or an address. Undefined where an HTTP server is asked for one. */
  readonly card: string | undefined;
}
