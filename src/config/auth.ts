// `auth` of a server's entry: its form, and what it means. Which token then goes with a request is decided by
// credentials/.

import type { Auth, BearerSource } from "../contracts/server-spec.js";
import { DEFAULT_TOKEN_TTL_MS } from "./config.js";
import { either, list, type OutOf, optional, required, strict, text as textForm, whole, word } from "./form.js";
import type { KeyPath } from "./mistakes.js";
import { absolutePath, commandPath } from "./paths.js";
import { type ResolveContext, text } from "./variables.js";

const filled = textForm({ min: 1 });

const SOURCE_FIELDS = {
  env: optional(filled, "The variable of the gateway's environment that holds it."),
  file: optional(filled, "The file that holds it, relative to the config. It is read anew when it changes."),
  command: optional(list(textForm()), "The program that prints it, with its arguments; no shell reads them."),
} as const;

export const bearerForm = strict({
  ...SOURCE_FIELDS,
  ttlMs: optional(
    whole({ min: 1, max: 2 ** 31 - 1 }),
    `With \`command\`: how long a token is used that does not say when it ends, in milliseconds. Default: ${DEFAULT_TOKEN_TTL_MS}.`,
  ),
});

/** In the config itself it is best a variable. */
const secret = either(filled, strict(SOURCE_FIELDS));

const scopes = list(filled);

export const oauthForm = strict({
  clientId: optional(filled, "The id of a client that was registered by hand. Without it, one is registered."),
  clientSecret: optional(secret, "Its secret, where it has one: a text, or one of `env`, `file`, `command`."),
  scopes: optional(scopes, "What is asked for at a login. Without it, what the server names."),
  clientMetadataUrl: optional(
    filled,
    "The address of a client id metadata document of yours, for services that take one in place of a registration.",
  ),
  redirectPort: optional(
    whole({ min: 1, max: 65_535 }),
    "The port on 127.0.0.1 that the browser comes back to, where the service wants to know it. Default: any.",
  ),
});

export const clientCredentialsForm = strict({
  clientId: required(filled, "The id of the client."),
  clientSecret: required(secret, "Its secret: a text, or one of `env`, `file`, `command`."),
  scopes: optional(scopes, "What is asked for. Without it, what the server names."),
});

export const authForm = either(
  word(["oauth"]),
  strict({
    bearer: optional(bearerForm, "Where the token comes from that goes with each request: `env`, `file` or `command`."),
    oauth: optional(oauthForm, 'As `"oauth"`, with more to say: a login by a person, `toolway login`.'),
    clientCredentials: optional(clientCredentialsForm, "A login without a person, by the id and secret of a client."),
  }),
);

type AuthEntry = OutOf<typeof authForm>;

/** What the resolving of `auth` looks at in the rest of an entry. */
interface BesideAuth {
  readonly auth?: AuthEntry | undefined;
  readonly command?: string | undefined;
  readonly headers?: Readonly<Record<string, unknown>> | undefined;
}

const KINDS = ["bearer", "oauth", "clientCredentials"] as const;

/** Undefined where there is none, or the report says what is wrong with it. */
export function resolveAuth(entry: BesideAuth, path: KeyPath, context: ResolveContext): Auth | undefined {
  const { report } = context;
  const at = [...path, "auth"];
  if (entry.auth === undefined) return undefined;
  if (entry.command !== undefined) {
    const hint = 'give the program its credential by "env", or remove the key';
    report.mistake(at, 'a credential goes with requests to a "url", and this is a program', { hint, onKey: true });
    return undefined;
  }
  const header = Object.keys(entry.headers ?? {}).find((name) => name.toLowerCase() === "authorization");
  if (header !== undefined) {
    const message = `"auth" and the header "${header}" are both credentials: expected one of them`;
    report.mistake(at, message, { hint: "remove one", onKey: true });
  }
  const auth = typeof entry.auth === "string" ? { oauth: {} } : entry.auth;
  const said = KINDS.filter((kind) => auth[kind] !== undefined);
  if (said.length !== 1) {
    report.mistake(at, `expected one of ${quoted(KINDS)}, found ${said.length === 0 ? "none of them" : quoted(said)}`);
    return undefined;
  }
  if (auth.bearer !== undefined) return resolveSource(auth.bearer, [...at, "bearer"], context);
  if (auth.clientCredentials !== undefined) {
    const { clientId, clientSecret, scopes } = auth.clientCredentials;
    const place = [...at, "clientCredentials"];
    const source = resolveSecret(clientSecret, [...place, "clientSecret"], context);
    if (source === undefined) return undefined;
    return {
      from: "clientCredentials",
      clientId: text(clientId, [...place, "clientId"], context),
      clientSecret: source,
      ...(scopes === undefined ? {} : { scopes }),
    };
  }
  return resolveOAuth(auth.oauth ?? {}, [...at, "oauth"], context);
}

