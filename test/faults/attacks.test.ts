// The attack table: what a hostile client sends to the door is refused by name, or does nothing; the gateway goes on.

import { Agent, request } from "node:http";
import { connect } from "node:net";
import { beforeAll, describe, expect, it } from "vitest";
import { type Gateway, isAlive, startGateway, temporaryDirectory, until } from "../e2e/harness.js";
import { type HttpWire, INITIALIZED, initialize, lastOf, openHttpWire } from "../e2e/wire.js";
import { callText, echoOf, faultServer, toolCall } from "./gateway.js";
import { figure } from "./length.js";
import { linux, MB, megabytes, report, rss } from "./measure.js";
import { expectShortTurn, type Turns, watchedTurns } from "./turns.js";

const MIB = 1024 * 1024;
const BODY_LIMIT = 16 * MIB;

let gateway: Gateway;
let wire: HttpWire;
let turns: Turns;

beforeAll(async () => {
  turns = watchedTurns(await temporaryDirectory());
  gateway = await startGateway({ mcpServers: { plain: faultServer("plain") } }, { env: turns.env });
  wire = await openHttpWire(gateway.url, "2025-03-26");
  await until("echo", async () => (await callText(wire, "echo")) !== undefined);
});

async function unharmed(): Promise<void> {
  expect(isAlive(gateway.pid)).toBe(true);
  expect(await callText(wire, "echo", { still: "here" })).toBe('{"still":"here"}');
}

const keys = () =>
  Array.from({ length: 400_000 }, (_, n) => `"k${n}":1`)
    .join(",")
    .slice(0, 4 * MIB)
    .replace(/,[^,]*$/, "");

