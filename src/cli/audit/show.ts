// What `toolway audit` shows of the log, and what `toolway audit verify` finds in it.

import { join } from "node:path";
import { AUDIT_COLUMNS, type AuditHeadAnswer, type AuditLine } from "../../contracts/control/audit.js";
import { auditFiles } from "../../observe/audit/files.js";
import { searchAudit } from "../../observe/audit/search.js";
import { verifyAudit } from "../../observe/audit/verify.js";
import { csvRow } from "../../runtime/words/csv.js";
import { type GatewayClient, type GatewaySource, runningGateway } from "../gateway/port.js";
import { Exit, type ExitCode, UserError, usageError } from "../line/errors.js";
import { type Io, note, pauseBetweenLooks, print, printJson, shown } from "../line/io.js";
import { rowsOf, USUAL_LIMIT } from "../line/page-limits.js";

/** Often enough to watch. */
const LOOK_MS = 500;
/** More than anybody reads, and less than fills a memory. */
const MAX_LINES = 1_000_000;
/** Of one look while following. */
const MAX_FOLLOWED = 10_000;

const EVERYTHING = { operator: false, nowMs: () => performance.now(), maxMs: Number.POSITIVE_INFINITY };

interface ShowInput {
  readonly since?: string | undefined;
  readonly until?: string | undefined;
  readonly server?: string | undefined;
  readonly tool?: string | undefined;
  readonly principal?: string | undefined;
  readonly outcome?: string | undefined;
  readonly operator: boolean;
  readonly lines?: string | undefined;
  readonly follow: boolean;
  readonly csv: boolean;
  readonly json: boolean;
  readonly path?: string | undefined;
}

export async function showAudit(input: ShowInput, source: GatewaySource, io: Io): Promise<ExitCode> {
  const nowMs = Date.now();
  const filter = {
    sinceMs: timeOf("--since", input.since, nowMs),
    untilMs: timeOf("--until", input.until, nowMs),
    server: input.server,
    tool: input.tool,
    principal: input.principal,
    outcome: input.outcome,
    operator: input.operator,
    nowMs: () => performance.now(),
    maxMs: Number.POSITIVE_INFINITY,
  };
  const count = rowsOf("--lines", input.lines, USUAL_LIMIT, MAX_LINES);
  const { dir } = await placeOf(input.path, source, io);
  if (input.csv) print(io, csvLine(undefined));
  const write = (line: AuditLine) =>
    print(io, input.csv ? csvLine(line) : input.json ? JSON.stringify(line) : lineText(shown(line, io.isTTY)));
  // Before each search, and whatever fits: what is written during one is shown by the next, and nothing is read twice.
  const newest = async () => (await searchAudit(dir, { ...EVERYTHING, maxLines: 1 })).lines[0]?.seq ?? 0;
  let last = input.follow ? await newest() : Number.POSITIVE_INFINITY;
  const { lines } = await searchAudit(dir, { ...filter, maxLines: count });
  const known = lines.filter(({ seq }) => seq <= last);
  // Who follows reads downwards.
  for (const line of input.follow ? known.reverse() : known) write(line);
  if (!input.follow) return Exit.ok;
  while (!io.signal.aborted) {
    await pauseBetweenLooks(io, LOOK_MS);
    const next = await newest();
    if (next === last) continue;
    const found = await searchAudit(dir, { ...filter, maxLines: MAX_FOLLOWED, afterSeq: last });
    for (const line of found.lines.filter(({ seq }) => seq <= next).reverse()) write(line);
    last = next;
  }
  return Exit.ok;
}

/** `2026-01-31T12:00:00.000Z call ann github/create_issue: ok, 12.4 ms`. */
function lineText({ seq, time, kind, ...rest }: AuditLine): string {
  const text = (key: string) => (rest[key] === undefined ? undefined : String(rest[key]));
  const what = [text("server"), text("tool") ?? text("method")].filter((part) => part !== undefined).join("/");
  const head = `${seq} ${time} ${kind}`;
  switch (kind) {
    case "call":
    case "write":
    case "refusal": {
      const who = text("principal") ?? text("address") ?? "somebody";
      const rule = text("rule") === undefined ? "" : ` by ${text("rule")}`;
      const more = text("more") === undefined ? "" : `, ${text("more")} more in this second`;
      const where = what === "" ? (text("path") ?? "") : what;
      const took = text("ms") === undefined ? "" : `, ${text("ms")} ms`;
      const receipt = text("receipt") === undefined ? "" : `, receipt ${text("receipt")}`;
      return `${head} ${who} ${where}: ${text("outcome") ?? text("why") ?? "refused"}${rule}${more}${took}${receipt}`;
    }
    case "login":
      return `${head} at ${text("server")} by ${text("principal") ?? "an operator"}: ${text("outcome")}`;
    case "operator":
      return `${head} by the ${text("by")}: ${text("act")} ${JSON.stringify(rest["target"])}: ${text("outcome")}`;
    default:
      return `${head} ${JSON.stringify({ ...rest, prev: undefined })}`;
  }
}

