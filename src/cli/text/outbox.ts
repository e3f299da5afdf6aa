// Kept writes as a person reads them: a table of them, one with all that is known, and a line that sums them up. Why a
// write waits is other people's words, and is made visible.

import type { OutboxEntry, OutboxLane, OutboxStatus } from "../../contracts/outbox.js";
import { visible } from "../../runtime/visible.js";
import { sentence } from "../../runtime/words/sentence.js";
import { shellWord } from "../../runtime/words/shell-word.js";
import type { Io } from "../line/io.js";
import { grouped, word } from "./mailboxes.js";
import { count, fittedTable, heading, longDuration, oneLine, type Style, styleOf, table } from "./print.js";

const WHY_WIDTH = 200;

/** What a list has of a write; its result is shown by `show` alone. */
export type ListedWrite = Omit<OutboxEntry, "result" | "error" | "life">;

export function writeTable(writes: readonly ListedWrite[], io: Io, nowMs: number): string {
  const style = styleOf(io);
  const head = heading(style, ["RECEIPT", "STATE", "SERVER", "TOOL", "PRINCIPAL", "AGE", "TRIES", "WHY"]);
  const rows = writes.map((one) => [
    style.bold(word(one.id)),
    stateText(one, style),
    word(one.server),
    word(one.tool),
    word(one.principal),
    longDuration(Math.max(0, nowMs - one.takenMs)),
    grouped(one.attempts),
    oneLine(visible(one.heldFor ?? one.why ?? (isBehind(one) ? "others of its lane are before it" : "")), WHY_WIDTH),
  ]);
  return fittedTable([head, ...rows], io, { whole: ["RECEIPT", "STATE", "AGE"] });
}

/** It is not tried before those are over, whatever its own next try was set to. */
function isBehind({ state, position }: ListedWrite): boolean {
  return state === "queued" && (position ?? 0) > 0;
}

export function writeText(entry: OutboxEntry, io: Io, nowMs: number): string {
  const style = styleOf(io);
  const ageOf = (ms: number) => Math.max(0, nowMs - ms);
  const ago = (ms: number) =>
    `${ageOf(ms) < 1_000 ? "just now" : `${longDuration(ageOf(ms))} ago`} (${new Date(ms).toISOString()})`;
  const facts: string[][] = [
    ["receipt", style.bold(word(entry.id))],
    [
      "state",
      `${stateText(entry, style)} for ${longDuration(ageOf(entry.sinceMs))} (since ${new Date(entry.sinceMs).toISOString()})`,
    ],
    ["call", `${word(entry.tool)} of ${word(entry.server)}, by ${word(entry.principal)}`],
    ["lane", entry.lane === "" ? "none" : word(entry.lane)],
    ["key", word(entry.idempotencyKey)],
    ["taken", ago(entry.takenMs)],
    ["tries", grouped(entry.attempts)],
    ["bytes", grouped(entry.bytes)],
  ];
  if (entry.position !== undefined) facts.push(["before it", grouped(entry.position)]);
  if (entry.nextTryMs !== undefined && !isBehind(entry))
    facts.push(["next try", `in ${longDuration(Math.max(0, entry.nextTryMs - nowMs))}`]);
  for (const { atMs, state, why, times = 1 } of entry.life ?? []) {
    const often = times === 1 ? "" : `, ${grouped(times)} times`;
    facts.push([
      "then",
      `${state}${often}, ${times === 1 ? "" : "the first "}${ago(atMs)}${why === undefined ? "" : `: ${visible(why)}`}`,
    ]);
  }
  if (entry.why !== undefined) facts.push(["why", visible(entry.why)]);
  if (entry.heldFor !== undefined) facts.push(["held", style.red(visible(entry.heldFor))]);
  if (entry.result !== undefined) facts.push(["result", visible(entry.result)]);
  const { lostBytes } = entry;
  if (lostBytes !== undefined) {
    facts.push(["result", `not kept${lostBytes === 0 ? "" : `: it had ${grouped(lostBytes)} bytes`}`]);
  }
  if (entry.error !== undefined) facts.push(["error", visible(entry.error)]);
  return table(facts);
}

export function laneTable(lanes: readonly OutboxLane[], io: Io, nowMs: number): string {
  const style = styleOf(io);
  const head = heading(style, ["SERVER", "LANE", "WAITING", "OLDEST", "HELD"]);
  const rows = lanes.map(({ server, lane, depth, oldestMs, heldFor }) => [
    style.bold(word(server)),
    word(lane),
    grouped(depth),
    oldestMs === undefined ? "-" : longDuration(Math.max(0, nowMs - oldestMs)),
    heldFor === undefined ? "-" : style.red(oneLine(visible(heldFor), WHY_WIDTH)),
  ]);
  return fittedTable([head, ...rows], io, { whole: ["SERVER", "LANE"] });
}

/** `3 waiting, the oldest 4 min; 1 lane on hold; 2 of unknown outcome`. */
export function outboxLine({ waiting, oldestAt, heldCount, unknown }: OutboxStatus, nowMs: number): string {
  const age = oldestAt === undefined ? "" : `, the oldest ${longDuration(Math.max(0, nowMs - Date.parse(oldestAt)))}`;
  const parts = [`${grouped(waiting)} waiting${age}`];
  if (heldCount > 0) parts.push(`${count(heldCount, "lane")} on hold`);
  if (unknown > 0) parts.push(`${grouped(unknown)} of unknown outcome`);
  return parts.join("; ");
}

/** What does not go on by itself, and what to do about it. */
export function heldLines({ held, heldCount, unknown }: OutboxStatus): string[] {
  const lines = held.map(
    ({ server, lane, depth, why }) =>
      `outbox: ${count(depth, "call")} to ${word(server)} wait${depth === 1 ? "s" : ""}${lane === "" ? "" : ` in lane ${word(lane)}`}: ${sentence(visible(why))}`,
  );
  if (heldCount > held.length) lines.push(`outbox: and ${grouped(heldCount - held.length)} more lanes on hold.`);
  if (unknown > 0) {
    lines.push(
      `outbox: ${count(unknown, "call")} of unknown outcome: \`toolway outbox list --only unknown\` shows them, \`toolway outbox resolve\` settles one.`,
    );
  }
  return lines;
}

/** What to do next about one write. */
export function adviceOf({ id, state, heldFor, server }: ListedWrite): string | undefined {
  if (state === "unknown") {
    return `Look at the server whether it was done, then: \`toolway outbox resolve ${shellWord(id)} --done\`, --failed or --again.`;
  }
  if (state === "failed" || state === "expired") return `\`toolway outbox retry ${shellWord(id)}\` tries it again.`;
  return heldFor === undefined
    ? undefined
    : `\`toolway outbox release ${shellWord(server)}\` lets what an operator held go on.`;
}

function stateText({ state, heldFor }: Pick<OutboxEntry, "state" | "heldFor">, style: Style): string {
  if (heldFor !== undefined) return style.red(`${state}, held`);
  if (state === "done") return style.green(state);
  return state === "queued" || state === "sending" || state === "cancelled" ? state : style.red(state);
}
