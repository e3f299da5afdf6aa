// Who hears of what a server says outside a call.

import { beforeEach, describe, expect, it, vi } from "vitest";
import type { Caller, NotificationText } from "../contracts/caller.js";
import { Fault } from "../protocol/errors.js";
import type { JsonObject } from "../protocol/jsonrpc.js";
import { isLoggingLevel } from "../protocol/log-levels.js";
import { type NotificationMessage, parseMessage } from "../protocol/message.js";
import { AgentNotifications, Announcements } from "./agent-notifications.js";

class Listener implements Caller {
  readonly principal: { id: string; role: string };
  readonly sessionKey: string;
  readonly era = "legacy";
  logLevel: string | undefined;
  readonly version = "2025-11-25";
  readonly capabilities: JsonObject = {};
  readonly clientInfo: JsonObject = {};
  heard: string[] = [];

  constructor(sessionKey: string, role = "default") {
    this.sessionKey = sessionKey;
    this.principal = { id: sessionKey, role };
  }

  setLogLevel(level: string): void {
    this.logLevel = level;
  }

  notify({ text }: NotificationText): void {
    const { method, params } = JSON.parse(text) as { method: string; params?: JsonObject };
    this.heard.push(
      [method.replace("notifications/", ""), params?.["level"] ?? params?.["uri"]].filter(Boolean).join(" "),
    );
  }

  ask(): Promise<never> {
    return Promise.reject(new Fault("no-caller", "No."));
  }
}

const notification = (method: string, params: JsonObject = {}) =>
  parseMessage(JSON.stringify({ jsonrpc: "2.0", method: `notifications/${method}`, params })) as NotificationMessage;
const log = (level: unknown) => notification("message", { level, data: "x" });
const updated = (uri: unknown) => notification("resources/updated", { uri });

const LIMIT = { code: "limit" };

let sessions: AgentNotifications;
let ada: Listener;
let bob: Listener;
/** Sees the server `open` only. */
let eve: Listener;

beforeEach(() => {
  sessions = new AgentNotifications((session, server) => session.principal.role === "default" || server === "open");
  [ada, bob, eve] = [new Listener("ada"), new Listener("bob"), new Listener("eve", "guest")];
  for (const one of [ada, bob, eve]) sessions.open(one, undefined);
});

it("a session that may have missed something is told of each list that it has, and of each of its subscriptions [restart-unseen]", () => {
  sessions.subscribe("ada", "open", "file:///a");
  sessions.subscribe("ada", "shut", "file:///b");
  sessions.subscribe("eve", "open", "file:///a");
  sessions.subscribe("eve", "shut", "file:///b");
  const capabilities = { tools: { listChanged: true }, prompts: {}, resources: { listChanged: true } };
  sessions.catchUp("ada", capabilities);
  sessions.catchUp("eve", { tools: { listChanged: true } });
  sessions.catchUp("nobody", capabilities);
  expect(heard()).toEqual([
    ["tools/list_changed", "resources/list_changed", "resources/updated file:///a", "resources/updated file:///b"],
    [],
    ["tools/list_changed", "resources/updated file:///a"],
  ]);
});

const heard = () => [ada.heard, bob.heard, eve.heard];

describe("changed lists", () => {
  it("are told to those who see the server, of all kinds", () => {
    sessions.listChanged("tools", ["secret"]);
    sessions.listChanged("prompts", ["open", "secret"]);
    sessions.listChanged("resourceTemplates", ["open"]);
    const both = ["tools/list_changed", "prompts/list_changed", "resources/list_changed"];
    expect(heard()).toEqual([both, both, both.slice(1)]);
  });

  it("are told at /mcp/<server> for that server alone, and to all when nobody can tell whose they are", () => {
    const scoped = new Listener("scoped");
    sessions.open(scoped, "open");
    sessions.listChanged("tools", ["secret"]);
    expect(scoped.heard).toEqual([]);
    sessions.listChanged("tools", ["open"]);
    sessions.listChanged("tools", undefined);
    expect(scoped.heard).toEqual(["tools/list_changed", "tools/list_changed"]);
    expect(eve.heard).toHaveLength(2);
  });
});

