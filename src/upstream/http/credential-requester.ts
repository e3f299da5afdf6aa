// A requester whose requests carry a credential that is read for each of them. A 401, or a 403 for want of a scope, means that
// nothing was done: the credential is fetched again, once for all that wait, and the request is sent again, once. Links see none of it.
// Where the credential is another, a listening stream that was opened with the one before ends, and its link opens the next.

import { mediaType } from "./headers.js";
import type {
  ExchangeHandler,
  HttpExchange,
  OpenRequester,
  Requester,
  RequestOptions,
  ResponseHeaders,
} from "./requester.js";

/** What a requester needs of a credential; credentials/credential.ts is one. */
export interface LiveCredential {
  /** Where it is undefined, the request goes out without. Rejects with a Fault where it cannot be had. */
  token(): string | undefined | Promise<string | undefined>;
  /** Whether there is another by now. Never rejects. */
  refused(used: string | undefined, challenge: string | undefined): Promise<boolean>;
  stillRefused(): void;
  /** What whoever asked is told of a 401; undefined where that is what the server said. */
  refusal(used: string | undefined): Error | undefined;
  accepted(): void;
  /** Tells when it is another's, or for something else, until the returned function is called. */
  onOther(listener: () => void): () => void;
}

/** So much of a refusal is kept while another credential is looked for; a longer one is cut off. */
const MAX_KEPT_BYTES = 64 * 1024;

export function withCredential(credential: LiveCredential, openRequester: OpenRequester): OpenRequester {
  return async (target, url, signal) => new CredentialRequester(await openRequester(target, url, signal), credential);
}

class CredentialRequester implements Requester {
  readonly inner: Requester;
  readonly credential: LiveCredential;
  /** The token of the last request; undefined before the first. */
  lastUsed: string | undefined;

  constructor(inner: Requester, credential: LiveCredential) {
    this.inner = inner;
    this.credential = credential;
  }

  dispatch(options: RequestOptions, handler: ExchangeHandler): HttpExchange {
    return new CredentialExchange(this, options, handler);
  }

  destroy(): Promise<void> {
    return this.inner.destroy();
  }
}

/** The answer to a first try that was refused, as far as it has come. */
interface Refusal {
  readonly status: number;
  readonly headers: ResponseHeaders;
  readonly chunks: Buffer[];
  bytes: number;
  end: "end" | Error | undefined;
}

class CredentialExchange implements HttpExchange, ExchangeHandler {
  readonly #requester: CredentialRequester;
  readonly #options: RequestOptions;
  readonly #handler: ExchangeHandler;
  #inner: HttpExchange | undefined;
  #used: string | undefined;
  #tries = 0;
  /** While another credential is looked for. */
  #refusal: Refusal | undefined;
  #isAborted = false;
  #isPaused = false;
  /** While it is a listening stream. */
  #unfollow: (() => void) | undefined;

  constructor(requester: CredentialRequester, options: RequestOptions, handler: ExchangeHandler) {
    this.#requester = requester;
    this.#options = options;
    this.#handler = handler;
    this.#send();
  }

