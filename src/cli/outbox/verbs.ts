// What the verbs about kept calls do: they ask a gateway that runs, show what waits and why, and carry out what the
// operator decides about it. Arguments of calls are shown by none of them.

import type { OutboxEntry, OutboxLanes, OutboxStatus } from "../../contracts/outbox.js";
import type { GatewayStatus } from "../../contracts/status.js";
import type { GatewayClient } from "../gateway/port.js";
import { demandGateway } from "../gateway/which.js";
import { confirm, declined } from "../line/ask.js";
import { Exit, type ExitCode, usageError } from "../line/errors.js";
import { type Io, note, print, printJson } from "../line/io.js";
import { MAX_LIMIT, rowsOf, USUAL_LIMIT } from "../line/page-limits.js";
import { word } from "../text/mailboxes.js";
import { adviceOf, type ListedWrite, laneTable, outboxLine, writeTable, writeText } from "../text/outbox.js";
import { count } from "../text/print.js";
import { watchLine } from "../text/watch.js";

interface VerbInput {
  readonly config: string | undefined;
  readonly state: string | undefined;
  readonly json: boolean;
}

interface ListInput extends VerbInput {
  readonly server: string | undefined;
  readonly principal: string | undefined;
  readonly only: string | undefined;
  readonly lanes: boolean;
  readonly limit: string | undefined;
}

interface WriteInput extends VerbInput {
  readonly id: string;
}

interface ChangeInput extends WriteInput {
  readonly yes: boolean;
}

interface ResolveInput extends ChangeInput {
  readonly done: boolean;
  readonly failed: boolean;
  readonly again: boolean;
}

interface LaneInput extends VerbInput {
  readonly server: string;
  readonly lane: string | undefined;
}

export async function list(input: ListInput, io: Io): Promise<ExitCode> {
  const limit = rowsOf("--limit", input.limit, USUAL_LIMIT, MAX_LIMIT, 1);
  const client = await demandOutbox(input, io);
  if (input.lanes) {
    const { lanes, more } = (await client.get("/outbox/lanes", io.signal)) as OutboxLanes;
    if (input.json) printJson(io, { lanes, more });
    else if (lanes.length === 0) note(io, "Nothing waits.");
    else print(io, laneTable(lanes, io, Date.now()));
    if (!input.json && more > 0) note(io, `And ${count(more, "lane")} more.`);
    return Exit.ok;
  }
  const query = new URLSearchParams({ limit: String(limit) });
  for (const [key, value] of Object.entries({ server: input.server, principal: input.principal, state: input.only })) {
    if (value !== undefined) query.set(key, value);
  }
  const { writes } = (await client.get(`/outbox?${query}`, io.signal)) as { writes: readonly ListedWrite[] };
  if (input.json) printJson(io, { writes });
  else if (writes.length === 0) note(io, isNarrowed(input) ? "No call is kept that fits." : "No call is kept.");
  else print(io, writeTable(writes, io, Date.now()));
  if (!input.json && writes.length === limit) note(io, `There may be more: --limit ${Math.min(MAX_LIMIT, limit * 2)}.`);
  return Exit.ok;
}

function isNarrowed({ server, principal, only }: ListInput): boolean {
  return server !== undefined || principal !== undefined || only !== undefined;
}

export async function show(input: WriteInput, io: Io): Promise<ExitCode> {
  const client = await demandOutbox(input, io);
  const entry = (await client.get(pathOf(input.id), io.signal)) as OutboxEntry;
  if (input.json) printJson(io, entry);
  else {
    print(io, writeText(entry, io, Date.now()));
    const advice = adviceOf(entry);
    if (advice !== undefined) note(io, advice);
  }
  return Exit.ok;
}

export async function retry(input: WriteInput, io: Io): Promise<ExitCode> {
  const client = await demandOutbox(input, io);
  return told(await client.post(`${pathOf(input.id)}/retry`, {}, io.signal), input, io, "goes back to its place");
}

