import { expect, it } from "vitest";
import { StateLog } from "./state-log.js";

it("a server's states are told once each, with every fact of the line as a field [told-why]", () => {
  const told: unknown[] = [];
  const states = new StateLog((level, text, facts) => told.push([level, text, facts]));
  const fault = { forOperator: "It exited with code 1.", reason: "exited", code: "unavailable" };
  const standing = { lastFault: undefined, readyAfterMs: undefined };
  states.changed({ ...standing, state: "starting" }, "idle", undefined);
  states.changed({ ...standing, state: "ready", readyAfterMs: 12 }, "starting", undefined);
  states.changed({ ...standing, state: "backoff", lastFault: fault }, "ready", 499.2);
  states.changed({ ...standing, state: "starting", lastFault: fault }, "backoff", undefined);
  states.changed({ ...standing, state: "backoff", lastFault: fault }, "starting", 998.4);
  states.changed({ ...standing, state: "ejected", lastFault: { ...fault, reason: undefined } }, "starting", 0.2);
  states.changed({ ...standing, state: "stopped" }, "ejected", undefined);
  expect(told).toEqual([
    ["info", "ready after 12 ms", { state: "ready", from: "starting", readyAfterMs: 12 }],
    ["warn", "It exited with code 1.", { state: "backoff", from: "ready", reason: "exited", nextTryInMs: 500 }],
    [
      "warn",
      "ejected, since it was restarted too often: It exited with code 1.",
      { state: "ejected", from: "starting", reason: "unavailable", nextTryInMs: 1 },
    ],
  ]);
});
