// The audit log on disk: its batches, its files, full disks, kills, and what is searched and checked of it.

import { createHmac } from "node:crypto";
import {
  appendFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { open as openReal } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { quicker } from "../../../test/faults/length.js";
import { TestClock } from "../../../test/fixtures/test-clock.js";
import { ownToolName } from "../../contracts/names.js";
import { parseMessage, type RequestMessage } from "../../protocol/message.js";
import { SMALL_WORK_BYTES, turns } from "../../runtime/turns/turns.js";
import { type CallRecord, emptyRecord } from "../call-record.js";
import { AuditLog, type AuditLogOptions } from "./audit-log.js";
import type { ChainHead } from "./chain.js";
import { linesBackwards, linesOf } from "./files.js";
import { searchAudit } from "./search.js";
import { verifyAudit } from "./verify.js";
import { AuditWriter, type AuditWriterOptions } from "./writer.js";

let dir: string;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "toolway-audit-"));
});

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  rmSync(dir, { recursive: true, force: true });
});

const LIMITS = { maxFileBytes: 64 * 1024, maxBytes: 1024 * 1024, maxAgeDays: 30 };

interface Opened {
  readonly audit: AuditLog;
  readonly clock: TestClock;
  readonly anchors: ChainHead[];
  readonly told: string[];
  kept: ChainHead | undefined;
  /** Set, every write fails as a full disk does; `after` bytes of it are written all the same. */
  fullAfter: number | undefined;
}

async function open(
  over: Partial<AuditLogOptions> = {},
  limits: Partial<AuditWriterOptions> = {},
  clock = new TestClock(),
): Promise<Opened> {
  const anchors: ChainHead[] = [];
  const told: string[] = [];
  const writer = await AuditWriter.open({
    ...LIMITS,
    dir,
    wall: () => clock.wall(),
    kept: undefined,
    rotated: (head) => anchors.push(head),
    ...limits,
  });
  const opened: Opened = { clock, anchors, told, kept: undefined, fullAfter: undefined, audit: undefined as never };
  const audit = new AuditLog({
    writer: {
      append: async (bodies) => {
        if (opened.fullAfter === undefined) return writer.append(bodies);
        throw new Error("ENOSPC: no space left on device, write");
      },
      get head() {
        return writer.head;
      },
      close: () => writer.close(),
    },
    onFull: "drop",
    arguments: { mode: "none", key: Buffer.from("key") },
    redact: (_, name) => name.replaceAll("hunter2", "[redacted]"),
    wall: () => clock.wall(),
    keepHead: async (head) => {
      opened.kept = head;
    },
    anchor: (head) => anchors.push(head),
    told: (_, text) => told.push(text),
    ...over,
  });
  return Object.assign(opened, { audit });
}

function call(more: Partial<CallRecord> = {}): CallRecord {
  const principal = { id: "ann", role: "dev" };
  return { ...emptyRecord(), principal, method: "tools/call", server: "files", tool: "read", endedAt: 1e12, ...more };
}

const files = () => readdirSync(dir).sort();
const lines = () =>
  files().flatMap((name) =>
    readFileSync(join(dir, name), "utf8")
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as Record<string, unknown>),
  );
const search = (more: object = {}) => searchAudit(dir, { maxLines: 100, maxMs: 1e9, nowMs: () => 0, ...more });

it("calls, refusals, tokens and acts of operators are a line each, without what was said; lists are none [audit-tells] [secrets-unseen]", async () => {
  const { audit } = await open();
  audit.take(call({ tool: "read-hunter2", ms: 12.34, outcome: "timeout" }));
  audit.take(call({ method: "tools/list", tool: undefined }));
  audit.take(call({ refusedBy: "role", outcome: "denied" }));
  audit.operator("page", "POST /servers/:server/stop", { server: "files" }, "ok");
  audit.refusedToken("10.0.0.9", "/mcp", "The token is unknown.");
  await audit.close();
  expect(lines().map(({ kind }) => kind)).toEqual(["file", "resumed", "call", "refusal", "operator", "refusal"]);
  expect(lines()[2]).toMatchObject({ principal: "ann", server: "files", tool: "read-[redacted]", ms: 12.3 });
  expect(lines()[4]).toMatchObject({ by: "page", act: "POST /servers/:server/stop", target: { server: "files" } });
  expect(statSync(join(dir, files()[0] as string)).mode & 0o777).toBe(0o600);
  expect(await verifyAudit(dir, [])).toMatchObject({ lines: 6, wrong: undefined });
});

