import { describe, expect, it } from "vitest";
import { findTool, type ToolLine, unknownTool } from "./tool-list.js";

const tool = (server: string, ownName: string): ToolLine => ({ name: `${server}__${ownName}`, server, ownName });
const tools = [tool("demo", "add"), tool("demo", "echo"), tool("git", "commit"), tool("hg", "commit")];

describe("a typed name", () => {
  it("finds its tool by the menu's name, the own name where unique, and server/tool", () => {
    expect(findTool("demo__add", tools)?.name).toBe("demo__add");
    expect(findTool("add", tools)?.name).toBe("demo__add");
    expect(findTool("hg/commit", tools)?.name).toBe("hg__commit");
    expect(findTool("commit", tools)).toBeUndefined();
  });

  it("that is wrong leads to the near ones", () => {
    expect(unknownTool("commit", tools).hint).toBe("Did you mean git__commit, hg__commit?");
    expect(unknownTool("demo__ech", tools).hint).toBe("Did you mean demo__echo?");
    expect(unknownTool("demo_ehco", tools).hint).toBe("Did you mean demo__echo?");
    expect(unknownTool("ad", tools).hint).toBe("Did you mean demo__add?");
    // One letter, or a name of two thirds other letters, is no typo.
    expect(unknownTool("e", tools).hint).toContain("toolway tools");
    expect(unknownTool("demo__sud", tools).hint).toContain("toolway tools");
    expect(unknownTool("zzzzzz", tools).hint).toContain("toolway tools");
    expect(unknownTool("x", []).hint).toContain("doctor");
  });

  it("that may be of a server that is down is told so before another is offered [told-why]", () => {
    expect(unknownTool("commit", tools, "Not up: svn.").hint).toBe(
      "Not up: svn. Did you mean git__commit, hg__commit?",
    );
    expect(unknownTool("svn__log", [], "Not up: svn.")).toMatchObject({
      message: "There is no tool svn__log.",
      hint: "Not up: svn.",
    });
  });
});
