// Pairing from the command line: a word for a mailbox, made at its broker, and the token that somebody gets for it.

import { hostname } from "node:os";
import type { PairedWorker } from "../../mailbox/pairing/redeem.js";
import { stateRootFor } from "../../runtime/state-dir.js";
import { Exit, type ExitCode, usageError } from "../line/errors.js";
import { type Io, note, print, printJson, shortPath } from "../line/io.js";
import { longDuration } from "../text/print.js";
import { brokerOption } from "./broker-option.js";
import { demandMailboxes, type MailboxVerbInput, ofMailbox } from "./verbs.js";

interface PairInput extends MailboxVerbInput {
  readonly mailbox: string;
  readonly role: string | undefined;
  readonly at: string | undefined;
}

export async function pair({ mailbox, role, at, ...input }: PairInput, io: Io): Promise<ExitCode> {
  const place = at === undefined ? undefined : brokerOption("--at", at);
  const client = await demandMailboxes(input, io);
  const body = { mailbox, ...(role === undefined ? {} : { role }) };
  const made = (await ofMailbox(client, mailbox, io, () => client.post("/mailboxes/pair", body, io.signal))) as {
    code: string;
    expiresInMs: number;
    broker: string | undefined;
  };
  const broker = place ?? made.broker;
  if (broker === undefined) throw usageError("This gateway listens nowhere: nobody could come by a code.");
  const { pairWord } = await import("../../mailbox/pairing/code-text.js");
  const word = pairWord(broker, made.code);
  if (input.json) printJson(io, { mailbox, pair: word, expiresInMs: made.expiresInMs });
  else {
    print(io, word);
    note(
      io,
      `Good once, for ${longDuration(made.expiresInMs)}: \`toolway token redeem ${word}\` on the other machine.`,
    );
  }
  return Exit.ok;
}

interface RedeemInput {
  readonly word: string;
  readonly json: boolean;
}

export async function redeem({ word, json }: RedeemInput, io: Io): Promise<ExitCode> {
  const { worker, path } = await redeemWord(word, io);
  if (json) printJson(io, { ...worker, file: path });
  else {
    print(io, worker.token);
    note(io, `For ${worker.mailbox} at ${worker.broker}, as ${worker.id}. It is kept in ${shortPath(io, path)}.`);
  }
  return Exit.ok;
}

/** The token that a word gives, kept for the next time. Throws what to do about it. */
export async function redeemWord(word: string, io: Io): Promise<{ worker: PairedWorker; path: string }> {
  const [{ readPairWord }, { keepWorker }, { redeemCode }] = await Promise.all([
    import("../../mailbox/pairing/code-text.js"),
    import("../../mailbox/pairing/kept-workers.js"),
    import("../../mailbox/pairing/redeem.js"),
  ]);
  const read = readPairWord(word);
  if (read === undefined) {
    throw usageError(
      "That is no pairing word: it is the broker's address and a code, as 127.0.0.1:7440/ABCD-EFGH-JKMN.",
      "`toolway share --pair` prints one, and `toolway mailbox pair MAILBOX` at the broker.",
    );
  }
  const worker = await redeemCode(read, { name: machineName(), signal: io.signal });
  return { worker, path: keepWorker(stateRootFor(io.env, io.home), worker) };
}

/** What this machine is called, as far as a token's id can say it. */
export function machineName(): string {
  const [first = ""] = hostname().split(".");
  return first.replace(/[^A-Za-z0-9_-]/g, "-").slice(0, 32);
}
