// `admin` and `audit` of a config, which are the operator's. The first says whether the operator's door is held open, where,
// and under which names; that it is opened at all is control/door's.

import type { AdminSettings } from "../contracts/settings.js";
import { isLoopback } from "../runtime/addresses.js";
import { parseListen } from "./config.js";
import { defaulted, list, type OutOf, optional, required, strict, text as textForm, whole, word } from "./form.js";
import type { KeyPath } from "./mistakes.js";
import { absolutePath } from "./paths.js";
import { type ResolveContext, text } from "./variables.js";

/** Where `toolway dashboard` looks for a port first, too. */
const DEFAULT_ADMIN_LISTEN = "127.0.0.1:7421";

const filled = textForm({ min: 1 });

const adminTlsForm = strict({
  cert: required(filled, "Path of the certificate, PEM."),
  key: required(filled, "Path of its private key, PEM."),
});

export const adminForm = strict(
  {
    listen: optional(
      filled,
      `Where it listens: \`HOST:PORT\`. Beyond loopback only with \`tls\`. Default: \`${DEFAULT_ADMIN_LISTEN}\`.`,
    ),
    hosts: optional(
      list(filled),
      "Names in requests that are accepted besides the loopback ones: `toolway.example.com`, with a port where it is " +
        "another than the door's. A proxy in front needs its own name here.",
    ),
    tls: optional(adminTlsForm, "Serves it over HTTPS with this certificate."),
  },
  "admin",
);

type AdminEntry = OutOf<typeof adminForm> | boolean;

/** Undefined where nothing is said: the door opens when somebody asks for it. */
export function resolveAdmin(
  entry: AdminEntry | undefined,
  context: ResolveContext,
): AdminSettings | false | undefined {
  if (entry === undefined || entry === false) return entry;
  const { listen, hosts = [], tls } = entry === true ? {} : entry;
  const { report } = context;
  const address = parseListen(listen ?? DEFAULT_ADMIN_LISTEN);
  if (address === undefined) {
    report.mistake(["admin", "listen"], "expected HOST:PORT with a port from 0 to 65535", {
      hint: `for instance "${DEFAULT_ADMIN_LISTEN}"`,
    });
  } else if (!isLoopback(address.host) && tls === undefined) {
    report.mistake(["admin", "listen"], `${address.host} is not loopback, and without "tls" tokens would go in clear`, {
      hint: 'add "tls": { "cert", "key" } beside it, or listen on 127.0.0.1 and let a proxy speak TLS',
    });
  }
  hosts.forEach((host, index) => {
    if (isHostName(host)) return;
    report.mistake(["admin", "hosts", index], "expected a name, or a name and a port, without a scheme or a path", {
      hint: 'for instance "toolway.example.com" or "toolway.example.com:8443"',
    });
  });
  const path = (key: "cert" | "key", value: string, at: KeyPath) =>
    absolutePath(text(value, [...at, key], context), context.dir, context.variables.home);
  const files = tls && {
    cert: path("cert", tls.cert, ["admin", "tls"]),
    key: path("key", tls.key, ["admin", "tls"]),
  };
  return address === undefined
    ? undefined
    : { listen: address, hosts: hosts.map((one) => one.toLowerCase()), tls: files };
}

/** No pattern is one: a name that anybody may have under a domain is anybody's. */
function isHostName(host: string): boolean {
  return /^(?:\[[0-9A-Fa-f:.]+\]|[\w.-]+)(?::\d{1,5})?$/.test(host);
}

/** `audit`: the log of what agents and operators did. */
export const auditForm = strict({
  path: optional(filled, "The folder of the log. Default: `audit` in the state directory."),
  maxFileBytes: defaulted(
    whole({ min: 65_536, max: 2 ** 30 }),
    2 ** 26,
    "Of one file; after a day another is begun anyway.",
  ),
  maxBytes: defaulted(whole({ min: 131_072 }), 2 ** 30, "Of all files: the oldest are removed, and a line says so."),
  maxAgeDays: defaulted(whole({ min: 1, max: 36_500 }), 30, "Older files are removed, and a line says so."),
  arguments: defaulted(
    word(["none", "hmac", "redacted"]),
    "none",
    "What of arguments is in it: nothing, an HMAC, or at most 4 KiB of them without secrets. Results never are.",
  ),
  onFull: defaulted(
    word(["drop", "refuse"]),
    "drop",
    "While there is no room lines are lost and counted, or calls refused.",
  ),
});
