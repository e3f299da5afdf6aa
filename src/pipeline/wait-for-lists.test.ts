// The first list of a gateway: for how long it waits for servers of which nothing is known.

import { afterEach, describe, expect, it, vi } from "vitest";
import { Agent } from "../../test/fixtures/agent.js";
import { names, StandInServer, setUpPipeline, tools } from "../../test/fixtures/pipeline.js";
import type { ListKind } from "../contracts/upstream.js";
import { compilePolicy, type PolicyConfig } from "../policy/policy.js";
import { FirstLists, renewed } from "./wait-for-lists.js";

afterEach(() => void vi.useRealTimers());

describe("the wait for a first list", () => {
  const never = new Promise<void>(() => {});
  const server = (name: string, listed = false) => ({ name, listed, firstTry: never });

  it("is a second from the first question on, for each server once [one-bad-server]", () => {
    const first = new FirstLists(() => true);
    expect(first.tries([server("a")], "tools", 0)).toHaveLength(1);
    expect(first.tries([server("a"), server("b")], "tools", 999)).toHaveLength(2);
    expect(first.tries([server("a"), server("b")], "tools", 1_000)).toHaveLength(1);
    expect(first.tries([server("a"), server("b")], "tools", 60_000)).toEqual([]);
  });

  it("is not for servers that were read, nor for those that are known from before [menu-survives]", () => {
    const first = new FirstLists((name) => name !== "kept");
    expect(first.tries([server("read", true), server("kept")], "tools", 0)).toEqual([]);
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

it("each list asks every server that its agent may know of whether it may be old, by the rules of that moment [menu-current]", async () => {
  const servers = [new StandInServer("a"), new StandInServer("b")];
  const asked: string[] = [];
  for (const server of servers) {
    const renew = (kind: string, why: string, nowMs: number) =>
      void asked.push(`${server.name} ${kind} ${why} ${nowMs}`);
    Object.assign(server, { renew });
  }
  const { pipeline } = setUpPipeline(servers);
  for (const { name } of servers) pipeline.fromServers.onList(name, "tools", tools("read"));
  const agent = new Agent({ pipeline }, "ada");
  const lists = async () => {
    asked.length = 0;
    return [await names(agent), [...asked]];
  };
  const all = ["a tools asked 0", "b tools asked 0"];
  const both = [["a__read", "b__read"], all];
  expect(await lists()).toEqual(both);
  const rules = (roles: PolicyConfig["roles"], unlistedRoles: "allow" | "deny" = "allow") =>
    pipeline.setPolicy(compilePolicy({ roles, unlistedRoles }));
  const onlyB = [["b__read"], ["b tools asked 0"]];
  rules({ default: { deny: ["a"] } });
  expect(await lists()).toEqual(onlyB);
  expect(await lists()).toEqual(onlyB);
  // Nothing is said of any role, and a role of which nothing is said may do nothing.
  rules({}, "deny");
  expect(await lists()).toEqual([[], []]);
  rules({});
  expect(await lists()).toEqual(both);
  pipeline.setGuard((_, server) => (server === "a" ? { kind: "deny", reason: "not now" } : { kind: "allow" }));
  expect(await lists()).toEqual(onlyB);
});

describe("lists that are asked for together", () => {
  /** Two servers of which nothing is old, and how often they were asked whether something is. */
  function walked() {
    let asks = 0;
    const renew = () => void asks++;
    const servers = ["a", "b"].map((name) => Object.assign(new StandInServer(name), { renew }));
    const events = { count: 0 };
    const first = new FirstLists(() => false);
    const asksFor = (nowMs: number, kind: ListKind = "tools", of = servers) => {
      asks = 0;
      expect(first.waitFor(of, kind, nowMs, events)).toBeUndefined();
      return asks;
    };
    return { servers, events, asksFor };
  }

  it("are answered by one walk over the servers, as long as nothing has happened", () => {
    const { asksFor } = walked();
    expect(asksFor(1_000)).toBe(2);
    expect(asksFor(1_000)).toBe(0);
    expect(asksFor(1_009.9)).toBe(0);
    expect(asksFor(1_010), "a list may be old by now").toBe(2);
  });

  it("ask each server again once a call has ended, a change was announced, or other servers or lists are meant [menu-current]", () => {
    const { asksFor, events, servers } = walked();
    expect(asksFor(1_000)).toBe(2);
    events.count++;
    expect(asksFor(1_000)).toBe(2);
    expect(asksFor(1_000)).toBe(0);
    expect(asksFor(1_000, "prompts")).toBe(2);
    expect(asksFor(1_000, "prompts", servers.slice(1))).toBe(1);
  });

  it("are not answered from a walk that found a reading to wait for [menu-current]", () => {
    const reading = Promise.resolve();
    const server = Object.assign(new StandInServer("a"), { renew: () => reading });
    const servers = [server];
    const first = new FirstLists(() => false);
    for (let i = 0; i < 2; i++) {
      expect(first.waitFor(servers, "tools", 1_000, { count: 0 })?.readings).toEqual([reading]);
    }
  });
});
