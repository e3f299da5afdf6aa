// A server whose entry in the config cannot be used: it has its place in the status and in what agents are told, and
// nothing of it runs.

import type { Isolation, MisconfiguredSpec } from "../contracts/server-spec.js";
import type { ServerConnection, ServerHandle } from "../contracts/servers.js";
import type { ServerStatus } from "../contracts/status.js";
import type { Upstream } from "../contracts/upstream.js";
import { systemClock } from "../runtime/clock.js";
import { EVERY_LIST } from "./lists/lists.js";
import { misconfigured } from "./supervise/refusals.js";

const DONE = Promise.resolve();

export class MisconfiguredServer implements ServerHandle {
  readonly spec: MisconfiguredSpec;
  readonly name: string;
  readonly isolation: Isolation = "shared";
  readonly intro = undefined;
  readonly listed = false;
  /** Nothing is tried, so nobody need wait for it. */
  readonly firstTry = DONE;
  readonly connections: readonly ServerConnection[] = [];
  readonly #since: string;

  /** `before` is what stood in its place until this config was read. */
  constructor(spec: MisconfiguredSpec, before: MisconfiguredServer | undefined) {
    this.spec = spec;
    this.#since = before === undefined ? new Date(systemClock.wall()).toISOString() : before.#since;
    this.name = spec.name;
  }

  get trouble(): string {
    return `it is misconfigured: ${this.spec.why}.`;
  }

  upstream(): Upstream {
    throw misconfigured(this.name, this.spec.why);
  }

  sessionConnection(): undefined {
    return undefined;
  }

  status(counts: ServerStatus["counts"]): ServerStatus {
    return {
      name: this.name,
      kind: undefined,
      isolation: this.isolation,
      via: undefined,
      state: "misconfigured",
      since: this.#since,
      era: undefined,
      version: undefined,
      serverInfo: undefined,
      counts,
      quarantined: 0,
      listsFromBefore: true,
      oldLists: EVERY_LIST.filter((kind) => counts[kind] > 0),
      connections: 0,
      inFlight: 0,
      waiting: 0,
      restarts: 0,
      ejected: false,
      circuit: "closed",
      failures: 0,
      lazy: false,
      refs: 0,
      card: undefined,
      readyAfterMs: undefined,
      lastError: this.spec.forOperator,
      nextTryInMs: undefined,
      pid: undefined,
      url: undefined,
      cache: undefined,
      noise: { count: 0, sample: undefined },
      stderr: [],
      problems: [],
    };
  }
}
