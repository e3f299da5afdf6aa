import { describe, expect, it } from "vitest";
import type { Freshness } from "../contracts/upstream.js";
import { Catalog } from "./catalog.js";
import type { View } from "./view.js";

const tool = (name: string) => {
  const value = { name, inputSchema: { type: "object" } };
  return { json: JSON.stringify(value), value };
};

function catalog(lists: Record<string, Freshness | "legacy" | "unread" | "none">): Catalog {
  const all = new Catalog({ names: "prefixed", menu: "full", seal: (text) => text, unseal: (text) => text });
  all.setServers(Object.keys(lists).map((name) => ({ name })));
  for (const [name, freshness] of Object.entries(lists)) {
    if (freshness === "unread") continue;
    if (freshness === "none") all.setList(name, "tools", []);
    else if (freshness === "legacy") all.setList(name, "tools", [tool("a")]);
    else all.setList(name, "tools", [tool("a")], freshness);
  }
  return all;
}

const view = (changes: Partial<View> = {}): View => ({
  scope: undefined,
  era: "modern",
  common: true,
  key: "k",
  allows: () => true,
  ...changes,
});

const result = (all: Catalog, of: View) =>
  (JSON.parse(all.page("tools", of).bytes.toString()) as { result: Record<string, unknown> }).result;

const long: Freshness = { ttlMs: 60_000, cacheScope: "public" };
const short: Freshness = { ttlMs: 5_000, cacheScope: "public" };
const own: Freshness = { ttlMs: 90_000, cacheScope: "private" };

describe("how long a merged list is good, and for whom", () => {
  it.each([
    ["one server's own", { a: long }, 60_000, "public"],
    ["the shortest of two", { a: long, b: short }, 5_000, "public"],
    ["the most private of two", { a: long, b: own }, 60_000, "private"],
    ["a legacy server says nothing", { a: long, b: "legacy" }, 0, "private"],
    ["a list that is still to come", { a: long, b: "unread" }, 0, "private"],
    ["a legacy server that has none", { a: long, b: "none" }, 60_000, "public"],
    ["no server at all", {}, 0, "public"],
  ] as const)("%s", (_name, lists, ttlMs, cacheScope) => {
    expect(result(catalog(lists), view())).toMatchObject({ resultType: "complete", ttlMs, cacheScope });
  });

  it("is private where roles see different lists", () => {
    expect(result(catalog({ a: long }), view({ common: false }))).toMatchObject({ cacheScope: "private" });
  });

  it("is that of the one server in its own scope", () => {
    expect(result(catalog({ a: long, b: "legacy" }), view({ scope: "a" }))).toMatchObject({ ttlMs: 60_000 });
  });

  it("is not told to a legacy agent, and the two never get each other's page", () => {
    const all = catalog({ a: long });
    expect(result(all, view({ era: "legacy" }))).not.toHaveProperty("ttlMs");
    expect(result(all, view())).toHaveProperty("ttlMs");
    expect(all.page("tools", view({ era: "legacy" })).era).toBeUndefined();
    expect(all.page("tools", view()).era).toBe("modern");
  });

  it("follows what the server says next, which is no change of the list", () => {
    const all = catalog({ a: long });
    expect(result(all, view())).toMatchObject({ ttlMs: 60_000 });
    expect(all.setList("a", "tools", [tool("a")], short)).toBe(false);
    expect(result(all, view())).toMatchObject({ ttlMs: 5_000 });
  });
});
