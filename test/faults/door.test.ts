// The operator's door under a crowd: a hundred pages, pages that nobody reads, and the searches that cost most, while agents
// are served and no turn of the gateway is long.

import { mkdir, writeFile } from "node:fs/promises";
import { Agent, request } from "node:http";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { chained, NO_LINES } from "../../src/observe/audit/chain.js";
import { type Gateway, sleep, startGateway, temporaryDirectory, until } from "../e2e/harness.js";
import { statusOfAll, toolway } from "../e2e/operator.js";
import { type HttpWire, openHttpWire } from "../e2e/wire.js";
import { callText, faultServer } from "./gateway.js";
import { figure } from "./length.js";
import { linux, MB, megabytes, ownMemory, report } from "./measure.js";
import { TURN_MS, type Turns, watchedTurns } from "./turns.js";

const PAGES = 100;
/** As the door has it. */
const MAX_PAGES = 32;
/** Each about 250 bytes: a search that finds nothing reads them all, or for two seconds. */
const AUDIT_LINES = figure(60_000, 600_000);
const LINES_A_FILE = 30_000;
/** Pages that read nothing hold at most what the system takes for them, and one line each. */
const SLOW_BYTES = 60 * MB;

/** What costs most, each several times at once. */
const SEARCHES = [
  "/audit?tool=no-such-tool",
  "/audit/verify",
  "/tools/lines",
  "/calls?limit=5000",
  "/calls?tool=no-such-tool",
  "/history?window=day",
  "/history/tools",
  "/flow",
  "/pins",
  "/metrics",
  "/status",
];

