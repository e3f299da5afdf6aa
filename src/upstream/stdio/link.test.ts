import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, describe, expect, it, vi } from "vitest";
import { until } from "../../../test/fixtures/wait.js";
import type { StdioTarget } from "../../contracts/server-spec.js";
import type { Fault } from "../../protocol/errors.js";
import { Reaper } from "../../runtime/processes/reaper.js";
import { findMarked } from "../../runtime/processes/reaper-marker.js";
import type { LinkEvents, Ticket } from "../link/link.js";
import { type StdioLimits, StdioLink } from "./link.js";

const reaper = new Reaper({ stateHash: "stdio-test", env: process.env });
const links: StdioLink[] = [];
const never = new AbortController().signal;

afterEach(async () => {
  await Promise.all(links.splice(0).map((link) => link.close()));
});
afterAll(() => reaper.close());

class Recorder implements LinkEvents {
  readonly messages: { id?: number; method?: string; params?: unknown; result?: unknown }[] = [];
  readonly failed: { id: number; fault: Fault; sent: boolean }[] = [];
  readonly closed: Fault[] = [];
  noise = 0;
  readonly samples = new Set<string>();
  /** In which order things came. */
  readonly order: string[] = [];

  onMessage(bytes: Buffer): void {
    this.messages.push(JSON.parse(bytes.toString()));
    this.order.push("message");
  }
  onPieces(pieces: readonly Buffer[]): void {
    this.onMessage(Buffer.concat(pieces));
  }
  onLargeReply(): void {
    throw new Error("a pipe has no large replies");
  }
  onFailed(ticket: Ticket, fault: Fault, sent: boolean): void {
    this.failed.push({ id: ticket.id, fault, sent });
    this.order.push("failed");
  }
  onClosed(fault: Fault): void {
    this.closed.push(fault);
    this.order.push("closed");
  }
  onNoise(sample: string): void {
    this.noise++;
    this.samples.add(sample);
  }

  pids(): number[] {
    return this.messages.flatMap((m) => (m.method === "pids" ? (m.params as number[]) : []));
  }
}

function fixture(name: string, ...args: string[]): StdioTarget {
  const script = fileURLToPath(new URL(`../../../test/fixtures/children/${name}.mjs`, import.meta.url));
  return { kind: "stdio", command: process.execPath, args: [script, ...args], env: {}, cwd: undefined };
}

function linkTo(target: StdioTarget, limits: Partial<StdioLimits> = {}, env: NodeJS.ProcessEnv = process.env) {
  const seen = new Recorder();
  const link = new StdioLink(target, seen, { reaper, env, limits });
  links.push(link);
  return { link, seen };
}

const ticket = (id: number): Ticket => ({ id, method: "tools/call", subject: "echo" });
const request = (id: number, method: string, params: unknown = {}) =>
  JSON.stringify({ jsonrpc: "2.0", id, method, params });
/** R, S, D …; undefined when it is gone. */
function stateOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    return stat[stat.lastIndexOf(")") + 2];
  } catch {
    return undefined;
  }
}
/** A zombie has ended; when it disappears is up to process 1. */
const alive = (pid: number) => ![undefined, "Z", "X"].includes(stateOf(pid));

