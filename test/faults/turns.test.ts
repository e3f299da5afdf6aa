// How long one turn of the gateway's event loop takes at most, while it is sent what costs most to read: everybody
// else waits for that long. CPU time of the main thread, as turns-preload.mjs takes it.

import { beforeAll, describe, expect, it } from "vitest";
import type { StdioTarget } from "../../src/contracts/server-spec.js";
import {
  type Gateway,
  type ServerEntry,
  sleep,
  startGateway,
  startHttpFixture,
  stdioFixture,
  temporaryDirectory,
  until,
} from "../e2e/harness.js";
import { type HttpWire, lastOf, openHttpWire } from "../e2e/wire.js";
import { scripted } from "../fixtures/modern/scripted.js";
import { callText, echoOf, faultServer, toolCall } from "./gateway.js";
import { figure } from "./length.js";
import { linux, report } from "./measure.js";
import { raw } from "./memory-scene.js";
import { TURN_MS, type Turns, watchedTurns } from "./turns.js";

const BODY_BYTES = 16 * 1024 * 1024 - 300;

const filled = (piece: string) => piece.repeat(Math.floor(BODY_BYTES / Buffer.byteLength(piece)));
const listed = (count: number, element: (n: number) => string) =>
  Array.from({ length: count }, (_, n) => element(n)).join(",");

const ATTACKS: readonly [what: string, args: () => string][] = [
  ["16 MiB of empty objects", () => `{"x":[${filled("{},")}{}]}`],
  ["16 MiB of brackets", () => `{"x":${filled("[")}`],
  ["16 MiB of digits and commas", () => `{"x":[${filled("1,")}1]}`],
  ["100,000 objects with a name each", () => `{"x":[${listed(100_000, (n) => `{"k${n}":1}`)}]}`],
  ["100,000 long names", () => `{${listed(100_000, (n) => `"${"k".repeat(150)}${n}":1`)}}`],
];

/** By then, the gateway has read what was written to it. */
const ARRIVED_MS = 500;

/** Lists are kept 200 ms after they change, which is over by then. */
const KEPT_AFTER_MS = 600;

const SHOUTS = ["brackets", "objects"].flatMap((what) => ["pipe", "http"].map((server) => [what, server] as const));

const HONEST: readonly [what: string, args: () => string][] = [
  ["one long string", () => `{"x":"${filled("x")}"}`],
  ["one long string, not ASCII", () => `{"x":"${filled("é")}"}`],
  ["one long string, all of it escaped", () => `{"x":"${filled('\\"')}"}`],
  ["190,000 strings", () => `{"x":[${listed(190_000, (n) => `"${"s".repeat(70)}${n}"`)}]}`],
  ["190,000 numbers", () => `{"x":[${listed(190_000, (n) => `0.${"1234567890".repeat(7)}${n}`)}]}`],
  ["white space with a line break every other character", () => `{"x":${filled("\n ")}1}`],
  [
    "a table of 17,000 rows",
    () => `{"x":[${listed(17_000, (n) => `{${listed(10, (k) => `"column ${k}":"${n} ${"v".repeat(60)}"`)}}`)}]}`,
  ],
];

/** So many at once, each as costly as one may be, of the sizes that are read in different ways. */
const AT_ONCE: readonly [what: string, count: number, args: (n: number) => string][] = [
  ["100 bodies of 60 kB, of names of their own", 100, (n) => `{"x":[${listed(3_600, (i) => `{"k${n} ${i}":1}`)}]}`],
  ["24 bodies of 600 kB, of 195,000 values", 24, () => `{"x":[${"{},".repeat(195_000)}1]}`],
  [
    "12 bodies of 1.3 MB, of 190,000 values",
    12,
    () => `{"x":[${listed(19_000, (n) => `{"n${n}":[]}`)},${"{},".repeat(150_000)}"${"y".repeat(600_000)}"]}`,
  ],
];

/** The longest call that is kept, less what stands around it. */
const KEPT_BYTES = 4 * 1024 * 1024 - 300;
const kept = (piece: (n: number) => string, count: number) => `{"x":[${listed(count, piece)}]}`;

