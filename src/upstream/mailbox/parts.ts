// What a mailbox needs that is loaded with the first of them: most gateways have none.

export { WorkerLines } from "../../mailbox/join/worker-lines.js";
export { MailboxLink } from "./link.js";
