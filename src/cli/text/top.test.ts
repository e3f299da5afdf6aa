// The sentence of `toolway top`, and what its table says of a server that a person has something to do about.

import { expect, it } from "vitest";
import type { HistoryAnswer } from "../../contracts/control/history.js";
import type { GatewayStatus, ServerStatus } from "../../contracts/status.js";
import type { Io } from "../line/io.js";
import { topText } from "./top.js";

const NONE = { callsAMinute: 0, errorsAMinute: 0, p95: 0, ownP95: 0 };
const history = { now: NONE, total: { calls: [] }, servers: [] } as unknown as HistoryAnswer;

function top(...servers: object[]): string {
  const status = {
    startedAt: new Date(0).toISOString(),
    servers: servers.map((more, i) => ({
      ...{ name: `s${i}`, state: "ready", circuit: "closed", quarantined: 0, inFlight: 0 },
      ...more,
    })) as unknown as readonly ServerStatus[],
  } as unknown as GatewayStatus;
  return topText({ status, history, underWay: [] }, { env: {}, isTTY: false } as unknown as Io, 1_000);
}

it("a server with a tool that is held back, or that wants a login, is not fine, and its row says why [status-true]", () => {
  const text = top({}, { quarantined: 2 }, { credential: { needsLogin: true } }, { state: "backoff" });
  expect(text).toContain("1 of 4 servers are fine; not so: s1, s2, s3.");
  expect(text).toMatch(/^s1 +ready, 2 tools held back /m);
  expect(text).toMatch(/^s2 +ready, needs a login /m);
  expect(text).toMatch(/^s3 +down /m);
  expect(top({}, { credential: { needsLogin: false } })).toContain("All is well with 2 servers.");
});
