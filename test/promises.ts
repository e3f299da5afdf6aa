// What Toolway promises, as data. Tests cite a promise by its id in square brackets in their names.

export interface Promised {
  readonly id: string;
  readonly text: string;
  /** `planned`: not made yet, so no test needs to show it. */
  readonly status: "made" | "planned";
}

export const PROMISES: readonly Promised[] = [
  {
    id: "ack-is-durable",
    text: "A write that was acknowledged or called queued is on disk: no kill -9 of any part loses it.",
    status: "made",
  },
  {
    id: "no-double-effect",
    text: "Where the server honours the idempotency key, or the sharer journals, an effect happens once.",
    status: "planned",
  },
  {
    id: "unknown-is-said",
    text: "A call that may have happened and cannot be asked about is reported as unknown, never repeated, never called failed.",
    status: "made",
  },
  {
    id: "lane-order",
    text: "Writes of one lane arrive in order, live ones included.",
    status: "planned",
  },
  {
    id: "menu-survives",
    text: "Tools stay listed while their server is down, from disk after a restart of the gateway too.",
    status: "made",
  },
  {
    id: "one-bad-server",
    text: "A server that hangs, floods, lies or dies never delays or breaks calls to another.",
    status: "made",
  },
  {
    id: "restart-unseen",
    text: "Server crash: the next call works. Gateway restart: sessions go on.",
    status: "made",
  },
  {
    id: "token-unseen",
    text: "An expired upstream token is renewed and the call succeeds once.",
    status: "planned",
  },
  {
    id: "bounded",
    text: "No input, peer or load makes memory, file descriptors or processes grow without a limit.",
    status: "made",
  },
  {
    id: "no-orphans",
    text: "Every child and grandchild is gone after stop, crash or SIGKILL of the gateway.",
    status: "made",
  },
  {
    id: "drain",
    text: "SIGTERM under load: no call that ends within the drain limit fails; streams get their end.",
    status: "made",
  },
  {
    id: "crossed-never",
    text: "Two callers with the same JSON-RPC id never see each other's reply.",
    status: "made",
  },
];
