import { describe, expect, it } from "vitest";
import { ToolHeaders } from "./tool-headers.js";

const of = (properties: Record<string, unknown>) => ({ type: "object", properties });
const region = { type: "string", "x-mcp-header": "Region" };

describe("a list of tools", () => {
  const tool = (name: string, inputSchema: unknown) => {
    const value = { name, inputSchema };
    return { json: JSON.stringify(value), value };
  };

  it("loses its invalid tools, each with the reason, and keeps the others as they were", () => {
    const known = new ToolHeaders();
    const good = tool("good", of({ region }));
    const plain = tool("plain", { type: "object" });
    const { kept, problems } = known.learn([
      good,
      tool("bad", of({ n: { type: "number", "x-mcp-header": "N" } })),
      plain,
    ]);
    expect(kept).toEqual([good, plain]);
    expect(problems).toEqual([expect.stringMatching(/"bad".*integer, string or boolean/)]);
    expect(known.of("good")).toHaveLength(1);
    expect(known.of("plain")).toBeUndefined();
    known.learn([plain]);
    expect(known.of("good")).toBeUndefined();
  });
});
