// The credential of one server, as it is right now: read when a request goes out, fetched again when it was refused or is
// over, once for all who wait. Where it comes from is the source's; what a refusal means to a call is the wire's.

import type { CredentialStatus } from "../contracts/status.js";
import { Fault } from "../protocol/errors.js";
import { RenewalPace } from "./renewal-pace.js";
import { expiryOf } from "./token.js";

/** A request that was refused. */
export interface RefusedRequest {
  /** With which it went out; undefined: without one. */
  readonly token: string | undefined;
  /** What the server said that it wants: its `WWW-Authenticate`. */
  readonly challenge: string | undefined;
}

/** Where a token comes from. */
export interface TokenSource {
  /** In words that people know it by: `the file /run/token`. It holds no secret. */
  readonly name: string;
  /** The token; undefined where there is none. Throws or rejects with a Fault that says why it cannot be had. */
  read(refused?: RefusedRequest): string | undefined | Promise<string | undefined>;
  /** When the token that was read last ends, where its source knows; else a JWT itself says so. */
  endsAt?(): number | undefined;
  /** What a server shows is another when this is; undefined where that goes by the token itself. */
  identity?(): string;
  /** What whoever was refused is told, where there is more to say than that there is no token. */
  refusal?(): Fault;
  /** A person has to log in. */
  readonly needsLogin?: boolean;
  /** Of a login: whether its token is followed by another without a person. */
  readonly isRenewed?: boolean;
  /** How long a token is taken for good that does not say so itself, in milliseconds. */
  readonly keepMs: number;
  /** Where another process may change it: looks for that until the function that it returns is called. */
  watch?(changed: () => void): () => void;
  /** Ends a reading that is under way. */
  stop?(): void | Promise<void>;
  /** What to do where there is no token: `Set the variable and start the gateway again.` */
  readonly remedy: string;
}

export interface CredentialOptions {
  readonly source: TokenSource;
  readonly now: () => number;
  readonly wall: () => number;
  /** A token was read that is another than before: what the server shows may be another too. */
  readonly onChange: () => void;
  /** Told of each token, so that it is shown to nobody. */
  readonly onToken: (tokens: readonly string[]) => void;
  /** A token was fetched from elsewhere, or could not be. */
  readonly onFetched?: ((isGood: boolean) => void) | undefined;
}

/** A token is fetched anew so long before it ends: it has to be good when it arrives. */
const EARLY_MS = 30_000;
/** One that is nearly over, or over, is used so long before its source is asked again: it may have no other yet. */
const LEAST_MS = 1_000;

export class Credential {
  readonly #options: CredentialOptions;
  readonly #pace = new RenewalPace();
  #token: string | undefined;
  /** The one before: a server may still speak of it. */
  #before: string | undefined;
  #state: CredentialStatus["state"] = "unread";
  #fault: Fault | undefined;
  /** Until when the token is used without a look; by the clock that only goes forward. */
  #goodUntilMs = Number.NEGATIVE_INFINITY;
  #endsAt: number | undefined;
  #identity: string | undefined;
  #reading: Promise<void> | undefined;
  #unwatch: (() => void) | undefined;
  /** Streams that were opened with what there is now: no more than there are open ones. */
  readonly #followers = new Set<() => void>();

  constructor(options: CredentialOptions) {
    this.#options = options;
    this.#unwatch = options.source.watch?.(() => void this.#read());
  }

