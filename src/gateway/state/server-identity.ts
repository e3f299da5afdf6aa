// Whether an entry of one name means the same server at two gateways: what is started or dialled, not how long it may take, nor
// with which secret.

import { createHash } from "node:crypto";
import type { Target } from "../../contracts/server-spec.js";
import { isPath, isPlaceUnder, SECRET_NAME } from "../../runtime/redact/ordinary.js";
import { secretsOf } from "../../runtime/redact/secrets-of.js";
import { decoded } from "../../runtime/words/percent.js";

/** What stands in place of a secret, which may be another at each gateway, and is another when it was renewed. */
const SECRET = "\u0000";

/** Shorter paths are the beginning of others by chance. */
const MIN_PATH_CHARACTERS = 4;

/** The same for entries that mean the same server. */
export function serverIdentity(target: Target): string {
  const secrets = [...hiddenIn(target)].sort((a, b) => b.length - a.length);
  const plain = (text: string) => secrets.reduce((rest, secret) => rest.replaceAll(secret, SECRET), text);
  const pairs = (record: Readonly<Record<string, string>>) =>
    Object.entries(record)
      .map(([name, value]) => [name, isNamedSecret(name, value) ? SECRET : plain(value)])
      .sort(([a = ""], [b = ""]) => (a < b ? -1 : 1));
  return createHash("sha256")
    .update(JSON.stringify(partsOf(target, plain, pairs)))
    .digest("base64url");
}

/** What counts nowhere: credentials, and where things lie on a machine. An id that only looks like a credential may say which server it is. */
function hiddenIn(target: Target): Set<string> {
  const found = secretsOf({ ...target, headers: {} }, false);
  for (const { value } of target.secrets ?? [])
    if (value.length >= MIN_PATH_CHARACTERS && isPath(value)) found.add(value);
  return found;
}

/** However short it is. */
function isNamedSecret(name: string, value: string): boolean {
  return SECRET_NAME.test(name) && !isPlaceUnder(name, value);
}

/** Whoever is dialled counts, wherever the name came from: it is another server elsewhere. Who logs in does not. */
function addressOf(url: string, plain: (text: string) => string): readonly unknown[] {
  if (!URL.canParse(url)) return [plain(url)];
  const { protocol, host, pathname, searchParams } = new URL(url);
  const query = [...searchParams].map(([name, value]) => [name, isNamedSecret(name, value) ? SECRET : plain(value)]);
  return [protocol, host, plain(decoded(pathname)), query];
}

function partsOf(
  target: Target,
  plain: (text: string) => string,
  pairs: (record: Readonly<Record<string, string>>) => unknown,
): unknown {
  switch (target.kind) {
    case "stdio":
      // Where it lies on a machine says nothing of what it is: the `cwd` is left out.
      return ["stdio", plain(target.command), target.args.map(plain), pairs(target.env)];
    case "http":
    case "sse":
      return [
        target.kind,
        addressOf(target.url, plain),
        target.socketPath,
        target.via,
        withoutCredentials(target.headers),
      ];
    case "mailbox":
      return ["mailbox", target.mailbox, target.broker === undefined ? [] : addressOf(target.broker, plain)];
  }
}

/** Of a header the name counts: what it says is a credential as often as not. */
function withoutCredentials(headers: Readonly<Record<string, string>>): string[] {
  return Object.keys(headers)
    .map((name) => name.toLowerCase())
    .sort((a, b) => (a < b ? -1 : 1));
}
