// The config file as a zod schema: types, bounds and the meaning of every key. The JSON Schema and the table in
// docs/config.md are made from it. Objects that other clients share are loose; resolve.ts judges unknown keys.

import { z } from "zod";
import {
  DEFAULT_BACKOFF,
  DEFAULT_BREAKER,
  DEFAULT_CACHE,
  DEFAULT_CALL_CEILING_MS,
  DEFAULT_CALL_TIMEOUT_MS,
  DEFAULT_CONNECT_TIMEOUT_MS,
  DEFAULT_EJECTED_PROBE_MS,
  DEFAULT_LIMITS,
  DEFAULT_LISTEN,
  DEFAULT_PAGE_SIZE,
  DEFAULT_PING_MS,
  DEFAULT_RESTARTS,
  DEFAULT_SESSIONS,
} from "./config.js";

/** Node's timers fire at once beyond 2^31-1 ms. */
const MAX_TIMER_MS = 2_147_483_647;

const millis = z.int().min(1).max(MAX_TIMER_MS);
const count = z.int().min(1);
/** 0: never. */
const rhythm = z.int().min(0).max(MAX_TIMER_MS);
const strings = z.array(z.string());
const scalar = z.union([z.string(), z.number(), z.boolean()]);

const overrideSchema = z
  .strictObject({
    name: z.string().min(1).max(128).optional().describe("The name that agents see instead of the server's own."),
    description: z.string().optional().describe("The description that agents see instead of the server's own."),
    hide: z.boolean().default(false).describe("Leaves it out of the menu; a call of it is refused."),
  })
  .meta({ id: "override" });

const toolSchema = overrideSchema
  .extend({
    readOnly: z
      .boolean()
      .default(false)
      .describe("It changes nothing. A call that a crash cut off is then made again, once."),
    idempotent: z
      .boolean()
      .default(false)
      .describe("To call it twice has the effect of once. A call that a crash cut off is then made again, once."),
    cache: z
      .boolean()
      .default(false)
      .describe("Results for which the server itself sets a `ttlMs` are kept so long and served again."),
  })
  .meta({ id: "tool" });

const restartsSchema = z.strictObject({
  max: z.int().min(0).max(1_000_000).default(DEFAULT_RESTARTS.max).describe("Most restarts in the window."),
  windowMs: millis.default(DEFAULT_RESTARTS.windowMs).describe("The window, in milliseconds."),
});

const backoffSchema = z.strictObject({
  baseMs: millis.default(DEFAULT_BACKOFF.baseMs).describe("The longest first wait, in milliseconds. It doubles."),
  maxMs: millis.default(DEFAULT_BACKOFF.maxMs).describe("Where the doubling ends, in milliseconds."),
});

const breakerSchema = z.strictObject({
  failures: count
    .default(DEFAULT_BREAKER.failures)
    .describe("So many faults in a row (lost, timed out, unreadable; no errors that the server answers) open it."),
  openMs: millis
    .default(DEFAULT_BREAKER.openMs)
    .describe("How long calls are then refused, in milliseconds. Afterwards one call is tried."),
});

const budgetSchema = z.strictObject({
  calls: count.describe("Most calls in the window."),
  windowMs: millis.describe("The window, in milliseconds."),
});

/** `type` as the clients write it → the kind of target. */
export const TYPES = {
  stdio: "stdio",
  local: "stdio",
  http: "http",
  "streamable-http": "http",
  streamableHttp: "http",
  streamable_http: "http",
  streamable: "http",
  remote: "http",
  sse: "sse",
} as const;

export type TypeWord = keyof typeof TYPES;

