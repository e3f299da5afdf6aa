// The settings of a config that its parts read: names, roles, budgets, bounds. How a file becomes them is config/'s.

/** `prefixed`: tools are called `server__tool`; `plain`: by their own names. */
export type NameMode = "prefixed" | "plain";

/** `full`: agents see all tools; `search`: two tools that find and call the others. */
export type MenuMode = "full" | "search";

/** What a role without an entry in `roles` may use: everything, or nothing. */
export type UnlistedRoles = "allow" | "deny";

/** What the config changes about one tool or prompt, under the server's own name of it. */
export interface Override {
  /** The exposed name as agents see it, in every mode; no prefix is put before it. */
  readonly name?: string | undefined;
  readonly description?: string | undefined;
  /** It is neither listed nor callable. */
  readonly hide?: boolean | undefined;
}

/** So many calls in a window of time. */
export interface CallBudget {
  readonly calls: number;
  readonly windowMs: number;
}

/** Patterns of the form `server/tool` or `server`; `*` is any run of characters. */
export interface RoleRules {
  /** Undefined where everything is allowed that is not denied; an empty list allows nothing. */
  readonly allow?: readonly string[] | undefined;
  /** Wins over `allow`. */
  readonly deny?: readonly string[] | undefined;
  /** Of each principal of the role. Undefined where there is no limit. */
  readonly budget?: CallBudget | undefined;
}

/** Bounds on the results that are kept. */
export interface CacheLimits {
  /** Of all replies together. */
  readonly maxBytes: number;
  /** Of one tool, and of all resources of one server. */
  readonly entriesPerTool: number;
  /** Nothing is kept longer, whatever a server says. */
  readonly maxTtlMs: number;
}

/** Narrows what principals see whose context it fits. `*` is any run of characters. */
export interface MenuRule {
  /** What the context must say, by key; null says that the key is unset. An empty one fits always. */
  readonly when: Readonly<Record<string, string | null>>;
  /** All that is left, as patterns of the form `server/tool` or `server`. Undefined where everything is left. */
  readonly show?: readonly string[] | undefined;
  readonly hide?: readonly string[] | undefined;
}

/** The roles that mean something by themselves; all others mean what their rules say. Of a token that lets an executor in, and no agent. */
export const EXECUTOR_ROLE = "executor";

/** Of a token that offers a machine's tools in a mailbox of its own: it opens nothing else, and sends to who asks. */
export const SHARER_ROLE = "sharer";

/** Of the token that is made at the first start. */
export const DEFAULT_ROLE = "default";

/** Where a secret of the engine is read each time that it is needed, so that a new one needs no restart. */
export type EngineSecret =
  | { readonly from: "env"; readonly name: string }
  | { readonly from: "file"; readonly path: string };

/** How we prove to the engine who we are. */
export type EngineAuth =
  | { readonly by: "token"; readonly token: EngineSecret }
  | { readonly by: "password"; readonly user: string; readonly password: EngineSecret }
  /** The seed of an nkey, which begins with "SU". */
  | { readonly by: "nkey"; readonly seed: EngineSecret }
  /** What a `.creds` file holds: a JWT and the seed that proves it. */
  | { readonly by: "creds"; readonly creds: EngineSecret };

/** How the engine that several machines share is reached: NATS with JetStream. */
export interface EngineAccess {
  /** At least one; the others of a cluster are found by themselves. */
  readonly nodes: readonly { readonly host: string; readonly port: number }[];
  /** Undefined where it is spoken to in clear. Its paths are those of PEM files. */
  readonly tls:
    | { readonly ca?: string | undefined; readonly cert?: string | undefined; readonly key?: string | undefined }
    | undefined;
  readonly auth: EngineAuth | undefined;
  /** Holds one or more keys: the first is used, the others only open. */
  readonly key: EngineSecret;
  /** How many nodes keep each record. */
  readonly replicas: number;
  /** Begins the name of all that is ours in it: two Toolways on one engine have two. */
  readonly prefix: string;
  /** The monitoring address of a node: the only place that says whether acknowledged means fsynced. */
  readonly monitor: string | undefined;
}

/** The engine, and what a gateway does without it. */
export interface EngineSettings extends EngineAccess {
  /** How long what is known of tokens holds while the engine is away. */
  readonly staleMs: number;
  /** `/readyz` is 503 while the engine is away. */
  readonly failReady: boolean;
}

/** Where the operator's door is held open. */
export interface AdminSettings {
  readonly listen: { readonly host: string; readonly port: number };
  /** Names that requests may be for, besides the loopback ones and that of `listen`: in lower case, some with a port. */
  readonly hosts: readonly string[];
  /** Paths of PEM files. Undefined where it is spoken to in clear, on loopback alone. */
  readonly tls: { readonly cert: string; readonly key: string } | undefined;
}

/** What a token of the operator's door opens: its metrics, what is to be seen, or that and what acts. */
export const ADMIN_POWERS = ["metrics", "viewer", "operator"] as const;
export type AdminPower = (typeof ADMIN_POWERS)[number];