describe("log messages", () => {
  it("of a call go to its caller, from that session's level on, or all where it set none", () => {
    bob.setLogLevel("error");
    for (const one of [ada, bob]) {
      for (const level of ["debug", "error", "odd"]) sessions.notify("open", log(level), one);
    }
    expect(heard()).toEqual([["message debug", "message error", "message odd"], ["message error", "message odd"], []]);
  });

  it("below the level of a session never reach it, whoever else shares the server and wants them [eras-meet]", () => {
    [ada.logLevel, bob.logLevel] = ["error", "debug"];
    const below = ["debug", "info", "notice", "warning", "INFO", "Warning"];
    for (const level of [...below, "error", "emergency"]) {
      for (const caller of [undefined, ada, bob]) sessions.notify("open", log(level), caller);
    }
    expect(ada.heard).toEqual(["error", "error", "emergency", "emergency"].map((level) => `message ${level}`));
    expect(bob.heard).toHaveLength(2 * (below.length + 2));
  });

  it("of no call go to those who set a level and see the server", () => {
    bob.setLogLevel("warning");
    eve.setLogLevel("debug");
    sessions.notify("secret", log("info"), undefined);
    sessions.notify("secret", log("alert"), undefined);
    sessions.notify("open", log("info"), undefined);
    expect(heard()).toEqual([[], ["message alert"], ["message info"]]);
  });

  it("of no call go to those without a level where all sessions at the server are one principal's [eras-meet]", () => {
    const second = Object.assign(new Listener("ada again"), { principal: ada.principal });
    sessions.open(second, undefined);
    sessions.notify("secret", log("info"), undefined);
    expect([...heard(), second.heard]).toEqual([[], [], [], []]);
    sessions.close("bob");
    ada.setLogLevel("error");
    // Eve does not see this one, and is seen at the other.
    sessions.notify("secret", log("info"), undefined);
    sessions.notify("open", log("alert"), undefined);
    expect([ada.heard, second.heard]).toEqual([["message alert"], ["message info"]]);
  });

  it("are asked of servers at the lowest level that anyone wants", () => {
    expect(sessions.lowestLevel()).toBeUndefined();
    ada.setLogLevel("error");
    bob.setLogLevel("info");
    expect(sessions.lowestLevel()).toBe("info");
    sessions.close("bob");
    expect(sessions.lowestLevel()).toBe("error");
    expect([isLoggingLevel("emergency"), isLoggingLevel("loud"), isLoggingLevel(undefined)]).toEqual([
      true,
      false,
      false,
    ]);
  });
});

