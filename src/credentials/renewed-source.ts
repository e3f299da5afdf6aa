// A token that an authorization server gives and that is renewed before it ends: in the background while it is still
// good, and waited for once it is refused or over. One renewal runs at a time. How a token is had is the heirs'.

import { Fault } from "../protocol/errors.js";
import { REDACTED } from "../runtime/redact/safe-url.js";
import { visible } from "../runtime/visible.js";
import { sentence } from "../runtime/words/sentence.js";
import type { AuthFetch } from "./auth-fetch.js";
import { type Challenge, readChallenge, scopesIn } from "./challenge.js";
import type { RefusedRequest, TokenSource } from "./credential.js";
import type { TokenSet } from "./grant.js";
import { RenewalPace } from "./renewal-pace.js";
import { checked } from "./token.js";

/** A token is renewed so long before it ends, or half its life where that is shorter. */
const EARLY_MS = 60_000;
/** All of a renewal or of a step of a login: several requests, each with a bound of its own. */
const STEP_MS = 30_000;
/** So much of what an authorization server says is told. */
const MAX_SAID_CHARS = 300;
/** Node's timers and dates end there; a token that is good for longer is good. */
const MAX_LIFE_S = 10 * 365 * 24 * 3600;

/** A read that changes nothing, and that servers refuse which let strangers say hello. */
const PROBE = '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}';
const PROBE_HEADERS = { "content-type": "application/json", accept: "application/json, text/event-stream" };

export type Protocol = typeof import("./oauth.js")["oauth"];

export interface RenewedOptions {
  /** The name of the server, as people write it. */
  readonly server: string;
  readonly serverUrl: string;
  readonly fetch: (signal: AbortSignal) => AuthFetch;
  readonly now: () => number;
  readonly wall: () => number;
  readonly log: (text: string) => void;
}

export abstract class RenewedSource implements TokenSource {
  abstract readonly name: string;
  abstract readonly remedy: string;
  readonly keepMs = Number.POSITIVE_INFINITY;
  protected readonly options: RenewedOptions;
  /** The newest challenge of the server: it says where a login begins and what it is for. */
  protected challenge = readChallenge(undefined);
  #isChallenged = false;
  protected changed: () => void = () => {};
  /** Whether a renewal that is under way goes on when nobody needs this any more. */
  protected readonly renewalOutlives: boolean = false;
  readonly #pace = new RenewalPace();
  /** Why the last renewal failed; undefined where it did not. */
  #failure: unknown;
  #renewing: Promise<string | undefined> | undefined;
  readonly #ended = new AbortController();

  constructor(options: RenewedOptions) {
    this.options = options;
  }

  protected abstract tokens(): TokenSet | undefined;
  /** Whether there is a way to another token. */
  protected abstract canRenew(): boolean;
  /** Resolves with what is to be used then. `before` are the tokens that were found wanting: others may have come meanwhile. */
  protected abstract renew(
    protocol: Protocol,
    fetch: AuthFetch,
    before: TokenSet | undefined,
  ): Promise<string | undefined>;
  /** The token lacks scopes. True where another may be had at once. */
  protected abstract lacks(scopes: readonly string[]): boolean;

