// What a gateway that keeps mailboxes loads, in one piece.

import { systemClock } from "../../runtime/clock.js";
import { ElapsedClock } from "../elapsed-clock.js";
import { Broker, type BrokerOptions } from "./broker.js";

export { openLocalLine } from "../peer/local-line.js";
export { MailboxOperator } from "./operator.js";
export { PeerConnection } from "./peer-connection.js";

export function openBroker(options: Omit<BrokerOptions, "clock">): Broker {
  return new Broker({ ...options, clock: elapsedClock() });
}

export function elapsedClock(): ElapsedClock {
  return new ElapsedClock(systemClock);
}
