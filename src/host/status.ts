// What there is to say of a server that nobody has wanted yet.

import type { ServerConfig } from "../config/config.js";
import type { ServerStatus } from "../contracts/status.js";

export function statusAsleep({ name, target, isolation, supervision }: ServerConfig): ServerStatus {
  return {
    name,
    kind: target.kind,
    isolation,
    via: target.kind === "stdio" ? undefined : target.via,
    state: "idle",
    version: undefined,
    serverInfo: undefined,
    counts: { tools: 0, prompts: 0, resources: 0, resourceTemplates: 0 },
    listsFromBefore: true,
    connections: 0,
    inFlight: 0,
    restarts: 0,
    ejected: false,
    circuit: "closed",
    failures: 0,
    lazy: supervision.lazy,
    refs: 0,
    card: undefined,
    readyAfterMs: undefined,
    lastError: undefined,
    nextTryInMs: undefined,
    pid: undefined,
    url: undefined,
    noise: { count: 0, sample: undefined },
    stderr: [],
    problems: [],
  };
}