it("a kept write that ended after its receipt is a line of its own, which fails as a call does [audit-tells] [secrets-unseen]", async () => {
  const { audit } = await open();
  const principal = { id: "ann", role: "dev" };
  const write = { id: "r1", server: "files", tool: ownToolName("write-hunter2"), principal };
  audit.keptWrite(write, "unknown");
  audit.keptWrite(write, "done");
  await audit.close();
  const facts = { kind: "write", principal: "ann", role: "dev", server: "files", tool: "write-[redacted]" };
  expect(lines().slice(2)).toEqual([
    expect.objectContaining({ ...facts, outcome: "unknown", receipt: "r1" }),
    expect.objectContaining({ ...facts, outcome: "ok", receipt: "r1" }),
  ]);
  expect((await search({ outcome: "failed" })).lines).toMatchObject([{ outcome: "unknown" }]);
});

it("arguments are in it as the config says: not at all, as an HMAC by a key, or without their secrets [audit-tells] [secrets-unseen]", async () => {
  const args = { path: "/a", password: "p4ss", note: "say hunter2", deep: { token: "abc" } };
  const text = JSON.stringify({
    jsonrpc: "2.0",
    id: 1,
    method: "tools/call",
    params: { name: "read", arguments: args },
  });
  const request = parseMessage(text) as RequestMessage;
  const seen: unknown[] = [];
  for (const [mode, key] of [
    ["none", "one"],
    ["hmac", "one"],
    ["hmac", "one"],
    ["hmac", "two"],
    ["redacted", "one"],
  ] as const) {
    const { audit } = await open({ arguments: { mode, key: Buffer.from(key) } });
    expect(audit.wantsArguments).toBe(mode !== "none");
    audit.take(call({ asked: audit.argumentsOf(request) }));
    await audit.close();
    seen.push(lines().at(-1)?.["arguments"]);
  }
  const [none, one, again, two, redacted] = seen;
  expect(none).toBeUndefined();
  expect(one).toEqual({ hmac: expect.stringMatching(/^[\w-]{43}$/), length: JSON.stringify(args).length });
  expect(again).toEqual(one);
  expect(two).not.toEqual(one);
  expect(redacted).toEqual({
    path: "/a",
    password: "[redacted]",
    note: "say [redacted]",
    deep: { token: "[redacted]" },
  });
  const { audit } = await open({ arguments: { mode: "redacted", key: Buffer.from("") } });
  const long = JSON.stringify({
    jsonrpc: "2.0",
    id: 1,
    method: "tools/call",
    params: { arguments: { a: "x".repeat(9_000) } },
  });
  audit.take(call({ asked: audit.argumentsOf(parseMessage(long) as RequestMessage) }));
  await audit.close();
  expect(lines().at(-1)?.["arguments"]).toEqual({ length: 9_008 });
});

it("the HMAC of long arguments is that of their JSON too, and the request is held for it until its line is written", async () => {
  const key = Buffer.from("one");
  const { audit } = await open({ arguments: { mode: "hmac", key } });
  for (const letters of [10, 9_000]) {
    const args = { a: "x".repeat(letters) };
    const text = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { arguments: args } });
    const asked = audit.argumentsOf(parseMessage(text) as RequestMessage);
    expect(asked.message === undefined).toBe(letters === 10);
    audit.take(call({ asked }));
    await audit.flush();
    const json = JSON.stringify(args);
    const hmac = createHmac("sha256", key).update(json).digest("base64url");
    expect(lines().at(-1)?.["arguments"]).toEqual({ hmac, length: json.length });
  }
  await audit.close();
});

