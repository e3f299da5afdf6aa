import { describe, expect, it } from "vitest";
import { CHANGE_ECHO_MS, ListTellers } from "./tellers.js";

describe("whose list is read", () => {
  it("is the session's that told of a change alone, until the shared one tells or the session is gone [menu-current]", () => {
    const tellers = new ListTellers<string>();
    expect(tellers.of("tools")).toBeUndefined();
    expect(tellers.toldAlone("a", ["tools"], 1_000)).toEqual(["tools"]);
    expect([tellers.of("tools"), tellers.of("prompts")]).toEqual(["a", undefined]);
    expect(tellers.toldAlone("b", ["tools", "prompts"], 2_000)).toEqual(["tools", "prompts"]);
    expect(tellers.left("a")).toEqual([]);
    expect(tellers.of("tools")).toBe("b");
    tellers.sharedTold(["tools"], 3_000);
    expect(tellers.of("tools")).toBeUndefined();
    expect(tellers.left("b")).toEqual(["prompts"]);
    expect(tellers.of("prompts")).toBeUndefined();
  });

  it("is the shared one's where it tells of the change too, a little before or after", () => {
    for (const sharedMs of [-CHANGE_ECHO_MS, 0, CHANGE_ECHO_MS]) {
      const tellers = new ListTellers<string>();
      tellers.sharedTold(["resources"], 5_000 + sharedMs);
      expect(tellers.toldAlone("a", ["resources", "resourceTemplates"], 5_000)).toEqual(["resourceTemplates"]);
      expect(tellers.of("resources")).toBeUndefined();
    }
    const tellers = new ListTellers<string>();
    tellers.sharedTold(["tools"], 5_000 - CHANGE_ECHO_MS - 1);
    expect(tellers.toldAlone("a", ["tools"], 5_000)).toEqual(["tools"]);
  });
});
