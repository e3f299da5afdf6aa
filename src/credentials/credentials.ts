// The credentials of all servers that have one: one for each entry, shared by its connections.

import type { Auth, ClientSecret, HttpTarget, Target } from "../contracts/server-spec.js";
import type { CredentialStatus } from "../contracts/status.js";
import { systemClock } from "../runtime/clock.js";
import { redactorFor } from "../runtime/redact/secrets-of.js";
import { resultWithin } from "../runtime/wait.js";
import { authFetch, type SendAuth } from "./auth-fetch.js";
import { ClientSource } from "./client-source.js";
import { Credential, type TokenSource } from "./credential.js";
import { type GrantKeeper, type GrantStore, grantKeeper } from "./grant.js";
import { LoginSource } from "./login-source.js";
import type { RenewedOptions } from "./renewed-source.js";
import { type SourceContext, tokenSource } from "./sources.js";

export interface CredentialsContext extends SourceContext {
  /** Sends a request of a login by the way that the server is reached. */
  readonly send: (target: HttpTarget) => SendAuth;
  /** Where logins are kept. Undefined where nobody logs in: what is tried for `doctor`. */
  readonly grants?: GrantStore;
  readonly log?: (server: string, text: string) => void;
  /** A server is sent another token than before, by which it may show something else. */
  readonly onChange?: (server: string) => void;
  /** A token was asked for where one is fetched, and came or did not. */
  readonly onFetched?: (server: string, isGood: boolean) => void;
}

/** An authorization server answers within one; a gateway that is told to stop has more than this for all it has to do. */
const CLOSE_MS = 3_000;

interface Held {
  readonly credential: Credential;
  readonly login: LoginSource | undefined;
}

export class Credentials {
  readonly #context: CredentialsContext;
  /** By the entry as it was resolved: another entry, another credential. There are no more than servers. */
  readonly #byTarget = new Map<Target, Held>();

  constructor(context: CredentialsContext) {
    this.#context = context;
  }

  /** Undefined where the entry has none, or has it in its headers. */
  of(server: string, target: HttpTarget): Credential | undefined {
    return this.#held(server, target)?.credential;
  }

  /** The login of an entry. Undefined where its `auth` is no login by a person. */
  loginOf(server: string, target: Target): LoginSource | undefined {
    return "auth" in target ? this.#held(server, target)?.login : undefined;
  }

  #held(server: string, target: HttpTarget): Held | undefined {
    const { auth } = target;
    if (auth === undefined) return undefined;
    let held = this.#byTarget.get(target);
    if (held === undefined) {
      const source = this.#sourceOf(server, target, auth);
      const credential = new Credential({
        source,
        now: systemClock.now,
        wall: systemClock.wall,
        onChange: () => this.#context.onChange?.(server),
        onFetched: (isGood) => this.#context.onFetched?.(server, isGood),
        onToken: (tokens) => redactorFor(target).follow(tokens),
      });
      held = { credential, login: source instanceof LoginSource ? source : undefined };
      this.#byTarget.set(target, held);
    }
    return held;
  }

  #sourceOf(server: string, target: HttpTarget, auth: Auth): TokenSource {
    if (auth.from !== "oauth" && auth.from !== "clientCredentials") return tokenSource(auth, this.#context);
    const { grants, log, send } = this.#context;
    const isElsewhere = target.via !== undefined || target.socketPath !== undefined;
    const options: RenewedOptions = {
      server,
      serverUrl: target.url,
      fetch: (signal) => authFetch({ serverUrl: target.url, isElsewhere, send: send(target), signal }),
      now: systemClock.now,
      wall: systemClock.wall,
      log: (text) => log?.(server, text),
    };
    const secret = this.#secretOf(auth.clientSecret);
    if (auth.from === "clientCredentials") return new ClientSource(options, auth, secret);
    const { clientId } = auth;
    const keeper = grants === undefined ? NO_GRANTS : grantKeeper(grants, server, { url: target.url, clientId });
    return new LoginSource(options, auth, keeper, secret);
  }

  #secretOf(secret: ClientSecret | undefined): () => Promise<string | undefined> {
    if (secret === undefined) return async () => undefined;
    if (secret.from === "text") return async () => secret.value;
    const source = tokenSource(secret, this.#context);
    return async () => source.read();
  }

  status(target: Target | undefined): CredentialStatus | undefined {
    return target === undefined ? undefined : this.#byTarget.get(target)?.credential.status();
  }

  /** Those of other entries are not needed any more. */
  keep(targets: ReadonlySet<Target>): void {
    void this.#keep(targets);
  }

  #keep(targets: ReadonlySet<Target>): Promise<unknown> {
    const ends: Promise<void>[] = [];
    for (const [target, { credential }] of this.#byTarget) {
      if (targets.has(target)) continue;
      ends.push(credential.close());
      this.#byTarget.delete(target);
    }
    return Promise.all(ends);
  }

  /** Waits a little for renewals that are under way: what they give may be good once, and is lost if it is not kept. */
  async close(): Promise<void> {
    await resultWithin(this.#keep(new Set()), CLOSE_MS);
  }
}

const NO_GRANTS: GrantKeeper = {
  get: () => undefined,
  put: async () => {},
  delete: async () => {},
  check: async () => {},
  alone: (act) => act(),
  watch: () => () => {},
};
