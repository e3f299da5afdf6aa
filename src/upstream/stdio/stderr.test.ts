import { describe, expect, it } from "vitest";
import { redactorFor } from "../../runtime/redact/secrets-of.js";
import { StderrRing } from "./stderr.js";

const ring = (...chunks: string[]) => {
  const it = new StderrRing(redactorFor({ env: { GITHUB_TOKEN: "ghp_canary", MODE: "production", KEY: "abc" } }));
  for (const chunk of chunks) it.push(Buffer.from(chunk));
  return it;
};

describe("what is kept of stderr", () => {
  it("keeps the last lines, without escapes, control characters and known secrets", () => {
    const lines = ring("\u001b[31mred\u001b[0m\r\n", "\n", "token=ghp_canary in pro", "duction abc\u0007\n").lines();
    expect(lines).toEqual(["red", "token=[redacted] in production abc"]);
  });

  it("is bounded in lines and in bytes, however it is written [bounded]", () => {
    const many = ring(...Array.from({ length: 500 }, (_, i) => `line ${i}\n`)).lines();
    expect([many.length, many[0], many.at(-1)]).toEqual([50, "line 450", "line 499"]);
    const wide = ring(`${"x".repeat(9_000)}\n${"y".repeat(9_000)}\n`, "z\n").lines();
    expect(wide.map((line) => line.length)).toEqual([9_000, 1]);
    const endless = ring("a".repeat(100_000), "b".repeat(10)).lines();
    // Of a line without an end, the beginning may be the second half of a secret: the longest has 60 characters.
    expect(endless.map((line) => line.length)).toEqual([16 * 1024 - 60]);
  });

  it("has the line that most likely says why the server ended", () => {
    const node = "/a.js:1\nthrow new Error('boom')\n^\n\nTypeError: boom\n    at x (/a.js:1:7)\n\nNode.js v20.20.2\n";
    expect(ring(node).reason()?.forAgents).toBe("TypeError: boom");
    expect(ring("Traceback:\n  File x\nValueError: bad\n").reason()?.forAgents).toBe("ValueError: bad");
    expect(ring("usage: tool --dir\n").reason()?.forOperator).toBe("usage: tool --dir");
    expect(ring("").reason()).toBeUndefined();
  });

  it("finds a secret that came in two pieces, in several lines, or at the cut [secrets-unseen]", () => {
    expect(ring("error: ghp_", "canary\n").lines()).toEqual(["error: [redacted]"]);
    const key = "MIIEvQIBADANBgkqhkiG9w0\nBAQEFAASCBKcwggSjAgEAAoI";
    const pem = new StderrRing(redactorFor({ env: { PRIVATE_KEY: key } }));
    pem.push(Buffer.from(`bad key ${key.replace("\n", "\r\n")} given\nand ${key.split("\n")[1]}\n`));
    expect(pem.lines()).toEqual(["bad key [redacted] given", "and [redacted]"]);
    const escaped = [..."ghp_canary"].map((one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`).join("");
    for (const secret of ["ghp_canary", "ghp_c\nanary", Buffer.from("ghp_canary").toString("hex"), escaped]) {
      for (let cut = 1; cut < secret.length; cut++) {
        const [line = ""] = ring(`${secret}${"x".repeat(16 * 1024 - cut)}`).lines();
        expect(line).toMatch(/^x+$/);
      }
    }
  });

  it("tells agents of another line that names an error, where the best one names a secret [secrets-unseen]", () => {
    const both = ring("Error: no such user\nError: key ghp_canary is bad\ngood bye\n").reason();
    expect(both).toEqual({ forOperator: "Error: key [redacted] is bad", forAgents: "Error: no such user" });
    const one = ring("starting\nError: key ghp_canary is bad\n").reason();
    expect(one?.forAgents).toBe("[left out: it names a secret; `toolway status` shows the rest]");
  });
});
