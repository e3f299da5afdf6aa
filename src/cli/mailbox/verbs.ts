// What the verbs about mailboxes do: they ask a gateway or a broker that runs, show what is in its mailboxes, and carry
// out what the operator wants of it. What messages say is shown by none of them.

import type {
  DeadLetterSummary,
  MailboxesStatus,
  MailboxSummary,
  MessageSummary,
  Page,
} from "../../contracts/status.js";
import { nearest } from "../../runtime/nearest.js";
import { shellWord } from "../../runtime/words/shell-word.js";
import type { GatewayClient } from "../gateway/port.js";
import { demandGateway } from "../gateway/which.js";
import { confirm, declined } from "../line/ask.js";
import { Exit, type ExitCode, usageError } from "../line/errors.js";
import { type Io, note, print, printJson } from "../line/io.js";
import { MAX_LIMIT, rowsOf, USUAL_LIMIT } from "../line/page-limits.js";
import {
  counted,
  deadLetterTable,
  grouped,
  mailboxesLine,
  mailboxLine,
  mailboxTable,
  messageTable,
  word,
} from "../text/mailboxes.js";
import { watchLine } from "../text/watch.js";

/** More than a broker keeps. */
const MAX_OFFSET = 999_999_999;

export interface MailboxVerbInput {
  readonly config: string | undefined;
  readonly state: string | undefined;
  readonly json: boolean;
}

interface PageInput extends MailboxVerbInput {
  readonly limit: string | undefined;
  readonly offset: string | undefined;
}

interface MailboxInput extends MailboxVerbInput {
  readonly mailbox: string;
}

interface ChangeInput extends MailboxInput {
  readonly from: string | undefined;
  readonly yes: boolean;
}

interface RetryInput extends ChangeInput {
  readonly id: string;
}

interface DropInput extends ChangeInput {
  readonly id: string | undefined;
  readonly all: boolean;
  readonly dead: boolean;
}

interface WatchInput extends MailboxVerbInput {
  readonly mailbox: string | undefined;
}

export async function list(input: PageInput, io: Io): Promise<ExitCode> {
  const range = rangeOf(input);
  const client = await demandMailboxes(input, io);
  const page = (await client.get(`/mailboxes?${query(range)}`, io.signal)) as Page<MailboxSummary>;
  if (input.json) {
    printJson(io, { mailboxes: page.items, total: page.total });
    return Exit.ok;
  }
  if (page.total === 0) note(io, "No mailbox is in use: nothing was sent, and nobody is connected.");
  else print(io, mailboxTable(page, range.offset, io, Date.now()));
  const failed = page.items.find(({ dead }) => dead > 0);
  if (failed !== undefined) note(io, `\`toolway mailbox dead ${shellWord(failed.mailbox)}\` shows what failed there.`);
  return Exit.ok;
}

export async function show(input: MailboxInput & PageInput, io: Io): Promise<ExitCode> {
  const range = rangeOf(input);
  const client = await demandMailboxes(input, io);
  const path = `/mailboxes/messages?${query({ mailbox: input.mailbox, ...range })}`;
  const page = (await ofMailbox(client, input.mailbox, io, () => client.get(path, io.signal))) as Page<MessageSummary>;
  if (input.json) printJson(io, { mailbox: input.mailbox, messages: page.items, total: page.total });
  else if (page.total === 0) note(io, `Nothing is in ${word(input.mailbox)}.`);
  else print(io, messageTable(page, range.offset, io, Date.now()));
  return Exit.ok;
}

export async function dead(input: MailboxInput & PageInput, io: Io): Promise<ExitCode> {
  const range = rangeOf(input);
  const client = await demandMailboxes(input, io);
  const path = `/mailboxes/dead?${query({ mailbox: input.mailbox, ...range })}`;
  const found = await ofMailbox(client, input.mailbox, io, () => client.get(path, io.signal));
  const page = found as Page<DeadLetterSummary>;
  if (input.json) printJson(io, { mailbox: input.mailbox, deadLetters: page.items, total: page.total });
  else if (page.total === 0) note(io, `${word(input.mailbox)} has no dead letters.`);
  else print(io, deadLetterTable(page, range.offset, io, Date.now()));
  return Exit.ok;
}

