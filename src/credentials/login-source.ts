// Tokens by the login of a person: begun here, made in a browser, finished with the code that it brings back, then kept
// and renewed until somebody logs out or the authorization server says that it is over.

import { randomBytes } from "node:crypto";
import type { OAuthLogin } from "../contracts/server-spec.js";
import { Fault } from "../protocol/errors.js";
import { sentence } from "../runtime/words/sentence.js";
import { shellWord } from "../runtime/words/shell-word.js";
import type { AuthFetch } from "./auth-fetch.js";
import { joined, MAX_SCOPES, scopesIn } from "./challenge.js";
import type { ClientRecord, Grant, GrantKeeper, Issuer, TokenSet } from "./grant.js";
import { judgePlace, RefusedPlace } from "./login-places.js";
import { type Protocol, type RenewedOptions, RenewedSource } from "./renewed-source.js";

/** A person reads, looks for a password and consents; afterwards the address that they were given is good for nothing. */
export const LOGIN_MS = 5 * 60_000;
/** Logins that were begun and not finished, at one server: the oldest gives way. */
const MAX_PENDING = 8;

interface Pending {
  readonly issuer: Issuer;
  readonly client: ClientRecord;
  readonly scopes: readonly string[];
  readonly redirectUri: string;
  readonly verifier: string;
  readonly untilMs: number;
}

/** What a browser brings back. */
export interface LoginAnswer {
  readonly state: string;
  readonly code: string | undefined;
  readonly iss: string | undefined;
  readonly error: string | undefined;
}

export interface BegunLogin {
  /** What a person opens. */
  readonly address: string;
  /** By which the browser's answer is known to be to this. */
  readonly state: string;
}

export class LoginSource extends RenewedSource {
  readonly name: string;
  readonly remedy: string;
  readonly #settings: OAuthLogin;
  readonly #grants: GrantKeeper;
  readonly #secret: () => Promise<string | undefined>;
  readonly #pending = new Map<string, Pending>();
  #grant: Grant | undefined;
  #isRead = false;
  /** Counts logins and logouts: a renewal that was under way meanwhile is of the login before. */
  #generation = 0;
  #finished = 0;
  #logouts = 0;
  readonly #unwatch: () => void;
  /** What the newest request showed the authorization server beside the login that is kept; it may repeat that. */
  #shownThere: readonly (string | undefined)[] = [];
  /** Scopes that a call was refused for, which the next login asks for too. */
  #lacking: readonly string[] = [];

  constructor(
    options: RenewedOptions,
    settings: OAuthLogin,
    grants: GrantKeeper,
    secret: () => Promise<string | undefined>,
  ) {
    super(options);
    this.#settings = settings;
    this.#grants = grants;
    this.#secret = secret;
    this.name = "its login";
    this.remedy = `\`toolway login ${shellWord(options.server)}\` logs in.`;
    this.#unwatch = grants.watch(() => this.#told());
  }

  override stop(): Promise<void> {
    this.#unwatch();
    return super.stop();
  }