describe("updates of resources", () => {
  it("reach those who subscribed on that server, and see it still", () => {
    sessions.subscribe("ada", "open", "file:///a");
    sessions.subscribe("bob", "secret", "file:///a");
    sessions.subscribe("eve", "secret", "file:///a");
    // Whose call it came in does not matter.
    sessions.notify("open", updated("file:///a"), bob);
    sessions.notify("secret", updated("file:///a"), undefined);
    const one = ["resources/updated file:///a"];
    expect(heard()).toEqual([one, one, []]);
  });

  it("reach those who subscribed to the whole of a part, and not to a name that begins alike", () => {
    sessions.subscribe("ada", "open", "file:///a");
    sessions.subscribe("bob", "open", "file:///dir/");
    for (const uri of ["file:///a/b", "file:///a?x", "file:///ab", "file:///dir/b", "file:///dirt"]) {
      sessions.notify("open", updated(uri), undefined);
    }
    expect(ada.heard).toEqual(["resources/updated file:///a/b", "resources/updated file:///a?x"]);
    expect(bob.heard).toEqual(["resources/updated file:///dir/b"]);
  });

  it("of a connection that is one session's own reach that session alone", () => {
    sessions.subscribe("ada", "open", "file:///a");
    sessions.subscribe("bob", "open", "file:///a");
    sessions.notify("open", updated("file:///a"), ada, (session) => session === ada);
    expect(heard()).toEqual([["resources/updated file:///a"], [], []]);
  });

  it("cost what those who hear of them cost, however many others have subscribed to something else [bounded]", () => {
    let looks = 0;
    sessions = new AgentNotifications(() => ++looks > 0);
    const all = Array.from({ length: 2_000 }, (_, n) => new Listener(`agent ${n}`));
    for (const [n, one] of all.entries()) {
      sessions.open(one, undefined);
      for (let i = 0; i < 5; i++) sessions.subscribe(one.sessionKey, "open", `file:///${n}/${i}`);
    }
    const starts = vi.spyOn(String.prototype, "startsWith");
    sessions.notify("open", updated("file:///7/3/deep?er"), undefined);
    sessions.notify("open", updated("file:///nobody"), undefined);
    const compared = starts.mock.calls.length;
    starts.mockRestore();
    expect(all.filter(({ heard }) => heard.length > 0)).toEqual([all[7]]);
    expect({ looks, compared }).toEqual({ looks: 1, compared: 0 });
  });

  it("are heard once by whoever has subscribed to a part, and to a part of it", () => {
    for (const uri of ["file:///", "file:///a", "file:///a/b"]) sessions.subscribe("ada", "open", uri);
    sessions.subscribe("bob", "open", "file:///a");
    sessions.notify("open", updated("file:///a/b"), undefined);
    sessions.unsubscribe("ada", "open", "file:///a");
    sessions.close("bob");
    sessions.notify("open", updated("file:///a"), undefined);
    expect(heard()).toEqual([
      ["resources/updated file:///a/b", "resources/updated file:///a"],
      ["resources/updated file:///a/b"],
      [],
    ]);
  });

  it("without a URI are for whoever's call they came in", () => {
    sessions.subscribe("ada", "open", "file:///a");
    sessions.notify("open", updated(7), bob);
    sessions.notify("open", updated(7), undefined);
    expect(heard()).toEqual([[], ["resources/updated 7"], []]);
  });
});

const anybody = () => true;

describe("subscriptions", () => {
  it("are counted: new, known, and no more than a session may have [bounded]", () => {
    expect(sessions.subscribe("ada", "open", "a:0")).toBe("new");
    expect(sessions.subscribe("ada", "open", "a:0")).toBe("known");
    for (let i = 1; i < 5_000; i++) sessions.subscribe("ada", `s${i % 7}`, `a:${i}`);
    expect(sessions.subscribe("ada", "open", "b:1")).toMatchObject(LIMIT);
    expect(sessions.subscribe("ada", "open", "a:0")).toBe("known");
    sessions.unsubscribe("ada", "open", "a:0");
    sessions.unsubscribe("ada", "open", "a:0");
    expect(sessions.subscribe("ada", "open", "b:1")).toBe("new");
    expect(sessions.subscribe("ada", "open", "b:2")).toMatchObject(LIMIT);
  });

  it("are told again by server, to those who are concerned", () => {
    sessions.subscribe("ada", "open", "a:1");
    sessions.subscribe("bob", "open", "a:1");
    sessions.subscribe("bob", "open", "a:2");
    sessions.subscribe("bob", "other", "a:3");
    expect([...sessions.subscriptions("open", anybody)]).toEqual(["a:1", "a:2"]);
    expect([...sessions.subscriptions("open", (session) => session === ada)]).toEqual(["a:1"]);
    expect([...sessions.subscriptions("none", anybody)]).toEqual([]);
  });

  it("end with their session, which tells what they were", () => {
    sessions.subscribe("ada", "open", "a:1");
    sessions.subscribe("bob", "open", "a:1");
    sessions.subscribe("bob", "open", "a:2");
    expect(sessions.close("bob")).toEqual([
      ["open", "a:1"],
      ["open", "a:2"],
    ]);
    expect(sessions.close("bob")).toEqual([]);
    expect(sessions.hasSubscriber("open", "a:1", anybody)).toBe(true);
    expect(sessions.hasSubscriber("open", "a:1", (session) => session === bob)).toBe(false);
    expect(sessions.count("legacy")).toBe(2);
  });
});

it("what we do not know goes to whom it is for, and to nobody where that cannot be told", () => {
  sessions.notify("open", notification("odd"), undefined);
  sessions.notify("open", notification("odd"), bob);
  sessions.notify("open", notification("elicitation/complete"), undefined);
  expect(heard()).toEqual([["elicitation/complete"], ["odd", "elicitation/complete"], ["elicitation/complete"]]);
});

