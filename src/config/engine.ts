// `engine` of a config: the NATS that several machines share, as it stands in a file, and what it means. Nothing here
// reads a secret: where it is read, and when, is store/nats/'s.

import type { EngineAuth, EngineSecret, EngineSettings } from "../contracts/settings.js";
import { isLoopback } from "../runtime/addresses.js";
import { flag, list, type OutOf, optional, required, strict, text as textForm, whole } from "./form.js";
import type { KeyPath } from "./mistakes.js";
import { absolutePath } from "./paths.js";
import { expandAt, type ResolveContext, text } from "./variables.js";

const DEFAULT_PORT = 4222;
/** The loss of one node loses nothing, and leaves a majority. */
const DEFAULT_REPLICAS = 3;
const DEFAULT_PREFIX = "tw";
/** It begins the name of each stream and subject, of which the engine bounds the length. */
const MAX_PREFIX = 32;
/** What JetStream keeps of one stream at most. */
const MAX_REPLICAS = 5;

/** A node that is started anew, an election and a person who looks take less; a token that leaked is not good for much longer. */
const DEFAULT_STALE_MS = 60_000;
const MAX_STALE_MS = 24 * 60 * 60_000;

const filled = textForm({ min: 1 });

const secret = strict(
  {
    env: optional(filled, "The variable of the gateway's environment that holds it."),
    file: optional(filled, "The file that holds it, relative to the config. It is read anew at each dial."),
  },
  "engineSecret",
);

export const engineAuthForm = strict({
  token: optional(secret, "A token."),
  user: optional(filled, "The name of a user, with `password`."),
  password: optional(secret, "The password of `user`."),
  nkey: optional(secret, 'The seed of an nkey, which begins with "SU".'),
  creds: optional(secret, "What a `.creds` file holds."),
});

export const engineTlsForm = strict({
  ca: optional(filled, "Path of the authority that signed the nodes' certificates, PEM. Default: those of the system."),
  cert: optional(filled, "Path of a certificate of ours, PEM, where the nodes ask for one."),
  key: optional(filled, "Path of its private key, PEM."),
});

export const engineForm = strict(
  {
    nats: required(
      list(filled),
      "Addresses of its nodes: `tls://HOST:PORT`, or `nats://HOST:PORT` in clear. One is enough, the cluster names the others.",
    ),
    auth: optional(
      engineAuthForm,
      "How the gateway proves who it is: `token`, `user` and `password`, `nkey` or `creds`.",
    ),
    tls: optional(engineTlsForm, "Whom to trust, and what to show, with `tls://` addresses."),
    key: required(
      secret,
      "The engine's key, the same at every gateway: `toolway engine key` makes one. It seals what is kept there. Of " +
        "several, one a line, the first is used and the others only open.",
    ),
    replicas: optional(
      whole({ min: 1, max: MAX_REPLICAS }),
      `How many nodes keep each record: 1, 3 or 5. Default: ${DEFAULT_REPLICAS}.`,
    ),
    prefix: optional(
      textForm({ min: 1, max: MAX_PREFIX }),
      `Begins the names of all that is ours: two Toolways on one engine have two. Default: \`${DEFAULT_PREFIX}\`.`,
    ),
    monitor: optional(
      filled,
      "The monitoring address of a node, `http://HOST:8222`: the only place that says whether acknowledged means on disk.",
    ),
    staleMs: optional(
      whole({ min: 1, max: MAX_STALE_MS }),
      `How long tokens hold while the engine is away, in milliseconds: one that was revoked is not known to be. Default: ${DEFAULT_STALE_MS}.`,
    ),
    failReady: optional(
      flag(),
      "`/readyz` is 503 while the engine is away. Default: false, because a balancer would take all gateways out at once.",
    ),
  },
  "engine",
);

type EngineEntry = OutOf<typeof engineForm>;

/** Undefined where there is none, or the report says what is wrong with it. */
export function resolveEngine(entry: EngineEntry | undefined, context: ResolveContext): EngineSettings | undefined {
  if (entry === undefined) return undefined;
  const { report } = context;
  const at = ["engine"];
  const addresses = entry.nats.flatMap((raw, index) => {
    const address = resolveAddress(raw, [...at, "nats", index], context);
    return address === undefined ? [] : [{ ...address, index }];
  });
  if (entry.nats.length === 0) {
    report.mistake([...at, "nats"], "expected at least one address", {
      hint: 'for instance "tls://nats.internal:4222"',
    });
  }
  const isTls = addresses[0]?.isTls === true;
  const other = addresses.find((one) => one.isTls !== isTls);
  if (other !== undefined) {
    const message = "expected all addresses with tls://, or all with nats://: what is said to one is said to all";
    report.mistake([...at, "nats", other.index], message);
  }
  if (entry.tls !== undefined && addresses.length > 0 && !isTls) {
    const hint = "write tls:// in the addresses, or remove the key";
    report.mistake([...at, "tls"], 'this is for addresses with tls://, and those in "nats" are plain', {
      hint,
      onKey: true,
    });
  }
  const host = addresses.find(({ host, isTls }) => !isTls && !isLoopback(host))?.host;
  if (host !== undefined) {
    report.warning([...at, "nats"], "the secret and all that is kept go there unencrypted", { hint: "use tls://" });
  }
  const tls = isTls ? resolveTls(entry.tls ?? {}, [...at, "tls"], context) : undefined;
  const auth = resolveAuth(entry.auth, [...at, "auth"], context);
  const key = resolveSecret(entry.key, [...at, "key"], context);
  const { replicas = DEFAULT_REPLICAS, prefix = DEFAULT_PREFIX } = entry;
  if (replicas % 2 === 0) {
    const message = `expected 1, 3 or 5: with ${replicas} the loss of one node weighs as much as with ${replicas - 1}`;
    report.mistake([...at, "replicas"], message);
  }
  if (!/^[A-Za-z0-9_-]+$/.test(prefix)) {
    report.mistake([...at, "prefix"], 'expected letters, digits, "_" and "-" only', { hint: 'for instance "tw"' });
  }
  const monitor = entry.monitor === undefined ? undefined : resolveMonitor(entry.monitor, [...at, "monitor"], context);
  if (key === undefined || report.failed) return undefined;
  const { staleMs = DEFAULT_STALE_MS, failReady = false } = entry;
  const nodes = addresses.map(({ host, port }) => ({ host, port }));
  return { nodes, tls, auth, key, replicas, prefix, monitor, staleMs, failReady };
}

