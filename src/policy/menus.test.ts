import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { histories } from "../../test/faults/length.js";
import { ownToolName } from "../contracts/names.js";
import type { MenuRule } from "../contracts/settings.js";
import { Contexts } from "./contexts.js";
import { compileMenus, MatchedMenus } from "./menus.js";

const contextOf = (facts: Record<string, string>) => new Map(Object.entries(facts));
const left = (rules: readonly MenuRule[], facts: Record<string, string>, server: string, tool: string): boolean => {
  const narrowing = new MatchedMenus(compileMenus(rules)).of(contextOf(facts));
  return narrowing === undefined || narrowing.ofTool(server, ownToolName(tool)).kind === "allow";
};

const REVIEW: MenuRule = { when: { phase: "review" }, show: ["github/get_*", "github/list_*"] };
const PUBLIC: MenuRule = { when: { repo: "public/*" }, hide: ["vault"] };

describe("a menu", () => {
  it.each<[string, readonly MenuRule[], Record<string, string>, string, string, boolean]>([
    ["that does not fit takes nothing away", [REVIEW], { phase: "build" }, "github", "delete", true],
    ["does not fit where its key is unset", [REVIEW], {}, "github", "delete", true],
    ["leaves what it shows", [REVIEW], { phase: "review" }, "github", "get_issue", true],
    ["takes the rest of the server", [REVIEW], { phase: "review" }, "github", "delete", false],
    ["takes other servers", [REVIEW], { phase: "review" }, "files", "get_x", false],
    ["fits by a glob", [PUBLIC], { repo: "public/site" }, "vault", "read", false],
    ["hides nothing else", [PUBLIC], { repo: "public/site" }, "files", "read", true],
    ["with null fits an unset key", [{ when: { phase: null }, hide: ["files"] }], {}, "files", "read", false],
    ["… and not a set one", [{ when: { phase: null }, hide: ["files"] }], { phase: "x" }, "files", "read", true],
    ["without conditions always fits", [{ when: {}, hide: ["files/w*"] }], {}, "files", "write", false],
    ["wants every key", [{ when: { a: "1", b: "2" }, hide: ["*"] }], { a: "1" }, "files", "read", true],
    ["that shows nothing leaves nothing", [{ when: {}, show: [] }], {}, "files", "read", false],
    ["counts with the others", [REVIEW, PUBLIC], { phase: "review", repo: "public/x" }, "vault", "get_x", false],
  ])("%s [menu-narrows]", (_, rules, facts, server, tool, expected) => {
    expect(left(rules, facts, server, tool)).toBe(expected);
  });

  it("says which rule hides [menu-narrows]", () => {
    const menus = new MatchedMenus(compileMenus([REVIEW, PUBLIC]));
    const one = menus.of(contextOf({ phase: "review" }));
    expect(one?.ofTool("files", ownToolName("read"))).toEqual({
      kind: "deny",
      rule: 'menus[0] (phase is "review") shows other tools only',
    });
    const other = menus.of(contextOf({ repo: "public/x" }));
    expect(other?.ofTool("vault", ownToolName("read"))).toEqual({
      kind: "deny",
      rule: 'menus[1] (repo is "public/*") hides "vault"',
    });
  });

  it("takes a server's prompts and resources with its last tool [menu-narrows]", () => {
    const narrowing = new MatchedMenus(compileMenus([REVIEW])).of(contextOf({ phase: "review" }));
    const tools = (...names: string[]) => names.map(ownToolName);
    expect(narrowing?.ofServer("github", tools("delete", "get_issue")).kind).toBe("allow");
    expect(narrowing?.ofServer("github", tools("delete", "close")).kind).toBe("deny");
    // What is not known is judged by the patterns.
    expect(narrowing?.ofServer("github", undefined).kind).toBe("allow");
    expect(narrowing?.ofServer("files", undefined).kind).toBe("deny");
  });

  it("that cannot be read hides what it is about, and says so [menu-narrows]", () => {
    for (const rule of [7, null, { when: {}, show: "x" }, { when: {}, hide: [""] }, { hide: ["s/"] }, { show: [9] }]) {
      const menus = compileMenus([rule as never]);
      expect(menus.problems).toHaveLength(1);
      expect(new MatchedMenus(menus).of(new Map())?.ofTool("files", ownToolName("read")).kind).toBe("deny");
    }
    // Conditions that make no sense count as met.
    const strange = compileMenus([{ when: { phase: 7 } as never, hide: ["vault"] }]);
    expect(strange.problems).toHaveLength(1);
    const narrowing = new MatchedMenus(strange).of(new Map());
    expect(narrowing?.ofTool("vault", ownToolName("read")).kind).toBe("deny");
    expect(narrowing?.ofTool("files", ownToolName("read")).kind).toBe("allow");
  });

  it("leaves what is in every show and in no hide, of whatever rules fit [menu-narrows]", () => {
    const name = fc.constantFrom("a", "b", "c");
    const pattern = fc.oneof(
      name,
      fc.tuple(name, name).map(([server, tool]) => `${server}/${tool}`),
      fc.constant("*"),
    );
    const rule = fc.record({
      when: fc.dictionary(name, fc.oneof(name, fc.constant(null), fc.constant("*")), { maxKeys: 2 }),
      show: fc.option(fc.array(pattern, { maxLength: 3 }), { nil: undefined }),
      hide: fc.array(pattern, { maxLength: 2 }),
    });
    const facts = fc.dictionary(name, name, { maxKeys: 3 });
    const isIn = (patterns: readonly string[], server: string, tool: string) =>
      patterns.some((text) => text === "*" || text === server || text === `${server}/${tool}`);
    fc.assert(
      fc.property(fc.array(rule, { maxLength: 4 }), facts, name, name, (rules, context, server, tool) => {
        const fitting = rules.filter(({ when }) =>
          Object.entries(when).every(([key, value]) => {
            const found = Object.hasOwn(context, key) ? context[key] : undefined;
            return value === null ? found === undefined : found !== undefined && (value === "*" || value === found);
          }),
        );
        const expected = fitting.every(
          ({ show, hide }) => (show === undefined || isIn(show, server, tool)) && !isIn(hide, server, tool),
        );
        if (left(rules, context, server, tool) !== expected) throw new Error("not what a plain reading leaves");
      }),
      { numRuns: histories(3_000) },
    );
  });
});