  /** Somebody wrote the login, we ourselves perhaps: what another gateway renewed, logged in or out counts here too. */
  #told(): void {
    if (!this.#isRead) return;
    const [before, now] = [this.#grant, this.#grants.get()];
    if (now?.tokens.access === before?.tokens.access) return;
    this.#grant = now;
    // A renewal is of the same login, and what was kept of answers is still what it would be.
    const isSame = before?.client.client_id === now?.client.client_id && before?.issuer.url === now?.issuer.url;
    if (!isSame || before?.tokens.scopes.join(" ") !== now?.tokens.scopes.join(" ")) {
      this.#generation++;
      this.#lacking = [];
    }
    this.changed();
  }

  protected tokens(): TokenSet | undefined {
    if (!this.#isRead) {
      this.#isRead = true;
      this.#grant = this.#grants.get();
    }
    return this.#grant?.tokens;
  }

  protected canRenew(): boolean {
    return this.tokens()?.refresh !== undefined;
  }

  /** A renewal gives no more than was granted: a person has to be asked. */
  protected lacks(scopes: readonly string[]): boolean {
    this.#lacking = joined(this.#lacking, scopes);
    return false;
  }

  protected override secrets(): (string | undefined)[] {
    return [...super.secrets(), this.#grant?.client.client_secret, ...this.#shownThere];
  }

  /** What whoever was refused is told. */
  refusal(): Fault {
    const command = `toolway login ${shellWord(this.options.server)}`;
    const more = this.#lacking.length === 0 ? "" : `, for more rights (${this.shown(this.#lacking.join(" "))})`;
    const data = { fault: "unauthorized", status: 401 } as const;
    return new Fault("unauthorized", `"${this.options.server}" needs login${more}: ${command}`, {
      reason: "oauth",
      data,
    });
  }

  /** What it shows depends on who logged in, and for what. */
  identity(): string {
    return JSON.stringify([this.#generation, this.tokens()?.scopes]);
  }

  get needsLogin(): boolean {
    return this.tokens() === undefined || this.#lacking.length > 0;
  }

  /** Not every authorization server gives what a renewal takes. */
  get isRenewed(): boolean {
    return this.canRenew();
  }

  /** How many logins were finished, and are used by now: what is sent after one goes with its token. */
  get finished(): number {
    return this.#finished;
  }

  get redirectPort(): number | undefined {
    return this.#settings.redirectPort;
  }

  /** What a renewal gives may be good once and the one before for nothing: it is kept, whoever has lost interest meanwhile. */
  protected override readonly renewalOutlives = true;

  protected renew(protocol: Protocol, fetch: AuthFetch, before: TokenSet | undefined): Promise<string | undefined> {
    return this.#grants.alone(() => this.#renew(protocol, fetch, before));
  }

  async #renew(protocol: Protocol, fetch: AuthFetch, before: TokenSet | undefined): Promise<string | undefined> {
    const generation = this.#generation;
    const kept = this.#grants.get();
    // It was renewed meanwhile: by the entry of before, whose end did not stop that, or by another gateway.
    const isOther = kept?.tokens.access !== before?.access || kept?.tokens.refresh !== before?.refresh;
    if (kept !== undefined && before !== undefined && isOther) {
      this.#grant = kept;
      return kept.tokens.access;
    }
    const grant = this.#grant;
    const refresh = grant?.tokens.refresh;
    if (grant === undefined || refresh === undefined) return grant?.tokens.access;
    try {
      // A secret in the config may be another by now.
      const secret = this.#settings.clientSecret === undefined ? undefined : await this.#secret();
      this.#shownThere = [refresh, secret];
      const client = secret === undefined ? grant.client : { ...grant.client, client_secret: secret };
      const answer = await protocol.refresh(grant.issuer, client, refresh, fetch);
      // Somebody logged in or out meanwhile: these tokens are of the login before.
      if (generation !== this.#generation || this.#isReplaced(grant.tokens)) return this.#grant?.tokens.access;
      const renewed = { ...grant, tokens: this.taken(answer, grant.tokens.scopes) };
      // In memory first: what it shows there was good once, and these are all that is left where they cannot be kept.
      this.#use(renewed);
      await this.#grants.put(renewed);
    } catch (error) {
      if (generation !== this.#generation) return this.#grant?.tokens.access;
      if (!protocol.isFinal(error)) throw error;
      if (this.#isReplaced(grant.tokens)) return this.#grant?.tokens.access;
      this.options.log(`its login is over: ${sentence(this.shown(protocol.complaintOf(error)))} ${this.remedy}`);
      this.#use(undefined);
      await this.#grants.delete();
    }
    return this.#grant?.tokens.access;
  }

  /** Finds who gives tokens, and what a person has to open. The browser comes back to `redirectUri`. */
  begin(redirectUri: string): Promise<BegunLogin> {
    return this.step("could not be begun", async (protocol, fetch) => {
      await this.#grants.check();
      const { metadataUrl, scopes: challenged } = await this.heard(fetch);
      const issuer = await protocol.discover(this.options.serverUrl, metadataUrl, fetch);
      const scopes = this.#scopesFor(issuer, challenged);
      const { clientId, clientMetadataUrl } = this.#settings;
      const who = { clientId, clientMetadataUrl, clientSecret: await this.#secret() };
      const before = this.#grant;
      // A client is registered for one address to come back to, and at one authorization server.
      const isSame = clientId === undefined && before?.issuer.url === issuer.url && before.redirectUri === redirectUri;
      const client = isSame ? before.client : await protocol.clientFor(issuer, who, { redirectUri, scopes }, fetch);
      const state = randomBytes(32).toString("base64url");
      const { address, verifier } = await protocol.authorization(issuer, client, { redirectUri, scopes, state });
      // It is opened by a browser, which knows more schemes than a login needs.
      const page = new URL(address);
      const why = judgePlace(page, undefined) ?? (await fetch.pageRefusal?.(page));
      if (why !== undefined) throw new RefusedPlace(`its login page is refused: ${why}`);
      const untilMs = this.options.now() + LOGIN_MS;
      for (const [other, { untilMs: end }] of this.#pending) {
        if (end <= this.options.now() || this.#pending.size >= MAX_PENDING) this.#pending.delete(other);
      }
      this.#pending.set(state, { issuer, client, scopes, redirectUri, verifier, untilMs });
      return { address, state };
    });
  }

  #scopesFor(issuer: Issuer, challenged: readonly string[]): string[] {
    const { scopes } = this.#settings;
    const asked = scopes ?? (challenged.length > 0 ? challenged : issuer.scopes.slice(0, MAX_SCOPES));
    // With a step up, what was granted before stays.
    const before = this.#lacking.length === 0 ? [] : (this.#grant?.tokens.scopes ?? []);
    const all = joined(joined(before, asked), this.#lacking);
    // Without it some give no refresh token, and the login would end with its first token.
    const offered = scopesIn(supportedBy(issuer));
    return all.length > 0 && scopes === undefined && offered.includes("offline_access")
      ? joined(all, ["offline_access"])
      : all;
  }

  /** What the browser brought back. Each login is finished once; what is not known here is refused. */
  finish({ state, code, iss, error }: LoginAnswer): Promise<void> {
    const pending = this.#pending.get(state);
    this.#pending.delete(state);
    const logouts = this.#logouts;
    return this.step("could not be finished", async (protocol, fetch) => {
      if (pending === undefined || this.options.now() >= pending.untilMs) {
        throw new Error("this answer belongs to no login that is under way. Begin it again");
      }
      if (code === undefined || error !== undefined)
        throw new Error(`it was refused there (${error ?? "without a code"})`);
      // A code is good once. What it is traded for has to be kept.
      await this.#grants.check();
      const { issuer, client, scopes, redirectUri, verifier } = pending;
      this.#shownThere = [code, verifier, client.client_secret];
      const answer = await protocol.exchange(issuer, client, { code, iss, verifier, redirectUri }, fetch);
      const tokens = this.taken(answer, scopes);
      if (logouts !== this.#logouts) {
        await protocol.revoke(issuer, client, tokens, fetch).catch(() => {});
        throw new Error("somebody logged out meanwhile. Begin it again");
      }
      this.#generation++;
      const grant = { issuer, client, redirectUri, tokens };
      try {
        await this.#grants.put(grant);
      } catch (error) {
        // The login before, if there was one, goes on being used. Nobody knows of these tokens any more.
        await protocol.revoke(issuer, client, tokens, fetch).catch(() => {});
        throw error;
      }
      this.#use(grant);
      this.#lacking = [];
      this.changed();
      this.#finished++;
    });
  }

  /** Forgets the login, and tells whoever gave it. Resolves with whether there was one. Where it rejects, the login is what it was. */
  async logout(): Promise<boolean> {
    const grant = this.tokens() === undefined ? undefined : this.#grant;
    this.#generation++;
    this.#logouts++;
    this.#pending.clear();
    await this.#grants.delete();
    this.#use(undefined);
    this.#lacking = [];
    this.changed();
    if (grant === undefined) return false;
    await this.step("could not be revoked there", (protocol, fetch) =>
      protocol.revoke(grant.issuer, grant.client, grant.tokens, fetch),
    ).catch((error: unknown) => this.options.log((error as Error).message));
    return true;
  }

  /**
   * The entry was edited while a renewal of these was under way, and somebody has logged in or out by the one that took its
   * place, of which we are not told: what is kept is theirs.
   */
  #isReplaced({ access, refresh }: TokenSet): boolean {
    if (!this.isStopped) return false;
    const kept = this.#grants.get()?.tokens;
    return kept?.access !== access || kept.refresh !== refresh;
  }

  #use(grant: Grant | undefined): void {
    this.#grant = grant;
    this.#isRead = true;
  }
}

function supportedBy({ metadata }: Issuer): string | undefined {
  const offered = metadata?.["scopes_supported"];
  return Array.isArray(offered) ? offered.filter((one) => typeof one === "string").join(" ") : undefined;
}
