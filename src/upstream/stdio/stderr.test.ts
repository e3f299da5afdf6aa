import { describe, expect, it } from "vitest";
import { Display, StderrRing } from "./stderr.js";

const ring = (...chunks: string[]) => {
  const it = new StderrRing(new Display({ GITHUB_TOKEN: "ghp_canary", MODE: "production", KEY: "abc" }));
  for (const chunk of chunks) it.push(Buffer.from(chunk));
  return it;
};

describe("what is kept of stderr", () => {
  it("keeps the last lines, without escapes, control characters and known secrets", () => {
    const lines = ring("\u001b[31mred\u001b[0m\r\n", "\n", "token=ghp_canary in pro", "duction abc\u0007\n").lines();
    expect(lines).toEqual(["red", "token=*** in production abc"]);
  });

  it("is bounded in lines and in bytes, however it is written [bounded]", () => {
    const many = ring(...Array.from({ length: 500 }, (_, i) => `line ${i}\n`)).lines();
    expect([many.length, many[0], many.at(-1)]).toEqual([50, "line 450", "line 499"]);
    const wide = ring(`${"x".repeat(9_000)}\n${"y".repeat(9_000)}\n`, "z\n").lines();
    expect(wide.map((line) => line.length)).toEqual([9_000, 1]);
    const endless = ring("a".repeat(100_000), "b".repeat(10)).lines();
    expect(endless.map((line) => line.length)).toEqual([16 * 1024]);
  });

  it("has the line that most likely says why the server ended", () => {
    const node = "/a.js:1\nthrow new Error('boom')\n^\n\nTypeError: boom\n    at x (/a.js:1:7)\n\nNode.js v20.20.2\n";
    expect(ring(node).reason()).toBe("TypeError: boom");
    expect(ring("Traceback:\n  File x\nValueError: bad\n").reason()).toBe("ValueError: bad");
    expect(ring("usage: tool --dir\n").reason()).toBe("usage: tool --dir");
    expect(ring("").reason()).toBeUndefined();
  });
});