/** What is read once more on its way: where, by which tool, what it is, and what comes of it. */
const READ_AGAIN: readonly [what: string, at: string, tool: string, args: () => string, answer: string][] = [
  ["white space to a server of the other era", "modern", "who", () => `{"x":${filled(" ")}1}`, '"result"'],
  ["white space by call_tool", "", "call_tool", () => `{"name":"echo","arguments":{"x":${filled(" ")}1}}`, '"result"'],
  [
    "190,000 numbers by call_tool",
    "",
    "call_tool",
    () => `{"name":"echo","arguments":{"x":[${listed(190_000, (n) => `0.${"1234567890".repeat(7)}${n}`)}]}}`,
    '"result"',
  ],
  [
    "a call of a kept tool that is too long",
    "kept",
    "echo",
    () => `{"x":[${listed(190_000, (n) => `"${"s".repeat(70)}${n}"`)}]}`,
    "bytes",
  ],
  [
    "190,000 numbers for a kept tool",
    "kept",
    "echo",
    () => kept((n) => `${n}`.padStart(Math.floor(KEPT_BYTES / 190_000) - 1, "1"), 190_000),
    '"result"',
  ],
  ["white space for a kept tool", "kept", "echo", () => `{"x":${" ".repeat(KEPT_BYTES)}1}`, '"result"'],
];

let gateway: Gateway;
let wire: HttpWire;
let turns: Turns;
let servers: Record<string, ServerEntry>;

const leastOf = (times: number, act: () => Promise<void>) => turns.leastOf(times, act);

/** All of them but for the last bytes, which then come in one turn. */
async function sendAtOnce(bodies: readonly string[]): Promise<void> {
  const headers = Object.entries(wire.headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const start = `POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:${gateway.port}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n`;
  const all = bodies.map((body) =>
    raw(gateway, [`${start}${headers.join("")}Content-Length: ${body.length}\r\n\r\n${body.slice(0, -1)}`]),
  );
  await until("all but their ends", () => all.every(({ socket }) => !socket.connecting && socket.writableLength === 0));
  await sleep(ARRIVED_MS);
  turns.begin();
  for (const { socket } of all) socket.write("}");
  // There is no room for all of them at once: the others are refused.
  await until("the answers", () => all.every(({ said, closed }) => said !== "" || closed), 60_000);
  expect(all.filter(({ said }) => said.includes('"result"')).length).toBeGreaterThanOrEqual(4);
  for (const { socket } of all) socket.destroy();
}

describe.skipIf(!linux)("one turn of the event loop", () => {
  beforeAll(async () => {
    turns = watchedTurns(await temporaryDirectory());
    const { env } = turns;
    const { entry } = await startHttpFixture("shouter");
    servers = { plain: faultServer("plain"), pipe: stdioFixture("shouter"), http: entry };
    gateway = await startGateway({ mcpServers: servers }, { env });
    wire = await openHttpWire(gateway.url);
    await until("echo", async () => (await callText(wire, "echo")) !== undefined);
    for (let n = 0; n < 20; n++) await callText(wire, "echo", { x: "x".repeat(1_000_000) });
  });

  it("is bounded for a server with 15,000 tools, of which 5,000 are taken, and it is said [one-bad-server]", async () => {
    let n = 0;
    const ms = await leastOf(figure(2, 4), async () => {
      const name = `crowd${++n}`;
      const said = (text: string) => gateway.log().includes(text);
      await gateway.writeConfig({ mcpServers: { ...servers, [name]: faultServer("crowd", ["15000"]) } });
      await until("its tools", () => said(`server "${name}": pinned at first sight`), 60_000);
      await until(
        "what is left out",
        () => said(`of server "${name}" are more than 5000; the rest is left out`),
        60_000,
      );
      // What agents ask of it, and what is kept of it for the next start, is looked at as well.
      const menu = await wire.send('{"jsonrpc":"2.0","id":1,"method":"tools/list"}');
      expect(lastOf(menu)).toContain("Does the thing number 7.");
      await sleep(KEPT_AFTER_MS);
    });
    report(
      "longest turn",
      `${ms === 0 ? "under 15" : ms} ms, a server with 15,000 tools on one page, seen for the first time [one-bad-server]`,
    );
    expect(ms).toBeLessThan(TURN_MS);
    expect(await callText(wire, "echo", { still: "here" })).toBe('{"still":"here"}');
  }, 120_000);

  it.each(ATTACKS)(
    "is short under an attack: %s [bounded]",
    async (what, args) => {
      const body = echoOf(args());
      const ms = await leastOf(figure(3, 5), async () => expect((await wire.send(body)).status).toBe(400));
      report("longest turn", `${ms === 0 ? "under 15" : ms} ms, ${what} [bounded]`);
      expect(ms).toBeLessThan(TURN_MS);
    },
    60_000,
  );

  it.each(AT_ONCE)(
    "is short while many bodies end at once: %s [bounded] [one-bad-server]",
    async (what, count, args) => {
      const bodies = Array.from({ length: count }, (_, n) =>
        JSON.stringify({ jsonrpc: "2.0", id: n, method: "tools/call", params: { name: "echo", arguments: 0 } }).replace(
          /0(?=\}\}$)/,
          () => args(n),
        ),
      );
      const ms = await leastOf(figure(2, 5), () => sendAtOnce(bodies));
      report("longest turn", `${ms === 0 ? "under 15" : ms} ms, ${what} [bounded]`);
      expect(ms).toBeLessThan(TURN_MS);
    },
    120_000,
  );

  it.each(SHOUTS)(
    "is short while a server says too much of its own accord, and its call is answered: %s over %s [bounded] [one-bad-server]",
    async (what, server) => {
      const at = await openHttpWire(`${gateway.url}/${server}`);
      const ms = await leastOf(figure(2, 5), async () => {
        expect(await callText(at, "shout", { what })).toBe("answered");
      });
      report("longest turn", `${ms === 0 ? "under 15" : ms} ms, a server over ${server} says: ${what} [bounded]`);
      expect(ms).toBeLessThan(TURN_MS);
    },
    60_000,
  );

  it.each(HONEST)(
    "is short for an honest body at the limit: %s [bounded]",
    async (what, args) => {
      const body = echoOf(args());
      const ms = await leastOf(figure(3, 5), async () => {
        const answer = await wire.send(body);
        expect(answer.status).toBe(200);
        expect(lastOf(answer)).toContain('"result"');
      });
      report(
        "longest turn",
        `${ms === 0 ? "under 15" : ms} ms, ${(body.length / 1e6).toFixed(1)} MB: ${what} [bounded]`,
      );
      expect(ms).toBeLessThan(TURN_MS);
    },
    60_000,
  );
});

