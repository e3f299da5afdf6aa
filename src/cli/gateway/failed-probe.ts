// What `doctor` shows of a server of which nothing was learnt but why.

import type { ProbeError } from "../../upstream/probe.js";
import type { Probe } from "./port.js";

export function failedProbe(error: Pick<ProbeError, "message"> & Partial<ProbeError>): Probe {
  return {
    ok: false,
    era: undefined,
    version: undefined,
    serverInfo: undefined,
    tools: [],
    problems: [],
    readyMs: undefined,
    error: { code: "unavailable", reason: undefined, remedy: undefined, ...error },
    stderr: [],
    noise: { count: 0, sample: undefined },
  };
}