export const serverSchema = z
  .looseObject({
    type: z
      .enum(Object.keys(TYPES) as [TypeWord, ...TypeWord[]])
      .optional()
      .describe(
        "How the server is reached: `stdio`, `http` (streamable, with a fallback to the old HTTP+SSE) or `sse`. " +
          "Without it, a `command` means `stdio` and a `url` means `http`.",
      ),
    command: z.string().min(1).optional().describe("The program to start. `./` and `../` are relative to the file."),
    args: strings.optional().describe("Its arguments. They go to the program as they are; no shell reads them."),
    env: z
      .record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()]))
      .optional()
      .describe("Environment variables for the program, besides a few such as `PATH` and `HOME`. `null` sets none."),
    envFile: z.string().min(1).optional().describe("A file of `NAME=value` lines, read before `env`."),
    cwd: z.string().min(1).optional().describe("The folder that the program runs in. Default: the folder of the file."),
    url: z.string().min(1).optional().describe("The address of an HTTP server."),
    httpUrl: z.string().min(1).optional().describe("Gemini CLI's word for `url`."),
    serverUrl: z.string().min(1).optional().describe("Windsurf's word for `url`."),
    headers: z.record(z.string(), scalar).optional().describe("HTTP headers that go with every request to the server."),
    disabled: z.boolean().optional().describe("`true` leaves the server out."),
    enabled: z.boolean().optional().describe("`false` leaves the server out."),
    isolation: z
      .enum(["shared", "session"])
      .default("shared")
      .describe(
        "`shared`: one connection for all agents. `session`: one for each session, for servers that keep state.",
      ),
    connectTimeoutMs: millis
      .default(DEFAULT_CONNECT_TIMEOUT_MS)
      .describe("How long a start and its handshake may take, in milliseconds."),
    callTimeoutMs: millis
      .default(DEFAULT_CALL_TIMEOUT_MS)
      .describe("How long a call may take, in milliseconds. Each progress message starts it anew."),
    callCeilingMs: millis
      .default(DEFAULT_CALL_CEILING_MS)
      .describe("How long progress may keep a call going in all, in milliseconds."),
    restarts: restartsSchema
      .prefault({})
      .describe("How often the server may be restarted. Past that it is ejected until `toolway reload`."),
    backoff: backoffSchema.prefault({}).describe("How long to wait before a restart."),
    breaker: breakerSchema.prefault({}).describe("When to stop sending calls to a server that fails them."),
    ejectedProbeMs: rhythm
      .optional()
      .describe(
        "An ejected server is tried once more after so long, in milliseconds; 0 is never, only by `toolway reload`. " +
          `Default: never for a program, ${DEFAULT_EJECTED_PROBE_MS} for an address.`,
      ),
    lazy: z.boolean().default(false).describe("`true` starts the server when it is first needed."),
    keepAliveMs: millis
      .optional()
      .describe("A server unused for so long, in milliseconds, is closed until it is needed. Default: it stays up."),
    pingMs: rhythm
      .optional()
      .describe(
        "An idle server is asked for a sign of life this often, in milliseconds; 0 is never. " +
          `Default: ${DEFAULT_PING_MS} for a program, never for an address.`,
      ),
    trust: z
      .union([z.enum(["pinned", "always"]), z.boolean()])
      .default("pinned")
      .describe(
        "`pinned`: a tool whose definition changes is hidden until `toolway pins accept`. `always`: the server is " +
          "believed, also in what its annotations say of its tools. (`true` and `false` are Gemini CLI's: `pinned`.)",
      ),
    card: z
      .string()
      .min(1)
      .optional()
      .describe("Path or address of the server's card. Default: `<url>/server-card`, where a server has it."),
    budget: budgetSchema.optional().describe("Most calls to the server, of all callers together."),
    tools: z
      .record(z.string(), toolSchema)
      .optional()
      .describe("Changes to the server's tools, by the server's own name of the tool."),
    prompts: z
      .record(z.string(), overrideSchema)
      .optional()
      .describe("Changes to the server's prompts, by the server's own name of the prompt."),
  })
  .meta({ id: "server" });

const roleSchema = z.strictObject({
  allow: strings.optional().describe("What the role may use, as `server/tool` or `server`. Default: everything."),
  deny: strings.default([]).describe("What it may not use, in the same form. Deny wins over allow."),
  budget: budgetSchema.optional().describe("Most calls of each principal of the role."),
});

const tlsSchema = z.strictObject({
  cert: z.string().min(1).describe("Path of the certificate, PEM."),
  key: z.string().min(1).describe("Path of its private key, PEM."),
});

const sessionsSchema = z.strictObject({
  idleMs: millis.default(DEFAULT_SESSIONS.idleMs).describe("A session unused for so long ends, in milliseconds."),
  max: count.default(DEFAULT_SESSIONS.max).describe("Sessions open at the same time."),
});

const limitsSchema = z.strictObject({
  bodyBytes: count.default(DEFAULT_LIMITS.bodyBytes).describe("Largest body of a request, in bytes."),
  batch: count.default(DEFAULT_LIMITS.batch).describe("Most messages in a JSON-RPC batch."),
  depth: count.default(DEFAULT_LIMITS.depth).describe("Deepest nesting of JSON in a request."),
  headerMs: millis.default(DEFAULT_LIMITS.headerMs).describe("How long the headers of a request may take."),
  connections: count.default(DEFAULT_LIMITS.connections).describe("Connections open at the same time."),
  outputBytes: count
    .default(DEFAULT_LIMITS.outputBytes)
    .describe("Largest reply that is held in memory as a whole, in bytes."),
});