it("arguments above 64 KiB have the same HMAC wherever they stand and however they are spaced, and the length that they were written in [audit-tells]", async () => {
  const key = Buffer.from("one");
  const { audit } = await open({ arguments: { mode: "hmac", key } });
  const shown = async (text: string) => {
    audit.take(call({ asked: audit.argumentsOf(parseMessage(text) as RequestMessage) }));
    await audit.flush();
    return lines().at(-1)?.["arguments"];
  };
  const args = { rows: Array.from({ length: 9_000 }, (_, n) => `row ${n}`), note: "the end" };
  const json = JSON.stringify(args);
  const hmac = createHmac("sha256", key).update(json.slice(0, 65_536)).digest("base64url");
  const misleading = JSON.stringify('"arguments":');
  const request = (id: string, written: string, more = "") =>
    `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"read"${more},"arguments":${written}},"x":${misleading}}`;
  expect(json.length).toBeGreaterThan(65_536);
  expect(await shown(request("1", json))).toEqual({ hmac, length: json.length });
  // Another id, another progress token, and a word that looks like the name of the arguments.
  const more = `,"_meta":{"progressToken":"p-12345","note":${misleading}}`;
  expect(await shown(request('"a-longer-id"', json, more))).toEqual({ hmac, length: json.length });
  const spaced = JSON.stringify(args, null, 2);
  expect(await shown(request("1", spaced))).toEqual({ hmac, length: spaced.length });
  expect(await shown(request("1", json.replace("row 7", "row seven")))).not.toMatchObject({ hmac });
  // What is long is not the arguments: they have the HMAC that they have in a short request.
  const short = await shown(request("1", '{"a":1}'));
  expect(await shown(request("1", '{ "a": 1 }', `,"_meta":{"note":"${"x".repeat(70_000)}"}`))).toEqual(short);
  expect(await shown(request("1", `{ "a": 1${" ".repeat(70_000)}}`))).toEqual(short);
  await audit.close();
});

it("redacted arguments above 64 KiB are their length, wherever they stand, and those of a long request are shown [audit-tells]", async () => {
  const { audit } = await open({ arguments: { mode: "redacted", key: Buffer.from("") } });
  const shown = async (params: object) => {
    const text = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params });
    audit.take(call({ asked: audit.argumentsOf(parseMessage(text) as RequestMessage) }));
    await audit.flush();
    return lines().at(-1)?.["arguments"];
  };
  const long = { a: "x".repeat(70_000) };
  const after = { _meta: { note: "x".repeat(70_000) } };
  expect(await shown({ arguments: long, ...after })).toEqual({ length: 70_008 });
  expect(await shown({ arguments: { path: "/a" }, ...after })).toEqual({ path: "/a" });
  await audit.close();
});

it("files are rotated under load, the oldest go within the bounds and a line says so, and the chain holds over all [audit-tells] [bounded]", async () => {
  const opened = await open({}, { maxBytes: 256 * 1024 });
  for (let round = 0; round < 60; round++) {
    for (let i = 0; i < 100; i++) opened.audit.take(call({ ms: i, tool: `tool-${i}` }));
    if (round % 7 === 0) await opened.audit.flush();
  }
  await opened.audit.close();
  const sizes = files().map((name) => statSync(join(dir, name)).size);
  expect(Math.max(...sizes)).toBeLessThanOrEqual(64 * 1024);
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(256 * 1024);
  expect(lines().some(({ kind }) => kind === "removed")).toBe(true);
  // Each new file is an anchor in the log.
  expect(opened.anchors.length).toBeGreaterThan(5);
  expect(opened.kept?.seq).toBeGreaterThan(6_000);
  const last = { ...(opened.kept as ChainHead), from: "the store" };
  const report = await verifyAudit(dir, [last, { ...(opened.anchors.at(-1) as ChainHead), from: "--anchor" }]);
  expect(report).toMatchObject({ wrong: undefined, last: opened.kept });
  expect(opened.audit.counts).toEqual({ written: 6_000, lost: 0 });
  // A file in the middle that was removed by another hand is seen.
  rmSync(join(dir, files()[1] as string));
  expect((await verifyAudit(dir, [])).wrong?.why).toContain("missing");
});

it("a batch that is half written when the chain is checked is no torn line, and one that is taken back is no wrong one [audit-tells]", async () => {
  /** Asked after the first half of each write; false has the disk full then. */
  let halfWay = async (): Promise<boolean> => true;
  const openFile = async (...args: Parameters<typeof openReal>) => {
    const file = await openReal(...args);
    const write = file.write.bind(file) as (
      bytes: Buffer,
      at: number,
      length: number,
      position: number,
    ) => Promise<{ bytesWritten: number }>;
    return Object.assign(file, {
      write: async (bytes: Buffer, at: number, length: number, position: number) => {
        const half = Math.max(1, length >> 1);
        await write(bytes, at, half, position);
        if (!(await halfWay())) throw new Error("ENOSPC: no space left on device, write");
        await write(bytes, at + half, length - half, position + half);
        return { bytesWritten: length };
      },
    });
  };
  const { audit } = await open({}, { openFile: openFile as typeof openReal });
  const looks: unknown[] = [];
  const look = async () => looks.push(await verifyAudit(dir, [], { written: () => audit.head }));
  for (const isRoom of [true, false, true, false, true]) {
    halfWay = async () => {
      await look();
      return isRoom;
    };
    for (let i = 0; i < 20; i++) audit.take(call({ ms: i }));
    await audit.flush();
    await look();
  }
  await audit.close();
  expect(looks).toHaveLength(10);
  for (const found of looks) expect(found).toMatchObject({ wrong: undefined, notes: [] });
  expect(await verifyAudit(dir, [])).toMatchObject({ wrong: undefined, notes: [], last: audit.head });
});

