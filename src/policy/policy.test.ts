import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { histories } from "../../test/faults/length.js";
import { ownToolName } from "../contracts/names.js";
import { covers, parsePattern } from "./pattern.js";
import { compilePolicy, decide, type PolicyConfig, seesServer } from "./policy.js";

const policyOf = (roles: PolicyConfig["roles"], unlistedRoles: "allow" | "deny" = "allow") =>
  compilePolicy({ roles, unlistedRoles });
const asRole = (role: string) => ({ id: "me", role });
const allowed = (roles: PolicyConfig["roles"], server: string, tool: string | undefined): boolean =>
  decide(policyOf(roles), asRole("r"), server, tool === undefined ? undefined : ownToolName(tool)).kind === "allow";

describe("decide", () => {
  it.each<[string, PolicyConfig["roles"][string], string, string | undefined, boolean]>([
    ["no rules: everything", {}, "github", "delete", true],
    ["deny alone leaves the rest", { deny: ["github/delete_*"] }, "github", "get_issue", true],
    ["deny by pattern", { deny: ["github/delete_*"] }, "github", "delete_repo", false],
    ["deny of tools leaves prompts and resources", { deny: ["github/delete_*"] }, "github", undefined, true],
    ["deny of a server takes its prompts and resources", { deny: ["github"] }, "github", undefined, false],
    ["deny of server/* does so too", { deny: ["github/*"] }, "github", undefined, false],
    ["deny wins", { allow: ["*"], deny: ["github"] }, "github", "get", false],
    ["empty allow locks out", { allow: [] }, "github", "get", false],
    ["allow by pattern", { allow: ["github/get_*"] }, "github", "get_issue", true],
    ["allow of tools does not open prompts", { allow: ["github/get_*"] }, "github", undefined, false],
    ["allow of a server opens them", { allow: ["github"] }, "github", undefined, true],
    ["allow does not reach other servers", { allow: ["github"] }, "github2", "get", false],
    ["stars in servers", { allow: ["git*/get_*"] }, "gitlab", "get_x", true],
    ["case counts", { allow: ["GitHub"] }, "github", "get", false],
    ["only * is special", { allow: ["github/get.issue"] }, "github", "getXissue", false],
    ["a tool with a slash", { allow: ["github/a/b"] }, "github", "a/b", true],
    ["a server with a slash is named in full", { allow: ["x.io/y/get_*"] }, "x.io/y", "get_a", true],
    ["… and not opened by a tool's pattern", { allow: ["x.io/y"] }, "x.io/y", "get_a", false],
    ["… but closed by every reading", { deny: ["x.io/*"] }, "x.io/y", "get_a", false],
    ["… with its prompts", { deny: ["x.io/y"] }, "x.io/y", undefined, false],
  ])("%s", (_, rules, server, tool, expected) => {
    expect(allowed({ r: rules }, server, tool)).toBe(expected);
  });

  it("says which rule denied", () => {
    const policy = policyOf({ dev: { deny: ["github/delete_*"] } }, "deny");
    expect(decide(policy, asRole("dev"), "github", ownToolName("delete_x"))).toEqual({
      kind: "deny",
      rule: 'role "dev": deny "github/delete_*"',
    });
    expect(decide(policy, asRole("ghost"), "github", ownToolName("x"))).toEqual({
      kind: "deny",
      rule: 'role "ghost" has no entry, and unlistedRoles is "deny"',
    });
  });

  it("follows unlistedRoles for a role without an entry, names of Object's own included", () => {
    for (const role of ["ghost", "constructor", "__proto__", "toString"]) {
      expect(decide(policyOf({}, "allow"), asRole(role), "s", ownToolName("t")).kind).toBe("allow");
      expect(decide(policyOf({}, "deny"), asRole(role), "s", ownToolName("t")).kind).toBe("deny");
    }
  });

  it("denies all to a run whose role is no longer there, whatever unlistedRoles says [run-own]", () => {
    const run = { ...asRole("dev"), needsRole: true } as const;
    const [before, after] = [policyOf({ dev: {} }), policyOf({})];
    expect([decide(before, run, "s", ownToolName("t")).kind, seesServer(before, run, "s")]).toEqual(["allow", true]);
    expect(decide(after, run, "s", ownToolName("t"))).toEqual({
      kind: "deny",
      rule: 'role "dev", which this run was started with, is no longer in the config',
    });
    expect(seesServer(after, run, "s")).toBe(false);
    expect(seesServer(after, asRole("dev"), "s")).toBe(true);
  });

  it("denies all where the rules make no sense", () => {
    for (const rules of [null, { allow: "*" }, { deny: [""] }, { allow: ["/x"] }, { allow: [7] }, { deny: ["s/"] }]) {
      const policy = policyOf({ r: rules as never });
      expect(decide(policy, asRole("r"), "s", ownToolName("t")).kind).toBe("deny");
      expect(seesServer(policy, asRole("r"), "s")).toBe(false);
      expect(policy.problems).toHaveLength(1);
    }
    expect(compilePolicy({ roles: {}, unlistedRoles: "maybe" as never }).unlisted).toBe("deny");
  });

  it("gives the same decision when it is asked again, and none that was another server's or tool's", () => {
    const policy = policyOf({ r: { allow: ["a/b"] } });
    for (let i = 0; i < 3; i++) {
      expect(decide(policy, asRole("r"), "a", ownToolName("b")).kind).toBe("allow");
      expect(decide(policy, asRole("r"), "a/b", undefined).kind).toBe("deny");
      expect(decide(policy, asRole("r"), "a", undefined).kind).toBe("deny");
    }
  });

  it("knows which servers a role may know of", () => {
    const policy = policyOf({ r: { allow: ["a/get_*", "b", "c"], deny: ["c", "b/x"] } });
    // It is the same when it is asked again.
    for (let i = 0; i < 2; i++) {
      expect(["a", "b", "c", "d"].filter((server) => seesServer(policy, asRole("r"), server))).toEqual(["a", "b"]);
    }
  });
});

describe("patterns", () => {
  const text = fc.string({ unit: fc.constantFrom("a", "b", "*"), minLength: 1, maxLength: 8 });
  const name = fc.string({ unit: fc.constantFrom("a", "b"), minLength: 1, maxLength: 10 });

  it("match as a plain definition of * does", () => {
    const reference = (glob: string, of: string): boolean => {
      if (glob === "") return of === "";
      if (glob[0] === "*") return reference(glob.slice(1), of) || (of !== "" && reference(glob, of.slice(1)));
      return of[0] === glob[0] && reference(glob.slice(1), of.slice(1));
    };
    fc.assert(
      fc.property(text, text, name, name, (server, tool, s, t) => {
        const pattern = parsePattern(`${server}/${tool}`);
        if (pattern === undefined) throw new Error("no pattern");
        expect(covers(pattern, s, ownToolName(t))).toBe(reference(server, s) && reference(tool, t));
      }),
      { numRuns: histories(5000) },
    );
  }, 60_000);

  it("answers hostile patterns and names at once", () => {
    const pattern = parsePattern(`s/${"*a".repeat(240)}*b`);
    if (pattern === undefined) throw new Error("no pattern");
    const started = performance.now();
    for (let i = 0; i < 100; i++) expect(covers(pattern, "s", ownToolName("a".repeat(4096)))).toBe(false);
    expect((performance.now() - started) / 100).toBeLessThan(50);
    expect(parsePattern("a".repeat(513))).toBeUndefined();
  });
});