describe("a hostile body", () => {
  const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}';
  const table: [what: string, body: () => string, status: number, says: RegExp][] = [
    ["a huge body", () => toolCall(1, "echo", { x: "x".repeat(BODY_LIMIT) }), 413, /16777216/],
    [
      "a batch of 100,000",
      () => `[${Array.from({ length: 100_000 }, () => ping).join(",")}]`,
      400,
      /(batch|members).*limit/,
    ],
    ["4 MiB of keys in the message", () => `{"jsonrpc":"2.0","id":1,"method":"ping",${keys()}}`, 400, /members/],
    [
      "4 MiB of keys in params",
      () => `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{${keys()}}}`,
      400,
      /members/,
    ],
    [
      "4 MiB of keys in arguments",
      () => `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{${keys()}}}}`,
      400,
      /members/,
    ],
    ["16 MiB of empty objects", () => echoOf(`{"x":[${"{},".repeat(5_000_000)}{}]}`), 400, /200000 values.*limit/],
    ["16 MiB of numbers", () => echoOf(`{"x":[${"1,".repeat(8_000_000)}1]}`), 400, /200000 values.*limit/],
    [
      "90,000 different names",
      () => echoOf(`{"x":[${Array.from({ length: 90_000 }, (_, n) => `{"k${n}":1}`).join(",")}]}`),
      400,
      /20000 different names.*limit/,
    ],
    ["depth 100,000", () => `${"[".repeat(100_000)}${"]".repeat(100_000)}`, 400, /nested.*limit/],
    [
      "depth 100,000 in arguments",
      () =>
        `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)}}}`,
      400,
      /nested.*limit/,
    ],
    ["a body that is not closed", () => "[".repeat(100_000), 400, /nested|JSON/],
    ["a duplicate method", () => '{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}', 400, /[Dd]uplicate/],
    [
      "a duplicate method, escaped",
      () => '{"jsonrpc":"2.0","id":1,"method":"ping","m\\u0065thod":"tools/list"}',
      400,
      /[Dd]uplicate/,
    ],
    ["Method for method", () => '{"jsonrpc":"2.0","id":1,"Method":"ping"}', 400, /read as "method"/],
    ["an empty batch", () => "[]", 400, /empty/],
  ];

  it.each(table)("is refused with the reason: %s [bounded]", async (what, body, status, says) => {
    const text = body();
    turns.begin();
    const started = performance.now();
    const answer = await wire.send(text);
    const tookMs = performance.now() - started;
    const turn = await turns.longest();
    report(
      "attack",
      `${what} → ${answer.status}, ${Math.round(tookMs)} ms, longest turn ${turns.text(turn)}, ` +
        `"${message(lastOf(answer))}" [bounded]`,
    );
    expectShortTurn(turn);
    expect(answer.status).toBe(status);
    expect(message(lastOf(answer))).toMatch(says);
    await unharmed();
  });

  it("with a duplicate name reaches no tool that was not judged", async () => {
    const params = '{"name":"hidden","name":"echo","arguments":{"a":1}}';
    const { error } = JSON.parse(
      lastOf(await wire.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`)),
    ) as { error?: { message: string } };
    expect(error?.message).toMatch(/[Dd]uplicate/);
    await unharmed();
  });

  it("with __proto__ and its like has names as any other", async () => {
    const args = '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"a":1}';
    const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":${args}},"__proto__":{"id":2}}`;
    const { id, result } = JSON.parse(lastOf(await wire.send(body))) as {
      id: unknown;
      result: { content: [{ text: string }] };
    };
    expect(id).toBe(1);
    expect(result.content[0].text).toBe(args);
    for (const method of ["__proto__", "constructor", "toString", "hasOwnProperty"]) {
      const { error } = JSON.parse(lastOf(await wire.send(`{"jsonrpc":"2.0","id":1,"method":"${method}"}`))) as {
        error?: { code: number };
      };
      expect([method, error?.code]).toEqual([method, -32601]);
      expect(await callText(wire, method)).toBeUndefined();
    }
    await unharmed();
  });
});

function message(text: string): string {
  return (JSON.parse(text) as { error?: { message: string } }).error?.message ?? text.slice(0, 200);
}

/** What comes back on a bare socket, and how many bytes it took before it was closed. */
function raw(head: string, more?: Buffer): Promise<{ said: string; written: number }> {
  return new Promise((resolve) => {
    let said = "";
    const socket = connect(gateway.port, "127.0.0.1");
    const write = (): void => {
      if (more === undefined) return;
      while (!socket.destroyed && socket.write(more)) if (socket.bytesWritten > 1024 * MIB) socket.destroy();
    };
    socket.write(head);
    write();
    socket.on("drain", write);
    socket.on("data", (chunk) => {
      said += chunk;
      if (more === undefined) socket.end();
    });
    socket.on("error", () => {});
    socket.on("close", () => resolve({ said, written: socket.bytesWritten }));
  });
}

describe("hostile HTTP", () => {
  const HEAD = () =>
    `POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:${gateway.port}\r\nContent-Type: application/json\r\nMcp-Session-Id: ${wire.sessionId}\r\n`;

  it("with a body that is announced as 1 GB is refused before that comes [bounded]", async () => {
    const { said } = await raw(`${HEAD()}Content-Length: 1000000000\r\n\r\n{`);
    expect(said).toMatch(/^HTTP\/1\.1 413 /);
    await unharmed();
  });

  it("with a body without an end is cut off soon after the limit [bounded]", async () => {
    const piece = Buffer.from(`10000\r\n${"x".repeat(65_536)}\r\n`);
    turns.begin();
    const { written } = await raw(`${HEAD()}Transfer-Encoding: chunked\r\n\r\n`, piece);
    const turn = await turns.longest();
    report(
      "attack",
      `a body without an end → cut off after ${megabytes(written)}, longest turn ${turns.text(turn)} [bounded]`,
    );
    expectShortTurn(turn);
    // Four times the limit is read and thrown away, for clients that write first and read then; the rest is in buffers.
    expect(written).toBeLessThan(5 * BODY_LIMIT + 16 * MIB);
    await unharmed();
  });

  it.each([
    ["headers of 64 KiB", () => `${HEAD()}X: ${"x".repeat(65_536)}\r\n\r\n`, 431],
    ["two lengths", () => `${HEAD()}Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!`, 400],
    ["a length and chunks", () => `${HEAD()}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`, 400],
    ["a line feed in a header", () => `${HEAD()}X: a\nMcp-Session-Id: b\u0000\r\n\r\n`, 400],
    ["a foreign Host", () => "POST /mcp HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 0\r\n\r\n", 403],
    ["a foreign Origin", () => `${HEAD()}Origin: http://evil.example\r\nContent-Length: 0\r\n\r\n`, 403],
  ])("is refused: %s", async (_what, head, status) => {
    expect((await raw(head())).said).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    await unharmed();
  });
});

describe.skipIf(!linux)("initializes", () => {
  const COUNT = figure(3_000, 100_000);
  /** As many as the table holds: from there on nothing more is kept. */
  const MAX_SESSIONS = figure(500, 10_000);
  const LANES = 16;
  /** A session is some kilobytes; the rest is the heap's. */
  const RSS_GROWTH = figure(60, 150) * MB;

  it("by the thousand leave memory bounded, older sessions going on and others served [bounded]", async () => {
    const crowd = watchedTurns(await temporaryDirectory());
    const config = { mcpServers: { plain: faultServer("plain") }, sessions: { max: MAX_SESSIONS } };
    const crowded = await startGateway(config, { env: crowd.env });
    const first = await openHttpWire(crowded.url);
    await until("echo", async () => (await callText(first, "echo")) !== undefined);
    const agent = new Agent({ keepAlive: true, maxSockets: LANES });
    const begin = async () => {
      const opened = await quick(agent, crowded.port, initialize("0"));
      await quick(agent, crowded.port, INITIALIZED, opened.session);
      return opened.session;
    };
    for (let n = 0; n < 300; n++) await begin();
    const before = rss(crowded.pid);
    crowd.begin();
    const started = performance.now();
    let left = COUNT;
    let slowestMs = 0;
    let served = 0;
    const lanes = Array.from({ length: LANES }, async () => {
      while (left-- > 0) await begin();
    });
    const bystander = await openHttpWire(crowded.url);
    const meanwhile = (async () => {
      while (left > 0) {
        const asked = performance.now();
        expect(await callText(bystander, "echo", { n: served })).toBe(`{"n":${served}}`);
        slowestMs = Math.max(slowestMs, performance.now() - asked);
        served++;
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    })();
    await Promise.all([...lanes, meanwhile]);
    agent.destroy();
    const seconds = (performance.now() - started) / 1000;
    const growth = rss(crowded.pid) - before;
    const turn = await crowd.longest();
    report(
      "initializes",
      `${COUNT} sessions begun in ${seconds.toFixed(1)} s, room for ${MAX_SESSIONS}: RSS +${megabytes(growth)}; ` +
        `${served} calls of another session meanwhile, the slowest ${Math.round(slowestMs)} ms; longest turn ${crowd.text(turn)} [bounded]`,
    );
    expectShortTurn(turn);
    // Long out of the table, and still good: its id says all there is to say.
    expect(await callText(first, "echo", { back: 1 })).toBe('{"back":1}');
    expect(growth).toBeLessThan(RSS_GROWTH);
  }, 900_000);
});

function quick(agent: Agent, port: number, body: string, session = ""): Promise<{ session: string }> {
  const headers = {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    ...(session === "" ? {} : { "mcp-session-id": session }),
  };
  return new Promise((resolve, reject) => {
    const req = request({ host: "127.0.0.1", port, path: "/mcp", method: "POST", headers, agent }, (res) => {
      res.resume();
      res.on("end", () => resolve({ session: String(res.headers["mcp-session-id"] ?? "") }));
    });
    req.on("error", reject);
    req.end(body);
  });
}