it("is checked while it is written, while files are begun and old ones removed, and nothing is called wrong or torn [audit-tells]", async () => {
  const { audit } = await open({}, { maxFileBytes: 8 * 1024, maxBytes: 128 * 1024 });
  let isOver = false;
  let checks = 0;
  const load = async () => {
    for (let round = 0; round < quicker(120, 30) || checks < 6; round++) {
      for (let i = 0; i < 25; i++) audit.take(call({ ms: i, tool: `tool-${i}` }));
      await audit.flush();
    }
    isOver = true;
  };
  const written = load();
  while (!isOver) {
    const report = await verifyAudit(dir, [], { written: () => audit.head });
    expect(report).toMatchObject({ wrong: undefined, notes: [] });
    checks++;
  }
  await written;
  await audit.close();
  expect(lines().some(({ kind }) => kind === "removed")).toBe(true);
});

it("a clock that is set back, or a day ahead, changes nothing of the chain [audit-tells]", async () => {
  const { audit, clock } = await open();
  for (const jump of [-1e9, 2e9, -3e9, 4e9]) {
    clock.jumpWall(jump);
    audit.take(call({ endedAt: clock.wall() }));
    await audit.flush();
  }
  await audit.close();
  expect(files().length).toBeGreaterThan(1);
  expect(await verifyAudit(dir, [])).toMatchObject({ wrong: undefined, notes: [] });
});

it("a line torn by a kill is told as that, and the log goes on after it [audit-tells]", async () => {
  for (const cut of [1, 20, 200]) {
    const before = await open();
    before.audit.take(call());
    await before.audit.close();
    const path = join(dir, files().at(-1) as string);
    truncateSync(path, statSync(path).size - cut);
    const { audit } = await open({}, { kept: undefined });
    audit.take(call());
    await audit.close();
    expect((await verifyAudit(dir, [])).wrong).toBeUndefined();
  }
  expect((await verifyAudit(dir, [])).notes.length).toBeGreaterThan(0);
  // All of it, byte by byte.
  const [name] = files() as [string];
  const whole = readFileSync(join(dir, name));
  for (let size = 0; size < 900; size += 7) {
    writeFileSync(join(dir, name), whole.subarray(0, size));
    await (await open()).audit.close();
    expect((await verifyAudit(dir, [])).wrong).toBeUndefined();
  }
});

it("a line torn after the one whose head was kept, by a kill on a full disk, is no tail that was cut off [audit-tells]", async () => {
  const one = await open();
  one.audit.take(call());
  await one.audit.close();
  const path = join(dir, files().at(-1) as string);
  appendFileSync(path, '{"seq":4,"prev":"torn by a ki');
  const full = (async (...args: Parameters<typeof openReal>) => {
    const file = await openReal(...args);
    const write = file.write.bind(file) as (...args: unknown[]) => Promise<unknown>;
    const fails = async (bytes: Buffer | string, at: number, length: number, position: number) => {
      if (typeof bytes === "string") return write(bytes, at);
      await write(bytes, at, Math.min(length, 40), position);
      throw new Error("ENOSPC: no space left on device, write");
    };
    return Object.assign(file, { write: fails });
  }) as typeof openReal;
  // A start on a disk that is still full leaves nothing of its own.
  await expect(open({}, { kept: one.kept, openFile: full })).rejects.toThrow("ENOSPC");
  await (await open({}, { kept: one.kept })).audit.close();
  expect(await verifyAudit(dir, [])).toMatchObject({
    wrong: undefined,
    notes: [expect.stringContaining("torn, by a kill")],
  });
});

it("names that hold what other programs end lines by are in one line, and break no chain [audit-tells]", async () => {
  const { audit } = await open();
  for (const name of ["a\u2028b", "a\u2029b", "a\u0085b", "a\rb"])
    audit.take(call({ tool: name, clientInfo: { name } }));
  await audit.close();
  expect(await verifyAudit(dir, [])).toMatchObject({ lines: 6, wrong: undefined, notes: [] });
});