const cacheSchema = z.strictObject({
  maxBytes: count.default(DEFAULT_CACHE.maxBytes).describe("All results that are kept, in bytes."),
  entriesPerTool: count.default(DEFAULT_CACHE.entriesPerTool).describe("Results that are kept of one tool or method."),
  maxTtlMs: millis
    .default(DEFAULT_CACHE.maxTtlMs)
    .describe("The longest that a result is kept, whatever the server says, in milliseconds."),
});

/** Loose: Gemini CLI has a `telemetry` of its own in the same file. */
const telemetrySchema = z.looseObject({
  otlp: z
    .string()
    .min(1)
    .optional()
    .describe("Where spans are sent, as OTLP over HTTP: `http://127.0.0.1:4318/v1/traces`. Default: nowhere."),
});

const servers = z.record(z.string(), serverSchema);

/** The keys of the file beside the servers. Each is parsed on its own, so that all mistakes are found at once. */
export const settingsShape = {
  $schema: z.string().optional().describe("The address of the JSON Schema, for editors."),
  listen: z.string().default(DEFAULT_LISTEN).describe("Where agents connect: `HOST:PORT`. Port 0 is any free one."),
  names: z
    .enum(["prefixed", "plain"])
    .default("prefixed")
    .describe("`prefixed`: tools are called `server__tool`. `plain`: by their own name, which must then be unique."),
  menu: z
    .enum(["full", "search"])
    .default("full")
    .describe("`full`: agents see all tools. `search`: they see `find_tools` and `call_tool` instead."),
  allowedHosts: strings.default([]).describe("Host names in requests that are accepted besides the loopback ones."),
  allowedOrigins: strings.default([]).describe("Origins of web pages that may connect, as `https://example.com`."),
  tls: tlsSchema.optional().describe("Serves HTTPS with this certificate."),
  roles: z.record(z.string(), roleSchema).default({}).describe("What the tokens of a role may use, by role."),
  unlistedRoles: z
    .enum(["allow", "deny"])
    .default("allow")
    .describe("What a role without an entry in `roles` gets: everything, or nothing."),
  sessions: sessionsSchema.prefault({}).describe("Bounds on sessions."),
  limits: limitsSchema.prefault({}).describe("Bounds on what comes in and goes out."),
  pageSize: z.int().min(1).max(100_000).default(DEFAULT_PAGE_SIZE).describe("Entries in a page of a list."),
  cache: cacheSchema.prefault({}).describe("Bounds on the results that are kept."),
  telemetry: telemetrySchema.optional().describe("Where spans go."),
};

export const fileSchema = z.looseObject({
  mcpServers: servers.optional().describe("The servers, by name, as Claude, Cursor and others write them."),
  servers: servers
    .optional()
    .describe("The same under VS Code's name. Both may be present; a name may not be in both."),
  ...settingsShape,
});

/** The keys of each object, for telling typos from foreign keys. */
export const TOP_KEYS: readonly string[] = Object.keys(fileSchema.shape);
export const ENTRY_KEYS: readonly string[] = Object.keys(serverSchema.shape);

/** The objects that are ours alone, where an unknown key can only be a mistake: by the key that holds them. */
export const OWN_OBJECTS = {
  tools: toolSchema.shape,
  prompts: overrideSchema.shape,
  roles: roleSchema.shape,
  tls: tlsSchema.shape,
  sessions: sessionsSchema.shape,
  limits: limitsSchema.shape,
  cache: cacheSchema.shape,
  telemetry: telemetrySchema.shape,
  restarts: restartsSchema.shape,
  backoff: backoffSchema.shape,
  breaker: breakerSchema.shape,
  budget: budgetSchema.shape,
};

/** Those of them that hold one such object under each name. */
export const NAMED_OBJECTS: ReadonlySet<string> = new Set(["tools", "prompts", "roles"]);

export type ServerEntry = z.output<typeof serverSchema>;
export type OverrideEntry = z.output<typeof overrideSchema>;
export type ToolEntry = z.output<typeof toolSchema>;
export type SettingKey = keyof typeof settingsShape;
export type Settings = { readonly [K in SettingKey]: z.output<(typeof settingsShape)[K]> };
/** What `createGateway` takes: a config as it would stand in a file. */
export type ConfigInput = z.input<typeof fileSchema>;