  /** The token for a request that goes out now; undefined: without one. Rejects where it cannot be had. */
  token(): string | undefined | Promise<string | undefined> {
    const nowMs = this.#options.now();
    if (nowMs < this.#goodUntilMs) return this.#token;
    if (this.#fault !== undefined && this.#reading === undefined && !this.#pace.mayRenew(nowMs)) {
      return Promise.reject(this.#fault);
    }
    const reading = this.#read();
    return reading === undefined ? this.#known() : reading.then(() => this.#known());
  }

  #known(): string | undefined | Promise<never> {
    return this.#fault === undefined ? this.#token : Promise.reject(this.#fault);
  }

  /**
   * The server refused a request with this token. True where there is another by now, with which it may be sent again.
   * All who are refused together wait for one reading.
   */
  async refused(used: string | undefined, challenge?: string): Promise<boolean> {
    if (this.#isAnother(used)) return true;
    const { now } = this.#options;
    if (this.#reading === undefined && !this.#pace.mayRenew(now())) return false;
    await this.#read({ token: used, challenge });
    if (this.#isAnother(used)) return true;
    this.stillRefused();
    return false;
  }

  #isAnother(used: string | undefined): boolean {
    return this.#token !== undefined && this.#token !== used && this.#fault === undefined;
  }

  /** The server refused the newest one as well: it is not asked for again for a while. */
  stillRefused(): void {
    this.#pace.refused(this.#options.now());
    if (this.#state === "known") this.#state = "refused";
  }

  /** A request got through. */
  accepted(): void {
    if (this.#pace.isUnburdened) return;
    this.#pace.accepted();
    if (this.#state === "refused") this.#state = "known";
  }

  /** What whoever asked is told of a 401, where it says more than the server does: that nothing was sent at all. */
  refusal(used: string | undefined): Fault | undefined {
    const { refusal } = this.#options.source;
    if (refusal !== undefined) return refusal.call(this.#options.source);
    if (used !== undefined) return undefined;
    const { name, remedy } = this.#options.source;
    const message = `The server wants credentials (HTTP 401), and ${name} has none.`;
    return new Fault("unauthorized", message, {
      reason: "no-credentials",
      remedy,
      data: { fault: "unauthorized", status: 401 },
    });
  }

  /** Tells when it is another's, or for something else, until the returned function is called. */
  onOther(listener: () => void): () => void {
    this.#followers.add(listener);
    return () => void this.#followers.delete(listener);
  }

  /** Nobody uses it any more. Resolves when nothing is under way that must come to its end. */
  async close(): Promise<void> {
    this.#unwatch?.();
    this.#unwatch = undefined;
    await this.#options.source.stop?.();
  }

  status(): CredentialStatus {
    const { name, needsLogin, isRenewed } = this.#options.source;
    return {
      source: name,
      state: this.#state,
      problem: this.#fault?.message,
      ...(needsLogin === undefined ? {} : { needsLogin: this.#needsLogin() }),
      ...(isRenewed === undefined ? {} : { isRenewed }),
      until: this.#endsAt === undefined ? undefined : new Date(this.#endsAt).toISOString(),
    };
  }

  #needsLogin(): boolean {
    return this.#options.source.needsLogin === true || this.#state === "refused";
  }

  /** Never rejects; what went wrong is kept. Undefined where it was read at once. */
  #read(refused?: RefusedRequest): Promise<void> | undefined {
    if (this.#reading !== undefined) return this.#reading;
    try {
      const read = this.#options.source.read(refused);
      if (read instanceof Promise) {
        this.#reading = read
          .then(
            (token) => {
              this.#take(token);
              this.#options.onFetched?.(token !== undefined);
            },
            (error: unknown) => {
              this.#failed(error);
              this.#options.onFetched?.(false);
            },
          )
          .finally(() => {
            this.#reading = undefined;
          });
        return this.#reading;
      }
      this.#take(read);
    } catch (error) {
      this.#failed(error);
    }
    return undefined;
  }

  #failed(error: unknown): void {
    this.#fault = error instanceof Fault ? error : new Fault("unauthorized", String(error), { cause: error });
    this.#state = "failed";
    this.#goodUntilMs = Number.NEGATIVE_INFINITY;
    this.#pace.failed(this.#options.now());
  }

  #take(token: string | undefined): void {
    const { source, now, wall, onChange, onToken } = this.#options;
    const wasFailing = this.#fault !== undefined;
    this.#fault = undefined;
    const isAnother = token !== this.#token;
    if (isAnother) this.#endsAt = token === undefined ? undefined : (source.endsAt?.() ?? expiryOf(token));
    this.#goodUntilMs = now() + keptMs(source.keepMs, this.#endsAt, wall());
    // What failed is over; that a token was refused is not, while it is the same.
    if (wasFailing) this.#pace.accepted();
    if (!isAnother && this.#state !== "unread" && this.#state !== "failed") return;
    const isFirst = this.#state === "unread";
    this.#state = token === undefined ? "absent" : "known";
    if (!isAnother) return;
    this.#before = this.#token;
    this.#token = token;
    onToken([token, this.#before].filter((one) => one !== undefined));
    // A new one is no reason to wait for.
    this.#pace.accepted();
    const identity = source.identity?.() ?? token;
    const isOther = identity !== this.#identity;
    this.#identity = identity;
    if (isFirst || !isOther) return;
    onChange();
    for (const tell of [...this.#followers]) tell();
  }
}

function keptMs(keepMs: number, endsAt: number | undefined, wallMs: number): number {
  if (endsAt === undefined) return keepMs;
  const leftMs = endsAt - wallMs - EARLY_MS;
  return Math.min(keepMs, leftMs > 0 ? leftMs : LEAST_MS);
}