function resolveOAuth(said: OutOf<typeof oauthForm>, at: KeyPath, context: ResolveContext): Auth {
  const { clientId, clientSecret, scopes, clientMetadataUrl, redirectPort } = said;
  if (clientSecret !== undefined && clientId === undefined) {
    context.report.mistake([...at, "clientSecret"], 'a secret is that of a "clientId", and there is none');
  }
  if (clientId !== undefined && clientMetadataUrl !== undefined) {
    const message = '"clientId" and "clientMetadataUrl" both say who we are: expected one of them';
    context.report.mistake([...at, "clientMetadataUrl"], message, { onKey: true });
  }
  const document =
    clientMetadataUrl === undefined ? undefined : text(clientMetadataUrl, [...at, "clientMetadataUrl"], context);
  if (document !== undefined && !/^https:\/\/[^/]+\/./.test(document)) {
    const message = "expected an address that starts with https:// and has a path";
    context.report.mistake([...at, "clientMetadataUrl"], message);
  }
  const source = clientSecret === undefined ? undefined : resolveSecret(clientSecret, [...at, "clientSecret"], context);
  return {
    from: "oauth",
    ...(clientId === undefined ? {} : { clientId: text(clientId, [...at, "clientId"], context) }),
    ...(source === undefined ? {} : { clientSecret: source }),
    ...(scopes === undefined ? {} : { scopes }),
    ...(document === undefined ? {} : { clientMetadataUrl: document }),
    ...(redirectPort === undefined ? {} : { redirectPort }),
  };
}

function resolveSecret(
  said: OutOf<typeof secret>,
  at: KeyPath,
  context: ResolveContext,
): BearerSource | { readonly from: "text"; readonly value: string } | undefined {
  if (typeof said !== "string") return resolveSource(said, at, context);
  const value = text(said, at, context);
  context.outside?.push({ name: "clientSecret", value });
  return { from: "text", value };
}

function resolveSource(
  { env, file, command, ttlMs }: OutOf<typeof bearerForm>,
  at: KeyPath,
  context: ResolveContext,
): BearerSource | undefined {
  const { report, dir, variables } = context;
  const said = Object.entries({ env, file, command }).flatMap(([key, value]) => (value === undefined ? [] : [key]));
  const [first, second] = said;
  if (first === undefined || second !== undefined) {
    const found = said.length === 0 ? "none of them" : quoted(said);
    report.mistake(at, `expected one of "env", "file" and "command", found ${found}`);
    return undefined;
  }
  if (ttlMs !== undefined && command === undefined) {
    report.mistake([...at, "ttlMs"], `this is for a "command", and the token is from "${first}"`);
  }
  if (env !== undefined) return { from: "env", name: env };
  if (file !== undefined) {
    return { from: "file", path: absolutePath(text(file, [...at, "file"], context), dir, variables.home) };
  }
  const place = [...at, "command"];
  if ((command ?? [""])[0] === undefined || command?.[0] === "") {
    report.mistake(place, 'expected a program and its arguments, as in ["gh", "auth", "token"]');
    return undefined;
  }
  const line = (command ?? []).map((part, index) => text(part, [...place, index], context));
  return {
    from: "command",
    line: [commandPath(line[0] ?? "", dir, variables.home), ...line.slice(1)],
    ttlMs: ttlMs ?? DEFAULT_TOKEN_TTL_MS,
    cwd: dir,
  };
}

function quoted(words: readonly string[]): string {
  return words
    .map((one) => `"${one}"`)
    .join(", ")
    .replace(/, ([^,]*)$/, " and $1");
}
