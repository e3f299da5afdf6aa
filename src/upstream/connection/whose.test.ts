import { describe, expect, it } from "vitest";
import { SUPERVISED } from "../../../test/fixtures/spec.js";
import type { Caller } from "../../contracts/caller.js";
import type { UpstreamCall } from "../../contracts/upstream.js";
import { Flights } from "./flights.js";
import { Whose } from "./whose.js";

const spec = {
  name: "s",
  target: { kind: "http", url: "http://127.0.0.1:1/", headers: {} },
  isolation: "shared",
  connectTimeoutMs: 1_000,
  callTimeoutMs: 1_000,
  ...SUPERVISED,
} as const;

function callOf(sessionKey: string, label: string): UpstreamCall & { readonly label: string } {
  const caller = { sessionKey, label } as unknown as Caller;
  return { caller, method: "tools/call", subject: label, progressToken: undefined, label, render: String, reply() {} };
}

/** More than the first table holds, so that the order is not the table's by chance. */
const CALLS = 40;

describe("calls in flight", () => {
  it("on a pipe, a question of the server is put to the newest call of the session", () => {
    const flights = new Flights(spec);
    const whose = new Whose(flights, undefined);
    for (let i = 0; i < CALLS; i++) {
      flights.add(flights.make(callOf("one", `call ${i}`), 0));
      expect(whose.callerOf(undefined)).toMatchObject({ label: `call ${i}` });
    }
    flights.add(flights.make(callOf("other", "another's"), 0));
    expect(whose.callerOf(undefined)).toBeUndefined();
  });

  it("end in the order in which they were sent", () => {
    const flights = new Flights(spec);
    for (let i = 0; i < CALLS; i++) flights.add(flights.make(callOf("one", `call ${i}`), 0));
    const expected = Array.from({ length: CALLS }, (_, i) => `call ${i}`);
    expect(flights.inOrder().map(({ subject }) => subject)).toEqual(expected);
  });
});
