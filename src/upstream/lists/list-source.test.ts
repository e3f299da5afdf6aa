import { describe, expect, it } from "vitest";
import { CHANGE_ECHO_MS, ListSource } from "./list-source.js";

describe("whose list is read", () => {
  it("is the session's that told of a change alone, until the shared one tells or the session is gone [menu-current]", () => {
    const sources = new ListSource<string>();
    expect(sources.of("tools")).toBeUndefined();
    expect(sources.toldAlone("a", ["tools"], 1_000)).toEqual(["tools"]);
    expect([sources.of("tools"), sources.of("prompts")]).toEqual(["a", undefined]);
    expect(sources.toldAlone("b", ["tools", "prompts"], 2_000)).toEqual(["tools", "prompts"]);
    expect(sources.left("a")).toEqual([]);
    expect(sources.of("tools")).toBe("b");
    sources.sharedTold(["tools"], 3_000);
    expect(sources.of("tools")).toBeUndefined();
    expect(sources.left("b")).toEqual(["prompts"]);
    expect(sources.of("prompts")).toBeUndefined();
  });

  it("is the shared one's where it tells of the change too, a little before or after", () => {
    for (const sharedMs of [-CHANGE_ECHO_MS, 0, CHANGE_ECHO_MS]) {
      const sources = new ListSource<string>();
      sources.sharedTold(["resources"], 5_000 + sharedMs);
      expect(sources.toldAlone("a", ["resources", "resourceTemplates"], 5_000)).toEqual(["resourceTemplates"]);
      expect(sources.of("resources")).toBeUndefined();
    }
    const sources = new ListSource<string>();
    sources.sharedTold(["tools"], 5_000 - CHANGE_ECHO_MS - 1);
    expect(sources.toldAlone("a", ["tools"], 5_000)).toEqual(["tools"]);
  });
});
