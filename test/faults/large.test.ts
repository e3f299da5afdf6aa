// Replies far larger than what is held: passed on at the reader's pace, or refused with the limit's name.

import { once } from "node:events";
import { request } from "node:http";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { freePort, isAlive, root, sleep, startGateway, temporaryDirectory, until } from "../e2e/harness.js";
import { openHttpWire } from "../e2e/wire.js";
import { type Started, start } from "../fixtures/processes.js";
import { call, callText, faultServer, toolCall } from "./gateway.js";
import { figure } from "./length.js";
import { linux, MB, megabytes, peakRss, report, resetPeak, rss } from "./measure.js";
import { expectShortTurn, watchedTurns } from "./turns.js";

const started: Started[] = [];

afterAll(async () => {
  await Promise.all(started.map((one) => one.stop("SIGKILL")));
});

async function largeServer(...args: string[]): Promise<{ type: "http"; url: string }> {
  const port = await freePort();
  const file = join(root, "test/faults/servers/large.mjs");
  const one = start("large", process.execPath, [file, "--http", String(port), ...args]);
  started.push(one);
  await until("its server", () => one.log() !== "");
  return { type: "http", url: `http://127.0.0.1:${port}/mcp` };
}

/** Reads an answer no faster than `rate` bytes a second; how many came, and how they ended. */
async function slowly(
  port: number,
  session: string,
  body: string,
  rate: number,
): Promise<{ bytes: number; end: string }> {
  const headers = {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-session-id": session,
  };
  const req = request({ host: "127.0.0.1", port, path: "/mcp", method: "POST", headers, agent: false });
  req.end(body);
  const [res] = await once(req, "response");
  const begun = performance.now();
  let bytes = 0;
  let end = "";
  for await (const chunk of res as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    end = (end + chunk.subarray(-32).toString("latin1")).slice(-32);
    const aheadMs = (bytes / rate) * 1000 - (performance.now() - begun);
    if (aheadMs > 5) await sleep(aheadMs);
  }
  return { bytes, end };
}

describe.skipIf(!linux)("a body larger than memory would like", () => {
  const BYTES = figure(64, 256) * MB;
  const RATE = figure(16, 8) * MB;
  const RSS_GROWTH = 32 * MB;

  it("passes at the reader's pace in under 32 MB [bounded]", async () => {
    const gateway = await startGateway({
      mcpServers: { large: await largeServer(), plain: faultServer("plain") },
    });
    const wire = await openHttpWire(gateway.url);
    await until("both servers", async () => (await callText(wire, "pid")) && (await callText(wire, "echo")));
    // The code of this way is loaded, and its buffers are there.
    await slowly(gateway.port, wire.sessionId, toolCall(1, "fill", { bytes: 16 * MB }), 64 * MB);
    const before = rss(gateway.pid);
    resetPeak(gateway.pid);
    const begun = performance.now();
    let others = 0;
    let slowestMs = 0;
    let over = false;
    const meanwhile = (async () => {
      while (!over) {
        const asked = performance.now();
        expect(await callText(wire, "echo", {}, `other ${others}`)).toBe("{}");
        slowestMs = Math.max(slowestMs, performance.now() - asked);
        others++;
        await sleep(50);
      }
    })();
    const { bytes, end } = await slowly(gateway.port, wire.sessionId, toolCall(7, "fill", { bytes: BYTES }), RATE);
    over = true;
    await meanwhile;
    const seconds = (performance.now() - begun) / 1000;
    const growth = peakRss(gateway.pid) - before;
    report(
      "a large body to a slow reader",
      `${megabytes(bytes)} in ${seconds.toFixed(1)} s (${megabytes(bytes / seconds)}/s): RSS at most +${megabytes(growth)}; ` +
        `${others} other calls meanwhile, the slowest ${Math.round(slowestMs)} ms [bounded]`,
    );
    expect(bytes).toBe(BYTES + '{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":""}]}}'.length);
    expect(end.endsWith('x"}]}}')).toBe(true);
    expect(growth).toBeLessThan(RSS_GROWTH);
  }, 300_000);
});

describe.skipIf(!linux)("a reply over its limit", () => {
  /** MAX_LINE_BYTES of src/upstream/stdio/link.ts, and what a line held whole may take beside itself. */
  const LINE_BYTES = 64 * 1024 * 1024;
  const RSS_GROWTH = 3 * LINE_BYTES;

  it("over stdio fails that call alone, with the limit in its message [bounded]", async () => {
    const turns = watchedTurns(await temporaryDirectory());
    const gateway = await startGateway({ mcpServers: { large: faultServer("large") } }, { env: turns.env });
    const wire = await openHttpWire(gateway.url);
    const pid = await until("the server", async () => callText(wire, "pid"));
    const before = rss(gateway.pid);
    resetPeak(gateway.pid);
    turns.begin();
    const bytes = figure(LINE_BYTES + MB, 256 * MB);
    const [{ error, result }, beside] = await Promise.all([
      call(wire, "fill", { bytes }, "large"),
      call(wire, "pid", {}, "beside"),
    ]);
    const growth = peakRss(gateway.pid) - before;
    const turn = await turns.longest();
    report(
      "a result over stdio beyond its limit",
      `${megabytes(bytes)}: "${error?.message}"; RSS at most +${megabytes(growth)}; longest turn ${turns.text(turn)} [bounded]`,
    );
    expect(result).toBeUndefined();
    expect(error?.message).toContain(String(LINE_BYTES));
    expect(beside.result?.content[0].text).toBe(pid);
    // The same process: it was not punished for one answer.
    expect(await callText(wire, "pid")).toBe(pid);
    expect(growth).toBeLessThan(RSS_GROWTH);
    expectShortTurn(turn);
  }, 120_000);

  it("in an event stream fails that call alone, and the gateway goes on [bounded]", async () => {
    const turns = watchedTurns(await temporaryDirectory());
    const gateway = await startGateway({ mcpServers: { large: await largeServer("--sse") } }, { env: turns.env });
    const wire = await openHttpWire(gateway.url);
    await until("the server", async () => callText(wire, "pid"));
    const before = rss(gateway.pid);
    resetPeak(gateway.pid);
    turns.begin();
    const { error } = await call(wire, "fill", { bytes: figure(LINE_BYTES + MB, 256 * MB) });
    const growth = peakRss(gateway.pid) - before;
    const turn = await turns.longest();
    report(
      "an event beyond its limit",
      `"${error?.message}"; RSS at most +${megabytes(growth)}; longest turn ${turns.text(turn)} [bounded]`,
    );
    expect(error?.message).toMatch(/\d{6,}/);
    expect(isAlive(gateway.pid)).toBe(true);
    expect(await callText(wire, "pid")).toBeDefined();
    expect(growth).toBeLessThan(RSS_GROWTH);
    expectShortTurn(turn);
  }, 120_000);
});