  read(refused?: RefusedRequest): string | undefined | Promise<string | undefined> {
    if (refused?.challenge !== undefined) this.#challenged(refused.challenge);
    const tokens = this.tokens();
    const isScopeMissing = refused?.challenge !== undefined && this.challenge.isScopeMissing;
    const mustChange = isScopeMissing
      ? this.lacks(this.challenge.scopes)
      : refused !== undefined && refused.token === tokens?.access;
    if (isScopeMissing && !mustChange) return tokens?.access;
    if (!this.canRenew()) return tokens?.access;
    const { now, wall } = this.options;
    const isOver = tokens === undefined || (tokens.endsAt !== undefined && wall() >= tokens.endsAt);
    if (mustChange || isOver) {
      // What one call lacks is no fault of the token: where no other is to be had, it is good for the rest.
      const isGood = isScopeMissing && !isOver;
      // What failed just now, in the background or for another call, is not asked for again for each that comes.
      if (this.#failure !== undefined && this.#renewing === undefined && !this.#pace.mayRenew(now())) {
        if (isGood) return tokens?.access;
        throw this.#failure;
      }
      return isGood ? this.#renewed().catch(() => tokens?.access) : this.#renewed();
    }
    if (isDue(tokens, wall()) && this.#pace.mayRenew(now())) {
      // Nobody waits for it: the one at hand is still good.
      this.#renewed().then(
        () => this.changed(),
        () => {},
      );
    }
    return tokens.access;
  }

  endsAt(): number | undefined {
    return this.tokens()?.endsAt;
  }

  watch(changed: () => void): () => void {
    this.changed = changed;
    return () => {
      this.changed = () => {};
    };
  }

  /** Nobody needs it any more: its entry is another, or the gateway closes. */
  get isStopped(): boolean {
    return this.#ended.signal.aborted;
  }

  /** Resolves when no renewal is under way that must come to its end. */
  async stop(): Promise<void> {
    this.#ended.abort(new Fault("closing", "The gateway is closing."));
    await this.#renewing?.catch(() => {});
  }

  #renewed(): Promise<string | undefined> {
    const ends = this.renewalOutlives ? [] : [this.#ended.signal];
    const before = this.tokens();
    this.#renewing ??= this.step("could not be renewed", (protocol, fetch) => this.renew(protocol, fetch, before), ends)
      .then(
        (token) => {
          this.#pace.accepted();
          this.#failure = undefined;
          return token;
        },
        (error: unknown) => {
          this.#pace.failed(this.options.now());
          this.#failure = error;
          throw error;
        },
      )
      .finally(() => {
        this.#renewing = undefined;
      });
    return this.#renewing;
  }

  #challenged(header: string): void {
    this.challenge = readChallenge(header);
    this.#isChallenged = true;
  }

  /**
   * What the server wants, asked for without a token where no request of ours was refused yet: where its metadata is,
   * and the scopes that it names, are said there and nowhere else.
   */
  protected async heard(fetch: AuthFetch): Promise<Challenge> {
    if (this.#isChallenged) return this.challenge;
    // One that cannot be asked is told of by what comes next.
    const answer = await fetch(this.options.serverUrl, { method: "POST", headers: PROBE_HEADERS, body: PROBE }).catch(
      () => undefined,
    );
    const header = answer?.status === 401 || answer?.status === 403 ? answer.headers.get("www-authenticate") : null;
    if (header !== null) this.#challenged(header);
    return this.challenge;
  }

  /** Something that needs the protocol and the network, in bounded time. What goes wrong is told as a Fault. */
  protected async step<T>(
    what: string,
    act: (protocol: Protocol, fetch: AuthFetch) => Promise<T>,
    ends: readonly AbortSignal[] = [this.#ended.signal],
  ): Promise<T> {
    const deadline = AbortSignal.timeout(STEP_MS);
    const signal = AbortSignal.any([deadline, ...ends]);
    const { oauth: protocol } = await import("./oauth.js");
    try {
      return await act(protocol, this.options.fetch(signal));
    } catch (error) {
      if (error instanceof Fault) throw error;
      const why = deadline.aborted ? `it took more than ${STEP_MS / 1000} s` : protocol.complaintOf(error);
      throw new Fault("unauthorized", `The login at "${this.options.server}" ${what}: ${sentence(this.shown(why))}`, {
        cause: error,
        reason: "oauth",
        remedy: this.remedy,
      });
    }
  }

  /** What an authorization server said: on one line, cut, and without what it was given. */
  protected shown(said: string): string {
    const secrets = this.secrets().filter((one): one is string => one !== undefined && one.length > 3);
    // A request has them encoded, and may be repeated as it was.
    const forms = secrets.flatMap((one) => [
      one,
      encodeURIComponent(one),
      new URLSearchParams([["", one]]).toString().slice(1),
    ]);
    const clean = forms.reduce((left, one) => left.replaceAll(one, REDACTED), said);
    const line = visible(clean.replace(/\s+/g, " ").trim());
    return line.length > MAX_SAID_CHARS ? `${line.slice(0, MAX_SAID_CHARS)} …` : line;
  }

  protected secrets(): (string | undefined)[] {
    const tokens = this.tokens();
    return [tokens?.access, tokens?.refresh];
  }

  /** The tokens of an answer. `asked` is what was asked for: who gives just that need not say so. */
  protected taken(
    answer: {
      access_token: string;
      token_type: string;
      expires_in?: number | undefined;
      refresh_token?: string | undefined;
      scope?: string | undefined;
    },
    asked: readonly string[],
  ): TokenSet {
    if (answer.token_type.toLowerCase() !== "bearer") {
      throw new Fault(
        "unauthorized",
        `The login at "${this.options.server}" gave a token of a kind that is not known here.`,
      );
    }
    const access = checked(answer.access_token, `The token for "${this.options.server}"`);
    if (access === undefined) throw new Fault("unauthorized", `The login at "${this.options.server}" gave no token.`);
    const lifeMs =
      answer.expires_in === undefined ? undefined : Math.min(Math.max(answer.expires_in, 0), MAX_LIFE_S) * 1000;
    return {
      access,
      refresh: answer.refresh_token,
      scopes: answer.scope === undefined ? asked : scopesIn(answer.scope),
      endsAt: lifeMs === undefined ? undefined : this.options.wall() + lifeMs,
      lifeMs,
    };
  }
}

function isDue({ endsAt, lifeMs }: TokenSet, wallMs: number): boolean {
  return endsAt !== undefined && wallMs >= endsAt - Math.min(EARLY_MS, (lifeMs ?? EARLY_MS * 2) / 2);
}
