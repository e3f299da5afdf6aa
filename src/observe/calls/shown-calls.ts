// What the operator is shown of calls: which fit a question, and their facts without the secrets of servers' entries. It is
// loaded when somebody asks.

import type { CallFilter, CallsAnswer, CallsQuery, CallUnderWay, KeptCall } from "../../contracts/control/calls.js";
import type { JsonObject, RpcId } from "../../protocol/jsonrpc.js";
import { type CallRecord, ownMs } from "../call-record.js";
import type { CallUnderWayFacts } from "../observed-call.js";
import { isFailure } from "../outcome.js";
import { type KeptCalls, MAX_KEPT_CALLS } from "./kept-calls.js";

/** So many calls under way are shown: more than anybody reads. */
const MAX_UNDER_WAY_SHOWN = 500;
/** As kept calls are cut. */
const MAX_NAME_CHARACTERS = 128;
const MAX_NAME_READ = 4_096;

export function shownCalls(kept: KeptCalls, query: CallsQuery): KeptCall[] {
  const found: KeptCall[] = [];
  const oldest = Math.max(kept.first, (query.after ?? 0) + 1);
  for (let seq = kept.last; seq >= oldest && found.length < query.limit; seq--) {
    const record = kept.at(seq);
    if (query.mended !== undefined && query.mended !== record.mended) continue;
    if (fits(record, record.outcome, query)) found.push(shown(record, seq, kept));
  }
  return found.reverse();
}

/** `underWay` are oldest first. */
export function shownUnderWay(
  underWay: Iterable<CallUnderWayFacts>,
  nowMs: number,
  filter: CallFilter,
  kept: KeptCalls,
): CallUnderWay[] {
  const found: CallUnderWay[] = [];
  // Nobody knows yet what comes of them.
  if (filter.failed === true || filter.outcome !== undefined || filter.mended !== undefined) return found;
  for (const call of underWay) {
    if (found.length >= MAX_UNDER_WAY_SHOWN) break;
    const ms = nowMs - call.startMs;
    const { principal, clientInfo } = call.caller;
    const { server, tool, attempt } = call;
    if (!fits({ server, tool, principal, ms }, undefined, filter)) continue;
    found.push({
      ...factsOf({ principal, clientInfo, method: call.message.method, server, tool, id: call.message.id }, kept),
      trace: call.span?.traceId,
      attempt,
      ms,
      phase: call.phase,
    });
  }
  return found;
}

/** The answer to a query as it stands in an address. Numbers that are none are left out. */
export function callsAnswer(
  query: URLSearchParams,
  kept: KeptCalls,
  underWay: Iterable<CallUnderWayFacts>,
  nowMs: number,
): CallsAnswer {
  const asked = queryOf(query);
  return { calls: shownCalls(kept, asked), underWay: shownUnderWay(underWay, nowMs, asked, kept), last: kept.last };
}

function queryOf(query: URLSearchParams): CallsQuery {
  const text = (key: string) => query.get(key) ?? undefined;
  const number = (key: string) => {
    const value = query.has(key) ? Number(query.get(key)) : Number.NaN;
    return Number.isFinite(value) && value >= 0 ? value : undefined;
  };
  return {
    server: text("server"),
    tool: text("tool"),
    principal: text("principal"),
    failed: query.get("failed") === "true",
    slowerMs: number("slowerMs"),
    outcome: text("outcome"),
    mended: text("mended"),
    after: number("after"),
    limit: Math.min(number("limit") ?? MAX_KEPT_CALLS, MAX_KEPT_CALLS),
  };
}

function fits(
  { server, tool, principal, ms }: Pick<CallRecord, "server" | "tool" | "principal" | "ms">,
  outcome: CallRecord["outcome"] | undefined,
  filter: CallFilter,
): boolean {
  if (filter.server !== undefined && filter.server !== server) return false;
  if (filter.tool !== undefined && filter.tool !== tool) return false;
  if (filter.principal !== undefined && filter.principal !== principal.id) return false;
  if (filter.failed === true && (outcome === undefined || !isFailure(outcome))) return false;
  if (filter.outcome !== undefined && filter.outcome !== outcome) return false;
  return filter.slowerMs === undefined || ms > filter.slowerMs;
}

function shown(record: CallRecord, seq: number, kept: KeptCalls): KeptCall {
  return {
    seq,
    endedAt: new Date(record.endedAt).toISOString(),
    ...factsOf(record, kept),
    outcome: record.outcome,
    failed: isFailure(record.outcome),
    ms: record.ms,
    queuedMs: record.queuedMs,
    startingMs: record.startingMs,
    credentialMs: record.credentialMs,
    serverMs: record.serverMs,
    returningMs: record.returningMs,
    ownMs: ownMs(record),
    attempt: record.attempt,
    cache: record.cache,
    mended: record.mended,
    bytesIn: record.bytesIn,
    bytes: record.bytes,
    trace: record.traceId,
    ...(record.recorded?.isKept === true ? { recorded: true } : {}),
  };
}

type Facts = Pick<CallRecord, "principal" | "clientInfo" | "method" | "server" | "tool" | "id">;

function factsOf({ principal, clientInfo, method, server, tool, id }: Facts, kept: KeptCalls) {
  return {
    principal: principal.id,
    role: principal.role,
    client: clientOf(clientInfo),
    method: cut(method),
    server,
    tool: tool === undefined ? undefined : cut(kept.safeName(server, tool.slice(0, MAX_NAME_READ))),
    id: idOf(id),
  };
}

function clientOf({ name }: JsonObject): string | undefined {
  return typeof name === "string" ? cut(name) : undefined;
}

function idOf(id: RpcId): string | number {
  return typeof id === "string" ? cut(id) : id;
}

function cut(text: string): string {
  return text.length > MAX_NAME_CHARACTERS ? `${text.slice(0, MAX_NAME_CHARACTERS)}…` : text;
}
