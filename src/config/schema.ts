// The config file as a form: types, bounds and the meaning of every key. The JSON Schema and the table in
// docs/config.md are made from it. Objects that other clients share are loose; resolve.ts judges unknown keys.

import {
  DEFAULT_CALL_TIMEOUT_MS,
  DEFAULT_CONNECT_TIMEOUT_MS,
  DEFAULT_LIMITS,
  DEFAULT_LISTEN,
  DEFAULT_PAGE_SIZE,
  DEFAULT_SESSIONS,
} from "./config.js";
import {
  defaulted,
  flag,
  type InOf,
  list,
  loose,
  type OutOf,
  optional,
  record,
  required,
  scalar,
  strict,
  text,
  whole,
  word,
} from "./form.js";

/** Node's timers fire at once beyond 2^31-1 ms. */
const MAX_TIMER_MS = 2_147_483_647;

const millis = whole({ min: 1, max: MAX_TIMER_MS });
const count = whole({ min: 1 });
const filled = text({ min: 1 });
const strings = list(text());

const override = strict(
  {
    name: optional(text({ min: 1, max: 128 }), "The name that agents see instead of the server's own."),
    description: optional(text(), "The description that agents see instead of the server's own."),
    hide: defaulted(flag(), false, "Leaves it out of the menu; a call of it is refused."),
  },
  "override",
);

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

export const serverForm = loose(
  {
    type: optional(
      word(Object.keys(TYPES) as TypeWord[]),
      "How the server is reached: `stdio`, `http` (streamable, with a fallback to the old HTTP+SSE) or `sse`. " +
        "Without it, a `command` means `stdio` and a `url` means `http`.",
    ),
    command: optional(filled, "The program to start. `./` and `../` are relative to the file."),
    args: optional(strings, "Its arguments. They go to the program as they are; no shell reads them."),
    env: optional(
      record(scalar("string", "number", "boolean", "null")),
      "Environment variables for the program, besides a few such as `PATH` and `HOME`. `null` sets none.",
    ),
    envFile: optional(filled, "A file of `NAME=value` lines, read before `env`."),
    cwd: optional(filled, "The folder that the program runs in. Default: the folder of the file."),
    url: optional(filled, "The address of an HTTP server."),
    httpUrl: optional(filled, "Gemini CLI's word for `url`."),
    serverUrl: optional(filled, "Windsurf's word for `url`."),
    headers: optional(
      record(scalar("string", "number", "boolean")),
      "HTTP headers that go with every request to the server.",
    ),
    disabled: optional(flag(), "`true` leaves the server out."),
    enabled: optional(flag(), "`false` leaves the server out."),
    isolation: defaulted(
      word(["shared", "session"]),
      "shared",
      "`shared`: one connection for all agents. `session`: one for each session, for servers that keep state.",
    ),
    connectTimeoutMs: defaulted(
      millis,
      DEFAULT_CONNECT_TIMEOUT_MS,
      "How long a start and its handshake may take, in milliseconds.",
    ),
    callTimeoutMs: defaulted(
      millis,
      DEFAULT_CALL_TIMEOUT_MS,
      "How long a call may take, in milliseconds. Each progress message starts it anew.",
    ),
    tools: optional(record(override), "Changes to the server's tools, by the server's own name of the tool."),
    prompts: optional(record(override), "Changes to the server's prompts, by the server's own name of the prompt."),
  },
  "server",
);

const role = strict({
  allow: optional(strings, "What the role may use, as `server/tool` or `server`. Default: everything."),
  deny: defaulted(strings, [], "What it may not use, in the same form. Deny wins over allow."),
});

const tls = strict({
  cert: required(filled, "Path of the certificate, PEM."),
  key: required(filled, "Path of its private key, PEM."),
});

const sessions = strict({
  idleMs: defaulted(millis, DEFAULT_SESSIONS.idleMs, "A session unused for so long ends, in milliseconds."),
  max: defaulted(count, DEFAULT_SESSIONS.max, "Sessions open at the same time."),
});

const limits = strict({
  bodyBytes: defaulted(count, DEFAULT_LIMITS.bodyBytes, "Largest body of a request, in bytes."),
  batch: defaulted(count, DEFAULT_LIMITS.batch, "Most messages in a JSON-RPC batch."),
  depth: defaulted(count, DEFAULT_LIMITS.depth, "Deepest nesting of JSON in a request."),
  headerMs: defaulted(millis, DEFAULT_LIMITS.headerMs, "How long the headers of a request may take."),
  connections: defaulted(count, DEFAULT_LIMITS.connections, "Connections open at the same time."),
  outputBytes: defaulted(
    count,
    DEFAULT_LIMITS.outputBytes,
    "Largest reply that is held in memory as a whole, in bytes.",
  ),
});

const servers = record(serverForm);

/** The keys of the file beside the servers. Each is read on its own, so that all mistakes are found at once. */
export const settingsFields = {
  $schema: optional(text(), "The address of the JSON Schema, for editors."),
  listen: defaulted(text(), DEFAULT_LISTEN, "Where agents connect: `HOST:PORT`. Port 0 is any free one."),
  names: defaulted(
    word(["prefixed", "plain"]),
    "prefixed",
    "`prefixed`: tools are called `server__tool`. `plain`: by their own name, which must then be unique.",
  ),
  menu: defaulted(
    word(["full", "search"]),
    "full",
    "`full`: agents see all tools. `search`: they see `find_tools` and `call_tool` instead.",
  ),
  allowedHosts: defaulted(strings, [], "Host names in requests that are accepted besides the loopback ones."),
  allowedOrigins: defaulted(strings, [], "Origins of web pages that may connect, as `https://example.com`."),
  tls: optional(tls, "Serves HTTPS with this certificate."),
  roles: defaulted(record(role), {}, "What the tokens of a role may use, by role."),
  unlistedRoles: defaulted(
    word(["allow", "deny"]),
    "allow",
    "What a role without an entry in `roles` gets: everything, or nothing.",
  ),
  sessions: defaulted(sessions, {}, "Bounds on sessions."),
  limits: defaulted(limits, {}, "Bounds on what comes in and goes out."),
  pageSize: defaulted(whole({ min: 1, max: 100_000 }), DEFAULT_PAGE_SIZE, "Entries in a page of a list."),
};

export const fileForm = loose({
  mcpServers: optional(servers, "The servers, by name, as Claude, Cursor and others write them."),
  servers: optional(servers, "The same under VS Code's name. Both may be present; a name may not be in both."),
  ...settingsFields,
});

/** The keys of each object, for telling typos from foreign keys. */
export const TOP_KEYS: readonly string[] = Object.keys(fileForm.fields);
export const ENTRY_KEYS: readonly string[] = Object.keys(serverForm.fields);

/** The objects that are ours alone, where an unknown key can only be a mistake: by the key that holds them. */
export const OWN_OBJECTS = {
  tools: override.fields,
  prompts: override.fields,
  roles: role.fields,
  tls: tls.fields,
  sessions: sessions.fields,
  limits: limits.fields,
};

export type ServerEntry = OutOf<typeof serverForm>;
export type OverrideEntry = OutOf<typeof override>;
export type Settings = { readonly [K in keyof typeof settingsFields]: OutOf<(typeof settingsFields)[K]> };
/** What `createGateway` takes: a config as it would stand in a file. */
export type ConfigInput = InOf<typeof fileForm>;