describe("StdioLink: messages", () => {
  it("carries requests there and answers back, bursts and pretty-printed ones too", async () => {
    const { link, seen } = linkTo(fixture("echo"));
    await link.open(never);
    const pretty = JSON.stringify(
      { jsonrpc: "2.0", id: 1, method: "tools/call", params: { arguments: "ü\n😀" } },
      null,
      2,
    );
    link.send(pretty.replaceAll("\n", "\r\n"), ticket(1));
    for (let id = 2; id <= 2_000; id++) link.send(request(id, "tools/call", { arguments: { id } }), ticket(id));
    await until(() => seen.messages.length === 2_000);
    expect(seen.messages.map((m) => m.id)).toEqual(Array.from({ length: 2_000 }, (_, i) => i + 1));
    expect(seen.messages[0]?.result).toEqual({ content: [{ type: "text", text: JSON.stringify("ü\n😀") }] });
    expect([seen.noise, seen.failed.length]).toEqual([0, 0]);
    expect(link.describe().pid).toBeGreaterThan(1);
  });

  it("reads the pipe that Node makes where there is no folder for a pair of sockets", async () => {
    vi.stubEnv("TMPDIR", join(tmpdir(), "not-there"));
    const { link, seen } = linkTo(fixture("echo"));
    await link.open(never);
    vi.unstubAllEnvs();
    link.send(request(1, "tools/call", { arguments: "x".repeat(300_000) }), ticket(1));
    await until(() => seen.messages.length === 1);
    expect(JSON.stringify(seen.messages[0]?.result).length).toBeGreaterThan(300_000);
    const { pid } = link.describe();
    await link.close();
    expect(stateOf(pid as number)).toBeUndefined();
  });

  it("gives the child an allowlisted environment and the marker, never our secrets", async () => {
    const target = { ...fixture("echo"), env: { API_KEY: "given" } };
    const { link, seen } = linkTo(target, {}, { PATH: "/bin", TOOLWAY_TOKEN: "canary", OTHER_SECRET: "canary" });
    await link.open(never);
    link.send(request(1, "env"), ticket(1));
    await until(() => seen.messages.length === 1);
    const env = seen.messages[0]?.result as Record<string, string>;
    expect(JSON.stringify(env)).not.toContain("canary");
    expect(env).toMatchObject({ PATH: "/bin", API_KEY: "given" });
    expect(env["TOOLWAY_CHILD_OF"]).toMatch(new RegExp(`^${reaper.instance}\\.\\d+$`));
  });

  it("skips noise, empty lines, BOM and CRLF, and takes a last line without its end", async () => {
    const { link, seen } = linkTo(fixture("noisy"));
    await link.open(never);
    await until(() => seen.closed.length === 1);
    const methods = ["notifications/bom", "notifications/space", "notifications/done"];
    expect(seen.messages.map((m) => m.method)).toEqual(methods);
    expect(seen.noise).toBe(2);
    expect([...seen.samples][0]).toBe("Server v1 starting…");
    expect([...seen.samples][1]).toBe("long ".repeat(40));
  });

  it("counts a flood of noise, and lets others have their turn [one-bad-server] [bounded]", async () => {
    const { link, seen } = linkTo(fixture("noisy", "3000000"));
    let turns = 0;
    const timer = setInterval(() => turns++, 1);
    const before = process.memoryUsage().rss;
    await link.open(never);
    await until(() => seen.closed.length === 1);
    clearInterval(timer);
    expect(seen.noise).toBe(3_000_002);
    expect(seen.messages.at(-1)?.method).toBe("notifications/done");
    expect(turns).toBeGreaterThan(20);
    expect(process.memoryUsage().rss - before).toBeLessThan(200 * 1024 * 1024);
  });

  it("fails the request whose answer is over the bound, and goes on [bounded]", async () => {
    for (const idAt of ["first", "last"]) {
      const { link, seen } = linkTo(fixture("long-line", "300000", idAt), { maxLineBytes: 100_000 });
      await link.open(never);
      link.send(request(7, "tools/call"), ticket(7));
      await until(() => seen.messages.length === 1);
      expect(seen.failed).toMatchObject([{ id: 7, sent: true, fault: { code: "limit" } }]);
      expect(seen.noise).toBe(0);
    }
  });

  it("takes an over-long request of the server for noise: its ids are not ours", async () => {
    const { link, seen } = linkTo(fixture("long-line", "300000", "request"), { maxLineBytes: 100_000 });
    await link.open(never);
    link.send(request(7, "tools/call"), ticket(7));
    await until(() => seen.messages.length === 1);
    expect([seen.failed.length, seen.noise]).toEqual([0, 1]);
    expect([...seen.samples][0]?.length).toBe(200);
  });

  it("survives a line of 70 MiB with the default bound [bounded]", async () => {
    const { link, seen } = linkTo(fixture("long-line", String(70 * 1024 * 1024), "first"));
    await link.open(never);
    link.send(request(1, "tools/call"), ticket(1));
    await until(() => seen.messages.length === 1);
    expect(seen.failed).toMatchObject([{ id: 1, sent: true, fault: { code: "limit" } }]);
  });

  it("holds no more than its bound for a server that does not read [bounded]", async () => {
    const { link, seen } = linkTo(fixture("deaf"), { maxPendingWriteBytes: 4_000_000, stdinGraceMs: 50 });
    await link.open(never);
    const params = { arguments: "y".repeat(1_000_000) };
    for (let id = 1; id <= 10; id++) link.send(request(id, "tools/call", params), ticket(id));
    expect(seen.failed.map((f) => [f.id, f.fault.code, f.sent])).toEqual(
      [4, 5, 6, 7, 8, 9, 10].map((id) => [id, "limit", false]),
    );
    await until(() => seen.messages.length === 1);
    // What never left is failed as unsent when the server dies; the one that may have been read in part is not.
    process.kill(link.describe().pid as number, "SIGKILL");
    await until(() => seen.closed.length === 1);
    expect(seen.failed.filter((f) => f.fault.code === "unavailable").map((f) => [f.id, f.sent])).toEqual([
      [2, false],
      [3, false],
    ]);
    expect(seen.order.at(-1)).toBe("closed");
  });
});

