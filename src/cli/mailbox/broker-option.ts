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

export function noteUnencrypted(broker: string, io: Io): void {
  const { protocol, hostname } = new URL(broker);
  if (protocol !== "ws:" || isLoopback(hostname)) return;
  note(io, "The token and all messages go to this broker unencrypted: use wss://.");
}
