// What the operator is shown of calls: which fit a question, and their facts without the secrets of servers' entries. It is
// loaded when somebody asks.

import type {
  CallFilter,
  CallReason,
  CallsAnswer,
  CallsQuery,
  CallUnderWay,
  KeptCall,
} from "../../contracts/control/calls.js";
import type { JsonObject, RpcId } from "../../protocol/jsonrpc.js";
import { queryNumber, queryText } from "../../runtime/words/query.js";
import { type CallRecord, ownMs } from "../call-record.js";
import type { CallUnderWayFacts } from "../observed-call.js";
import { isFailure } from "../outcome.js";
import { cutName, MAX_NAME_READ } from "../safe-names.js";
import { type KeptCalls, MAX_KEPT_CALLS } from "./kept-calls.js";

/** So many calls under way are shown: more than anybody reads. */
const MAX_UNDER_WAY_SHOWN = 500;
/** Servers may answer with as many codes as they like. */
const MAX_REASONS_SHOWN = 100;

export function shownCalls(kept: KeptCalls, query: CallsQuery): KeptCall[] {
  if (query.slowest === true) {
    const all = [...fitting(kept, query)].sort((a, b) => kept.at(b).ms - kept.at(a).ms || b - a);
    return all.slice(0, query.limit).map((seq) => shown(kept.at(seq), seq, kept));
  }
  const found: KeptCall[] = [];
  for (const seq of fitting(kept, query)) {
    if (found.length >= query.limit) break;
    found.push(shown(kept.at(seq), seq, kept));
  }
  return found.reverse();
}

/** The numbers of those that fit, the newest first: none is shown before it is known to be wanted. */
function* fitting(kept: KeptCalls, query: CallFilter & Pick<CallsQuery, "after">): Generator<number> {
  const oldest = Math.max(kept.first, (query.after ?? 0) + 1);
  for (let seq = kept.last; seq >= oldest; seq--) {
    const record = kept.at(seq);
    if (query.mended !== undefined && query.mended !== record.mended) continue;
    if (fits(record, record.outcome, query)) yield seq;
  }
}

/** All that are kept are looked at, however many are shown. */
export function shownReasons(kept: KeptCalls, query: CallFilter): CallReason[] {
  const groups = new Map<string, { count: number; readonly last: number }>();
  for (const seq of fitting(kept, query)) {
    const { outcome, server = "", refusedBy = "", errorCode } = kept.at(seq);
    if (!isFailure(outcome)) continue;
    // A server's name is behind what has no space.
    const key = `${outcome} ${refusedBy} ${errorCode} ${server}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, { count: 1, last: seq });
    else group.count++;
  }
  return [...groups.values()]
    .sort((a, b) => b.count - a.count || b.last - a.last)
    .slice(0, MAX_REASONS_SHOWN)
    .map(({ count, last }) => ({ count, last: shown(kept.at(last), last, kept) }));
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
  return {
    calls: shownCalls(kept, asked),
    underWay: shownUnderWay(underWay, nowMs, asked, kept),
    last: kept.last,
    ...(asked.reasons === true ? { reasons: shownReasons(kept, asked) } : {}),
  };
}

function queryOf(query: URLSearchParams): CallsQuery {
  const text = (key: string) => queryText(query, key);
  const number = (key: string) => queryNumber(query, key);
  return {
    server: text("server"),
    tool: text("tool"),
    principal: text("principal"),
    failed: query.get("failed") === "true",
    slowerMs: number("slowerMs"),
    outcome: text("outcome"),
    mended: text("mended"),
    after: number("after"),
    slowest: query.get("slowest") === "true",
    reasons: query.get("reasons") === "true",
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
    refusedBy: record.refusedBy,
    errorCode: record.errorCode === 0 ? undefined : record.errorCode,
    receipt: record.receipt,
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
    method: cutName(method),
    server,
    tool: tool === undefined ? undefined : cutName(kept.safeName(server, tool.slice(0, MAX_NAME_READ))),
    id: idOf(id),
  };
}

function clientOf({ name }: JsonObject): string | undefined {
  return typeof name === "string" ? cutName(name) : undefined;
}

function idOf(id: RpcId): string | number {
  return typeof id === "string" ? cutName(id) : id;
}