describe("a context", () => {
  it("has room for 32 keys and for keys and values of 256 characters, and for nothing beyond [bounded]", () => {
    const contexts = new Contexts();
    const keys = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, "v"]));
    contexts.change("ci", keys(32));
    expect(contexts.of("ci")?.size).toBe(32);
    expect(() => contexts.change("ci", { k32: "v" })).toThrow(/at most 32 keys, and this would have 33/);
    // One may take another's place.
    contexts.change("ci", { k0: null, k32: "v" });
    expect(() => contexts.change("other", keys(33))).toThrow(/at most 32 keys/);
    const [long, tooLong] = ["x".repeat(256), "x".repeat(257)];
    contexts.change("long", { [long]: long });
    expect([...(contexts.of("long") ?? [])]).toEqual([[long, long]]);
    expect(() => contexts.change("long", { value: tooLong })).toThrow(/at most 256 characters/);
    expect(() => contexts.change("long", { [tooLong]: "v" })).toThrow(/is no key .* and 256 at most/);
    expect(contexts.of("long")?.size).toBe(1);
  });

  it("is bounded, and a change that is refused changes nothing", () => {
    const contexts = new Contexts();
    contexts.change("ci", { phase: "review" });
    const many = Object.fromEntries(Array.from({ length: 32 }, (_, i) => [`k${i}`, "v"]));
    for (const [changes, why] of [
      [many, /at most 32 keys/],
      [{ "": "v" }, /no key/],
      [{ "a b": "v" }, /no key/],
      [{ phase: "x".repeat(257) }, /at most 256/],
      [{ phase: 7 as never }, /a text/],
    ] as const) {
      expect(() => contexts.change("ci", { other: "x", ...changes })).toThrow(why);
    }
    expect([...(contexts.of("ci") ?? [])]).toEqual([["phase", "review"]]);
    contexts.change("ci", { phase: null });
    expect(contexts.of("ci")).toBeUndefined();
  });

  it("that was kept comes back, and what no longer counts as one does not", () => {
    const contexts = new Contexts();
    contexts.restore("ci", { phase: "review" });
    contexts.restore("odd", { "a b": "v" });
    contexts.restore("none", null);
    expect([...contexts.all.keys()]).toEqual(["ci"]);
  });
});