interface VerifyInput {
  readonly anchor: readonly string[];
  readonly path?: string | undefined;
  readonly json: boolean;
}

export async function verify(input: VerifyInput, source: GatewaySource, io: Io): Promise<ExitCode> {
  const anchors = input.anchor.map(anchorOf);
  const { dir, client } = await placeOf(input.path, source, io);
  const written = client === undefined ? undefined : () => headOf(client, io);
  const report = await verifyAudit(dir, anchors, { signal: io.signal, written });
  if (input.json) printJson(io, { path: dir, ...report });
  else {
    for (const text of report.notes) print(io, text);
    const { wrong, lines, first, last } = report;
    if (wrong !== undefined) print(io, `${join(dir, wrong.file)}, line ${wrong.line}: ${wrong.why}.`);
    else if (lines === 0) print(io, "There are no lines.");
    else
      print(
        io,
        `${lines === 1 ? `The one line, ${first}, is as it was` : `${lines} lines, ${first} to ${last.seq}, are as they were`} written. The last is ${last.seq}:${last.hash}`,
      );
    const known = client === undefined ? Math.max(0, ...anchors.map(({ seq }) => seq)) : Number.POSITIVE_INFINITY;
    // The hash of the last line stands in no other: only who kept it elsewhere can tell.
    if (wrong === undefined && known < last.seq) {
      note(
        io,
        `No gateway runs for this log, and no anchor of its last line was given: whether line ${last.seq} is as it was written, and ` +
          "whether lines after it were cut off, cannot be seen.",
      );
    } else if (wrong === undefined && lines === 0 && client === undefined) {
      note(io, "No gateway runs for this log: whether lines were cut off cannot be seen.");
    }
  }
  return report.wrong === undefined ? Exit.ok : Exit.failure;
}

async function headOf(client: GatewayClient, io: Io): Promise<AuditHeadAnswer> {
  return (await client.get("/audit/head", io.signal)) as AuditHeadAnswer;
}

/** Where the log is, and the running gateway that knows of it. */
async function placeOf(
  path: string | undefined,
  source: GatewaySource,
  io: Io,
): Promise<{ readonly dir: string; readonly client: GatewayClient | undefined }> {
  const client = path === undefined ? await (await runningGateway()).find(source) : undefined;
  const head = client === undefined ? undefined : await headOf(client, io);
  const dir = path ?? head?.path ?? join(source.stateDir, "audit");
  if ((await auditFiles(dir)).length > 0) return { dir, client };
  throw new UserError(`There is no audit log in ${dir}.`, {
    hint: 'A config with "audit": {} has one. One that is kept elsewhere: --path DIR.',
  });
}

const UNITS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

function timeOf(option: string, text: string | undefined, nowMs: number): number | undefined {
  if (text === undefined) return undefined;
  const ago = /^(\d{1,6})([smhd])$/.exec(text);
  const atMs = ago === null ? Date.parse(text) : nowMs - Number(ago[1]) * (UNITS[ago[2] ?? ""] ?? 0);
  if (Number.isNaN(atMs)) throw usageError(`${option} ${text}: expected a time such as 2026-01-31, 2h or 7d.`);
  return atMs;
}

function anchorOf(text: string): { seq: number; hash: string; from: string } {
  const [, seq, hash] = /^(\d{1,15}):([\w-]{43})$/.exec(text) ?? [];
  if (seq === undefined || hash === undefined) {
    throw usageError(`--anchor ${text}: expected SEQ:HASH, as \`audit anchor\` in the log has it.`);
  }
  return { seq: Number(seq), hash, from: "--anchor" };
}

/** A line as one of a table for spreadsheets; the table's head where there is none. */
function csvLine(line: AuditLine | undefined): string {
  return csvRow(AUDIT_COLUMNS.map((column) => (line === undefined ? column : line[column])));
}
