// Who hears of what a server says outside a call.

import { beforeEach, describe, expect, it } from "vitest";
import type { Caller, NotificationText } from "../contracts/caller.js";
import { Fault } from "../protocol/errors.js";
import type { JsonObject } from "../protocol/jsonrpc.js";
import { isLoggingLevel } from "../protocol/log-levels.js";
import { type NotificationMessage, parseMessage } from "../protocol/message.js";
import { Audience } from "./open-sessions.js";

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

let audience: Audience;
let ada: Listener;
let bob: Listener;
/** Sees the server `open` only. */
let eve: Listener;

beforeEach(() => {
  audience = new Audience((session, server) => session.principal.role === "default" || server === "open");
  [ada, bob, eve] = [new Listener("ada"), new Listener("bob"), new Listener("eve", "guest")];
  for (const one of [ada, bob, eve]) audience.open(one, undefined);
});

const heard = () => [ada.heard, bob.heard, eve.heard];

describe("changed lists", () => {
  it("are told to those who see the server, of all kinds", () => {
    audience.listChanged("tools", ["secret"]);
    audience.listChanged("prompts", ["open", "secret"]);
    audience.listChanged("resourceTemplates", ["open"]);
    const both = ["tools/list_changed", "prompts/list_changed", "resources/list_changed"];
    expect(heard()).toEqual([both, both, both.slice(1)]);
  });

  it("are told at /mcp/<server> for that server alone, and to all when nobody can tell whose they are", () => {
    const scoped = new Listener("scoped");
    audience.open(scoped, "open");
    audience.listChanged("tools", ["secret"]);
    expect(scoped.heard).toEqual([]);
    audience.listChanged("tools", ["open"]);
    audience.listChanged("tools", undefined);
    expect(scoped.heard).toEqual(["tools/list_changed", "tools/list_changed"]);
    expect(eve.heard).toHaveLength(2);
  });
});

describe("log messages", () => {
  it("of a call go to its caller, from that session's level on, or all where it set none", () => {
    bob.setLogLevel("error");
    for (const one of [ada, bob]) {
      for (const level of ["debug", "error", "odd"]) audience.notify("open", log(level), one);
    }
    expect(heard()).toEqual([["message debug", "message error", "message odd"], ["message error", "message odd"], []]);
  });

  it("of no call go to those who set a level and see the server", () => {
    bob.setLogLevel("warning");
    eve.setLogLevel("debug");
    audience.notify("secret", log("info"), undefined);
    audience.notify("secret", log("alert"), undefined);
    audience.notify("open", log("info"), undefined);
    expect(heard()).toEqual([[], ["message alert"], ["message info"]]);
  });

  it("are asked of servers at the lowest level that anyone wants", () => {
    expect(audience.lowestLevel()).toBeUndefined();
    ada.setLogLevel("error");
    bob.setLogLevel("info");
    expect(audience.lowestLevel()).toBe("info");
    audience.close("bob");
    expect(audience.lowestLevel()).toBe("error");
    expect([isLoggingLevel("emergency"), isLoggingLevel("loud"), isLoggingLevel(undefined)]).toEqual([
      true,
      false,
      false,
    ]);
  });
});

describe("updates of resources", () => {
  it("reach those who subscribed on that server, and see it still", () => {
    audience.subscribe("ada", "open", "file:///a");
    audience.subscribe("bob", "secret", "file:///a");
    audience.subscribe("eve", "secret", "file:///a");
    // Whose call it came in does not matter.
    audience.notify("open", updated("file:///a"), bob);
    audience.notify("secret", updated("file:///a"), undefined);
    const one = ["resources/updated file:///a"];
    expect(heard()).toEqual([one, one, []]);
  });

  it("reach those who subscribed to the whole of a part, and not to a name that begins alike", () => {
    audience.subscribe("ada", "open", "file:///a");
    audience.subscribe("bob", "open", "file:///dir/");
    for (const uri of ["file:///a/b", "file:///a?x", "file:///ab", "file:///dir/b", "file:///dirt"]) {
      audience.notify("open", updated(uri), undefined);
    }
    expect(ada.heard).toEqual(["resources/updated file:///a/b", "resources/updated file:///a?x"]);
    expect(bob.heard).toEqual(["resources/updated file:///dir/b"]);
  });

  it("of a connection that is one session's own reach that session alone", () => {
    audience.subscribe("ada", "open", "file:///a");
    audience.subscribe("bob", "open", "file:///a");
    audience.notify("open", updated("file:///a"), ada, true);
    expect(heard()).toEqual([["resources/updated file:///a"], [], []]);
  });

  it("without a URI are for whoever's call they came in", () => {
    audience.subscribe("ada", "open", "file:///a");
    audience.notify("open", updated(7), bob);
    audience.notify("open", updated(7), undefined);
    expect(heard()).toEqual([[], ["resources/updated 7"], []]);
  });
});

describe("subscriptions", () => {
  it("are counted: new, known, and no more than a session may have [bounded]", () => {
    expect(audience.subscribe("ada", "open", "a:0")).toBe("new");
    expect(audience.subscribe("ada", "open", "a:0")).toBe("known");
    for (let i = 1; i < 5_000; i++) audience.subscribe("ada", `s${i % 7}`, `a:${i}`);
    expect(audience.subscribe("ada", "open", "b:1")).toBe("full");
    expect(audience.subscribe("ada", "open", "a:0")).toBe("known");
    audience.unsubscribe("ada", "open", "a:0");
    audience.unsubscribe("ada", "open", "a:0");
    expect(audience.subscribe("ada", "open", "b:1")).toBe("new");
    expect(audience.subscribe("ada", "open", "b:2")).toBe("full");
  });

  it("are told again by server, or by server and session", () => {
    audience.subscribe("ada", "open", "a:1");
    audience.subscribe("bob", "open", "a:1");
    audience.subscribe("bob", "open", "a:2");
    audience.subscribe("bob", "other", "a:3");
    expect([...audience.subscriptions("open")]).toEqual(["a:1", "a:2"]);
    expect([...audience.subscriptions("open", "ada")]).toEqual(["a:1"]);
    expect([...audience.subscriptions("none")]).toEqual([]);
  });

  it("end with their session: what nobody else listens to is returned", () => {
    audience.subscribe("ada", "open", "a:1");
    audience.subscribe("bob", "open", "a:1");
    audience.subscribe("bob", "open", "a:2");
    expect(audience.close("bob")).toEqual([["open", "a:2"]]);
    expect(audience.close("bob")).toEqual([]);
    expect(audience.hasSubscriber("open", "a:1")).toBe(true);
    expect(audience.size).toBe(2);
  });
});

it("what we do not know goes to whom it is for, and to nobody where that cannot be told", () => {
  audience.notify("open", notification("odd"), undefined);
  audience.notify("open", notification("odd"), bob);
  audience.notify("open", notification("elicitation/complete"), undefined);
  expect(heard()).toEqual([["elicitation/complete"], ["odd", "elicitation/complete"], ["elicitation/complete"]]);
});

it("knows the session behind a call", () => {
  const call = new Listener("ada");
  expect(audience.sessionOf(call)).toBe(ada);
  const stranger = new Listener("stranger");
  expect(audience.sessionOf(stranger)).toBe(stranger);
});
