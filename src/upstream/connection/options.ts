// What a connection is made of, and whom it tells.

import type { Caller } from "../../contracts/caller.js";
import type { ServerSpec } from "../../contracts/server-spec.js";
import type { Fault } from "../../protocol/errors.js";
import type { NotificationMessage } from "../../protocol/message.js";
import type { HandshakeOffer } from "../era/handshake.js";
import type { Link, LinkEvents } from "../link/link.js";
import type { ModernParts } from "../modern/side.js";
import type { Breaker } from "../supervise/breaker.js";
import type { Returns } from "./endings.js";

export interface ConnectionEvents extends Returns {
  /** A notification that is not progress: `flight` is the call it belongs to, where that can be told. */
  onNotification(message: NotificationMessage, caller: Caller | undefined): void;
  /** The connection ended by itself. Calls in flight have been answered. */
  onClosed(fault: Fault): void;
}

export interface ConnectionOptions {
  readonly spec: ServerSpec;
  /** The one agent of a connection that is not shared. */
  readonly owner: Caller | undefined;
  readonly offer: HandshakeOffer;
  readonly now: () => number;
  /** Where what came and was of no use is counted: broken lines, replies nobody waits for. Outlives the connection. */
  readonly noise: Noise;
  readonly makeLink: (events: LinkEvents) => Link;
  readonly modern?: ModernParts | undefined;
  readonly breaker: Breaker;
}

export interface Noise {
  count: number;
  sample: string | undefined;
}