/** The client of NATS would take a name and a password in an address for a port, so that they are found here. */
function resolveAddress(
  raw: string,
  path: KeyPath,
  context: ResolveContext,
): { host: string; port: number; isTls: boolean } | undefined {
  const { value, complete } = expandAt(raw, path, context);
  if (!complete) return undefined;
  const { report } = context;
  const match = /^(nats|tls):\/\/(?:\[([0-9A-Fa-f:.]+)\]|([^\s:/?#@[\]]+))(?::(\d{1,5}))?\/?$/.exec(value.trim());
  const port = match?.[4] === undefined ? DEFAULT_PORT : Number(match[4]);
  // The value may hold a secret by now, so it is not shown.
  if (match === null && value.includes("@")) {
    const hint = 'name it under "auth", by "env" or "file"';
    report.mistake(path, "a secret does not belong into an address, and would not be used", { hint });
  } else if (match === null || port < 1 || port > 65_535) {
    const hint = 'for instance "tls://nats.internal:4222"';
    report.mistake(path, "expected tls://HOST:PORT or nats://HOST:PORT, with nothing behind it", { hint });
  } else return { host: match[2] ?? match[3] ?? "", port, isTls: match[1] === "tls" };
  return undefined;
}

function resolveTls(
  entry: NonNullable<EngineEntry["tls"]>,
  at: KeyPath,
  context: ResolveContext,
): NonNullable<EngineSettings["tls"]> {
  const { dir, variables, report } = context;
  const pathOf = (name: "ca" | "cert" | "key") => {
    const raw = entry[name];
    return raw === undefined ? undefined : absolutePath(text(raw, [...at, name], context), dir, variables.home);
  };
  if ((entry.cert === undefined) !== (entry.key === undefined)) {
    report.mistake(at, 'expected "cert" and "key" together: the one is nothing without the other');
  }
  return { ca: pathOf("ca"), cert: pathOf("cert"), key: pathOf("key") };
}

function resolveAuth(entry: EngineEntry["auth"], at: KeyPath, context: ResolveContext): EngineAuth | undefined {
  if (entry === undefined) return undefined;
  const { report } = context;
  const { token, user, password, nkey, creds } = entry;
  const isPassword = user !== undefined || password !== undefined;
  const said = [token, isPassword ? {} : undefined, nkey, creds].filter((one) => one !== undefined);
  if (said.length !== 1) {
    const found = said.length === 0 ? "none of them" : "more than one";
    report.mistake(at, `expected one of "token", "user" with "password", "nkey" and "creds", found ${found}`);
    return undefined;
  }
  if (isPassword && (user === undefined || password === undefined)) {
    report.mistake(at, 'expected "user" and "password" together');
    return undefined;
  }
  const source = (one: EngineEntry["key"], name: string) => resolveSecret(one, [...at, name], context);
  if (token !== undefined) return withSecret(source(token, "token"), (found) => ({ by: "token", token: found }));
  if (nkey !== undefined) return withSecret(source(nkey, "nkey"), (found) => ({ by: "nkey", seed: found }));
  if (creds !== undefined) return withSecret(source(creds, "creds"), (found) => ({ by: "creds", creds: found }));
  const name = text(user ?? "", [...at, "user"], context);
  return withSecret(source(password ?? {}, "password"), (found) => ({ by: "password", user: name, password: found }));
}

function withSecret(
  secret: EngineSecret | undefined,
  make: (secret: EngineSecret) => EngineAuth,
): EngineAuth | undefined {
  return secret === undefined ? undefined : make(secret);
}

function resolveSecret(
  { env, file }: EngineEntry["key"],
  at: KeyPath,
  context: ResolveContext,
): EngineSecret | undefined {
  const { report, dir, variables } = context;
  if ((env === undefined) === (file === undefined)) {
    report.mistake(at, `expected one of "env" and "file", found ${env === undefined ? "none of them" : "both"}`);
    return undefined;
  }
  if (env !== undefined) return { from: "env", name: env };
  return { from: "file", path: absolutePath(text(file ?? "", [...at, "file"], context), dir, variables.home) };
}

function resolveMonitor(raw: string, path: KeyPath, context: ResolveContext): string | undefined {
  const { value, complete } = expandAt(raw, path, context);
  if (!complete) return undefined;
  const url = URL.canParse(value.trim()) ? new URL(value.trim()) : undefined;
  if ((url?.protocol === "http:" || url?.protocol === "https:") && url.pathname === "/") return url.origin;
  context.report.mistake(path, "expected http://HOST:PORT or https://HOST:PORT, with nothing behind it", {
    hint: 'for instance "http://127.0.0.1:8222"',
  });
  return undefined;
}
