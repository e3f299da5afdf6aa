// What a gateway loads beside the outbox where it shares one with others, in one piece.

export { SharedOutbox } from "./shared-outbox.js";
export { SharedReceiptHandler, SharedReceipts } from "./shared-receipts.js";
