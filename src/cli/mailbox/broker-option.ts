// The address of a broker as an option has it.

import { isLoopback } from "../../runtime/addresses.js";
import { usageError } from "../line/errors.js";
import { type Io, note } from "../line/io.js";

/** Throws what to write instead. */
export function brokerOption(option: string, text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol === "ws:" || url?.protocol === "wss:") return url.href;
  throw usageError(`${option}: expected an address that starts with ws:// or wss://.`);
}

/** A broker of ours that others reach: what is open to them, and what can be read on the way. */
export function noteOpened(host: string, isEncrypted: boolean, io: Io): void {
  if (isLoopback(host)) return;
  const opened = `The broker listens on ${host}: whoever reaches this machine there may come to its mailboxes with a token, or try pairing codes.`;
  note(
    io,
    isEncrypted ? opened : `${opened} It is without TLS, so that tokens and messages cross the network unencrypted.`,
  );
}

export function noteUnencrypted(broker: string, io: Io): void {
  const { protocol, hostname } = new URL(broker);
  if (protocol !== "ws:" || isLoopback(hostname)) return;
  note(io, "The token and all messages go to this broker unencrypted: use wss://.");
}
