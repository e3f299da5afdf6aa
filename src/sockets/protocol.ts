// What the ends of a socket say to each other for its own sake, whatever their messages are about.

/** The method of an acknowledgement: so many messages have arrived. */
export const ACK = "session/ack";

/** In the upgrade of an executor that dials out: the session that it still has. Its client waits at the gateway. */
export const SESSION_HEADER = "toolway-session";
/** The machine that the executor runs on, percent-encoded. One that comes from it without a session was restarted. */
export const MACHINE_HEADER = "toolway-machine";
