// Mailboxes as a person reads them: tables of what is in them, and one line that sums them up. Ids and reasons are other
// people's words, and are made visible.

import type {
  DeadLetterSummary,
  MailboxesStatus,
  MailboxSummary,
  MessageSummary,
  Page,
} from "../../contracts/status.js";
import { visible } from "../../runtime/visible.js";
import type { Io } from "../line/io.js";
import { clockTime, count, fittedTable, heading, longDuration, oneLine, type Style, styleOf } from "./print.js";

/** Longer ids are cut in the tables; `--json` has them whole. */
const ID_WIDTH = 60;
const REASON_WIDTH = 200;

export function mailboxTable({ items, total }: Page<MailboxSummary>, offset: number, io: Io, nowMs: number): string {
  const style = styleOf(io);
  const head = heading(style, ["MAILBOX", "WAITING", "LEASED", "DEAD", "OLDEST", "CONNECTED"]);
  const rows = items.map((one) => [
    style.bold(word(one.mailbox)),
    grouped(one.waiting),
    grouped(one.leased),
    one.dead === 0 ? "0" : style.red(grouped(one.dead)),
    one.oldestAt === undefined ? "-" : ago(one.oldestAt, nowMs),
    connectedText(one, style, nowMs),
  ]);
  return withRest(fittedTable([head, ...rows], io, { whole: ["MAILBOX"] }), items.length, total, offset);
}

export function messageTable({ items, total }: Page<MessageSummary>, offset: number, io: Io, nowMs: number): string {
  const style = styleOf(io);
  const head = heading(style, ["ID", "FROM", "KIND", "BYTES", "AGE", "ENDS IN", "STATE", "FAILURES"]);
  const rows = items.map(({ id, from, kind, bytes, at, leftMs, state, failures }) => [
    style.bold(word(id)),
    word(from),
    word(kind),
    grouped(bytes),
    ago(at, nowMs),
    longDuration(leftMs),
    state === "leased" ? style.green(state) : state,
    failures === 0 ? "0" : style.yellow(grouped(failures)),
  ]);
  return withRest(fittedTable([head, ...rows], io, { whole: ["ID", "STATE"] }), items.length, total, offset);
}

export function deadLetterTable(
  { items, total }: Page<DeadLetterSummary>,
  offset: number,
  io: Io,
  nowMs: number,
): string {
  const style = styleOf(io);
  const head = heading(style, ["ID", "FROM", "KIND", "FAILED", "REASON"]);
  const rows = items.map(({ id, from, kind, failedAt, reason }) => [
    style.bold(word(id)),
    word(from),
    word(kind),
    `${ago(failedAt, nowMs)} ago`,
    oneLine(visible(reason), REASON_WIDTH),
  ]);
  return withRest(fittedTable([head, ...rows], io, { whole: ["ID"] }), items.length, total, offset);
}

/** `3 waiting, 1 leased, 0 dead letters; 2 connections; the oldest 4 min in studio`. */
export function mailboxesLine(status: MailboxesStatus, nowMs: number): string {
  const { inUse, waiting, leased, dead, connections, oldest, problem, nextTryInMs = 0 } = status;
  if (problem !== undefined) {
    return `cannot be kept now: ${oneLine(visible(problem), REASON_WIDTH)} (next try in ${Math.ceil(nextTryInMs / 1000)} s)`;
  }
  const parts = [
    `${count(inUse, "mailbox").replace("mailboxs", "mailboxes")} in use`,
    `${grouped(waiting)} waiting, ${grouped(leased)} leased, ${counted(dead, "dead letter")}`,
    count(connections, "connection"),
  ];
  if (oldest !== undefined) parts.push(`the oldest ${ago(oldest.at, nowMs)} in ${word(oldest.mailbox)}`);
  return parts.join("; ");
}

/** The same of one mailbox. */
export function mailboxLine(one: MailboxSummary, nowMs: number): string {
  const { mailbox, waiting, leased, dead, connections, oldestAt } = one;
  const parts = [
    `${word(mailbox)}: ${grouped(waiting)} waiting, ${grouped(leased)} leased, ${counted(dead, "dead letter")}`,
    count(connections, "connection"),
  ];
  if (oldestAt !== undefined) parts.push(`the oldest ${ago(oldestAt, nowMs)}`);
  return parts.join("; ");
}

/** Ids are shown so that what is hidden in them is seen. */
export function word(text: string): string {
  return oneLine(visible(text), ID_WIDTH);
}

/** `9,950`. */
export function grouped(n: number): string {
  return n.toLocaleString("en");
}

/** `1 message`, `9,950 messages`. */
export function counted(n: number, noun: string): string {
  return `${grouped(n)} ${noun}${n === 1 ? "" : "s"}`;
}

function connectedText({ connections, since }: MailboxSummary, style: Style, nowMs: number): string {
  const when = since === undefined ? "" : ` since ${clockTime(since, nowMs)}`;
  if (connections > 0) return style.green(`${grouped(connections)}${when === "" ? "" : `,${when}`}`);
  return since === undefined ? "-" : `away${when}`;
}

function ago(iso: string, nowMs: number): string {
  return longDuration(Math.max(0, nowMs - Date.parse(iso)));
}

function withRest(text: string, shown: number, total: number, offset: number): string {
  const more = total - offset - shown;
  return more > 0 ? `${text}\n… and ${grouped(more)} more (--offset ${offset + shown})` : text;
}
