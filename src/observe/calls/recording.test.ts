// What is recorded of calls: of whom, how much of it, without secrets, and until when.

import { expect, it } from "vitest";
import type { RequestMessage } from "../../protocol/message.js";
import { type Reply, resultBytes } from "../../protocol/reply.js";
import { Redactor } from "../../runtime/redact/redactor.js";
import { Recordings } from "./recording.js";

const SECRET = "s3cr3t-of-the-entry";

function recordings() {
  let nowMs = 1_000;
  let setBackMs = 0;
  const redactor = new Redactor([SECRET]);
  const config = new Set(["s", "t", "u", "other"]);
  const redact = (text: string, isCut: boolean) => redactor.redact(text, isCut);
  const all = new Recordings((server) => (config.has(server) ? redact : undefined), {
    now: () => nowMs,
    wall: () => nowMs - setBackMs,
  });
  const pass = (ms: number) => {
    nowMs += ms;
  };
  const setBack = (ms: number) => {
    setBackMs += ms;
  };
  return { all, pass, setBack, config };
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
  expect(kept?.read()).toEqual({ arguments: '{"a":1}', result: '{"content":[]}', cut: [] });
  expect(all.shown).toEqual([{ server: "s", tool: "t", until: new Date(61_000).toISOString(), calls: 1 }]);
  pass(59_999);
  expect(all.sweep()).toBe(61_000);
  pass(1);
  expect(all.capture("s", "t", asked({}), OK)).toBeUndefined();
  expect(all.sweep()).toBeUndefined();
  expect(kept?.read()).toBeUndefined();
});

it("a whole server is recorded by its name, ended by a word, and an hour is the longest", () => {
  const { all } = recordings();
  all.begin("s", undefined, 99 * 3_600_000);
  all.begin("u", undefined, 1_000);
  expect(all.shown[0]?.until).toBe(new Date(1_000 + 3_600_000).toISOString());
  const kept = all.capture("s", "any", asked({}), OK);
  const other = all.capture("u", "any", asked({}), OK);
  expect(all.stop("s")).toBe(1);
  expect(kept?.read()).toBeUndefined();
  expect(other?.read()).toBeDefined();
  expect(all.stop()).toBe(1);
  expect(all.shown).toEqual([]);
  for (let n = 0; n < 16; n++) expect(all.begin(`s${n}`, undefined, 1_000)).toBe(true);
  expect(all.begin("one-more", undefined, 1_000)).toBe(false);
  expect(all.begin("s3", undefined, 2_000)).toBe(true);
});

it("secrets of the entry are in neither side, also where they stand across the end of what is kept [secrets-unseen]", () => {
  const { all } = recordings();
  all.begin("s", undefined, 1_000);
  const short = `${"x".repeat(68 * 1024 - 14)}${SECRET}`;
  const edge = `${"x".repeat(64 * 1024 - 20)}${SECRET}${"y".repeat(10_000)}`;
  for (const args of [
    { a: SECRET },
    { a: edge },
    { a: `${`${SECRET} `.repeat(1_000)}${short.slice(20_000)}` },
    { a: "z".repeat(500_000), b: SECRET },
  ]) {
    const kept = all.capture("s", "t", asked(args), resultBytes(JSON.stringify({ text: args.a })))?.read();
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
  const held = kept.filter((one) => one?.isKept === true);
  expect(kept[0]?.isKept).toBe(false);
  expect(kept.at(-1)?.isKept).toBe(true);
  expect(held.reduce((sum, one) => sum + (one?.characters ?? 0), 0)).toBeLessThanOrEqual(16 * 1024 * 1024);
  expect(held.length).toBeGreaterThan(100);
  const stream: Reply = {
    kind: "stream",
    open: () => {
      throw new Error("It is not read.");
    },
  };
  expect(all.capture("s", "t", asked({}), stream)?.read()).toMatchObject({ result: "", cut: ["result"] });
});

it("holds the last 5,000 at most, however small they are, and counts what it holds right [bounded]", () => {
  const { all, pass } = recordings();
  all.begin("s", undefined, 1_000);
  const kept = Array.from({ length: 12_345 }, () => all.capture("s", "t", asked({}), OK));
  expect(kept.filter((one) => one?.isKept === true)).toEqual(kept.slice(-5_000));
  all.begin("t", undefined, 5_000);
  pass(1_000);
  expect(all.sweep()).toBe(6_000);
  expect(kept.some((one) => one?.isKept === true)).toBe(false);
  const after = Array.from({ length: 5_000 }, () => all.capture("t", "t", asked({}), OK));
  expect(after.every((one) => one?.isKept === true)).toBe(true);
});

it("nothing is kept past its own end: neither by beginning again, nor by a clock that is set back [bodies-unkept]", () => {
  const { all, pass, setBack } = recordings();
  all.begin("s", undefined, 60_000);
  const first = all.capture("s", "t", asked({}), OK);
  pass(30_000);
  setBack(3_600_000);
  all.begin("s", undefined, 60_000);
  const second = all.capture("s", "t", asked({}), OK);
  expect(all.shown).toMatchObject([{ until: new Date(91_000 - 3_600_000).toISOString(), calls: 2 }]);
  expect(all.sweep()).toBe(61_000);
  pass(30_000);
  // Also before anybody has swept.
  expect(first?.isKept).toBe(false);
  expect(first?.read()).toBeUndefined();
  expect(all.sweep()).toBe(91_000);
  expect(first?.characters).toBe(0);
  expect(second?.read()).toBeDefined();
  pass(30_000);
  expect(all.sweep()).toBeUndefined();
  expect(second?.characters).toBe(0);
});

it("the end of a server's recording leaves those of its tools, and the other way round", () => {
  const { all } = recordings();
  all.begin("s", "t", 1_000);
  all.begin("s", undefined, 1_000);
  const one = all.capture("s", "t", asked({}), OK);
  const other = all.capture("s", "other", asked({}), OK);
  expect(all.stop("s", "other")).toBe(0);
  expect(all.stop("s")).toBe(1);
  expect(all.shown).toMatchObject([{ server: "s", tool: "t" }]);
  expect(one?.read()).toBeDefined();
  expect(other?.read()).toBeUndefined();
  expect(all.stop("s", "t")).toBe(1);
  expect(one?.read()).toBeUndefined();
});

it("nothing is shown of a server that left the config, before its call ended or after [secrets-unseen]", () => {
  const { all, config } = recordings();
  all.begin("s", undefined, 1_000);
  const before = all.capture("s", "t", asked({ a: SECRET }), OK);
  config.delete("s");
  expect(before?.read()).toBeUndefined();
  expect(all.capture("s", "t", asked({ a: SECRET }), OK)).toBeUndefined();
});