it("a tail that was cut off while no gateway ran is told by the next one, in the log itself [audit-tells]", async () => {
  const one = await open();
  for (let i = 0; i < 5; i++) one.audit.take(call());
  await one.audit.close();
  const path = join(dir, files()[0] as string);
  const kept = readFileSync(path, "utf8").split("\n").slice(0, 4).join("\n");
  writeFileSync(path, `${kept}\n`);
  const two = await open({}, { kept: one.kept });
  two.audit.take(call());
  await two.audit.close();
  const { wrong } = await verifyAudit(dir, []);
  expect(wrong?.why).toContain(`did not have line ${one.kept?.seq}`);
  // A kill between lines and the keeping of their head is no such thing.
  rmSync(path);
  const three = await open();
  three.audit.take(call());
  await three.audit.flush();
  const early = three.kept;
  three.audit.take(call());
  await three.audit.close();
  await (await open({}, { kept: early })).audit.close();
  expect((await verifyAudit(dir, [])).wrong).toBeUndefined();
});

it("a full disk that is freed loses nothing that found room to wait, tells the rest, and refuses only where it is to [audit-tells] [bounded]", async () => {
  for (const onFull of ["drop", "refuse"] as const) {
    const opened = await open({ onFull }, { maxFileBytes: 8 * 1024 * 1024, maxBytes: 64 * 1024 * 1024 });
    const { audit, told } = opened;
    opened.fullAfter = 0;
    audit.take(call());
    await audit.flush();
    expect(audit.problem).toContain("ENOSPC");
    expect(audit.isRefusing).toBe(onFull === "refuse");
    for (let i = 0; i < 9_000; i++) audit.take(call());
    await audit.flush();
    expect(audit.counts).toEqual({ written: 0, lost: 9_001 - 8_192 });
    const { lostAt, problemAt } = audit.times;
    for (const at of [lostAt, problemAt]) expect(at).toMatch(/^\d{4}-.*Z$/);
    expect(told).toHaveLength(1);
    opened.fullAfter = undefined;
    await audit.flush();
    expect(audit.isRefusing).toBe(false);
    expect(audit.counts.written).toBe(8_192);
    // What is lost stays lost.
    expect(audit.times).toEqual({ lostAt, problemAt: undefined });
    await audit.close();
    expect(lines().filter(({ kind }) => kind === "gap")).toMatchObject([{ lost: 809 }]);
    const report = await verifyAudit(dir, []);
    expect(report.wrong).toBeUndefined();
    expect(report.notes[0]).toContain("809 lines were lost");
    rmSync(dir, { recursive: true });
  }
});

it("what a full disk took of a batch, or of a new file, is cut off again before the next try [audit-tells]", async () => {
  let room = Number.POSITIVE_INFINITY;
  const openFile = (async (...given: Parameters<typeof openReal>) => {
    const file = await openReal(...given);
    const write = file.write.bind(file) as (bytes: Buffer, at: number, length: number, to: number) => Promise<unknown>;
    const limited = async (bytes: Buffer, at: number, length: number, to: number) => {
      if (room <= 0) throw new Error("ENOSPC: no space left on device, write");
      const some = Math.min(room, length);
      room -= some;
      return write(bytes, at, some, to);
    };
    return Object.assign(file, { write: limited });
  }) as typeof openReal;
  for (let left = 0; left < 500; left += quicker(37, 111)) {
    room = Number.POSITIVE_INFINITY;
    const { audit } = await open({}, { openFile, maxFileBytes: 2_000 });
    for (let i = 0; i < 8; i++) {
      room = left * (i % 3);
      audit.take(call({ tool: `a-longer-name-${"x".repeat(left)}` }));
      await audit.flush();
      room = Number.POSITIVE_INFINITY;
      audit.take(call({ tool: "short" }));
      await audit.flush();
    }
    await audit.close();
    expect(audit.counts).toEqual({ written: 16, lost: 0 });
    expect(await verifyAudit(dir, [])).toMatchObject({ wrong: undefined, notes: [] });
  }
});

