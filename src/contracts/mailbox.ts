// A message of a mailbox that asks for something, between whoever took it from the broker (mailbox/share) and whoever
// answers it (endpoint/mailbox). Neither knows the other.

import type { CallStart, Principal } from "./caller.js";

/** The answer to a message: a JSON-RPC response as bytes, or the whole body of a reply as JSON text. */
export type MailboxAnswer =
  | { readonly kind: "response"; readonly bytes: Buffer }
  | { readonly kind: "body"; readonly json: string };

/** One message. It is answered exactly once, unless it was cancelled. */
export interface MailboxCall {
  /** Who sent it, as the broker says. */
  readonly principal: Principal;
  /** The body of the message: JSON text as it was written. */
  readonly body: string;
  /** Its server is sent the call when this has resolved. Rejects with a Fault where it must not be sent. */
  begin(start: CallStart): Promise<void>;
  /** Passes on a JSON-RPC notification of this call; it is dropped where nobody hears it. */
  notify(text: string): void;
  reply(answer: MailboxAnswer): void;
  /** Set by whoever answers; called when the answer is no longer wanted. No reply follows then. */
  onCancel: ((reason: string | undefined) => void) | undefined;
}

/** Who answers messages. Never throws. */
export interface MailboxService {
  serve(call: MailboxCall): void;
  /** An agent's notification, which nobody answers; `body` is JSON text as it was written. */
  notified(principal: Principal, body: string): void;
}
