import { describe, expect, it } from "vitest";
import { ownToolName } from "../contracts/names.js";
import { type Guard, ProgramGuard } from "./guard.js";

const ME = { id: "me", role: "dev" };

function post(guard?: unknown) {
  const failures: string[] = [];
  const guards = new ProgramGuard((text) => failures.push(text));
  if (guard !== undefined) guards.set(guard as Guard);
  return { guards, failures };
}

describe("a program's guard", () => {
  it("allows what the rules of roles left, while there is no guard [host-11]", () => {
    const { guards } = post();
    expect(guards.isSet).toBe(false);
    expect(guards.decide(ME, "s", ownToolName("t"))).toEqual({ kind: "allow" });
  });

  it("is asked for the server first, then for the tool, and either may deny [host-11]", () => {
    const asked: unknown[] = [];
    const { guards } = post((...args: unknown[]) => {
      asked.push(args);
      const [, server, tool] = args;
      if (server === "closed") return { kind: "deny", reason: "closed today" };
      return tool === "delete" ? { kind: "deny", reason: "read only" } : { kind: "allow" };
    });
    expect(guards.decide(ME, "open", ownToolName("get"))).toEqual({ kind: "allow" });
    expect(asked).toEqual([
      [ME, "open"],
      [ME, "open", "get"],
    ]);
    expect(guards.decide(ME, "open", ownToolName("delete"))).toEqual({ kind: "deny", rule: "read only" });
    expect(guards.decide(ME, "open", undefined)).toEqual({ kind: "allow" });
    expect(guards.decide(ME, "closed", ownToolName("get"))).toEqual({ kind: "deny", rule: "closed today" });
    expect(guards.decide(ME, "closed", undefined)).toEqual({ kind: "deny", rule: "closed today" });
  });

  it("denies when it throws, and shows what it threw to the log alone [host-11]", () => {
    const { guards, failures } = post(() => {
      throw new Error("password hunter2");
    });
    const decision = guards.decide(ME, "s", ownToolName("t"));
    expect(decision).toEqual({ kind: "deny", rule: "the guard could not decide" });
    expect(failures).toHaveLength(1);
  });

  it.each([
    undefined,
    null,
    true,
    "allow",
    {},
    { kind: "yes" },
    { allow: true },
    { kind: "Allow" },
    [{ kind: "allow" }],
    Promise.resolve({ kind: "allow" }),
  ])("denies when it answers %j [host-11]", (answer) => {
    const { guards, failures } = post(() => answer);
    expect(guards.decide(ME, "s", ownToolName("t")).kind).toBe("deny");
    expect(guards.decide(ME, "s", undefined).kind).toBe("deny");
    expect(failures).toHaveLength(2);
  });

  it("denies when it is async, and its rejection ends nothing [host-11]", async () => {
    const { guards } = post(async () => {
      throw new Error("late");
    });
    expect(guards.decide(ME, "s", ownToolName("t")).kind).toBe("deny");
    // An unhandled rejection would fail this file.
    await new Promise((resolve) => setImmediate(resolve));
  });

  it("keeps the guard that is there when something else is set; undefined takes it away [host-11]", () => {
    const { guards } = post(() => ({ kind: "deny", reason: "no" }));
    for (const wrong of [null, false, {}, "allow"]) expect(() => guards.set(wrong as never)).toThrow(TypeError);
    expect(guards.decide(ME, "s", ownToolName("t")).kind).toBe("deny");
    guards.set(undefined);
    expect(guards.isSet).toBe(false);
    expect(guards.decide(ME, "s", ownToolName("t")).kind).toBe("allow");
  });

  it("has a reason for every denial, of bounded length", () => {
    for (const reason of [undefined, "", 7]) {
      expect(post(() => ({ kind: "deny", reason })).guards.decide(ME, "s", ownToolName("t"))).toEqual({
        kind: "deny",
        rule: "the guard denies it",
      });
    }
    const long = post(() => ({ kind: "deny", reason: "x".repeat(9999) })).guards.decide(ME, "s", ownToolName("t"));
    expect(long.kind === "deny" ? long.rule.length : 0).toBe(500);
  });
});
