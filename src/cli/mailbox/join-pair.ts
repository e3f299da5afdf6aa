// Where `join` finds the broker, the mailbox and its token: in a pairing word, in the line, or kept from a pairing before.

import { stateRootFor } from "../../runtime/state-dir.js";
import { usageError } from "../line/errors.js";
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
  return first === undefined ? { broker, from, token: undefined } : { broker: first.broker, from, token: first.token };
}
