import { describe, expect, it } from "vitest";
import type { Catalog } from "../../catalog/catalog.js";
import type { GatewayEngine } from "../../contracts/engine/engine.js";
import type { Servers } from "../../contracts/servers.js";
import { homesOf } from "./homes.js";

const info = () => {};

/** A catalog in which everything of the server "own" is called "own…", and nothing else is isolated. */
function isOfSession(method: string, params: object, scope?: string): boolean {
  const serverOf = (name: string) => (name.startsWith("own") ? "own" : "shared");
  const catalog = {
    resolveTool: (name: string) =>
      name === "call_tool"
        ? { kind: "menu", tool: name }
        : { kind: name.endsWith("unread") ? "unknown" : "found", server: serverOf(name) },
    resolvePrompt: (name: string) => ({ kind: "found", server: serverOf(name) }),
    resolveResource: serverOf,
  };
  const servers = { get: (name: string) => ({ isolation: name === "own" ? "session" : "shared" }) };
  const engine = { self: "a" } as unknown as GatewayEngine;
  const homes = homesOf(engine, catalog as unknown as Catalog, servers as unknown as Servers, info);
  return homes.isOfSession(method, params as Record<string, unknown>, scope);
}

describe("what is for a process that one session has for itself", () => {
  it("is whatever reaches such a server: tools, by the search menu too, prompts and resources [session-split]", () => {
    for (const [method, params] of [
      ["tools/call", { name: "own_count" }],
      ["tools/call", { name: "own_unread" }],
      ["tools/call", { name: "call_tool", arguments: { name: "own_count" } }],
      ["prompts/get", { name: "own_prompt" }],
      ["resources/read", { uri: "own://one" }],
    ] as const) {
      expect(isOfSession(method, params), `${method} ${JSON.stringify(params)}`).toBe(true);
    }
    expect(isOfSession("resources/read", { uri: "x" }, "own")).toBe(true);
  });

  it("is nothing else, however odd", () => {
    for (const [method, params] of [
      ["tools/call", { name: "shared_count" }],
      ["tools/call", { name: "call_tool", arguments: { name: "shared_count" } }],
      ["tools/call", { name: "call_tool", arguments: { name: "call_tool" } }],
      ["tools/call", { name: "call_tool", arguments: 7 }],
      ["tools/call", { name: 7 }],
      ["prompts/get", {}],
      ["resources/read", { uri: 7 }],
      ["tools/list", {}],
      ["ping", { name: "own_count" }],
    ] as const) {
      expect(isOfSession(method, params), `${method} ${JSON.stringify(params)}`).toBe(false);
    }
    expect(isOfSession("tools/list", {}, "own")).toBe(false);
  });
});

it("a gateway that is gone is told of once, and none while nobody knows who is there [session-split] [bounded]", () => {
  let state = "away";
  const lines: string[] = [];
  const engine = { self: "a", status: () => ({ state }) } as unknown as GatewayEngine;
  const note = (text: string) => void lines.push(text);
  const homes = homesOf(engine, {} as Catalog, {} as Servers, note);
  homes.gone("b");
  expect(lines).toEqual([]);
  state = "connected";
  for (let n = 0; n < 3; n++) for (const gateway of ["b", "c"]) homes.gone(gateway);
  expect(lines.map((line) => line.split(":")[0])).toEqual(["gateway b is gone", "gateway c is gone"]);
  for (let n = 0; n < 1_000; n++) homes.gone(`more-${n}`);
  homes.gone("more-999");
  expect(lines).toHaveLength(1_002);
});
