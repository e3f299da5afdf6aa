// What `toolway state move` and `toolway state unmark` do, and what is said of it; loaded when one of them is asked for.

import type { EngineSettings } from "../../contracts/settings.js";
import {
  clearMark,
  findMarks,
  type MarkFound,
  type MarkPlaces,
  type MoveReport,
  moveState,
  type StatePlace,
} from "../gateway/move.js";
import type { GatewaySource } from "../gateway/port.js";
import { sourceFor } from "../gateway/source.js";
import { confirm } from "../line/ask.js";
import { Exit, type ExitCode, UserError, usageError } from "../line/errors.js";
import { type Io, note, print, printJson, shortPath } from "../line/io.js";
import { count, fittedTable, heading, styleOf } from "../text/print.js";

/** A person who sees nothing for longer wonders whether anything happens. */
const PROGRESS_MS = 2_000;

interface Named {
  readonly config: string | undefined;
  readonly state: string | undefined;
  readonly json: boolean;
}

export async function runMove(
  input: Named & { readonly to: StatePlace | undefined; readonly dryRun: boolean },
  io: Io,
): Promise<ExitCode> {
  const { to } = input;
  if (to === undefined) throw usageError("--to says where it is moved to: engine, or local.");
  const source = await sourceFor({ config: input.config, state: input.state }, io);
  const { engine, path } = await engineOf(source, io);
  if (engine === undefined) {
    throw new UserError(`${path === undefined ? "The built-in config" : shortPath(io, path)} has no "engine".`, {
      kind: "usage",
      hint: 'It is a key beside "mcpServers": docs/scale.md. For --to local it stays until the move is done.',
    });
  }
  let toldMs = performance.now();
  let isBegun = false;
  const tellCutOff = () => {
    if (!isBegun) return;
    note(io, "Cut off: nothing is lost, and nothing is marked as moved. Run the same line again, and it goes on.");
  };
  io.signal.addEventListener("abort", tellCutOff, { once: true });
  const report = await moveState({
    ...placesOf(source, io),
    engine,
    to,
    dryRun: input.dryRun,
    progress: (kind, done, total) => {
      isBegun = true;
      if (input.json || performance.now() - toldMs < PROGRESS_MS) return;
      toldMs = performance.now();
      note(io, `${kind}: ${done} of ${total} …`);
    },
  });
  io.signal.removeEventListener("abort", tellCutOff);
  if (input.json) printJson(io, { ...report, dryRun: input.dryRun });
  else {
    print(io, moveReportText(report, input.dryRun, to, io));
    if (report.moved && to === "local") note(io, 'Take "engine" out of the config before the gateway is started.');
  }
  return report.conflicts.length > 0 ? Exit.failure : Exit.ok;
}

export async function runUnmark(
  input: Named & { readonly of: StatePlace | undefined; readonly yes: boolean },
  io: Io,
): Promise<ExitCode> {
  const source = await sourceFor({ config: input.config, state: input.state }, io);
  const { engine } = await engineOf(source, io);
  const places: MarkPlaces = { ...placesOf(source, io), engine };
  const found = oneOf(await findMarks(places, input.of), input.of);
  const { where, mark, queued, place } = found;
  const risk =
    queued === 0
      ? "Nothing waits in it to be sent."
      : `${queued === 1 ? "A write or message" : `${queued} writes and messages`} in it would be sent from there too: a second time, where ${mark.other} has sent them.`;
  const what = { moved: "moved to", leaving: "being moved to", arriving: "has a part of what is moved from" };
  note(io, `${where}: ${what[mark.state]} ${mark.other}. ${risk}`);
  if (!(await confirm(io, "Use what is there again?", input.yes))) return Exit.failure;
  await clearMark(places, place);
  if (input.json) printJson(io, { unmarked: place, where, mark });
  else print(io, `Unmarked: ${where}.`);
  return Exit.ok;
}

function oneOf(found: readonly MarkFound[], asked: StatePlace | undefined): MarkFound {
  const [first, second] = found;
  if (first === undefined) {
    const places = { local: "The state directory is not", engine: "The config's engine is not" };
    const what = asked === undefined ? "Neither the state directory nor the config's engine is" : places[asked];
    throw new UserError(`${what} marked.`, { hint: "There is nothing to take away." });
  }
  if (second === undefined) return first;
  throw usageError("Both the state directory and the engine are marked.", "Say which: --of local, or --of engine.");
}

async function engineOf(
  { configPath: path }: GatewaySource,
  io: Io,
): Promise<{ engine: EngineSettings | undefined; path: string | undefined }> {
  if (path === undefined) return { engine: undefined, path };
  const { loadConfig } = await import("../../config/load.js");
  const { engine } = loadConfig(path, { env: { ...io.env }, home: io.home, wrongEntries: "keep" });
  return { engine, path };
}

function placesOf({ stateDir }: GatewaySource, io: Io) {
  return { stateDir, env: { ...io.env }, signal: io.signal, warn: (text: string) => note(io, text) };
}

/** So many are shown; the rest is counted. */
const CONFLICTS_SHOWN = 10;

/** What became of a move, for people. */
export function moveReportText(report: MoveReport, isDryRun: boolean, target: "engine" | "local", io: Io): string {
  const { from, to, kinds, conflicts, moved } = report;
  const rows = kinds.map(({ kind, count: all, hash, written, removed }) => {
    const there = all - written;
    const notes = [
      ...(written > 0 ? [`${written} ${moved ? "written" : "to write"}`] : []),
      ...(there > 0 ? [`${there} there already`] : []),
      ...(removed > 0 ? [`${removed} ${moved ? "removed" : "to remove"}, gone since`] : []),
    ];
    return [kind, String(all), all === 0 ? "" : hash, notes.join(", ")];
  });
  const head = heading(styleOf(io), ["KIND", "COUNT", "HASH", ""]);
  const lines = [`From ${from}`, `to ${to}`, "", fittedTable([head, ...rows], io), ""];
  if (conflicts.length > 0) {
    lines.push(`Nothing was moved. ${count(conflicts.length, "conflict")}:`);
    for (const { kind, key, why } of conflicts.slice(0, CONFLICTS_SHOWN)) lines.push(`  ${kind} ${key} ${why}`);
    if (conflicts.length > CONFLICTS_SHOWN) lines.push(`  and ${conflicts.length - CONFLICTS_SHOWN} more`);
    lines.push(
      "What is at the target is not written over. Remove what is wrong there, or take a target that is empty: another",
      '"prefix" in "engine", or another --state.',
    );
  } else if (isDryRun) lines.push("Nothing was written: this was a dry run.");
  else lines.push(...movedLines(report, target));
  return lines.join("\n");
}

function movedLines({ from, kinds }: MoveReport, target: "engine" | "local"): string[] {
  const all = kinds.reduce((sum, kind) => sum + kind.count, 0);
  const moved = `Moved and verified: ${all === 1 ? "one entry" : `${all} entries`}. What is in ${from} stays, and is marked: nothing starts on it`;
  // An engine has nothing that is one machine's own, so on the way back there is nothing of it to tell.
  if (target === "local") return [moved, "any more, or what is queued would be sent a second time."];
  return [
    moved,
    "any more, or what is queued would be sent a second time. What is one machine's own stays there: its audit log, history and",
    "logs of servers, the logins of the operator's page, answers to inputs, and the journal of what it shares.",
  ];
}