export async function drop(input: ChangeInput, io: Io): Promise<ExitCode> {
  const client = await demandOutbox(input, io);
  const entry = (await client.get(pathOf(input.id), io.signal)) as OutboxEntry;
  const what = `${word(entry.tool)} of ${word(entry.server)}, ${entry.state}`;
  if (!(await confirm(io, `Drop ${word(input.id)} (${what}) for good?`, input.yes))) return declined(io);
  return told(await client.post(`${pathOf(input.id)}/drop`, {}, io.signal), input, io, "was dropped");
}

export async function resolve(input: ResolveInput, io: Io): Promise<ExitCode> {
  const said = (["done", "failed", "again"] as const).filter((one) => input[one]);
  const [as, second] = said;
  if (as === undefined || second !== undefined) {
    throw usageError("How did it end?", "Say one of --done, --failed and --again.");
  }
  const client = await demandOutbox(input, io);
  const question = `It may have had its effect already. Send ${word(input.id)} again?`;
  if (as === "again" && !(await confirm(io, question, input.yes))) return declined(io);
  const answer = await client.post(`${pathOf(input.id)}/resolve`, { as }, io.signal);
  return told(answer, input, io, as === "again" ? "goes back to its place" : `counts as ${as}`);
}

const WHAT_COMES = "what comes is kept, and nothing is delivered";

export function hold(input: LaneInput, io: Io): Promise<ExitCode> {
  return changeLanes(input, io, "hold", `on hold: ${WHAT_COMES}`);
}

export function release(input: LaneInput, io: Io): Promise<ExitCode> {
  return changeLanes(input, io, "release", "released");
}

async function changeLanes(input: LaneInput, io: Io, verb: "hold" | "release", done: string): Promise<ExitCode> {
  const client = await demandOutbox(input, io);
  if (verb === "hold") await demandServer(input.server, client, io);
  const body = { server: input.server, ...(input.lane === undefined ? {} : { lane: input.lane }) };
  const { lanes } = (await client.post(`/outbox/${verb}`, body, io.signal)) as { lanes: number };
  if (input.json) printJson(io, { ...body, lanes });
  else if (lanes === 0 && verb === "hold") print(io, `Nothing of ${word(input.server)} waits now: ${WHAT_COMES}.`);
  else if (lanes === 0) print(io, `Nothing of ${word(input.server)} is on hold now.`);
  else print(io, `${count(lanes, "lane")} of ${word(input.server)} ${lanes === 1 ? "is" : "are"} ${done}.`);
  return Exit.ok;
}

/** A misspelt name would be held for ever, and the server that was meant would go on. */
async function demandServer(server: string, client: GatewayClient, io: Io): Promise<void> {
  const { servers } = (await client.get("/status", io.signal)) as GatewayStatus;
  if (servers.some(({ name }) => name === server)) return;
  // One that the config has no more may have calls that wait.
  const { lanes } = (await client.get("/outbox/lanes", io.signal)) as OutboxLanes;
  if (lanes.some((lane) => lane.server === server)) return;
  const names = servers.map(({ name }) => word(name)).join(", ");
  throw usageError(`There is no server ${word(server)}.`, `There are: ${names === "" ? "none" : names}.`);
}

export async function watch(input: VerbInput, io: Io): Promise<ExitCode> {
  const client = await demandOutbox(input, io);
  const look = () => client.get("/outbox/totals", io.signal) as Promise<OutboxStatus>;
  return watchLine(io, input.json, look, (now, nowMs) => ({
    text: outboxLine(now, nowMs),
    counts: JSON.stringify([now.waiting, now.heldCount, now.unknown]),
  }));
}

function told(answer: unknown, { json }: VerbInput, io: Io, what: string): ExitCode {
  const entry = answer as ListedWrite;
  if (json) printJson(io, entry);
  else print(io, `${word(entry.id)} (${word(entry.tool)} of ${word(entry.server)}) ${what}.`);
  return Exit.ok;
}

function pathOf(id: string): string {
  return `/outbox/writes/${encodeURIComponent(id)}`;
}

const demandOutbox = (input: Omit<VerbInput, "json">, io: Io): Promise<GatewayClient> =>
  demandGateway(input, io, {
    message: "No gateway runs here, and kept calls are asked of one that does.",
    hint: "`toolway serve` starts one. Another's: add --config FILE, or --state DIR.",
  });
