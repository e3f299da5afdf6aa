// Principals and their tokens: who may come in, as whom, until when. It stores hashes only, but for the default token,
// which lies in a file of its own (0600) so that `toolway token show` can show it. It knows nothing of HTTP.

import { hash, randomBytes } from "node:crypto";
import { chmodSync, closeSync, fsyncSync, linkSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import type { Principal } from "../contracts/caller.js";
import { DEFAULT_ROLE } from "../contracts/settings.js";
import type { SharedMap } from "../contracts/store.js";
import { quotedWord } from "../runtime/words/shell-word.js";
import { checkLabel, checkName, checkNames, checkSender, ROLES_WITH_NAMES, TokenError } from "./labels.js";

const TOKEN_BYTES = 32;
const TOKEN_PREFIX = "tw_";
/** A shorter token can be guessed. */
const MIN_TOKEN_CHARS = 16;
/** No token of ours or of an operator's choice is longer; what is longer is not even hashed. */
const MAX_TOKEN_CHARS = 512;
/** They are in memory and looked up on every request; one gateway has far fewer agents. */
const MAX_TOKENS = 10_000;
/** Follows the id of a principal in the addresses of its inboxes. */
const ADDRESS_MARK = "#";
/** Time enough to carry a new secret to whoever uses it, and no more for a secret that leaked. */
export const OLD_SECRET_MS = 10 * 60_000;
/** Whoever rotates more often within that time has lost count: the oldest one ends. */
const MAX_OLD_SECRETS = 4;
export const DEFAULT_PRINCIPAL: Principal = { id: "default", role: DEFAULT_ROLE };

/** As stored, under the principal's id. Times are milliseconds since 1970. */
export interface TokenRecord {
  readonly role: string;
  /** SHA-256 of the token, hexadecimal. */
  readonly hash: string;
  readonly created: number;
  readonly expires?: number;
  /** Of an executor's token, the names that it is good for. Absent where that is the one that equals its id. */
  readonly names?: readonly string[];
  /** The mailboxes that it may send to. Absent where it may send to none. */
  readonly maySendTo?: readonly string[] | "any";
  /** It opens mailboxes, and nothing else. */
  readonly onlyMailboxes?: true;
  /** Secrets from before a rotation that are still good, the oldest first. */
  readonly old?: readonly OldSecret[];
}

/** A secret that was replaced. It is good from `since` until `until`: before that, the clock was set back. */
interface OldSecret {
  readonly hash: string;
  readonly since: number;
  readonly until: number;
}

export interface TokenInfo extends Principal {
  /** Where the token is from. */
  readonly source: "created" | "file" | "environment" | "memory" | "engine";
  readonly created?: number;
  readonly expires?: number;
  /** Until when a secret from before a rotation is good. */
  readonly oldUntil?: number;
}

export interface NewToken {
  readonly id: string;
  readonly role: string;
  readonly expires?: number | undefined;
  readonly names?: readonly string[] | undefined;
  readonly maySendTo?: readonly string[] | "any" | undefined;
  readonly onlyMailboxes?: true | undefined;
}

export interface TokenBookOptions {
  readonly map: SharedMap<TokenRecord>;
  /** The file of the default token; undefined keeps it in memory only. */
  readonly tokenPath: string | undefined;
  /** The value of TOOLWAY_TOKEN. It goes before the file, and is not written to disk. */
  readonly fromEnvironment?: string | undefined;
  /** The default token where somebody else keeps it. */
  readonly given?: { readonly token: string; readonly source: TokenInfo["source"]; readonly isNew: boolean };
}

interface Known {
  readonly principal: Principal;
  readonly digest: Buffer;
  /** It is good from here on: always, but for a secret that was replaced. */
  readonly since: number;
  readonly expires: number;
}

export class TokenBook {
  /** True when the default token was made just now, and so has not been shown to anybody. */
  readonly isNew: boolean;
  readonly #map: SharedMap<TokenRecord>;
  readonly #default: string;
  readonly #defaultSource: TokenInfo["source"];
  /** Tokens by their hashes: nobody can choose the hash of a guess, so how long the lookup takes tells nothing. */
  readonly #known = new Map<string, Known>();
  readonly #ids = new Map<string, TokenRecord>();
  /** What lets somebody in, by their principals' ids: the secret first, then those that it replaced. */
  readonly #current = new Map<string, Known[]>();
  /** The ids that have secrets from before a rotation. */
  readonly #rotated = new Set<string>();
  readonly #pending = new Set<string>();
  /** How many were let in by each id without a token of the book. */
  readonly #lent = new Map<string, number>();
  readonly #listeners = new Set<() => void>();

  constructor(options: TokenBookOptions) {
    this.#map = options.map;
    const found = options.given ?? defaultToken(options.tokenPath, options.fromEnvironment);
    this.#default = found.token;
    this.#defaultSource = found.source;
    this.isNew = found.isNew;
    this.#learn(DEFAULT_PRINCIPAL, digestOf(found.token), undefined);
    for (const [id, record] of this.#map.entries()) this.#add(id, record);
  }

  /** The default token itself: printed at the first start and by `toolway token show`, never logged. */
  defaultToken(): string {
    return this.#default;
  }

  /** Makes a token and returns it, once; it cannot be shown again. Resolves when it is on disk. */
  async create(input: NewToken, nowMs: number): Promise<string> {
    const { id, role, expires, names, maySendTo, onlyMailboxes } = input;
    checkLabel("id", id);
    checkLabel("role", role);
    if (id.includes(ADDRESS_MARK)) {
      throw new TokenError("invalid", `The id of a token has no "${ADDRESS_MARK}" in it: addresses of mailboxes have.`);
    }
    if (maySendTo !== undefined) checkSender(id, role, maySendTo);
    if (names !== undefined) checkNames(role, names);
    // Its id is its name then.
    else if (ROLES_WITH_NAMES.includes(role)) checkName(id);
    if (id === DEFAULT_PRINCIPAL.id) {
      throw new TokenError("exists", '"default" is the principal of the default token (`toolway token show`).');
    }
    if (this.#ids.has(id) || this.#pending.has(id)) {
      throw alreadyThere(id);
    }
    if (this.#lent.has(id)) {
      throw new TokenError(
        "exists",
        `A run that is under way is called "${id}". Choose another id, or wait for its end.`,
      );
    }
    if (expires !== undefined && !(expires > nowMs)) {
      throw new TokenError("invalid", "The token would have expired before it was made.");
    }
    if (this.#ids.size + this.#pending.size >= MAX_TOKENS) {
      throw new TokenError("limit", `There are ${MAX_TOKENS} tokens already. Revoke some first.`);
    }
    const token = newToken();
    const record: TokenRecord = {
      role,
      hash: digestOf(token).toString("hex"),
      created: nowMs,
      ...(expires === undefined ? {} : { expires }),
      ...(names === undefined ? {} : { names: [...new Set(names)] }),
      ...(maySendTo === undefined ? {} : { maySendTo: maySendTo === "any" ? maySendTo : [...new Set(maySendTo)] }),
      ...(onlyMailboxes === undefined ? {} : { onlyMailboxes }),
    };
    this.#pending.add(id);
    try {
      if ((await this.#map.create(id, record)) === undefined) throw alreadyThere(id);
      this.#replace(id, record);
    } finally {
      this.#pending.delete(id);
    }
    return token;
  }

  /**
   * Gives a token a new secret and returns it, once. The one before is good for a while longer, so that nobody is cut
   * off while the new one is carried around. Resolves when it is on disk; until then the new one is not known.
   */
  async rotate(id: string, nowMs: number): Promise<{ token: string; oldUntil: number }> {
    if (id === DEFAULT_PRINCIPAL.id) {
      throw new TokenError("invalid", `The default token is not rotated: ${this.#howToReplaceDefault()}.`);
    }
    const record = this.#demand(id);
    if (!this.#current.has(id)) throw new TokenError("invalid", `The token of "${id}" was revoked. Revoke it again.`);
    if (record.expires !== undefined && nowMs >= record.expires) {
      throw new TokenError("invalid", `The token of "${id}" has expired. Revoke it, and create another.`);
    }
    if (this.#pending.has(id)) throw new TokenError("busy", `The token of "${id}" is being changed. Try again.`);
    this.dropOldSecrets(nowMs);
    const token = newToken();
    const oldUntil = Math.min(nowMs + OLD_SECRET_MS, record.expires ?? Number.POSITIVE_INFINITY);
    const kept = this.#ids.get(id)?.old ?? [];
    const old = [...kept, { hash: record.hash, since: nowMs, until: oldUntil }].slice(-MAX_OLD_SECRETS);
    const rotated: TokenRecord = { ...record, hash: digestOf(token).toString("hex"), old };
    const revision = this.#map.read(id)?.revision;
    this.#pending.add(id);
    try {
      // It was revoked or rotated meanwhile, here or by another gateway: what that one wrote stays.
      if (revision === undefined || (await this.#map.update(id, rotated, revision)) === undefined) {
        throw new TokenError("busy", `The token of "${id}" was changed meanwhile. Look at it, and try again.`);
      }
      // Revoked meanwhile: the new secret is as little good as the old one.
      if (this.#ids.has(id)) this.#replace(id, rotated);
    } finally {
      this.#pending.delete(id);
    }
    return { token, oldUntil };
  }

  /**
   * Lets somebody in by the hash of a secret (hexadecimal) that is in no record of the book: a run, which keeps its own.
   * It takes none of the tokens' places. Returns what ends it, at once. Throws where the id is that of a token.
   */
  lend(principal: Principal, hash: string): () => void {
    const { id } = principal;
    checkLabel("id", id);
    if (this.has(id) || this.#pending.has(id)) throw new TokenError("exists", `"${id}" is the id of a token.`);
    this.#lent.set(id, (this.#lent.get(id) ?? 0) + 1);
    const known = this.#learn(principal, Buffer.from(hash, "hex"), undefined);
    return () => {
      if (!this.#known.delete(known.digest.toString("latin1"))) return;
      const left = (this.#current.get(id) ?? []).filter((one) => one !== known);
      if (left.length === 0) this.#current.delete(id);
      else this.#current.set(id, left);
      const count = (this.#lent.get(id) ?? 1) - 1;
      if (count === 0) this.#lent.delete(id);
      else this.#lent.set(id, count);
      for (const listener of this.#listeners) listener();
    };
  }

  /** Ends the secrets from before rotations whose time is over, for good: a clock that is set back revives none. */
  dropOldSecrets(nowMs: number): void {
    for (const id of this.#rotated) {
      const record = this.#ids.get(id);
      if (record === undefined || this.#pending.has(id)) continue;
      const old = (record.old ?? []).filter(({ since, until }) => nowMs >= since && nowMs < until);
      if (old.length === record.old?.length) continue;
      const { old: _ended, ...rest } = record;
      const left: TokenRecord = old.length === 0 ? rest : { ...rest, old };
      this.#replace(id, left);
      // It is over here whether or not it can be written; what is on disk has its end beside it.
      const revision = this.#map.read(id)?.revision;
      if (revision === undefined) continue;
      this.#pending.add(id);
      void this.#map
        .update(id, left, revision)
        .catch(() => {})
        .finally(() => this.#pending.delete(id));
    }
  }

  /** Who comes in by the token of this id; undefined where there is none, or none that is still good. */
  principal(id: string, nowMs: number): Principal | undefined {
    const [known] = this.#current.get(id) ?? [];
    return known !== undefined && nowMs < known.expires ? known.principal : undefined;
  }

  /** The role of the token of this id as it is now, expired or not; undefined where there is none. */
  roleOf(id: string): string | undefined {
    return this.#ids.get(id)?.role ?? (id === DEFAULT_PRINCIPAL.id ? DEFAULT_PRINCIPAL.role : undefined);
  }

  /** Whether there is a token of this id, whoever holds it. */
  has(id: string): boolean {
    return this.#ids.has(id) || id === DEFAULT_PRINCIPAL.id;
  }

  list(): TokenInfo[] {
    const created = [...this.#ids].map(([id, record]): TokenInfo => {
      const { created, expires, old = [] } = record;
      const until = expires === undefined ? {} : { expires };
      const last = old.at(-1);
      const oldUntil = last === undefined ? {} : { oldUntil: last.until };
      return { ...principalOf(id, record), source: "created", created, ...until, ...oldUntil };
    });
    created.sort((a, b) => (a.id < b.id ? -1 : 1));
    return [{ ...DEFAULT_PRINCIPAL, source: this.#defaultSource }, ...created];
  }

  /** The token stops working at once, and for good when the promise resolves. */
  async revoke(id: string): Promise<void> {
    if (id === DEFAULT_PRINCIPAL.id) {
      throw new TokenError("invalid", `The default token cannot be revoked: ${this.#howToReplaceDefault()}.`);
    }
    const record = this.#demand(id);
    this.#forget(id);
    for (const listener of this.#listeners) listener();
    // Still refused for a new one of this id until the old one is gone from the disk.
    this.#pending.add(id);
    try {
      await this.#map.delete(id);
    } catch (error) {
      // Refused from now on, but on disk: stays in the list so that it can be revoked again.
      this.#ids.set(id, record);
      throw error;
    } finally {
      this.#pending.delete(id);
    }
  }

  /** What the store says of a token by now, whoever wrote it. What is known already changes nothing. */
  told(id: string, record: TokenRecord | undefined): void {
    if (id === DEFAULT_PRINCIPAL.id) return;
    const known = this.#ids.get(id);
    if (record === undefined) {
      if (known === undefined) return;
      this.#forget(id);
    } else {
      if (known !== undefined && JSON.stringify(known) === JSON.stringify(record)) return;
      this.#replace(id, record);
    }
    for (const listener of this.#listeners) listener();
  }

  /** Whose token this is; undefined where it is nobody's, or no longer. Every request comes by here. */
  authenticate(token: string, nowMs: number): Principal | undefined {
    if (token.length > MAX_TOKEN_CHARS) return undefined;
    const known = this.#known.get(hash("sha256", token, "binary"));
    if (known === undefined) return undefined;
    return nowMs >= known.since && nowMs < known.expires ? known.principal : undefined;
  }

  /**
   * Whether the token by which `principal` came in would still let it in; another token of the same id is not that one.
   * It is asked again and again of whoever holds something open, so that a clock that jumps needs no care.
   */
  isCurrent(principal: Principal, nowMs: number): boolean {
    const known = this.#current.get(principal.id)?.find((one) => one.principal === principal);
    return known !== undefined && nowMs >= known.since && nowMs < known.expires;
  }

  /** Called as soon as a token is revoked. Returns a function that ends it. */
  onRevoked(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #demand(id: string): TokenRecord {
    const record = this.#ids.get(id);
    if (record === undefined)
      throw new TokenError("not-found", `There is no token for "${id}" (\`toolway token list\`).`);
    return record;
  }

  #howToReplaceDefault(): string {
    const how =
      this.#defaultSource === "environment" ? "change TOOLWAY_TOKEN" : 'remove the file "token" in the state directory';
    return `${how} and restart the gateway`;
  }

  #add(id: string, record: TokenRecord): void {
    this.#ids.set(id, record);
    const principal = principalOf(id, record);
    this.#learn(principal, Buffer.from(record.hash, "hex"), record.expires);
    for (const { hash: text, since, until } of record.old ?? []) {
      // Whoever came in by it is told apart, and goes when it ends.
      this.#learn({ ...principal }, Buffer.from(text, "hex"), until, since);
      this.#rotated.add(id);
    }
  }

  /** Another record of the same token. Whoever came in by a secret that is in both stays who they are. */
  #replace(id: string, record: TokenRecord): void {
    const before = this.#current.get(id) ?? [];
    this.#forget(id);
    this.#add(id, record);
    const after = (this.#current.get(id) ?? []).map((known) => {
      const same = before.find(({ digest }) => digest.equals(known.digest));
      return same === undefined ? known : { ...known, principal: same.principal };
    });
    this.#current.set(id, after);
    for (const known of after) this.#known.set(known.digest.toString("latin1"), known);
  }

  #forget(id: string): void {
    for (const { digest } of this.#current.get(id) ?? []) this.#known.delete(digest.toString("latin1"));
    this.#current.delete(id);
    this.#ids.delete(id);
    this.#rotated.delete(id);
  }

  #learn(principal: Principal, digest: Buffer, expires: number | undefined, since?: number): Known {
    const known: Known = {
      principal,
      digest,
      since: since ?? Number.NEGATIVE_INFINITY,
      expires: expires ?? Number.POSITIVE_INFINITY,
    };
    this.#known.set(digest.toString("latin1"), known);
    const all = this.#current.get(principal.id);
    if (all === undefined) this.#current.set(principal.id, [known]);
    else all.push(known);
    return known;
  }
}

function alreadyThere(id: string): TokenError {
  const remedy = `Revoke it first: \`toolway token revoke ${quotedWord(id)}\``;
  return new TokenError("exists", `"${id}" has a token already. ${remedy}`);
}

function principalOf(id: string, { role, names, maySendTo, onlyMailboxes }: TokenRecord): Principal {
  return {
    id,
    role,
    ...(names === undefined ? {} : { names }),
    ...(maySendTo === undefined ? {} : { maySendTo }),
    ...(onlyMailboxes === undefined ? {} : { onlyMailboxes }),
  };
}

/** A secret as every token's is, and its hash as it is kept. */
export function newSecret(): { readonly token: string; readonly hash: string } {
  const token = newToken();
  return { token, hash: hashOf(token) };
}

export function hashOf(token: string): string {
  return digestOf(token).toString("hex");
}

function digestOf(token: string): Buffer {
  return hash("sha256", token, "buffer");
}

function newToken(): string {
  return TOKEN_PREFIX + randomBytes(TOKEN_BYTES).toString("base64url");
}

function defaultToken(
  path: string | undefined,
  fromEnvironment: string | undefined,
): { token: string; source: TokenInfo["source"]; isNew: boolean } {
  if (fromEnvironment !== undefined && fromEnvironment !== "") {
    checkStrength(fromEnvironment, "TOOLWAY_TOKEN");
    return { token: fromEnvironment, source: "environment", isNew: false };
  }
  if (path === undefined) return { token: newToken(), source: "memory", isNew: true };
  const kept = readToken(path);
  if (kept !== undefined) return { token: kept, source: "file", isNew: false };
  return { ...makeToken(path), source: "file" };
}

/** The token's own text appears in no message. */
function checkStrength(token: string, where: string): void {
  const wrong =
    token.length < MIN_TOKEN_CHARS
      ? `has ${token.length} characters, and needs at least ${MIN_TOKEN_CHARS}`
      : token.length > MAX_TOKEN_CHARS
        ? `has ${token.length} characters; ${MAX_TOKEN_CHARS} are the most`
        : // It travels in a header, after "Bearer ".
          /^[\x21-\x7e]+$/.test(token)
          ? undefined
          : "has spaces or characters that cannot be sent in a header";
  if (wrong === undefined) return;
  throw new TokenError("weak", `The token of ${where} ${wrong}. Make a good one with: openssl rand -base64 32`);
}

/** The default token of a file; undefined where there is none. */
export function readToken(path: string): string | undefined {
  let text: string;
  try {
    text = readFileSync(path, "utf8").trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  checkStrength(text, `the file ${path}`);
  // A restore or an editor may have widened it.
  chmodSync(path, 0o600);
  return text;
}

/** Puts a token into the file of the default one, if there is none yet, and says which is there. */
export function makeToken(path: string, token: string = newToken()): { token: string; isNew: boolean } {
  const made = `${path}.${process.pid}.${randomBytes(4).toString("hex")}`;
  const fd = openSync(made, "wx", 0o600);
  try {
    writeSync(fd, `${token}\n`);
    fsyncSync(fd);
    // link fails when there is one already: a token that was shown is never replaced.
    linkSync(made, path);
    return { token, isNew: true };
  } catch (error) {
    const other = (error as NodeJS.ErrnoException).code === "EEXIST" ? readToken(path) : undefined;
    if (other === undefined) throw error;
    return { token: other, isNew: false };
  } finally {
    closeSync(fd);
    rmSync(made, { force: true });
  }
}

const UNIT_MS: Record<string, number> = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };
/** Longer than that is meant to be "for ever", or a mistake. */
const MAX_LIFETIME_MS = 100 * 365 * 86_400_000;

/** The time that `--expires` means: `45m`, `12h`, `30d`, `2w` from now, or an ISO date. Throws TokenError `invalid`. */
export function parseExpires(text: string, nowMs: number): number {
  const trimmed = text.trim();
  const span = /^(\d{1,9})([mhdw])$/.exec(trimmed);
  let at: number;
  if (span !== null) at = nowMs + Number(span[1]) * (UNIT_MS[span[2] ?? ""] ?? Number.NaN);
  else if (/^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?$/.test(trimmed))
    at = readDate(trimmed);
  else at = Number.NaN;
  if (Number.isNaN(at)) {
    throw new TokenError(
      "invalid",
      `"${trimmed.slice(0, 40)}" is no time to expire at. Write 45m, 12h, 30d or 2w, or a date such as 2030-01-31.`,
    );
  }
  if (at <= nowMs) throw new TokenError("invalid", `"${trimmed}" is not in the future.`);
  if (at - nowMs > MAX_LIFETIME_MS) {
    throw new TokenError("invalid", `"${trimmed}" is more than 100 years away. Leave --expires out for no end.`);
  }
  return at;
}

/** Date.parse takes February 31st for March 3rd in some forms; here that is a mistake. */
function readDate(text: string): number {
  const at = Date.parse(text);
  const [year, month, day] = text.slice(0, 10).split("-").map(Number);
  const date = new Date(Date.UTC(year ?? 0, (month ?? 0) - 1, day ?? 0));
  return date.getUTCMonth() + 1 === month && date.getUTCDate() === day ? at : Number.NaN;
}
