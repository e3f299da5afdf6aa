// Servers that close, half-close and reset their connections under agents that read slowly: what was said whole arrives
// whole, what was not is never passed for whole, and the gateway goes on.

import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Gateway, isAlive, sleep, startGateway, until } from "../e2e/harness.js";
import { type HttpWire, openHttpWire } from "../e2e/wire.js";
import { type Ending, type Fill, type Framing, startClosingServer } from "./closing-server.js";
import { callText, faultServer, toolCall } from "./gateway.js";
import { figure } from "./length.js";

const MIB = 1024 * 1024;
const BYTES = 8 * MIB;
const AGENTS = figure(4, 16);
/** Nothing is read for so long: the server has closed by then, and its connection is paused. */
const ASLEEP_MS = 500;
/** Then a piece at a time. */
const BETWEEN_MS = 2;
const RESULT = '{"jsonrpc":"2.0","id":1000,"result":{"content":[{"type":"text","text":""}]}}';

let gateway: Gateway;
let wire: HttpWire;
let server: { url: string; close(): void };

beforeAll(async () => {
  server = await startClosingServer();
  gateway = await startGateway({
    mcpServers: {
      closing: { type: "http", url: server.url, breaker: { failures: 10_000 } },
      plain: faultServer("plain"),
    },
  });
  wire = await openHttpWire(gateway.url, "2025-03-26");
  await until("both servers", async () => (await callText(wire, "short")) && (await callText(wire, "echo")));
});

afterAll(() => server.close());

interface Read {
  readonly bytes: number;
  /** The answer ended as it should, and is no error. */
  readonly isWhole: boolean;
}

let lastId = 1_000;

async function slowly(fill: Fill): Promise<Read> {
  const headers = {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-session-id": wire.sessionId,
  };
  const req = request({ host: "127.0.0.1", port: gateway.port, path: "/mcp", method: "POST", headers, agent: false });
  req.end(toolCall(++lastId, "fill", fill));
  let bytes = 0;
  let text = "";
  try {
    const [res] = (await once(req, "response")) as [IncomingMessage];
    await sleep(ASLEEP_MS);
    for await (const chunk of res as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (text.length < 200) text += chunk.subarray(0, 200).toString("latin1");
      await sleep(BETWEEN_MS);
    }
    return { bytes, isWhole: !text.includes('"error"') };
  } catch {
    return { bytes, isWhole: false };
  }
}

/** Short calls on connections of the same server that close all the time, while the slow ones are paused. */
async function withOthers<T>(work: Promise<T>): Promise<T> {
  let isOver = false;
  const done = work.finally(() => {
    isOver = true;
  });
  while (!isOver) {
    expect(await callText(wire, "short")).toBe("short");
    await sleep(10);
  }
  return done;
}

describe("a server that closes under slow agents", () => {
  const whole: [Framing, Ending][] = [
    ["length", "end"],
    ["length", "half"],
    ["chunks", "end"],
    ["chunks", "half"],
    ["none", "end"],
    ["none", "half"],
  ];
  it.each(whole)("gives a whole answer, framed by %s and followed by %s", async (framing, ending) => {
    const fill = { framing, ending, missing: 0, bytes: BYTES };
    const read = await withOthers(Promise.all(Array.from({ length: AGENTS }, () => slowly(fill))));
    for (const one of read) expect(one).toEqual({ bytes: RESULT.length + BYTES, isWhole: true });
    await unharmed();
  });

  const cut: [Framing, Ending][] = [
    ["length", "end"],
    ["length", "reset"],
    ["chunks", "end"],
    ["chunks", "reset"],
    ["none", "end"],
    ["none", "reset"],
  ];
  it.each(cut)(
    "never has half an answer passed for whole, framed by %s and followed by %s",
    async (framing, ending) => {
      const fill = { framing, ending, missing: BYTES / 2, bytes: BYTES };
      const read = await withOthers(Promise.all(Array.from({ length: AGENTS }, () => slowly(fill))));
      expect(read.filter(({ isWhole }) => isWhole)).toEqual([]);
      await unharmed();
    },
  );

  it.each(["length", "chunks", "none"] as const)(
    "gives a whole answer or an error, framed by %s and followed by a reset",
    async (framing) => {
      const fill = { framing, ending: "reset", missing: 0, bytes: BYTES } as const;
      const read = await withOthers(Promise.all(Array.from({ length: AGENTS }, () => slowly(fill))));
      for (const { bytes, isWhole } of read) if (isWhole) expect(bytes).toBe(RESULT.length + BYTES);
      await unharmed();
    },
  );
});

async function unharmed(): Promise<void> {
  expect(isAlive(gateway.pid)).toBe(true);
  expect(await callText(wire, "echo", { still: "here" })).toBe('{"still":"here"}');
  expect(await callText(wire, "short")).toBe("short");
}