describe.skipIf(!linux)("one turn of the event loop, where a long text is read again on its way", () => {
  let menus: Gateway;
  let config: { mcpServers: Record<string, ServerEntry>; menu: string };

  beforeAll(async () => {
    turns = watchedTurns(await temporaryDirectory());
    const { env } = turns;
    const { command, args } = scripted("modern").target as StdioTarget;
    const keeps = { tools: { echo: { outbox: true } } };
    const mcpServers = {
      plain: faultServer("plain"),
      kept: faultServer("plain", [], keeps),
      modern: { command, args: [...args] },
    };
    config = { mcpServers, menu: "search" };
    menus = await startGateway(config, { env });
  });

  it("is short while tools are looked for among 5,000 that are described by words of their own [bounded] [one-bad-server]", async () => {
    const wire = await openHttpWire(menus.url);
    const query = Array.from({ length: 24 }, (_, n) => `unheard${n}of${"abcdefghijklmnopqrstuvwx"[n]}`).join(" ");
    let n = 0;
    const ms = await leastOf(figure(2, 5), async () => {
      const name = `words${++n}`;
      const words = faultServer("crowd", ["5000", "--words"]);
      await menus.writeConfig({ ...config, mcpServers: { ...config.mcpServers, [name]: words } });
      await until("its tools", () => menus.log().includes(`server "${name}": pinned at first sight`), 60_000);
      await sleep(KEPT_AFTER_MS);
      turns.begin();
      const find = (query: string) => wire.send(toolCall(Math.random(), "find_tools", { query }));
      expect(lastOf(await find("the thing"))).toContain('"result"');
      for (const answer of await Promise.all(Array.from({ length: 10 }, () => find(query)))) {
        expect(lastOf(answer)).toContain('"result"');
      }
    });
    report("longest turn", `${ms === 0 ? "under 15" : ms} ms, find_tools among 5,000 tools [bounded]`);
    expect(ms).toBeLessThan(TURN_MS);
  }, 120_000);

  it.each(READ_AGAIN)(
    "is short: %s [bounded]",
    async (what, at, tool, args, answer) => {
      const to = await openHttpWire(at === "" ? menus.url : `${menus.url}/${at}`);
      const callOf = (json: string) =>
        `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"${tool}","arguments":${json}}}`;
      const short = tool === "call_tool" ? '{"name":"echo"}' : "{}";
      await until("its server", async () => lastOf(await to.send(callOf(short))).includes('"result"'));
      const body = callOf(args());
      const ms = await leastOf(figure(2, 5), async () => expect(lastOf(await to.send(body))).toContain(answer));
      report(
        "longest turn",
        `${ms === 0 ? "under 15" : ms} ms, ${(body.length / 1e6).toFixed(1)} MB: ${what} [bounded]`,
      );
      expect(ms).toBeLessThan(TURN_MS);
    },
    60_000,
  );
});
