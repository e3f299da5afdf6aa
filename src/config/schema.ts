// The config file as a form: types, bounds and the meaning of every key. The JSON Schema and the table in
// docs/config.md are made from it. Objects that other clients share are loose; resolve.ts judges unknown keys.

import { DEFAULT_ROLE, EXECUTOR_ROLE, SHARER_ROLE } from "../contracts/settings.js";
import { adminForm, auditForm } from "./admin.js";
import { authForm, bearerForm, clientCredentialsForm, oauthForm } from "./auth.js";
import {
  DEFAULT_AWAY_WAIT_MS,
  DEFAULT_BACKOFF,
  DEFAULT_BREAKER,
  DEFAULT_CACHE,
  DEFAULT_CALL_CEILING_MS,
  DEFAULT_CALL_TIMEOUT_MS,
  DEFAULT_CONNECT_TIMEOUT_MS,
  DEFAULT_DRAIN_MS,
  DEFAULT_EJECTED_PROBE_MS,
  DEFAULT_LIMITS,
  DEFAULT_LISTEN,
  DEFAULT_OUTBOX,
  DEFAULT_OUTBOX_AGE_MS,
  DEFAULT_PAGE_SIZE,
  DEFAULT_PING_MS,
  DEFAULT_RESTARTS,
  DEFAULT_SESSION_CONNECTIONS,
  DEFAULT_SESSIONS,
  OUTBOX_EJECTED_PROBE_MS,
} from "./config.js";
import { engineForm } from "./engine.js";
import {
  anyObject,
  defaulted,
  flag,
  flagOr,
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
  wordOrFlag,
  wordOrObject,
} from "./form.js";

/** Node's timers fire at once beyond 2^31-1 ms. */
const MAX_TIMER_MS = 2_147_483_647;

/** Nobody waits longer than an hour for a gateway to stop. */
const MAX_DRAIN_MS = 3_600_000;

/** What a message may live for at all, in a broker. */
const MAX_AWAY_WAIT_MS = 7 * 24 * 3_600_000;
/** A broker hands no connection more messages than this at a time. */
const MAX_SHARED_CALLS = 1_000;

/** What a broker takes as the name of a mailbox. */
const MAX_MAILBOX_NAME = 128;

/** Names of tools are words; what is longer is no name of one. */
const MAX_TOOL_PATTERN = 256;

/** A server that restarts needs some seconds; a write that may wait for less is better refused at once. */
const MIN_OUTBOX_AGE_MS = 1_000;

/** What is older than a month is done again by whoever still wants it. */
const MAX_OUTBOX_AGE_MS = 30 * 24 * 3_600_000;

const millis = whole({ min: 1, max: MAX_TIMER_MS });
const count = whole({ min: 1 });
/** With less there is no room for ordinary calls: a dozen of 20 kB, counted three times, take three quarters of it. */
const MIN_HELD_BYTES = 1024 * 1024;
/** A time between two events; 0 means never. */
const interval = whole({ min: 0, max: MAX_TIMER_MS });
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

const confirm = strict({
  tool: required(filled, "The server's own name of the tool. It must change nothing."),
  arguments: required(anyObject(), "Its arguments. `{key}` in their strings stands for the key of the write."),
  found: required(
    filled,
    "A JSON pointer into the structured result, as `/issues/0`: where something stands there, the write was done.",
  ),
});

/** What a tool's `outbox` says where it is more than `true`. */
export const toolOutbox = strict(
  {
    key: optional(
      filled,
      "Where the server wants the key by which it knows a write that it has had before: `arguments.NAME` or `_meta.NAME`. " +
        "Default: the server knows no keys, and what may have happened is not sent again.",
    ),
    lane: optional(
      scalar("string", "boolean"),
      "Writes of one lane are delivered in their order. `arguments.NAME`: one lane for each value, shared by all agents; " +
        "`false`: no order. Default: one lane for each principal and server.",
    ),
    maxAgeMs: defaulted(
      whole({ min: MIN_OUTBOX_AGE_MS, max: MAX_OUTBOX_AGE_MS }),
      DEFAULT_OUTBOX_AGE_MS,
      "A write that could not be delivered for so long expires, in milliseconds.",
    ),
    onUnknown: defaulted(
      word(["skip", "hold"]),
      "skip",
      "What becomes of the lane of a write of unknown outcome: it goes on, or it waits for `toolway outbox resolve`.",
    ),
    confirm: optional(confirm, "A tool of the same server that says whether a write took effect."),
    tells: defaulted(
      flag(),
      true,
      "The agent's next result of such a tool says what became of its earlier writes, in a text block of its own.",
    ),
  },
  "toolOutbox",
);

