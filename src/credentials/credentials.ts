// The credentials of all servers that have one: one for each entry, shared by its connections.

import type { HttpTarget, Target } from "../contracts/server-spec.js";
import type { CredentialStatus } from "../contracts/status.js";
import { systemClock } from "../runtime/clock.js";
import { redactorFor } from "../runtime/redact/secrets-of.js";
import { Credential } from "./credential.js";
import { type SourceContext, tokenSource } from "./sources.js";

export class Credentials {
  readonly #context: SourceContext;
  readonly #onChange: (server: string) => void;
  /** By the entry as it was resolved: another entry, another credential. There are no more than servers. */
  readonly #byTarget = new Map<Target, Credential>();

  /** `onChange`: a server is sent another token than before. */
  constructor(context: SourceContext, onChange: (server: string) => void = () => {}) {
    this.#context = context;
    this.#onChange = onChange;
  }

  /** Undefined where the entry has none, or has it in its headers. */
  of(server: string, target: HttpTarget): Credential | undefined {
    const { auth } = target;
    if (auth === undefined) return undefined;
    let credential = this.#byTarget.get(target);
    if (credential === undefined) {
      credential = new Credential({
        source: tokenSource(auth, this.#context),
        now: systemClock.now,
        wall: systemClock.wall,
        onChange: () => this.#onChange(server),
        onToken: (tokens) => redactorFor(target).follow(tokens),
      });
      this.#byTarget.set(target, credential);
    }
    return credential;
  }

  status(target: Target | undefined): CredentialStatus | undefined {
    return target === undefined ? undefined : this.#byTarget.get(target)?.status();
  }

  /** Those of other entries are not needed any more. */
  keep(targets: ReadonlySet<Target>): void {
    for (const [target, credential] of this.#byTarget) {
      if (targets.has(target)) continue;
      credential.close();
      this.#byTarget.delete(target);
    }
  }

  close(): void {
    this.keep(new Set());
  }
}
