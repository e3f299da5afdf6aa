import { expect, it } from "vitest";
import { resultText } from "./call-result.js";

it("prints text plainly, and says of the rest what it is", () => {
  const content = [
    { type: "text", text: "line" },
    { type: "image", mimeType: "image/png", data: Buffer.alloc(9).toString("base64") },
    { type: "resource_link", uri: "file:///a", name: "a" },
    { type: "resource", resource: { uri: "file:///b", text: "inner" } },
    { type: "new", x: 1 },
  ];
  expect(resultText({ content }).split("\n")).toEqual([
    "line",
    "[image, image/png, 9 bytes; --json has it]",
    "[resource file:///a]",
    "inner",
    '{"type":"new","x":1}',
  ]);
});

it("prints structured content where there is no other", () => {
  expect(resultText({ content: [], structuredContent: { a: 1 } })).toBe('{\n  "a": 1\n}');
  expect(resultText({ content: [] })).toBe("(no content)");
});
