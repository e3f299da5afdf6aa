// Tokens by the id and secret of a client: no person logs in, and nothing is kept on disk.

import type { ClientCredentials } from "../contracts/server-spec.js";
import type { AuthFetch } from "./auth-fetch.js";
import { joined } from "./challenge.js";
import type { Issuer, TokenSet } from "./grant.js";
import { type Protocol, type RenewedOptions, RenewedSource } from "./renewed-source.js";
import { noToken } from "./token.js";

export class ClientSource extends RenewedSource {
  readonly name: string;
  readonly remedy = "Are the id and the secret of the client right, and may it have what the server wants?";
  readonly #settings: ClientCredentials;
  readonly #secret: () => Promise<string | undefined>;
  #issuer: Issuer | undefined;
  #tokens: TokenSet | undefined;
  #scopes: readonly string[] | undefined;
  /** What was asked for when a token was given last: more than that may be refused for ever. */
  #granted: readonly string[] | undefined;
  #lastSecret: string | undefined;

  constructor(options: RenewedOptions, settings: ClientCredentials, secret: () => Promise<string | undefined>) {
    super(options);
    this.#settings = settings;
    this.#secret = secret;
    this.#scopes = settings.scopes;
    this.#granted = settings.scopes;
    this.name = `the client ${settings.clientId}`;
  }

  protected tokens(): TokenSet | undefined {
    return this.#tokens;
  }

  identity(): string {
    return JSON.stringify(this.#tokens?.scopes);
  }

  protected canRenew(): boolean {
    return true;
  }

  protected lacks(scopes: readonly string[]): boolean {
    const before = this.#scopes ?? this.#tokens?.scopes ?? [];
    const all = joined(before, scopes);
    if (all.length === before.length) return false;
    this.#scopes = all;
    return true;
  }

  protected override secrets(): (string | undefined)[] {
    return [...super.secrets(), this.#lastSecret];
  }

  protected async renew(protocol: Protocol, fetch: AuthFetch): Promise<string> {
    const { clientId } = this.#settings;
    const secret = await this.#secret();
    if (secret === undefined) throw noToken(`There is no secret of the client ${clientId}.`);
    this.#lastSecret = secret;
    const { metadataUrl, scopes: wanted } = await this.heard(fetch);
    this.#issuer ??= await protocol.discover(this.options.serverUrl, metadataUrl, fetch);
    const scopes = this.#scopes ?? (wanted.length > 0 ? wanted : this.#issuer.scopes);
    const client = { client_id: clientId, client_secret: secret };
    try {
      this.#tokens = this.taken(await protocol.byClientCredentials(this.#issuer, client, scopes, fetch), scopes);
      this.#granted = scopes;
    } catch (error) {
      this.#scopes = this.#granted;
      // Who gives tokens may be another by now: it is looked for again.
      this.#issuer = undefined;
      throw error;
    }
    return this.#tokens.access;
  }
}
