// The roles that mean something by themselves. All others are the config's, and mean what their rules say.

/** Of a token that lets an executor in, and no agent. */
export const EXECUTOR_ROLE = "executor";

/** Of a token that offers a machine's tools in a mailbox of its own: it opens nothing else, and sends to who asks. */
export const SHARER_ROLE = "sharer";

/** Of the token that is made at the first start. */
export const DEFAULT_ROLE = "default";
