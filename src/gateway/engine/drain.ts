// Takes one of several gateways out of use, asked of any of them: it hands over what it has in hand first, and then stops as by
// SIGTERM. What stopping is, is the gateway's own; this finds the one that is meant, and passes it on.

import type { GatewayEngine } from "../../contracts/engine/engine.js";
import { DRAIN_NOTICE_MS } from "../../contracts/status.js";
import { CodedError } from "../../runtime/expected-error.js";
import { sleepUnref } from "../../runtime/wait.js";

/** The question that a gateway is asked by another. */
const KIND = "drain";
/** It answers that it has begun: the rest is seen in the list of those that are there. */
const ASK_MS = 5_000;
/** What an operator calls the gateway that they ask. */
const THIS = "this";

/** A gateway that can be taken out of use. */
interface Drained {
  /** Hands over, and then stops. Throws where somebody else ends it. */
  begin(drainMs: number | undefined): void;
  /** An operator asked for it at another gateway, which passed it on; what was asked here is known already. */
  asked(by: string, outcome: string): void;
}

export class DrainError extends CodedError<"not-found" | "denied"> {
  override readonly name = "DrainError";
}

/** Resolves when balancers have seen that it leaves: at once where there is no other that agents could be sent to. */
export async function balancersTold({ self, partitions }: GatewayEngine): Promise<void> {
  if (partitions.gateways().every(({ gateway, isLeaving }) => gateway === self || isLeaving)) return;
  // Whoever is stopped meanwhile has nothing to wait for.
  await sleepUnref(DRAIN_NOTICE_MS);
}

export class Drain {
  readonly #engine: GatewayEngine;
  readonly #own: Drained;
  readonly #wordsOf: (gateway: string) => readonly string[];

  /** `wordsOf` are those that people have for a gateway: its machine, its address. */
  constructor(engine: GatewayEngine, own: Drained, wordsOf: (gateway: string) => readonly string[]) {
    this.#engine = engine;
    this.#own = own;
    this.#wordsOf = wordsOf;
    engine.peers.answer(KIND, async (from, body) => {
      const { drainMs } = JSON.parse(Buffer.from(body).toString()) as { drainMs?: number };
      try {
        own.begin(drainMs);
      } catch (error) {
        own.asked(from, error instanceof DrainError ? error.code : "internal");
        throw error;
      }
      own.asked(from, "ok");
      return Buffer.from("{}");
    });
  }

  /** Resolves with the gateway's whole name when it has begun. */
  async drain(name: string, drainMs: number | undefined): Promise<string> {
    const { self, peers } = this.#engine;
    const gateway = name === THIS ? self : this.#find(name);
    if (gateway === self) this.#own.begin(drainMs);
    else await peers.ask(gateway, KIND, Buffer.from(JSON.stringify({ drainMs })), { timeoutMs: ASK_MS });
    return gateway;
  }

  #find(name: string): string {
    const all = this.#engine.partitions.gateways().map(({ gateway }) => gateway);
    const begun = all.filter((gateway) => gateway.startsWith(name));
    const found = begun.length > 0 ? begun : all.filter((gateway) => this.#wordsOf(gateway).includes(name));
    const [one] = found;
    if (one !== undefined && found.length === 1) return one;
    const why =
      one === undefined ? `There is no gateway "${name}" on the engine` : `"${name}" may be ${found.join(" or ")}`;
    throw new DrainError("not-found", `${why}. There are: ${all.join(", ")}.`);
  }
}
