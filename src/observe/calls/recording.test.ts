// What is recorded of calls: of whom, how much of it, without secrets, and until when.

import { expect, it } from "vitest";
import type { RequestMessage } from "../../protocol/message.js";
import { type Reply, resultBytes } from "../../protocol/reply.js";
import { Recordings } from "./recording.js";

const SECRET = "s3cr3t-of-the-entry";

function recordings() {
  let nowMs = 1_000;
  const all = new Recordings(
    (_, text) => text.replaceAll(SECRET, "[redacted]"),
    () => nowMs,
  );
  const pass = (ms: number) => {
    nowMs += ms;
  };
  return { all, pass };
}

function asked(args: unknown): RequestMessage {
  const params = { name: "t", arguments: args };
  const text = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params });
  return { kind: "request", id: 1, method: "tools/call", params, text } as unknown as RequestMessage;
}

const OK: Reply = resultBytes('{"content":[]}');

it("nothing is kept but of who is recorded, while the time is not over [bodies-unkept]", () => {
  const { all, pass } = recordings();
  expect(all.capture("s", "t", asked({ a: 1 }), OK)).toBeUndefined();
  expect(all.begin("s", "t", 60_000)).toBe(true);
  expect(all.capture("s", "other", asked({}), OK)).toBeUndefined();
  expect(all.capture("other", "t", asked({}), OK)).toBeUndefined();
  const kept = all.capture("s", "t", asked({ a: 1 }), OK);
  expect(kept?.kept).toEqual({ arguments: '{"a":1}', result: '{"content":[]}', cut: [] });
  expect(all.shown).toEqual([{ server: "s", tool: "t", until: new Date(61_000).toISOString(), calls: 1 }]);
  pass(59_999);
  expect(all.sweep()).toBe(61_000);
  pass(1);
  expect(all.capture("s", "t", asked({}), OK)).toBeUndefined();
  expect(all.sweep()).toBeUndefined();
  expect(kept?.kept).toBeUndefined();
});

it("a whole server is recorded by its name, ended by a word, and an hour is the longest", () => {
  const { all } = recordings();
  all.begin("s", undefined, 99 * 3_600_000);
  all.begin("u", undefined, 1_000);
  expect(all.shown[0]?.until).toBe(new Date(1_000 + 3_600_000).toISOString());
  const kept = all.capture("s", "any", asked({}), OK);
  const other = all.capture("u", "any", asked({}), OK);
  expect(all.stop("s")).toBe(1);
  expect(kept?.kept).toBeUndefined();
  expect(other?.kept).toBeDefined();
  expect(all.stop()).toBe(1);
  expect(all.shown).toEqual([]);
  for (let n = 0; n < 16; n++) expect(all.begin(`s${n}`, undefined, 1_000)).toBe(true);
  expect(all.begin("one-more", undefined, 1_000)).toBe(false);
  expect(all.begin("s3", undefined, 2_000)).toBe(true);
});

it("secrets of the entry are in neither side, also where they stand across the end of what is kept [secrets-unseen]", () => {
  const { all } = recordings();
  all.begin("s", undefined, 1_000);
  const edge = `${"x".repeat(64 * 1024 - 20)}${SECRET}${"y".repeat(10_000)}`;
  for (const args of [{ a: SECRET }, { a: edge }, { a: "z".repeat(500_000), b: SECRET }]) {
    const { kept } = all.capture("s", "t", asked(args), resultBytes(JSON.stringify({ text: args.a }))) ?? {};
    const text = JSON.stringify(kept);
    for (let at = 0; at + 8 <= SECRET.length; at++) expect(text).not.toContain(SECRET.slice(at, at + 8));
    expect(kept?.arguments.length).toBeLessThanOrEqual(64 * 1024);
    expect(kept?.result.length).toBeLessThanOrEqual(64 * 1024);
  }
});

it("holds 16 MiB at most: the oldest make room [bounded]", () => {
  const { all } = recordings();
  all.begin("s", undefined, 1_000);
  const big = asked({ a: "x".repeat(60_000) });
  const reply = resultBytes(JSON.stringify({ text: "y".repeat(60_000) }));
  const kept = Array.from({ length: 400 }, () => all.capture("s", "t", big, reply));
  const held = kept.filter((one) => one?.kept !== undefined);
  expect(kept[0]?.kept).toBeUndefined();
  expect(kept.at(-1)?.kept).toBeDefined();
  expect(held.reduce((sum, one) => sum + (one?.characters ?? 0), 0)).toBeLessThanOrEqual(16 * 1024 * 1024);
  expect(held.length).toBeGreaterThan(100);
  const stream: Reply = {
    kind: "stream",
    open: () => {
      throw new Error("It is not read.");
    },
  };
  expect(all.capture("s", "t", asked({}), stream)?.kept).toMatchObject({ result: "", cut: ["result"] });
});