it("the session behind a call is known", () => {
  const call = new Listener("ada");
  expect(sessions.sessionOf(call)).toBe(ada);
  const stranger = new Listener("stranger");
  expect(sessions.sessionOf(stranger)).toBe(stranger);
});

it("an announcement without a change is passed on, once a second for each server and list", () => {
  const announcements = new Announcements();
  const heard = (server: string, nowMs: number) => {
    announcements.announced(server, ["tools"]);
    return announcements.unchanged(server, "tools", nowMs);
  };
  expect([heard("a", 0), heard("a", 999), heard("b", 999), heard("a", 1_000)]).toEqual([true, false, true, true]);
});

it("a list that is read without an announcement, or has changed, is not passed on", () => {
  const announcements = new Announcements();
  expect(announcements.unchanged("a", "tools", 0)).toBe(false);
  announcements.announced("a", ["tools"]);
  announcements.changed("a", "tools");
  expect(announcements.unchanged("a", "tools", 0)).toBe(false);
});

it("resources and their templates are told of together", () => {
  const announcements = new Announcements();
  announcements.announced("a", ["resources", "resourceTemplates"]);
  expect(announcements.unchanged("a", "resources", 0)).toBe(true);
  expect(announcements.unchanged("a", "resourceTemplates", 0)).toBe(false);
});

describe("what subscriptions take", () => {
  const uri = (n: number, chars = 8_000) => `x://${n}/`.padEnd(chars, "u");
  const several = (of: string, count: number) => {
    const made = Array.from({ length: count }, (_, n) => {
      const one = new Listener(`${of} ${n}`);
      one.principal.id = of;
      return one;
    });
    for (const one of made) sessions.open(one, undefined);
    return made;
  };
  /** How many of these the agents of one principal get, 4,000 each at most. */
  const taken = (agents: readonly Listener[]) => {
    let count = 0;
    for (const { sessionKey } of agents) {
      for (let n = 0; n < 4_000; n++) if (sessions.subscribe(sessionKey, "open", uri(n)) === "new") count++;
    }
    return count;
  };

  it("is bounded, for all sessions of a principal together, and comes back with each [bounded]", () => {
    expect(sessions.subscribe("ada", "open", uri(1, 100_000))).toMatchObject(LIMIT);
    const flood = several("flood", 3);
    const most = taken(flood);
    expect(most).toBeGreaterThan(1_000);
    // Half of the room: a character takes two bytes at most.
    expect(most * 2 * 8_000).toBeLessThan(33 * 1024 * 1024);
    expect(sessions.subscribe("ada", "open", uri(1))).toBe("new");
    sessions.unsubscribe("flood 0", "open", uri(7));
    expect(sessions.subscribe("flood 2", "open", uri(7))).toBe("new");
    expect(sessions.subscribe("flood 2", "open", uri(8))).toMatchObject(LIMIT);
    for (const { sessionKey } of flood) sessions.close(sessionKey);
    expect(taken(several("flood", 3))).toBe(most);
  });

  it("is told by the bound that was met: who has none is not told that it has too many [bounded]", () => {
    const why = (agent: string, subscribed: string) => (sessions.subscribe(agent, "open", subscribed) as Fault).message;
    taken(several("first", 3));
    expect(why("first 0", uri(9_000))).toMatch(/^Your subscriptions take half of the gateway's room .* \(64 MiB\)/);
    taken(several("second", 3));
    for (let n = 0; sessions.subscribe("ada", "open", `y://${n}`) === "new"; n++);
    expect(why("bob", uri(1))).toMatch(/^No more fits into the gateway's room .* \(64 MiB\)\. It is not yours alone/);
    expect(why("bob", uri(1, 8_193))).toContain("8192 characters");
    for (let n = 0; n < 5_000; n++) sessions.subscribe("eve", "open", `z://${n}`);
    sessions.close("first 0");
    for (let n = 0; n < 5_000; n++) sessions.subscribe("eve", "open", `z://${n}`);
    expect(why("eve", "z://more")).toContain("This session has 5000 subscriptions");
  });
});
