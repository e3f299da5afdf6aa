// When lines of the audit log are written, when its head is told, and how long its files are kept.

import { mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { TestClock } from "../../../test/fixtures/test-clock.js";
import { emptyRecord } from "../call-record.js";
import { CallRecorder } from "../call-recorder.js";
import { AuditLog } from "./audit-log.js";
import { type ChainHead, chained, NO_LINES } from "./chain.js";
import { verifyAudit } from "./verify.js";
import { AuditWriter } from "./writer.js";

const DAY_MS = 86_400_000;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval"] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** Of a disk that takes each batch at once; they are told by how many lines they have. */
function openLog() {
  const batches: number[] = [];
  const anchors: number[] = [];
  let head: ChainHead = NO_LINES;
  const audit = new AuditLog({
    writer: {
      append: async (bodies) => {
        batches.push(bodies.length);
        head = chained(bodies, head).head;
      },
      get head() {
        return head;
      },
      close: async () => {},
    },
    onFull: "drop",
    arguments: { mode: "none", key: Buffer.from("key") },
    redact: (_, name) => name,
    wall: () => 1e12,
    keepHead: async () => {},
    anchor: ({ seq }) => anchors.push(seq),
    told: () => {},
  });
  const calls = (count: number) => {
    for (let i = 0; i < count; i++) audit.add('{"kind":"call"}');
  };
  return { audit, batches, anchors, calls };
}

it("a call is a line within 100 ms of its end, and not on its turn [audit-tells]", async () => {
  const { audit, batches } = openLog();
  const recorder = new CallRecorder([audit]);
  const principal = { id: "ann", role: "dev" };
  const ends = () =>
    Object.assign(recorder.next() ?? {}, { ...emptyRecord(), principal, method: "tools/call", server: "s", tool: "t" });
  ends();
  await vi.advanceTimersByTimeAsync(20);
  ends();
  expect(batches).toEqual([]);
  await vi.advanceTimersByTimeAsync(80);
  expect(batches).toEqual([2]);
  ends();
  await vi.advanceTimersByTimeAsync(100);
  expect(batches).toEqual([2, 1]);
  await audit.close();
});

it("256 lines are written without waiting for more, and no more than that at once [audit-tells] [bounded]", async () => {
  const { audit, batches, calls } = openLog();
  calls(255);
  await vi.advanceTimersByTimeAsync(0);
  expect(batches).toEqual([]);
  calls(1);
  await vi.advanceTimersByTimeAsync(0);
  expect(batches).toEqual([256]);
  calls(600);
  await vi.advanceTimersByTimeAsync(100);
  expect(batches).toEqual([256, 256, 256, 88]);
  await audit.close();
});

it("the head is told once an hour where lines were written since, and at the end [audit-tells]", async () => {
  const { audit, anchors, calls } = openLog();
  calls(3);
  await vi.advanceTimersByTimeAsync(3_599_000);
  expect(anchors).toEqual([]);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(anchors).toEqual([3]);
  await vi.advanceTimersByTimeAsync(3_600_000);
  expect(anchors).toEqual([3]);
  calls(2);
  await vi.advanceTimersByTimeAsync(3_600_000);
  expect(anchors).toEqual([3, 5]);
  calls(1);
  await audit.close();
  expect(anchors).toEqual([3, 5, 6]);
  await vi.advanceTimersByTimeAsync(7_200_000);
  expect(anchors).toEqual([3, 5, 6]);
});

it("a file is as long as a day, and goes when its last line is older than it may be; a line says so, and the chain holds [audit-tells] [bounded]", async () => {
  vi.useRealTimers();
  const dir = mkdtempSync(join(tmpdir(), "toolway-audit-times-"));
  const clock = new TestClock();
  const limits = { maxFileBytes: 1e6, maxBytes: 1e9, maxAgeDays: 3 };
  const writer = await AuditWriter.open({
    ...limits,
    dir,
    wall: () => clock.wall(),
    kept: undefined,
    rotated: () => {},
  });
  const files = () => readdirSync(dir).sort();
  const append = async (body: string) => {
    await writer.append([body]);
    // Files have the time of the machine that runs this.
    utimesSync(join(dir, files().at(-1) as string), clock.wall() / 1_000, clock.wall() / 1_000);
  };
  await append('{"kind":"call","day":0}');
  for (let day = 1; day <= 6; day++) {
    clock.advance(DAY_MS);
    await append(`{"kind":"call","day":${day}}`);
  }
  const days = () =>
    files().map((name) =>
      readFileSync(join(dir, name), "utf8")
        .split("\n")
        .flatMap((line) => (line === "" ? [] : [JSON.parse(line) as { day?: number; kind: string; file?: string }])),
    );
  const kept = days().map((lines) => lines.flatMap(({ day }) => (day === undefined ? [] : [day])));
  expect(kept).toEqual([[4], [5], [6]]);
  const removed = days().flatMap((lines) => lines.filter(({ kind }) => kind === "removed").map(({ file }) => file));
  for (const name of removed) expect(files()).not.toContain(name);
  expect(removed.length).toBeGreaterThan(0);
  await writer.close();
  expect((await verifyAudit(dir, [])).wrong).toBeUndefined();
  rmSync(dir, { recursive: true, force: true });
});