describe("StdioLink: the end", () => {
  it("delivers the answer that was written just before the exit, then tells of it once, with the reason", async () => {
    const { link, seen } = linkTo({ ...fixture("echo"), env: { API_KEY: "s3cr3t-value" } });
    await link.open(never);
    link.send(request(1, "exit", { code: 5 }), ticket(1));
    await until(() => seen.closed.length === 1);
    expect(seen.messages[0]?.result).toBe("x".repeat(300_000));
    expect(seen.order).toEqual(["message", "closed"]);
    expect(seen.closed[0]?.code).toBe("outcome-unknown");
    expect(seen.closed[0]?.forOperator).toBe("The server exited with code 5: Error: told to go, key was [redacted].");
    expect(seen.closed[0]?.message).toMatch(/^The server exited with code 5: \[left out: it names a secret/);
    const { stderr } = link.describe();
    expect(stderr).toEqual(["Error: told to go, key was [redacted]"]);
    link.send(request(2, "tools/call"), ticket(2));
    await link.close();
    expect(seen.order).toEqual(["message", "closed"]);
  });

  it("says which signal ended it, and that an unwritten request was not sent", async () => {
    const { link, seen } = linkTo(fixture("echo"));
    await link.open(never);
    link.send(request(1, "tools/call", { arguments: 1 }), ticket(1));
    await until(() => seen.messages.length === 1);
    const pid = link.describe().pid as number;
    process.kill(pid, "SIGKILL");
    // The pipe breaks before we learn of the exit: block the loop until the child is gone, and write then.
    const end = Date.now() + 5_000;
    while (Date.now() < end && (alive(pid) || readdirSync(`/proc/${pid}/task`).length > 1));
    link.send(request(2, "tools/call"), ticket(2));
    await until(() => seen.closed.length === 1);
    expect(seen.failed).toMatchObject([{ id: 2, sent: false, fault: { code: "unavailable" } }]);
    expect(seen.closed[0]?.message).toBe("The server was ended by SIGKILL.");
  });

  it("stops a server that closed one of its pipes and lives on", async () => {
    for (const which of ["in", "out"]) {
      const { link, seen } = linkTo(fixture("half-closed", which));
      await link.open(never);
      await until(() => seen.messages.length === 1 || seen.closed.length === 1);
      // A closed stdin shows only when we write.
      const timer = setInterval(() => link.send(request(1, "tools/call"), undefined), 50);
      await until(() => seen.closed.length === 1);
      clearInterval(timer);
      expect(seen.closed[0]?.message).toBe(`The server was ended by SIGTERM after it had closed its ${which}put.`);
    }
  });

  it("rejects with what to do when it cannot be started", async () => {
    const dir = mkdtempSync(join(tmpdir(), "toolway-spawn-"));
    const plain = join(dir, "plain");
    const lost = join(dir, "lost");
    writeFileSync(plain, "#!/bin/sh\n");
    writeFileSync(lost, "#!/no/such/interpreter\n");
    chmodSync(plain, 0o600);
    chmodSync(lost, 0o700);
    const base = { kind: "stdio", args: ["--token=canary"], env: {}, cwd: undefined } as const;
    const cases: [StdioTarget, RegExp][] = [
      [
        { ...base, command: "no-such-program-7" },
        /Command not found: "no-such-program-7" is not on the PATH\. Install/,
      ],
      [{ ...base, command: join(dir, "none") }, /Command not found: ".*none" does not exist\. Correct "command"/],
      [{ ...base, command: plain }, /may not be executed\. Make it executable \(chmod \+x\)/],
      [{ ...base, command: lost }, /the interpreter named in its first line does not exist/],
      [{ ...base, command: dir }, /is a directory/],
      [{ ...base, command: process.execPath, cwd: join(dir, "away") }, /working directory ".*away" does not exist/],
      [{ ...base, command: process.execPath, args: ["canary\0"] }, /cannot be started: ERR_INVALID_ARG_VALUE/],
    ];
    for (const [target, message] of cases) {
      const { link, seen } = linkTo(target);
      const error = await link.open(never).then(
        () => undefined,
        (fault: Fault) => fault,
      );
      expect(error).toMatchObject({ code: "unavailable", message: expect.stringMatching(message) });
      expect(JSON.stringify(error)).not.toContain("canary");
      await link.close();
      expect(seen.closed).toEqual([]);
    }
    rmSync(dir, { recursive: true });
  });

  it("is not opened when the wait for it was given up", async () => {
    const { link, seen } = linkTo(fixture("echo"));
    await expect(link.open(AbortSignal.abort())).rejects.toMatchObject({ code: "cancelled" });
    expect([link.describe().pid, seen.closed.length]).toEqual([undefined, 0]);
  });
});

describe("StdioLink: close", () => {
  it("lets a good server end by itself, tells nothing any more, and can be called twice", async () => {
    const { link, seen } = linkTo(fixture("echo"), { stdinGraceMs: 20_000 });
    await link.open(never);
    const pid = link.describe().pid as number;
    const first = link.close();
    expect(link.close()).toBe(first);
    await first;
    expect(alive(pid)).toBe(false);
    expect(seen.closed).toEqual([]);
  });

  it("kills a server and its grandchild that ignore SIGTERM [no-orphans]", async () => {
    const { link, seen } = linkTo(fixture("stubborn"), { stdinGraceMs: 50, termGraceMs: 100 });
    await link.open(never);
    await until(() => seen.messages.length === 1);
    expect(seen.pids().every(alive)).toBe(true);
    await link.close();
    expect(seen.pids().some(alive)).toBe(false);
  });

  it("kills grandchildren that moved to sessions of their own [no-orphans]", async () => {
    const { link, seen } = linkTo(fixture("scattered"), { termGraceMs: 100 });
    await link.open(never);
    await until(async () => seen.noise === 3 && seen.messages.length === 1);
    const below = [...seen.samples].flatMap((s) => (s.startsWith("below ") ? [Number(s.slice(6))] : []));
    const pids = [...seen.pids(), ...below];
    expect(pids.length).toBe(3);
    expect(pids.every(alive)).toBe(true);
    await link.close();
    expect(pids.filter(alive)).toEqual([]);
  });

  it("kills what a server left behind when it ended by itself [no-orphans]", async () => {
    const { link, seen } = linkTo(fixture("scattered", "leave"));
    await link.open(never);
    await until(() => seen.closed.length === 1);
    expect(seen.closed[0]?.message).toBe("The server exited with code 3.");
    await link.close();
    expect(seen.pids().filter(alive)).toEqual([]);
    expect(await findMarked((marker) => marker.startsWith(reaper.instance))).toEqual([]);
  });
});
