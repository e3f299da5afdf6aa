// The first list of a gateway: for how long it waits for servers of which nothing is known.

import { afterEach, describe, expect, it, vi } from "vitest";
import { Agent } from "../../test/fixtures/agent.js";
import { names, StandInServer, setUpPipeline, tools } from "../../test/fixtures/pipeline.js";
import { FirstLists, renewed } from "./wait-for-lists.js";

afterEach(() => void vi.useRealTimers());

describe("the wait for a first list", () => {
  const never = new Promise<void>(() => {});
  const server = (name: string, listed = false) => ({ name, listed, firstTry: never });

  it("is a second from the first question on, for each server once [one-bad-server]", () => {
    const first = new FirstLists();
    const isEmpty = () => true;
    expect(first.tries([server("a")], isEmpty, 0)).toHaveLength(1);
    expect(first.tries([server("a"), server("b")], isEmpty, 999)).toHaveLength(2);
    expect(first.tries([server("a"), server("b")], isEmpty, 1_000)).toHaveLength(1);
    expect(first.tries([server("a"), server("b")], isEmpty, 60_000)).toEqual([]);
  });

  it("is not for servers that were read, nor for those that are known from before [menu-survives]", () => {
    const first = new FirstLists();
    expect(first.tries([server("read", true), server("kept")], (name) => name !== "kept", 0)).toEqual([]);
  });
});

it("a list that is read again is waited for once, for 250 ms, however many readings hang [menu-current] [one-bad-server]", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const never = new Promise<void>(() => {});
  let isOver = false;
  void renewed([never, never, Promise.resolve()]).then(() => {
    isOver = true;
  });
  await vi.advanceTimersByTimeAsync(249);
  expect(isOver).toBe(false);
  await vi.advanceTimersByTimeAsync(1);
  expect(isOver).toBe(true);
  // Where all have ended nothing is waited for.
  await renewed([Promise.resolve()]);
});

it("a first list is not empty where a server is up a moment later, and list_changed follows for those that come later [menu-current]", async () => {
  const [soon, late] = [new StandInServer("soon"), new StandInServer("late")];
  let tried = () => {};
  const firstTry = new Promise<void>((resolve) => {
    tried = resolve;
  });
  Object.assign(soon, { listed: false, firstTry });
  Object.assign(late, { listed: false, firstTry: new Promise<void>(() => {}) });
  const { pipeline } = setUpPipeline([soon, late]);
  const agent = new Agent({ pipeline }, "ada");
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  let isAnswered = false;
  const asked = names(agent).finally(() => {
    isAnswered = true;
  });
  pipeline.fromServers.onList("soon", "tools", tools("read"));
  Object.assign(soon, { listed: true });
  tried();
  await vi.advanceTimersByTimeAsync(999);
  expect(isAnswered).toBe(false);
  // It waits no longer than the bound for the other one.
  await vi.advanceTimersByTimeAsync(1);
  expect(await asked).toEqual(["soon__read"]);
  pipeline.fromServers.onList("late", "tools", tools("write"));
  expect(agent.heardMethods()).toContain("notifications/tools/list_changed");
  expect(await names(agent)).toEqual(["soon__read", "late__write"]);
});
