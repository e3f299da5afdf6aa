// What the outbox needs of the gateway that it is part of: a store, a clock, the way to servers, and whoever has a say.

import type { OwnToolName } from "../contracts/names.js";
import type { OutboxLimits, OutboxTerms, Receipt, WriteEnded } from "../contracts/outbox.js";
import type { AgentCall } from "../contracts/service.js";
import type { Store } from "../contracts/store.js";
import type { Reply } from "../protocol/reply.js";
import type { Clock } from "../runtime/clock.js";
import type { LanesOptions } from "./lanes/lanes.js";
import type { Result } from "./lanes/step.js";
import type { WriteFacts } from "./lanes/write.js";

/** May this write go to its server now? */
export type DeliveryVerdict = Extract<Result, { kind: "denied" | "revoked" | "quarantine" }> | undefined;

/** Is told the receipt without its result. */
export type ChangeListener = (principal: string, receipt: Receipt) => void;

/** Of a call that another gateway passed on. */
export interface PassedOn {
  /** The key that was made for it there, where its agent gave none. */
  readonly minted?: string;
  /** Its server's name means another server there. */
  readonly isOther?: boolean;
  /** What the config says of the tool there. */
  readonly terms?: OutboxTerms | undefined;
}

export interface OutboxParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: () => number;
  readonly limits: OutboxLimits;
  /** The largest result that is kept; MAX_KEPT_RESULT_BYTES where it is absent. */
  readonly maxResultBytes?: number | undefined;
  /** What ids of receipts begin with, where this outbox is one of several. */
  readonly idPrefix?: string | undefined;
  /** What servers that send the same credential have in common; undefined where a server has its own, or none. */
  readonly credentialOf?: LanesOptions["credentialOf"];
  /** How long a write has to wait for its server's budget. */
  readonly pace?: LanesOptions["pace"];
  /** What the config says of a tool now; undefined where its calls are not kept. */
  readonly terms: (server: string, tool: OwnToolName) => OutboxTerms | undefined;
  /** Which server a name means here; undefined for one that is not in the config. */
  readonly targetOf?: ((server: string) => string | undefined) | undefined;
  /** Sends a call to a server, past policy. Throws a Fault where that cannot be. */
  readonly send: (call: AgentCall, server: string, tool: OwnToolName) => void;
  /** Where the machine behind a mailbox writes down what it is sent, where that is known. */
  readonly journalOf?: ((server: string) => string | undefined) | undefined;
  /** Asked before each delivery: what was allowed when it was taken may not be any more. */
  readonly judge: (write: WriteFacts) => DeliveryVerdict;
  /** Gives back what was charged for a call that is not sent: it was not written down, or it is known by its key. */
  readonly giveBack?: ((call: AgentCall, server: string) => void) | undefined;
  /**
   * Where a call could not be written down since another gateway keeps it now: it is taken there. False for any other error. Absent
   * where no other gateway ever keeps what is written here.
   */
  readonly passOn?: ((call: AgentCall, write: WriteFacts, error: unknown) => boolean) | undefined;
  /** Whether the principal is one that a token was made for. */
  readonly hasToken: (principal: string) => boolean;
  /** What an agent is given in place of a result. */
  readonly receiptReply: (call: AgentCall, receipt: Receipt) => Reply;
  /** What an agent is given as a result: it may be told of what became of its earlier writes. */
  readonly resultReply?: ((call: AgentCall, reply: Reply) => Reply) | undefined;
  readonly log: (level: "info" | "warn", text: string) => void;
  readonly ended?: WriteEnded | undefined;
  /** Nobody can ask for this receipt any more. */
  readonly forgot?: ((id: string) => void) | undefined;
}
