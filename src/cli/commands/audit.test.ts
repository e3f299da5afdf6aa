// `audit`, over files that a gateway has written: which lines it shows, from when until when, and how it goes on with those that
// come.

import { join } from "node:path";
import { PassThrough } from "node:stream";
import { afterEach, beforeEach, expect, it } from "vitest";
import { fakeGateway, folder, leaveFolder, makeFolder, run } from "../../../test/fixtures/fake-gateway.js";
import { until } from "../../../test/fixtures/wait.js";
import { AuditWriter } from "../../observe/audit/writer.js";
import { Stopped } from "../line/io.js";

const MINUTE_MS = 60_000;

let writer: AuditWriter;
/** So that times that are counted back from now are in between those of the lines. */
let nowMs: number;

beforeEach(async () => {
  makeFolder();
  fakeGateway({}, {}, false);
  nowMs = Date.now();
  writer = await AuditWriter.open({
    ...{ maxFileBytes: 1e6, maxBytes: 1e9, maxAgeDays: 30, kept: undefined },
    dir: join(folder, "audit"),
    wall: () => nowMs - 100 * MINUTE_MS,
    rotated: () => {},
  });
});
afterEach(async () => {
  await writer.close();
  leaveFolder();
});

const line = (tool: string, minutesAgo: number, server = "demo") =>
  JSON.stringify({
    ...{ time: new Date(nowMs - minutesAgo * MINUTE_MS).toISOString(), kind: "call", principal: "ann", server, tool },
    ...{ outcome: "ok", ms: 12.4 },
  });
const audit = (...words: string[]) => ["audit", ...words, "--path", join(folder, "audit")];

/** The tools of what `--json` prints. */
async function tools(...words: string[]): Promise<unknown[]> {
  const { code, out, err } = await run(audit("--json", ...words));
  expect({ code, err }).toEqual({ code: 0, err: "" });
  return out
    .split("\n")
    .flatMap((text) => (text === "" ? [] : [(JSON.parse(text) as { tool?: string }).tool ?? "none"]));
}

it("audit shows what was written from one time until another, each a day, a moment or so long ago [audit-tells]", async () => {
  await writer.append([line("oldest", 90), line("old", 50), line("new", 20), line("newest", 5)]);
  expect(await tools()).toEqual(["newest", "new", "old", "oldest", "none", "none"]);
  expect(await tools("--since", "30m")).toEqual(["newest", "new"]);
  expect(await tools("--since", "1h")).toEqual(["newest", "new", "old"]);
  expect(await tools("--since", "2d", "-n", "2")).toEqual(["newest", "new"]);
  expect(await tools("--until", "1h")).toEqual(["oldest", "none", "none"]);
  expect(await tools("--since", "3600s", "--until", "10m")).toEqual(["new", "old"]);
  const at = (minutesAgo: number) => new Date(nowMs - minutesAgo * MINUTE_MS).toISOString();
  expect(await tools("--since", at(55), "--until", at(15))).toEqual(["new", "old"]);
  expect(await tools("--since", new Date(nowMs + 48 * 60 * MINUTE_MS).toISOString().slice(0, 10))).toEqual([]);
  for (const option of ["--since", "--until"]) {
    const { code, err } = await run(audit(option, "yesterday"));
    expect({ code, err }).toEqual({
      code: 2,
      err: expect.stringContaining(`${option} yesterday: expected a time such as 2026-01-31, 2h or 7d.`),
    });
  }
});

it("audit -f shows the last lines downwards and goes on with those that fit, once each, until Ctrl-C [audit-tells]", async () => {
  await writer.append([line("one", 20), line("other", 15, "elsewhere"), line("two", 10)]);
  const stop = new AbortController();
  const stdout = new PassThrough();
  let out = "";
  stdout.on("data", (chunk: Buffer) => {
    out += chunk.toString();
  });
  const ran = run(audit("-f", "--server", "demo", "-n", "2"), { signal: stop.signal, stdout });
  const shown = () => out.split("\n").flatMap((text) => /demo\/(\w+): ok, 12\.4 ms$/.exec(text)?.[1] ?? []);
  await until("what is there", () => shown().length === 2);
  await writer.append([line("three", 1), line("another", 1, "elsewhere")]);
  await until("the next", () => shown().length > 2);
  await writer.append([line("four", 0), line("five", 0)]);
  await until("those after it", () => shown().length > 4);
  stop.abort(new Stopped("SIGINT"));
  expect(await ran).toMatchObject({ code: 0, err: "" });
  expect(shown()).toEqual(["one", "two", "three", "four", "five"]);
  expect(out).not.toContain("elsewhere");
});
