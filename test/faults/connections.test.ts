// Connections that only cost: some that never finish their headers, and thousands of agents that say nothing.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { root, sleep, startGateway, temporaryDirectory, until } from "../e2e/harness.js";
import { openHttpWire } from "../e2e/wire.js";
import { said } from "../fixtures/processes.js";
import { callText, faultServer } from "./gateway.js";
import { figure, full } from "./length.js";
import { descriptors, linux, megabytes, report, rss } from "./measure.js";
import { expectShortTurn, watchedTurns } from "./turns.js";

const sockets = (pid: number) => descriptors(pid).filter((kind) => kind === "tcp").length;

describe.skipIf(!linux)("connections with slow headers", () => {
  const CONNECTIONS = 500;
  /** The full run takes the default, 10 s. */
  const HEADER_MS = figure(2_000, 10_000);
  /** Node looks every 2 s at most; the rest is for a busy machine. */
  const SLACK_MS = 6_000;

  it("are reaped within seconds, 500 of them, and others are served meanwhile [bounded]", async () => {
    const limits = full ? {} : { headerMs: HEADER_MS };
    const turns = watchedTurns(await temporaryDirectory());
    const gateway = await startGateway({ mcpServers: { plain: faultServer("plain") }, limits }, { env: turns.env });
    const wire = await openHttpWire(gateway.url);
    await until("echo", async () => (await callText(wire, "echo")) !== undefined);
    const before = sockets(gateway.pid);
    turns.begin();
    let opened = 0;
    let open = 0;
    const slow: Socket[] = [];
    for (let n = 0; n < CONNECTIONS; n++) {
      const socket = connect(gateway.port, "127.0.0.1", () => {
        opened++;
        open++;
        // One of three says nothing at all.
        if (n % 3 !== 0) socket.write(`POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:${gateway.port}\r\nX-Slow: `);
      });
      socket.on("error", () => {});
      socket.on("close", () => open--);
      socket.resume();
      slow.push(socket);
    }
    await until("all connections", () => opened === CONNECTIONS);
    const started = performance.now();
    const drip = setInterval(() => {
      for (const [n, socket] of slow.entries()) if (n % 3 !== 0 && socket.writable) socket.write("x");
    }, 500);
    let served = 0;
    let slowestMs = 0;
    while (open > 0 && performance.now() - started < HEADER_MS + SLACK_MS * 2) {
      const asked = performance.now();
      expect(await callText(wire, "echo", { n: served })).toBe(`{"n":${served}}`);
      slowestMs = Math.max(slowestMs, performance.now() - asked);
      served++;
      await sleep(10);
    }
    const reapedMs = performance.now() - started;
    clearInterval(drip);
    for (const socket of slow) socket.destroy();
    const turn = await turns.longest();
    report(
      "slow headers",
      `${CONNECTIONS} connections, limit ${HEADER_MS} ms: all reaped after ${Math.round(reapedMs)} ms; ` +
        `${served} calls served meanwhile, the slowest ${Math.round(slowestMs)} ms; ` +
        `longest turn ${turns.text(turn)} [bounded]`,
    );
    expectShortTurn(turn);
    expect(open).toBe(0);
    expect(reapedMs).toBeLessThan(HEADER_MS + SLACK_MS);
    await until("descriptors as before", () => sockets(gateway.pid) <= before + 1, 10_000);
  }, 120_000);
});

describe.skipIf(!linux)("idle agents", () => {
  const AGENTS = figure(500, 10_000);
  /** Sockets of one client process: a usual hard limit on descriptors is 4,096. */
  const IN_ONE_PROCESS = 2_500;
  /** Before the base line, and gone again: what the code and the heap take is not theirs. */
  const WARM_UP = figure(500, 1_000);
  const BYTES_EACH = 30_000;
  const crowds: ChildProcess[] = [];

  afterAll(() => {
    for (const crowd of crowds) crowd.kill("SIGKILL");
  });

  async function gather(port: number, count: number): Promise<ChildProcess[]> {
    const sizes = Array.from({ length: Math.ceil(count / IN_ONE_PROCESS) }, (_, n) =>
      Math.min(IN_ONE_PROCESS, count - n * IN_ONE_PROCESS),
    );
    const joined = sizes.map((size) => {
      const args = [join(root, "test/faults/crowd.mjs"), String(port), String(size)];
      const crowd = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "inherit"] });
      crowds.push(crowd);
      return crowd;
    });
    await Promise.all(joined.map((crowd) => said(crowd)));
    return joined;
  }

  async function leave(joined: readonly ChildProcess[]): Promise<void> {
    await Promise.all(
      joined.map(async (crowd) => {
        const exit = once(crowd, "exit");
        crowd.stdin?.end();
        await exit;
      }),
    );
  }

  it(`cost at most 30 kB each, and all descriptors come back [bounded]`, async () => {
    const gateway = await startGateway({
      mcpServers: { plain: faultServer("plain") },
      limits: { connections: 12_000 },
      sessions: { max: 12_000 },
    });
    const wire = await openHttpWire(gateway.url);
    await until("echo", async () => (await callText(wire, "echo")) !== undefined);
    const base = sockets(gateway.pid);
    const back = () => until("descriptors as before", () => sockets(gateway.pid) <= base + 1, 60_000);
    await leave(await gather(gateway.port, WARM_UP));
    await back();
    const before = rss(gateway.pid);
    const started = performance.now();
    const crowd = await gather(gateway.port, AGENTS);
    const seconds = (performance.now() - started) / 1000;
    expect(sockets(gateway.pid)).toBeGreaterThanOrEqual(AGENTS + base - 1);
    const growth = rss(gateway.pid) - before;
    const asked = performance.now();
    expect(await callText(wire, "echo", { still: "here" })).toBe('{"still":"here"}');
    const answeredMs = performance.now() - asked;
    for (const part of crowd) {
      part.kill("SIGUSR2");
      expect(await said(part)).toBe("closed 0\n");
    }
    await leave(crowd);
    await back();
    report(
      "idle agents",
      `${AGENTS} sessions with an open stream each, joined in ${seconds.toFixed(1)} s: RSS +${megabytes(growth)}, ` +
        `${(growth / AGENTS / 1000).toFixed(1)} kB each; a call among them took ${Math.round(answeredMs)} ms; ` +
        "all descriptors back [bounded]",
    );
    expect(growth / AGENTS).toBeLessThanOrEqual(BYTES_EACH);
  }, 900_000);
});
