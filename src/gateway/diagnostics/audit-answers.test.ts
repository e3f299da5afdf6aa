// What a search of the audit log by a page may cost.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { AuditAnswer } from "../../contracts/control/audit.js";
import { AuditWriter } from "../../observe/audit/writer.js";
import { systemClock } from "../../runtime/clock.js";
import { auditAnswer } from "./audit-answers.js";

let dir: string;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "toolway-audit-answer-"));
});

afterEach(() => {
  vi.restoreAllMocks();
  rmSync(dir, { recursive: true, force: true });
});

async function write(count: number): Promise<void> {
  const limits = { maxFileBytes: 1024 * 1024, maxBytes: 8 * 1024 * 1024, maxAgeDays: 30 };
  const writer = await AuditWriter.open({ ...limits, dir, wall: () => 0, kept: undefined, rotated: () => {} });
  const bodies = Array.from({ length: count }, (_, n) =>
    JSON.stringify({ time: new Date(n).toISOString(), kind: "call", server: n % 2 ? "a" : "b" }),
  );
  await writer.append(bodies);
  await writer.close();
}

const ask = (query: string) => auditAnswer(dir, new URLSearchParams(query));

async function all(query: string): Promise<AuditAnswer["lines"]> {
  const lines: AuditAnswer["lines"][number][] = [];
  for (let more = ""; ; ) {
    const found = await ask(`${query}${more}`);
    lines.push(...found.lines);
    if (found.next === undefined) return lines;
    more = `&file=${found.next.file}&before=${found.next.before}`;
  }
}

it("a search gives 200 lines at most, however many are asked for, and goes on where it stopped [bounded]", async () => {
  await write(1_000);
  for (const query of ["", "limit=100000", "limit=nonsense", "limit=-1"]) {
    expect((await ask(query)).lines).toHaveLength(200);
  }
  expect((await ask("limit=3")).lines).toHaveLength(3);
  const found = await all("server=a");
  expect(found).toHaveLength(500);
  expect(new Set(found.map(({ seq }) => seq)).size).toBe(500);
});

it("a search ends after two seconds with what it has found, and says where to go on [bounded]", async () => {
  await write(1_000);
  let nowMs = 0;
  // Each line takes it a tenth of a second.
  vi.spyOn(systemClock, "now").mockImplementation(() => {
    nowMs += 100;
    return nowMs;
  });
  const { lines, next } = await ask("");
  expect(lines.length).toBeLessThanOrEqual(20);
  expect(lines.length).toBeGreaterThan(0);
  expect(next).toMatchObject({ file: expect.any(String), before: expect.any(Number) });
});