export async function retry(input: RetryInput, io: Io): Promise<ExitCode> {
  const { mailbox, id, from } = input;
  const client = await demandMailboxes(input, io);
  const question = `It may have had its effect already. Send ${word(id)} to ${word(mailbox)} again, under a new id?`;
  if (!(await confirm(io, question, input.yes))) return declined(io);
  const body = { mailbox, id, ...(from === undefined ? {} : { from }) };
  const sent = await ofMailbox(client, mailbox, io, () => client.post("/mailboxes/retry", body, io.signal));
  const made = sent as { id: string; from: string };
  if (input.json) printJson(io, { mailbox, retried: id, id: made.id, from: made.from });
  else {
    print(io, `Sent again to ${word(mailbox)} as ${made.id}.`);
    note(io, `Its answer goes to ${word(made.from)}, which has been told before that ${word(id)} failed.`);
  }
  return Exit.ok;
}

export async function drop(input: DropInput, io: Io): Promise<ExitCode> {
  const { mailbox, id, from, all, dead } = input;
  if (id === undefined && !all) throw usageError("Which message?", "Name its id, or say --all.");
  if (id !== undefined && all) throw usageError(`Either ${id} or --all.`);
  const client = await demandMailboxes(input, io);
  const found = await ofMailbox(client, mailbox, io, () =>
    client.get(`/mailboxes/summary?${query({ mailbox })}`, io.signal),
  );
  const what = id === undefined ? allOf(found as MailboxSummary, dead, from) : word(id);
  if (!(await confirm(io, `Drop ${what} from ${word(mailbox)} for good?`, input.yes))) return declined(io);
  const body = {
    mailbox,
    deadOnly: dead,
    ...(id === undefined ? {} : { id }),
    ...(from === undefined ? {} : { from }),
  };
  const dropped = (await client.post("/mailboxes/drop", body, io.signal)) as {
    messages: number;
    deadLetters: number;
  };
  if (input.json) printJson(io, { mailbox, ...dropped });
  else {
    const { messages, deadLetters } = dropped;
    print(io, `Dropped ${counted(messages, "message")} and ${counted(deadLetters, "dead letter")}.`);
  }
  return Exit.ok;
}

export async function watch(input: WatchInput, io: Io): Promise<ExitCode> {
  const client = await demandMailboxes(input, io);
  const path =
    input.mailbox === undefined ? "/mailboxes/totals" : `/mailboxes/summary?${query({ mailbox: input.mailbox })}`;
  const look = () => client.get(path, io.signal) as Promise<MailboxesStatus | MailboxSummary>;
  const { mailbox } = input;
  return watchLine(io, input.json, mailbox === undefined ? look : () => ofMailbox(client, mailbox, io, look), line);
}

function line(now: MailboxesStatus | MailboxSummary, nowMs: number): { text: string; counts: string } {
  const { waiting, leased, dead, connections } = now;
  const isAll = "inUse" in now;
  const text = isAll ? mailboxesLine(now, nowMs) : mailboxLine(now, nowMs);
  return { text, counts: JSON.stringify([waiting, leased, dead, connections, isAll ? now.inUse : 1]) };
}

function allOf({ waiting, leased, dead }: MailboxSummary, deadOnly: boolean, from: string | undefined): string {
  const messages = deadOnly ? "" : `${counted(waiting + leased, "message")} (${grouped(leased)} being worked at) and `;
  const whose = from === undefined ? "all" : `what ${word(from)} sent of`;
  return `${whose} ${messages}${counted(dead, "dead letter")}`;
}

export const demandMailboxes = (input: Omit<MailboxVerbInput, "json">, io: Io): Promise<GatewayClient> =>
  demandGateway(input, io, {
    message: "No gateway or broker runs here, and mailboxes are asked of one that does.",
    hint: "`toolway broker` starts one. Another's: add --config FILE, or --state DIR.",
    orBroker: true,
  });

/** Where there is no such mailbox, says which one may have been meant. */
export async function ofMailbox<T>(client: GatewayClient, mailbox: string, io: Io, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Error) || !error.message.startsWith("There is no mailbox")) throw error;
    const { names } = (await client.get("/mailboxes/names", io.signal)) as { names: readonly string[] };
    const near = nearest(mailbox, names);
    throw usageError(
      error.message,
      near === undefined ? "`toolway mailbox list` shows them." : `Did you mean ${near}?`,
    );
  }
}

function rangeOf(input: PageInput): { limit: number; offset: number } {
  const limit = rowsOf("--limit", input.limit, USUAL_LIMIT, MAX_LIMIT);
  return { limit, offset: rowsOf("--offset", input.offset, 0, MAX_OFFSET) };
}

function query(values: Readonly<Record<string, unknown>>): URLSearchParams {
  return new URLSearchParams(Object.entries(values).map(([key, value]): [string, string] => [key, String(value)]));
}
