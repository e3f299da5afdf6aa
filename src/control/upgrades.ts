// The names by which a connection to the control socket becomes something else than HTTP. Both ends go by them.

/** An agent's lines, as `toolway stdio` carries them: the default principal, `?role=`, or whom the token `?as=` is for. */
export const STDIO_UPGRADE = "toolway-stdio";

/** The operator's own lines, as `toolway call` sends them: a session in which it can be asked; `?server=` is whose. */
export const OPERATOR_UPGRADE = "toolway-operator";

/** Lines of JSON, as `toolway share` sends them: the tools are shared while it is open. */
export const SHARE_UPGRADE = "toolway-share";

/** Lines of JSON, as `toolway run` sends them: the run's token is good while it is open. */
export const RUN_UPGRADE = "toolway-run";
