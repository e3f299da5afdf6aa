// What a gateway loads of the outbox, in one piece and only when there is something to keep.

export { OutboxOperations } from "./operator.js";
export { Outbox } from "./outbox.js";
export { LocalReceiptHandler } from "./receipts.js";
