// What a gateway loads beside the broker where it shares mailboxes with others, in one piece.

export { SharedBroker } from "./shared-broker.js";
export { SharedOperator } from "./shared-operator.js";
export { SharedPeerConnection } from "./shared-peer-connection.js";
