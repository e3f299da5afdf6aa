import { describe, expect, it } from "vitest";
import { parseConfig } from "./load.js";

const parse = (entry: object) =>
  parseConfig(JSON.stringify({ mcpServers: { a: entry } }), { path: "/proj/mcp.json", env: {}, home: "/home/me" });
const mistakes = (entry: object): string => {
  try {
    parse(entry);
    return "";
  } catch (error) {
    return (error as Error).message;
  }
};

describe("placement", () => {
  it("is of a program, with or without an engine; every gateway has its own without it [placement-one]", () => {
    expect(parse({ command: "x", placement: "one" }).servers[0]?.placement).toBe("one");
    expect(parse({ command: "x", placement: "every" }).servers[0]?.placement).toBeUndefined();
    expect(parse({ command: "x" }).servers[0]?.placement).toBeUndefined();
  });

  it.each([
    [{ command: "x", placement: "on" }, 'mcpServers.a.placement: expected "every" or "one"'],
    [{ url: "http://x/mcp", placement: "one" }, '"one" is for a "command": nothing is started for an address'],
    [{ mailbox: "m", broker: "wss://x", placement: "one" }, "nothing is started for a mailbox"],
    [
      { command: "x", placement: "one", isolation: "session" },
      '"one" has no meaning beside "isolation": "session" (remove the key, or the "isolation"',
    ],
  ])("is a mistake with its place in %j", (entry, mistake) => {
    expect(mistakes(entry)).toContain(mistake);
    expect(mistakes(entry)).toContain("/proj/mcp.json:1:");
  });
});
