// A list that is asked for is seldom old, and that is found out without looking at the connection of its server.

import { expect, it } from "vitest";
import { UNPROMISED_MS } from "./age.js";
import { ServerLists } from "./lists.js";
import { Renewals } from "./renewals.js";

/** What was looked at of a server whose tools were read at 0. */
function looking(ttlMs: number | undefined) {
  const calls = { ended: 0, listEvents: { count: 0 } };
  const at = { nowMs: 0, gaps: 0, looks: 0 };
  const look = <T>(value: T): T => {
    at.looks++;
    return value;
  };
  const nothing = () => {};
  const renewals = new Renewals({
    lists: new ServerLists({ onBegin: nothing, onList: nothing, onFailed: nothing, onFault: nothing }),
    now: () => at.nowMs,
    calls,
    reader: () => look(undefined),
    read: () => Promise.resolve(),
    isAnnounced: () => look(false),
    isGateway: false,
    gaps: () => at.gaps,
  });
  renewals.begun("tools");
  renewals.ended("tools", true, ttlMs);
  return { renewals, calls, at };
}

it("a list that is as good as was promised is known without a look at its server", () => {
  for (const ttlMs of [undefined, 60_000]) {
    const { renewals, at } = looking(ttlMs);
    at.nowMs = (ttlMs ?? UNPROMISED_MS) - 1;
    expect(renewals.renew("tools", "asked")).toBeUndefined();
    expect(at.looks).toBe(0);
  }
});

it("its server is looked at once it is old, a call has ended, a change was announced or may not have been heard [menu-current]", () => {
  const changes: ((of: ReturnType<typeof looking>) => void)[] = [
    ({ at }) => {
      at.nowMs = UNPROMISED_MS;
    },
    ({ calls }) => {
      calls.ended++;
    },
    ({ at }) => {
      at.gaps++;
    },
    ({ renewals }) => renewals.changed("tools"),
    ({ renewals }) => renewals.begun("tools"),
  ];
  for (const change of changes) {
    const one = looking(undefined);
    change(one);
    void one.renewals.renew("tools", "asked");
    expect(one.at.looks).toBeGreaterThan(0);
  }
});

it("whatever makes it worth a look, but for time and what is not heard, is counted for all servers together [menu-current]", () => {
  const events: ((of: ReturnType<typeof looking>["renewals"]) => void)[] = [
    (renewals) => renewals.changed("tools"),
    (renewals) => renewals.begun("tools"),
    (renewals) => renewals.ended("tools", false, undefined),
    (renewals) => renewals.failed("tools"),
  ];
  for (const event of events) {
    const { renewals, calls } = looking(undefined);
    const { count } = calls.listEvents;
    event(renewals);
    expect(calls.listEvents.count).toBe(count + 1);
  }
});
