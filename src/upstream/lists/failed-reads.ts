// Lists that could not be read: when they are tried again by themselves, since no call can ask for what is not listed, and what is
// logged of them. It does not read them.

import type { Supervision } from "../../contracts/server-spec.js";
import type { ListKind } from "../../contracts/upstream.js";
import type { FaultCode } from "../../protocol/errors.js";
import { backoffCeiling } from "../../runtime/backoff.js";
import { sentence } from "../../runtime/words/sentence.js";

const FIRST_RETRY_MS = 1_000;
const LAST_RETRY_MS = 60_000;
/** Credentials do not mend themselves; other clients were seen to ask 8,600 times a day. */
const UNAUTHORIZED_RETRY_MS = 15 * 60_000;

/** `failures` are those since the lists were last read; `code` is of the last fault. */
export function listRetryMs(
  { listRetryMs: maxMs = LAST_RETRY_MS }: Pick<Supervision, "listRetryMs">,
  failures: number,
  code: FaultCode | undefined,
): number {
  if (code === "unauthorized") return UNAUTHORIZED_RETRY_MS;
  return backoffCeiling(failures, { baseMs: FIRST_RETRY_MS, maxMs });
}

const WORDS: Readonly<Record<ListKind, string>> = {
  tools: "tools",
  prompts: "prompts",
  resources: "resources",
  resourceTemplates: "resource templates",
};

export interface ToldFaultsDeps {
  tell(text: string, facts: { readonly nextTryInMs: number | undefined }): void;
  /** When they are read again, from now; undefined where that is left to a call. */
  retryInMs(): number | undefined;
}

/** Those that failed together, as all do where nobody answers, are told in one line, with when they are read again. */
export class ToldFaults {
  readonly #deps: ToldFaultsDeps;
  /** Those of this turn, by the reason. */
  #kinds = new Map<string, ListKind[]>();

  constructor(deps: ToldFaultsDeps) {
    this.#deps = deps;
  }

  failed(kind: ListKind, reason: string): void {
    // When they are tried again is decided in the turn in which they failed.
    if (this.#kinds.size === 0) setImmediate(() => this.#tellAll());
    this.#kinds.set(reason, [...(this.#kinds.get(reason) ?? []), kind]);
  }

  #tellAll(): void {
    const inMs = this.#deps.retryInMs();
    const next = inMs === undefined ? "" : ` Tried again in ${Math.max(1, Math.round(inMs / 1000))} s.`;
    const failed = this.#kinds;
    this.#kinds = new Map();
    const facts = { nextTryInMs: inMs === undefined ? undefined : Math.ceil(inMs) };
    for (const [reason, kinds] of failed) {
      const why = next === "" ? reason : sentence(reason);
      this.#deps.tell(`its ${listed(kinds)} could not be read: ${why}${next}`, facts);
    }
  }
}

/** `tools`, `tools and prompts`, `tools, prompts and resources`. */
function listed(kinds: readonly ListKind[]): string {
  const words = kinds.map((kind) => WORDS[kind]);
  const last = words.pop() ?? "";
  return words.length === 0 ? last : `${words.join(", ")} and ${last}`;
}