const tool = strict(
  {
    ...override.fields,
    readOnly: defaulted(flag(), false, "It changes nothing. A call that a crash cut off is then made again, once."),
    idempotent: defaulted(
      flag(),
      false,
      "To call it twice has the effect of once. A call that a crash cut off is then made again, once.",
    ),
    cache: defaulted(
      flag(),
      false,
      "Results for which the server itself sets a `ttlMs` are kept so long and served again.",
    ),
    ask: defaulted(
      flag(),
      false,
      "Before somebody calls it through a mailbox, `toolway share` asks the person at its terminal. Nobody there: the call waits a minute for `toolway asks` or the page, and is then refused.",
    ),
    outbox: optional(
      flagOr(toolOutbox),
      "Calls of it are kept on disk while the server is away, and delivered when it is back: see `docs/outbox.md`.",
    ),
  },
  "tool",
);

const restarts = strict({
  max: defaulted(whole({ min: 0, max: 1_000_000 }), DEFAULT_RESTARTS.max, "Most restarts in the window."),
  windowMs: defaulted(millis, DEFAULT_RESTARTS.windowMs, "The window, in milliseconds."),
});

const backoff = strict({
  baseMs: defaulted(millis, DEFAULT_BACKOFF.baseMs, "The longest first wait, in milliseconds. It doubles."),
  maxMs: defaulted(millis, DEFAULT_BACKOFF.maxMs, "Where the doubling ends, in milliseconds."),
});

const breaker = strict({
  failures: defaulted(
    count,
    DEFAULT_BREAKER.failures,
    "So many faults in a row (lost, unreadable, hung, or several slow tools; no errors that the server answers) open it.",
  ),
  openMs: defaulted(
    millis,
    DEFAULT_BREAKER.openMs,
    "How long calls are then refused, in milliseconds. Afterwards one call is tried.",
  ),
});