describe.skipIf(!linux)("the operator's door", () => {
  let gateway: Gateway;
  let wire: HttpWire;
  let turns: Turns;
  let port: number;
  let secret: string;
  const agent = new Agent({ keepAlive: false, maxSockets: 512 });
  const open: { destroy(): void }[] = [];

  beforeAll(async () => {
    turns = watchedTurns(await temporaryDirectory());
    const audit = join(await temporaryDirectory(), "audit");
    await mkdir(audit, { mode: 0o700 });
    await writeAudit(audit);
    gateway = await startGateway(
      { mcpServers: { plain: faultServer("plain"), crowd: faultServer("crowd", ["5000"]) }, audit: { path: audit } },
      { env: turns.env },
    );
    wire = await openHttpWire(gateway.url);
    await until("echo", async () => (await callText(wire, "echo")) !== undefined);
    await until(
      "the tools of the crowd",
      async () => (await statusOfAll(gateway)).servers[1]?.counts.tools === 5_000,
      60_000,
    );
    const link = new URL((await toolway(gateway, "dashboard", "--print")).out.trim());
    port = Number(link.port);
    const body = JSON.stringify({ code: new URLSearchParams(link.hash.slice(1)).get("code") });
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`${link.origin}/api/session`, { method: "POST", headers, body });
    secret = ((await answer.json()) as { secret: string }).secret;
    // Once each before anything is measured: what is loaded at the first look is loaded.
    for (const path of SEARCHES) await ask(path);
  }, 120_000);

  afterAll(() => {
    for (const one of open) one.destroy();
    agent.destroy();
  });

  /** Reads all of an answer. */
  const ask = (path: string) =>
    new Promise<{ status: number; bytes: number }>((done, fail) => {
      const headers = { authorization: `Bearer ${secret}` };
      request({ host: "127.0.0.1", port, path: `/api${path}`, headers, agent }, (response) => {
        let bytes = 0;
        response.on("data", (piece: Buffer) => {
          bytes += piece.length;
        });
        response.on("end", () => done({ status: response.statusCode ?? 0, bytes }));
        response.on("error", fail);
      })
        .on("error", fail)
        .end();
    });

  /** The stream of a page, which is read as it comes; its status. */
  const page = () =>
    new Promise<number>((done, fail) => {
      const headers = { authorization: `Bearer ${secret}` };
      const asked = request({ host: "127.0.0.1", port, path: "/api/feed", headers, agent }, (response) => {
        response.on("data", () => {});
        response.on("error", () => {});
        done(response.statusCode ?? 0);
      });
      open.push(asked);
      asked.on("error", fail).end();
    });

  /** One that nobody reads: what is sent stays where the system keeps it. */
  const slowPage = () =>
    new Promise<Socket>((done, fail) => {
      const socket = connect({ host: "127.0.0.1", port }, () => {
        socket.pause();
        socket.write(`GET /api/feed HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${secret}\r\n\r\n`);
        done(socket);
      });
      open.push(socket);
      socket.on("error", fail);
    });

  /** Agents are served while `act` runs; how many calls that were. */
  const whileServed = async (act: () => Promise<unknown>): Promise<number> => {
    let isOver = false;
    let calls = 0;
    const agents = (async () => {
      while (!isOver) {
        expect(await callText(wire, "echo", { n: calls })).toBe(JSON.stringify({ n: calls }));
        calls++;
      }
    })();
    try {
      await act();
    } finally {
      isOver = true;
      await agents;
    }
    return calls;
  };

  it("has 32 pages of a hundred that ask, tells the others why, and nobody waits for it [bounded]", async () => {
    let statuses: number[] = [];
    let calls = 0;
    const ms = await turns.leastOf(figure(2, 4), async () => {
      calls += await whileServed(async () => {
        statuses = await Promise.all(Array.from({ length: PAGES }, page));
        await sleep(figure(1_500, 10_000));
      });
      for (const one of open.splice(0)) one.destroy();
      await until("the pages to be gone", async () => (await page()) === 200);
      for (const one of open.splice(0)) one.destroy();
    });
    report("longest turn", `${turns.text(ms)}, ${PAGES} pages at once, ${calls} calls of an agent meanwhile [bounded]`);
    expect(statuses.filter((status) => status === 200)).toHaveLength(MAX_PAGES);
    expect(statuses.filter((status) => status === 429)).toHaveLength(PAGES - MAX_PAGES);
    expect(calls).toBeGreaterThan(5);
    expect(ms).toBeLessThan(TURN_MS);
  }, 60_000);

  it("keeps no queue for pages that nobody reads [bounded]", async () => {
    await sleep(500);
    const before = ownMemory(gateway.pid);
    let calls = 0;
    const ms = await turns.leastOf(figure(2, 4), async () => {
      calls += await whileServed(async () => {
        await Promise.all(Array.from({ length: MAX_PAGES }, slowPage));
        await sleep(figure(2_000, 30_000));
      });
      for (const one of open.splice(0)) one.destroy();
      await sleep(200);
    });
    const more = ownMemory(gateway.pid) - before;
    report(
      "longest turn",
      `${turns.text(ms)}, ${MAX_PAGES} pages that nobody reads, ${megabytes(more)} more memory, ${calls} calls meanwhile [bounded]`,
    );
    expect(more).toBeLessThan(SLOW_BYTES);
    expect(ms).toBeLessThan(TURN_MS);
  }, 180_000);

  it.each([
    ...SEARCHES.map((path): [string, readonly string[]] => [`four times ${path}`, [path, path, path, path]]),
    // As many as there are connections for: what is done in one turn must not grow with them.
    ["all of these eight times", Array.from({ length: 8 }, () => SEARCHES).flat()],
  ])(
    "is asked at once for %s, and nobody waits for it [bounded]",
    async (name, asked) => {
      let answers: { status: number; bytes: number }[] = [];
      let calls = 0;
      const ms = await turns.leastOf(figure(2, 4), async () => {
        calls += await whileServed(async () => {
          answers = await Promise.all(asked.map(ask));
        });
      });
      const bytes = answers.reduce((sum, one) => sum + one.bytes, 0);
      const what = `${name}, ${bytes} bytes in all, ${calls} calls meanwhile`;
      report("longest turn", `${turns.text(ms)}, ${what} [bounded]`);
      for (const [n, { status }] of answers.entries()) {
        // One check of the chain at a time: the others are told so.
        expect(asked[n] === "/audit/verify" ? [200, 503] : [200]).toContain(status);
      }
      expect(ms).toBeLessThan(TURN_MS);
    },
    60_000,
  );
});

/** A long log of one gateway, as it would have written it. */
async function writeAudit(dir: string): Promise<void> {
  let head = NO_LINES;
  for (let first = 1; first <= AUDIT_LINES; first += LINES_A_FILE) {
    const time = "2026-01-01T00:00:00.000Z";
    const bodies = Array.from({ length: LINES_A_FILE }, (_, n) =>
      JSON.stringify({
        time,
        kind: "call",
        principal: "ann",
        role: "dev",
        method: "tools/call",
        server: "plain",
        tool: "echo",
        outcome: "ok",
        ms: 1.2,
        bytesIn: 100,
        bytes: 120,
        id: n,
      }),
    );
    const { text, head: next } = chained(bodies, head);
    head = next;
    await writeFile(join(dir, `audit-${String(first).padStart(15, "0")}.jsonl`), text, { mode: 0o600 });
  }
}
