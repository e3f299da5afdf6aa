// What `status` tells of one server, made of what its parts know. Decides nothing that they go by.

import type { ServerSpec } from "../contracts/server-spec.js";
import type { ServerState, ServerStatus } from "../contracts/status.js";
import type { ServerIntro } from "../contracts/upstream.js";
import type { Redactor } from "../runtime/redact/redactor.js";
import type { ServerDriver } from "./driver.js";
import { EVERY_LIST, type ServerLists } from "./lists/lists.js";
import type { Breaker } from "./supervise/breaker.js";

export interface ServerFacts {
  readonly spec: ServerSpec;
  /** The connections that are supervised by themselves; the shared one is first. */
  readonly own: readonly ServerDriver[];
  /** Those, and the sessions beside the shared one. */
  readonly all: readonly ServerDriver[];
  readonly intro: ServerIntro | undefined;
  readonly lists: ServerLists;
  readonly breaker: Breaker;
  readonly redactor: Redactor;
  /** When lists that could not be read are tried again. */
  readonly retryInMs: number | undefined;
  readonly refs: number;
  readonly card: ServerStatus["card"];
  readonly problems: readonly string[];
}

export function statusOf(facts: ServerFacts, counts: ServerStatus["counts"], nowMs: number): ServerStatus {
  const { spec, own, all, intro, lists, breaker, redactor } = facts;
  const shown =
    all.find(({ state }) => state === "ready") ??
    own.find(({ lastFault }) => lastFault !== undefined) ??
    (own[0] as ServerDriver);
  const link = shown.describe();
  const clean = (text: string | undefined) => (text === undefined ? undefined : redactor.redact(text));
  const sample = all.find((one) => one.noise.sample)?.noise.sample;
  const isUp = shown.state === "ready" || shown.state === "starting";
  // Lists of one that is ejected are not read again before it is back.
  const isUnread = shown.state === "starting" || shown.state === "ejected";
  const triedMs = shown.nextTryInMs ?? (isUnread ? undefined : facts.retryInMs);
  const heldMs = shown.state === "ejected" ? undefined : breaker.nextTryInMs(nowMs);
  return {
    name: spec.name,
    kind: link?.kind ?? spec.target.kind,
    isolation: spec.isolation,
    via: "via" in spec.target ? spec.target.via : undefined,
    state: stateOf(shown, lists),
    since: shown.since,
    era: intro === undefined ? undefined : (intro.era ?? "legacy"),
    version: intro?.version,
    serverInfo: intro === undefined ? undefined : pickInfo(intro.serverInfo, redactor),
    counts,
    quarantined: 0,
    listsFromBefore: !lists.complete,
    oldLists: EVERY_LIST.filter((kind) => counts[kind] > 0 && !lists.isRead(kind)),
    connections: all.filter((one) => one.state === "ready").length,
    inFlight: sum(all, (one) => one.inFlight),
    waiting: sum(all, (one) => one.waiting),
    restarts: sum(all, (one) => one.restarts),
    ejected: own.some(({ state }) => state === "ejected"),
    circuit: breaker.circuit,
    failures: breaker.faults,
    lazy: spec.supervision.lazy,
    refs: facts.refs,
    card: facts.card,
    readyAfterMs: shown.readyAfterMs,
    lastError: clean(shown.lastFault?.forOperator ?? lists.fault),
    nextTryInMs: heldMs === undefined ? triedMs : Math.max(heldMs, triedMs ?? 0),
    pid: isUp ? link?.pid : undefined,
    url: link?.url,
    cache: undefined,
    noise: { count: sum(all, (one) => one.noise.count), sample: sample && redactor.redact(sample, true) },
    stderr: link?.stderr ?? [],
    problems: facts.problems.map((text) => redactor.redact(text)),
  };
}

function stateOf({ state, failedStarts }: ServerDriver, lists: ServerLists): ServerState {
  // Nothing runs, because starts failed: the supervisor waits for a call, and we wait for the next try.
  if (state === "idle" && failedStarts > 0) return "backoff";
  // Over HTTP nothing ends when a server goes away: that it could not be reached for its lists is how it is known.
  return state === "ready" && lists.isUnreachable ? "backoff" : state;
}

function pickInfo(info: ServerIntro["serverInfo"], redactor: Redactor): ServerStatus["serverInfo"] {
  if (info === undefined) return undefined;
  const { name, version } = info;
  return {
    ...(typeof name === "string" ? { name: redactor.redact(name) } : {}),
    ...(typeof version === "string" ? { version: redactor.redact(version) } : {}),
  };
}

function sum<T>(items: readonly T[], of: (item: T) => number): number {
  return items.reduce((total, item) => total + of(item), 0);
}