const budget = strict({
  calls: required(count, "Most calls in the window."),
  windowMs: required(millis, "The window, in milliseconds."),
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
    envFile: optional(
      filled,
      "A file of `NAME=value` lines for the program's environment; what `env` says wins. Variables of the config are not taken from it.",
    ),
    cwd: optional(filled, "The folder that the program runs in. Default: the folder of the file."),
    url: optional(
      filled,
      "The address of an HTTP server, or `unix:///path/to.sock#/mcp` for one that listens on a Unix socket.",
    ),
    httpUrl: optional(filled, "Gemini CLI's word for `url`."),
    serverUrl: optional(filled, "Windsurf's word for `url`."),
    headers: optional(
      record(scalar("string", "number", "boolean")),
      "HTTP headers that go with every request to the server.",
    ),
    auth: optional(
      authForm,
      "With a `url`: a credential that is read for each request, in place of one in `headers`. " +
        '`{ "bearer": { "command": ["gh", "auth", "token"] } }`, or `"oauth"` for a login (docs/credentials.md).',
    ),
    via: optional(filled, "The executor, by its name in `executors`, that makes the requests to the `url`."),
    mailbox: optional(
      text({ min: 1, max: MAX_MAILBOX_NAME }),
      "The mailbox of a machine that shares its servers, in place of a `command` or a `url`.",
    ),
    broker: optional(
      filled,
      "With `mailbox`: the address of its broker, `ws://…` or `wss://…`. Without it this gateway's own is meant " +
        '(`"mailboxes": {}`).',
    ),
    token: optional(filled, "With `mailbox`: the token that is shown to the broker, best as a variable."),
    awayWaitMs: defaulted(
      whole({ min: 0, max: MAX_AWAY_WAIT_MS }),
      DEFAULT_AWAY_WAIT_MS,
      "With `mailbox`: how long a call waits for a machine that is away, in milliseconds.",
    ),
    disabled: optional(flag(), "`true` leaves the server out."),
    enabled: optional(flag(), "`false` leaves the server out."),
    isolation: defaulted(
      word(["shared", "session"]),
      "shared",
      "`shared`: one connection for all agents. `session`: one for each session, for servers that keep state.",
    ),
    sessionConnections: defaulted(
      count,
      DEFAULT_SESSION_CONNECTIONS,
      'With `"isolation": "session"`: so many connections at the same time, three quarters of them for one principal ' +
        "at most.",
    ),
    placement: optional(
      word(["every", "one"]),
      "With a `command`, of several gateways on one engine: `every` has a process of its own, which is what happens " +
        "without the key; with `one` a single gateway runs it for all, and the others pass calls to it (docs/scale.md). " +
        "Without an `engine` it changes nothing.",
    ),
    era: optional(
      word(["legacy", "modern"]),
      "The protocol era that the server is spoken to in, where it should not be found out: `legacy` (`initialize`, up " +
        "to 2025-11-25) or `modern` (2026-07-28).",
    ),
    declare: optional(
      list(word(["roots", "sampling", "elicitation"])),
      "What a legacy server is told that agents can be asked, in place of what the agents themselves declare. All " +
        "agents then share one session at it.",
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
    callCeilingMs: defaulted(
      millis,
      DEFAULT_CALL_CEILING_MS,
      "How long progress may keep a call going in all, in milliseconds.",
    ),
    restarts: defaulted(
      restarts,
      {},
      "How often the server may be restarted. Past that it is ejected: left alone until `ejectedProbeMs` or `toolway reload`.",
    ),
    backoff: defaulted(backoff, {}, "How long to wait before a restart."),
    breaker: defaulted(breaker, {}, "When to stop sending calls to a server that fails them."),
    ejectedProbeMs: optional(
      interval,
      "An ejected server is tried once more after so long, in milliseconds; 0 is never, only by `toolway reload`. " +
        `Default: ${DEFAULT_EJECTED_PROBE_MS.program} for a program, ${DEFAULT_EJECTED_PROBE_MS.address} for an address, ${OUTBOX_EJECTED_PROBE_MS} for one with an \`outbox\`.`,
    ),
    lazy: defaulted(flag(), false, "`true` starts the server when it is first needed."),
    keepAliveMs: optional(
      millis,
      "A server unused for so long, in milliseconds, is closed until it is needed. Default: it stays up.",
    ),
    pingMs: optional(
      interval,
      "An idle server is asked for a sign of life this often, in milliseconds; 0 is never. " +
        `Default: ${DEFAULT_PING_MS} for a program, never for an address.`,
    ),
    trust: defaulted(
      wordOrFlag(["pinned", "always"]),
      "pinned",
      "`pinned`: a tool whose definition changes is hidden until `toolway pins accept`. `always`: the server is " +
        "believed, also in what its annotations say of its tools. (`true` and `false` are Gemini CLI's: `pinned`.)",
    ),
    sandbox: optional(
      wordOrObject(["none"]),
      "`none`: the program may run without the sandbox that VS Code's `sandboxEnabled` asks for. There is none here, so " +
        "that such a server is misconfigured without it.",
    ),
    card: optional(
      filled,
      "Path or address of the server's card. Default: `<url>/server-card`, where a server has it.",
    ),
    budget: optional(budget, "Most calls to the server, of all callers together."),
    only: optional(
      list(text({ min: 1, max: MAX_TOOL_PATTERN })),
      "The tools that are shown and may be called, by the server's own names; `*` is any run of characters. All others " +
        "are hidden and refused, also those that the server adds later. Default: all.",
    ),
    tools: optional(record(tool), "Changes to the server's tools, by the server's own name of the tool."),
    prompts: optional(record(override), "Changes to the server's prompts, by the server's own name of the prompt."),
  },
  "server",
);

const role = strict({
  allow: optional(strings, "What the role may use, as `server/tool` or `server`. Default: everything."),
  deny: defaulted(strings, [], "What it may not use, in the same form. Deny wins over allow."),
  budget: optional(budget, "Most calls of each principal of the role."),
});

const menuRule = strict({
  when: defaulted(
    record(scalar("string", "null")),
    {},
    "What the principal's context must say, by key; `*` is any run of characters, `null` an unset key.",
  ),
  show: optional(strings, "All that is left, as `server/tool` or `server`. Default: everything."),
  hide: defaulted(strings, [], "What is taken away, in the same form."),
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
  questionMs: defaulted(
    millis,
    DEFAULT_LIMITS.questionMs,
    "How long an agent may take to answer what a server asks within a call (elicitation, sampling, roots), in " +
      "milliseconds. The call's own time stands still meanwhile.",
  ),
  heldBytes: defaulted(
    whole({ min: MIN_HELD_BYTES }),
    DEFAULT_LIMITS.heldBytes,
    "All bodies, replies and streams that are held in memory at one time, in bytes. One principal has three quarters at " +
      "most, and a body counts three times: four times `bodyBytes` are needed for the largest.",
  ),
});

const cache = strict({
  maxBytes: defaulted(count, DEFAULT_CACHE.maxBytes, "All results that are kept, in bytes."),
  entriesPerTool: defaulted(count, DEFAULT_CACHE.entriesPerTool, "Results that are kept of one tool or method."),
  maxTtlMs: defaulted(
    millis,
    DEFAULT_CACHE.maxTtlMs,
    "The longest that a result is kept, whatever the server says, in milliseconds.",
  ),
});

const outbox = strict({
  maxWrites: defaulted(
    count,
    DEFAULT_OUTBOX.maxWrites,
    "Writes that wait at one time, of all servers. One principal has half of them at most.",
  ),
  maxBytes: defaulted(
    count,
    DEFAULT_OUTBOX.maxBytes,
    "All that wait at one time, in bytes. One principal has half of them at most.",
  ),
});

/** Loose: Gemini CLI has a `telemetry` of its own in the same file. */
const telemetry = loose({
  otlp: optional(
    filled,
    "Where spans and metrics are sent, as OTLP over HTTP: `http://127.0.0.1:4318`. Default: nowhere.",
  ),
  metrics: optional(flag(), "Whether metrics are sent beside the spans. Default: `true`."),
});

const log = strict(
  {
    calls: optional(
      flag(),
      "One line of the log for each call. Default: `true` for `toolway serve`, `false` for `toolway stdio` and in programs.",
    ),
  },
  "log",
);

const executor = strict(
  {
    url: optional(
      filled,
      "Where the executor listens: `ws://…` or `wss://…`. Without it executors dial in, at `/executors/<name>`.",
    ),
    urls: optional(list(filled), "The same for several, which share the load and take over for each other."),
    token: optional(filled, "The token that is shown to it, best as a variable. Only with a `url`."),
    noAuth: optional(
      flag(),
      "`true` lets it dial in without a token at a gateway that asks nobody for one (`--no-auth`). Default: it may not.",
    ),
  },
  "executor",
);

const servers = record(serverForm);

const share = strict(
  {
    broker: required(filled, "Where the broker is: `wss://…`, or `ws://…` on this machine."),
    as: required(filled, "The mailbox: the id of the token, which has the role `sharer` at the broker."),
    token: optional(filled, "The token, best as a variable. Without it, the broker must ask for none."),
    calls: optional(
      whole({ min: 1, max: MAX_SHARED_CALLS }),
      "Calls that run at once, of all who use the tools; others wait in the broker. Default: 64.",
    ),
  },
  "share",
);

/** Mailboxes have no settings of their own: their bounds are the broker's. */
const mailboxes = strict({});

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
  allowedOrigins: defaulted(
    strings,
    [],
    "Origins of web pages that may connect and read the answers (CORS), as `https://example.com`.",
  ),
  tls: optional(tls, "Serves HTTPS with this certificate."),
  state: optional(
    filled,
    "The folder where tokens, pins and lists are kept, relative to the file. Default: one that is named after the " +
      "config's path, in `~/.local/state/toolway`.",
  ),
  engine: optional(
    engineForm,
    "Where several gateways keep together what one keeps in its `state`: NATS with JetStream (docs/scale.md).",
  ),
  admin: optional(
    flagOr(adminForm),
    "Holds the operator's door open, which `toolway dashboard` else opens when it is asked: Prometheus needs that. " +
      "`false` forbids it (docs/dashboard.md).",
  ),
  mailboxes: optional(
    mailboxes,
    "Keeps mailboxes, at `/mailboxes`: machines share their tools through them, and agents elsewhere use those. `{}`.",
  ),
  share: optional(
    share,
    "Shares the tools in a mailbox of a broker, for agents elsewhere, for as long as the gateway serves. The roles decide " +
      "who may use what.",
  ),
  executors: defaulted(
    record(executor),
    {},
    "Those who make HTTP requests in networks that the gateway cannot reach, by name.",
  ),
  roles: defaulted(
    record(role),
    {},
    `What the tokens of a role may use, by role. The default token has the role \`${DEFAULT_ROLE}\`; \`${EXECUTOR_ROLE}\` and \`${SHARER_ROLE}\` are for those who dial in, and use no tools.`,
  ),
  unlistedRoles: defaulted(
    word(["allow", "deny"]),
    "allow",
    "What a role without an entry in `roles` gets: everything, or nothing.",
  ),
  menus: defaulted(
    list(menuRule),
    [],
    "What is left of a role's tools in some situations: rules by the context of a principal. All that fit count.",
  ),
  sessions: defaulted(sessions, {}, "Bounds on sessions."),
  limits: defaulted(limits, {}, "Bounds on what comes in and goes out."),
  drainMs: defaulted(
    whole({ min: 0, max: MAX_DRAIN_MS }),
    DEFAULT_DRAIN_MS,
    "How long calls in flight have to end when the gateway is stopped, in milliseconds.",
  ),
  pageSize: defaulted(whole({ min: 1, max: 100_000 }), DEFAULT_PAGE_SIZE, "Entries in a page of a list."),
  cache: defaulted(cache, {}, "Bounds on the results that are kept."),
  outbox: defaulted(outbox, {}, "Bounds on the calls that are kept while their servers are away."),
  telemetry: optional(telemetry, "Where spans and metrics go."),
  audit: optional(auditForm, "A log of calls, refusals and acts of operators that cannot be changed unseen."),
  log: defaulted(log, {}, "What is logged."),
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
  tools: tool.fields,
  prompts: override.fields,
  roles: role.fields,
  menus: menuRule.fields,
  tls: tls.fields,
  sessions: sessions.fields,
  limits: limits.fields,
  cache: cache.fields,
  outbox: outbox.fields,
  confirm: confirm.fields,
  telemetry: telemetry.fields,
  audit: auditForm.fields,
  log: log.fields,
  executors: executor.fields,
  engine: engineForm.fields,
  admin: adminForm.fields,
  mailboxes: mailboxes.fields,
  share: share.fields,
  restarts: restarts.fields,
  backoff: backoff.fields,
  breaker: breaker.fields,
  budget: budget.fields,
  bearer: bearerForm.fields,
  oauth: oauthForm.fields,
  clientCredentials: clientCredentialsForm.fields,
};

export type ServerEntry = OutOf<typeof serverForm>;
export type OverrideEntry = OutOf<typeof override>;
export type ToolEntry = OutOf<typeof tool>;
export type OutboxEntryForm = OutOf<typeof toolOutbox>;
export type Settings = { readonly [K in keyof typeof settingsFields]: OutOf<(typeof settingsFields)[K]> };
/** What `createGateway` takes: a config as it would stand in a file. */
export type ConfigInput = InOf<typeof fileForm>;
