// Where `join` finds the broker, the mailbox and its token: in a pairing word, in the line, or kept from a pairing before.

import { nearest } from "../../runtime/nearest.js";
import { stateRootFor } from "../../runtime/state-dir.js";
import { visible } from "../../runtime/visible.js";
import { type UserError, usageError } from "../line/errors.js";
import { type Io, note, shortPath } from "../line/io.js";
import { redeemWord } from "./pair.js";

interface JoinInput {
  readonly pair: string | undefined;
  readonly broker: string | undefined;
  readonly from: string | undefined;
}

export interface JoinPlace {
  readonly broker: string | undefined;
  readonly from: string | undefined;
  readonly token: string | undefined;
}

export async function joinPlace({ pair, broker, from }: JoinInput, io: Io): Promise<JoinPlace> {
  if (pair !== undefined) {
    if (broker !== undefined || from !== undefined) {
      throw usageError("--pair says where the broker is and whose tools are meant: leave --broker and --from out.");
    }
    const { worker, path } = await redeemWord(pair, io);
    note(io, `Paired with ${worker.mailbox}; the token is kept in ${shortPath(io, path)}.`);
    note(io, `From now on: \`toolway join --from ${worker.mailbox}\``);
    return { broker: worker.broker, from: worker.mailbox, token: worker.token };
  }
  const token = io.env["TOOLWAY_TOKEN"] ?? "";
  if (token !== "" || from === undefined) return { broker, from, token: token === "" ? undefined : token };
  const { keptWorkers } = await import("../../mailbox/pairing/kept-workers.js");
  const kept = keptWorkers(stateRootFor(io.env, io.home), from, broker);
  const [first, second] = kept;
  if (first !== undefined && second !== undefined) {
    const brokers = kept.map((one) => one.broker).join(", ");
    throw usageError(`You are paired with ${from} at several brokers: ${brokers}.`, "Name one with --broker.");
  }
  if (first !== undefined) return { broker: first.broker, from, token: first.token };
  if (broker === undefined) throw notPaired(from, await pairedMailboxes(io));
  return { broker, from, token: undefined };
}

/** The mailboxes that this user has paired with. */
export async function pairedMailboxes({ env, home }: Io): Promise<string[]> {
  const { allKeptWorkers } = await import("../../mailbox/pairing/kept-workers.js");
  const names = new Set(allKeptWorkers(stateRootFor(env, home)).map(({ mailbox }) => mailbox));
  return [...names].sort((a, b) => a.localeCompare(b));
}

/** Without a broker's address it is one that was paired with, or a slip of the name. */
function notPaired(from: string, paired: readonly string[]): UserError {
  const names = paired.map(visible);
  const near = nearest(from, names);
  const first =
    names.length === 0
      ? "Nothing is paired here yet."
      : `${near === undefined ? "" : `Did you mean ${near}? `}Paired here: ${names.join(", ")}.`;
  return usageError(
    `--broker URL is missing, and this machine is not paired with ${from}.`,
    `${first} \`toolway join --pair WORD\` pairs it, with the word that \`toolway share --pair\` printed there.`,
  );
}
