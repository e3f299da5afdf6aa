// The engine that several gateways share, as a gateway sees it: what is kept there in place of its own disk, and whether it
// is there. Nothing else of Toolway knows which engine it is.

import type { Store } from "../store.js";
import type { SharedWindows } from "./budgets.js";
import type { Partitions } from "./partitions.js";
import type { Peers } from "./peers.js";

export type EngineState =
  | "connecting"
  | "connected"
  /** Nobody answers. */
  | "away"
  /** Somebody answers and does not let us in, or is too old for us. */
  | "refused"
  /** For good. */
  | "closed";

export interface EngineStatus {
  readonly state: EngineState;
  /** By the clock of whoever asks, as the other time. */
  readonly sinceMs: number;
  /** `host:port` of the node that we are, or were last, connected to. */
  readonly node: string | undefined;
  readonly version: string | undefined;
  /** When the next node is dialled; undefined while connected or closed. */
  readonly nextTryMs: number | undefined;
  /** Why it is not connected, in a sentence. */
  readonly problem: string | undefined;
  /** Why it takes no writes though it is connected, in a sentence: it has no room. */
  readonly full: string | undefined;
  /** Since when it tells nothing though it is connected, and why that may be: none of its nodes leads. Longer than any election. */
  readonly mute: { readonly sinceMs: number; readonly why: string } | undefined;
}

export interface GatewayEngine {
  /** This gateway, and another with each start: who holds a lease, and where others find it. */
  readonly self: string;
  /** Maps that all gateways read from memory and write by comparing: one key a write. */
  readonly shared: Store;
  /** Who acts for what, where only one may. */
  readonly partitions: Partitions;
  /** Who keeps which mailboxes. Apart from the others: those who keep some may be brokers without servers, and not all. Opened once. */
  mailPartitions(): Promise<Partitions>;
  /** The other gateways, by their `self`. */
  readonly peers: Peers;
  /** Counts the calls of all gateways together. */
  readonly budgets: SharedWindows;
  status(): EngineStatus;
  /**
   * Undefined while what is in memory counts as current. Else the engine has been away for too long for what it says of tokens
   * to be taken for granted, and this is in how many milliseconds to ask again.
   */
  staleForMs(): number | undefined;
  /** Whether agents are to be sent elsewhere while it is away. */
  readonly isNeededToBeReady: boolean;
  /** Tells each change of the status, until what it returns is called. */
  watch(listener: (status: EngineStatus) => void): () => void;
  /** What is to be done before it is closed, while it can still be written to. */
  onClose(act: () => Promise<void>): void;
  close(): Promise<void>;
}