  #send(): void {
    const before = this.#requester.lastUsed;
    const token = this.#requester.credential.token();
    if (!(token instanceof Promise)) {
      // Of one that was refused it has been told.
      if (this.#tries === 0 && before !== undefined && token !== before) this.#handler.onCredential?.("there", true);
      this.#sendWith(token);
      return;
    }
    this.#handler.onCredential?.("wanted", false);
    token.then(
      (fetched) => {
        // The first one of all is no other.
        this.#handler.onCredential?.("there", before !== undefined && fetched !== before);
        this.#sendWith(fetched);
      },
      (error: Error) => {
        if (!this.#isAborted) this.#handler.onError(error, false);
      },
    );
  }

  #sendWith(token: string | undefined): void {
    if (this.#isAborted) return;
    this.#used = token;
    this.#requester.lastUsed = token;
    this.#tries++;
    const { headers } = this.#options;
    const all = token === undefined ? headers : [...headers, "authorization", `Bearer ${token}`];
    this.#inner = this.#requester.inner.dispatch({ ...this.#options, headers: all }, this);
    if (this.#isPaused) this.#inner.pause();
  }

  pause(): void {
    this.#isPaused = true;
    this.#inner?.pause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#inner?.resume();
  }

  abort(): void {
    this.#isAborted = true;
    this.#unfollow?.();
    this.#inner?.abort();
  }

  onHead(status: number, headers: ResponseHeaders): void {
    const { credential } = this.#requester;
    if (status !== 401 && !(status === 403 && lacksScope(headers))) {
      if (status < 400) credential.accepted();
      if (this.#isListening(status, headers)) this.#unfollow = credential.onOther(() => this.#renew());
      this.#handler.onHead(status, headers);
      return;
    }
    if (this.#tries > 1) {
      credential.stillRefused();
      this.#tellRefused(status, headers);
      return;
    }
    const refusal: Refusal = { status, headers, chunks: [], bytes: 0, end: undefined };
    this.#refusal = refusal;
    this.#handler.onCredential?.("wanted", true);
    void credential.refused(this.#used, challengeOf(headers)).then((isAnother) => this.#decided(refusal, isAnother));
  }

  onData(chunk: Buffer): void {
    const refusal = this.#refusal;
    if (refusal === undefined) {
      this.#handler.onData(chunk);
      return;
    }
    if (refusal.end !== undefined) return;
    const room = MAX_KEPT_BYTES - refusal.bytes;
    refusal.bytes += chunk.length;
    refusal.chunks.push(chunk.length <= room ? chunk : chunk.subarray(0, room));
    if (chunk.length <= room) return;
    // What is told of it is its beginning. The rest must not follow on a hole, nor be read for nobody.
    refusal.end = "end";
    this.#inner?.abort();
  }

  /** What is answered beside the calls is short, but for what is listened to. */
  #isListening(status: number, headers: ResponseHeaders): boolean {
    return this.#options.pool === "asides" && status === 200 && mediaType(headers) === "text/event-stream";
  }

  /** As if the server had ended it: the link opens it again, with the credential that there is then. */
  #renew(): void {
    this.abort();
    this.#handler.onEnd();
  }

  onEnd(): void {
    this.#unfollow?.();
    if (this.#refusal === undefined) this.#handler.onEnd();
    else this.#refusal.end ??= "end";
  }

  onError(error: Error, written: boolean): void {
    this.#unfollow?.();
    if (this.#refusal === undefined) this.#handler.onError(error, written);
    else this.#refusal.end ??= error;
  }

  #decided({ status, headers, chunks, end }: Refusal, isAnother: boolean): void {
    this.#refusal = undefined;
    if (this.#isAborted) return;
    this.#handler.onCredential?.("there", isAnother);
    if (isAnother) {
      this.#inner?.abort();
      this.#send();
      return;
    }
    if (!this.#tellRefused(status, headers)) return;
    for (const chunk of chunks) if (!this.#isAborted) this.#handler.onData(chunk);
    if (this.#isAborted || end === undefined) return;
    // It was refused, whatever became of the rest of the answer.
    this.#handler.onEnd();
  }

  /** False where it is over with that: the credential itself says what is wrong. */
  #tellRefused(status: number, headers: ResponseHeaders): boolean {
    const why = this.#requester.credential.refusal(this.#used);
    if (why === undefined) {
      this.#handler.onHead(status, headers);
      return true;
    }
    this.abort();
    this.#handler.onError(why, false);
    return false;
  }
}

/** The token is good, and does not allow this (RFC 6750): another may. Nothing was done. */
function lacksScope(headers: ResponseHeaders): boolean {
  return /\berror\s*=\s*"?insufficient_scope\b/i.test(challengeOf(headers) ?? "");
}

function challengeOf(headers: ResponseHeaders): string | undefined {
  const value = headers["www-authenticate"];
  return Array.isArray(value) ? value.join(", ") : value;
}
