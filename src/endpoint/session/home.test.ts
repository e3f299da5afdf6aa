import { describe, expect, it } from "vitest";
import { homeOf } from "./home.js";

let gone: string[] = [];
const at = (self: string, there: readonly string[]) => ({
  self,
  gateways: () => there,
  gone: (gateway: string) => void gone.push(gateway),
});

describe("the home of a session", () => {
  it("is where it was made, while that gateway is there [restart-unseen]", () => {
    gone = [];
    expect(homeOf("b", "k", at("a", ["a", "b", "c"]))).toBe("b");
    expect(homeOf("b", "k", at("a", ["a"]))).toBe("a");
    expect(gone).toEqual(["b"]);
    expect(homeOf(undefined, "k", at("a", []))).toBe("a");
  });

  it("is else the same for all who ask, in whatever order they know each other, and moves only with its own gateway [restart-unseen]", () => {
    const homes = new Map<string, number>();
    for (let n = 0; n < 300; n++) {
      const key = `session ${n}`;
      const home = homeOf("gone", key, at("a", ["a", "b", "c"]));
      expect(homeOf("gone", key, at("c", ["c", "b", "a"]))).toBe(home);
      if (home !== "b") expect(homeOf("gone", key, at("c", ["c", "a"]))).toBe(home);
      homes.set(home, (homes.get(home) ?? 0) + 1);
    }
    for (const gateway of ["a", "b", "c"]) expect(homes.get(gateway)).toBeGreaterThan(50);
  });
});