it("of tokens that are refused at most ten a second of an address are a line, and the others a number [bounded]", async () => {
  const { audit, clock } = await open();
  for (let i = 0; i < 50; i++) audit.refusedToken("10.0.0.1", "/mcp", "no");
  audit.refusedToken("10.0.0.2", "/mcp", "no");
  clock.advance(1_000);
  audit.refusedToken("10.0.0.1", "/mcp", "no");
  await audit.close();
  const refused = lines().filter(({ kind }) => kind === "refusal");
  expect(refused).toHaveLength(13);
  expect(refused.filter(({ more }) => more !== undefined)).toMatchObject([{ address: "10.0.0.1", more: 40 }]);
});

it("how many more tokens were refused is told when their second is over, also where none is refused after it [audit-tells]", async () => {
  const { audit } = await open();
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  for (let i = 0; i < 50; i++) audit.refusedToken("10.0.0.1", "/mcp", "no");
  vi.advanceTimersByTime(1_000);
  vi.useRealTimers();
  await audit.flush();
  await audit.flush();
  const more = () => lines().filter((line) => line["more"] !== undefined);
  expect(more()).toMatchObject([{ kind: "refusal", address: "10.0.0.1", more: 40 }]);
  await audit.close();
  expect(more()).toHaveLength(1);
});

it("a search gives the newest first, by every filter, in pieces that go on where the one before stopped [audit-tells]", async () => {
  const { audit, clock } = await open();
  for (let i = 0; i < 700; i++) {
    clock.advance(1_000);
    const outcome = i % 10 === 0 ? ("timeout" as const) : ("ok" as const);
    audit.take(call({ tool: `t${i}`, server: i % 2 === 0 ? "even" : "odd", endedAt: clock.wall(), outcome }));
    if (i % 100 === 0) audit.operator("socket", "POST /servers/:server/stop", { server: "even" }, "ok");
  }
  await audit.close();
  expect(files().length).toBeGreaterThan(1);
  const newest = await search({ maxLines: 3, server: "odd" });
  expect(newest.lines.map((line) => line["tool"])).toEqual(["t699", "t697", "t695"]);
  const found: unknown[] = [];
  let from = newest.next;
  for (let more = true; more; ) {
    const answer = await search({ maxLines: 50, server: "odd", from });
    found.push(...answer.lines);
    from = answer.next;
    more = from !== undefined;
  }
  expect(found).toHaveLength(347);
  expect((await search({ outcome: "failed" })).lines).toHaveLength(70);
  expect((await search({ operator: true, server: "even" })).lines).toHaveLength(7);
  expect((await search({ principal: "bob" })).lines).toEqual([]);
  const sinceMs = clock.wall() - 10_000;
  expect((await search({ sinceMs, principal: "ann" })).lines).toHaveLength(11);
  // It gives up its turn, and ends when its time is over.
  let nowMs = 0;
  const late = await search({ maxLines: 1e6, maxMs: 100, nowMs: () => nowMs++ });
  expect(late.lines.length).toBeLessThan(101);
  expect(late.next).toBeDefined();
});

it("a file is read backwards as it is read forwards, wherever its lines end", async () => {
  const path = join(dir, "lines");
  for (const sizes of [[], [0], [1, 2, 3], [65_535, 1, 65_536, 70_000, 3], [200_000], [65_536 - 1], [0, 0, 5]]) {
    const texts = sizes.map((size, i) => `${i}`.repeat(size));
    writeFileSync(path, texts.map((text) => `${text}\n`).join("") + (sizes.length > 3 ? "torn" : ""));
    const back: string[] = [];
    for await (const { text } of linesBackwards(path)) back.push(text);
    expect(back.reverse()).toEqual(texts);
    const forwards: string[] = [];
    for await (const text of linesOf(path)) forwards.push(text);
    expect(forwards).toEqual(sizes.length > 3 ? [...texts, "torn"] : texts);
  }
});

it("a file is read in turns, which know how many bytes are looked at [bounded]", async () => {
  const path = join(dir, "lines");
  const text = `${"x".repeat(999)}\n`.repeat(300);
  writeFileSync(path, text);
  const wait = vi.spyOn(turns, "wait");
  for (const read of [linesOf, linesBackwards]) {
    let lines = 0;
    for await (const _ of read(path)) lines++;
    expect(lines).toBe(300);
    expect(wait.mock.calls.reduce((sum, [bytes]) => sum + bytes, 0)).toBe(text.length);
    expect(Math.max(...wait.mock.calls.map(([bytes]) => bytes))).toBeLessThanOrEqual(SMALL_WORK_BYTES);
    wait.mockClear();
  }
});
