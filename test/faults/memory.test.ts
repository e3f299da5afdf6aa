// Attacks on the memory of the gateway as a whole: bodies that never end, results that nobody reads, answers that
// servers do not finish, streams that nobody resumes. One principal or server attacks, another is served meanwhile.

import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { freePort, root, sleep, startGateway, until } from "../e2e/harness.js";
import { type Started, start } from "../fixtures/processes.js";
import { faultServer } from "./gateway.js";
import { figure, full } from "./length.js";
import { linux, report } from "./measure.js";
import { type Agent, agentOf, callBody, type Raw, RSS_GROWTH, raw, scene, serveHonest } from "./memory-scene.js";

/** The least that an empty object in an array takes. */
const VALUE_BYTES = 64;

const started: Started[] = [];

afterAll(async () => {
  await Promise.all(started.map((one) => one.stop("SIGKILL")));
});

describe.skipIf(!linux)("memory", () => {
  it("is bounded under bodies that never end, of which those without room are refused with 503 [bounded]", async () => {
    const { gateway, attacker, honest, growth, told } = await scene({});
    const count = figure(60, 150);
    const size = 15_900_000;
    const head = `${attacker.head}Content-Length: ${size}\r\n\r\n`;
    const start = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"x":"`;
    const rest = Buffer.alloc(size - start.length - 1, "x");
    let over = false;
    const serving = serveHonest(honest, () => over);
    const all = Array.from({ length: count }, () => raw(gateway, [head + start, rest]));
    const isSettled = ({ said, socket }: Raw) => said !== "" || socket.writableLength === 0;
    await until("all that comes", () => all.every(isSettled), 120_000);
    await sleep(1_000);
    over = true;
    const served = await serving;
    const refused = all.filter(({ said }) => said !== "");
    await told(
      `${count} bodies of 15.9 MB that never end`,
      growth(),
      served,
      `; ${refused.length} refused: "${/"message":"([^"]*)/.exec(refused[0]?.said ?? "")?.[1]}"`,
    );
    for (const { said } of refused) {
      expect(said).toMatch(/^HTTP\/1\.1 503 /);
      expect(said).toMatch(/\r\nRetry-After: \d+\r\n/);
      expect(said).toContain("limits.heldBytes");
    }
    // One principal alone has three quarters of 128 MiB: six such bodies.
    expect(count - refused.length).toBeLessThanOrEqual(6);
    expect(growth()).toBeLessThan(RSS_GROWTH);
    for (const { socket } of all) socket.destroy();
    await until("room again", async () => (await attacker.call("echo", { x: "x".repeat(15_000_000) })).status === 200);
  }, 300_000);

  it.each([
    ["60 calls of 600 kB", 60, 195_000],
    ["300 calls of 60 kB", 300, 19_500],
  ])(
    "is bounded under %s of nothing but values that hang, each of which takes many times its text [bounded]",
    async (what, count, values) => {
      const hang = faultServer("troubled", ["hangs"], { tools: { echo: { name: "hang" } } });
      const { gateway, attacker, honest, growth, told } = await scene({ hang }, [], {}, true);
      const x = Array.from({ length: values }, () => ({}));
      let over = false;
      const serving = serveHonest(honest, () => over);
      const all = Array.from({ length: count }, () => raw(gateway, [callBody(attacker.head, "hang", { x })]));
      // Of one that is closed with its answer, that may be lost.
      const refused = () => all.filter(({ said, closed }) => closed || said.startsWith("HTTP/1.1 503 ")).length;
      const fits = Math.floor((0.75 * 128 * 1024 * 1024) / (values * VALUE_BYTES));
      await until("those without room to be refused", () => refused() >= count - fits, 60_000);
      await sleep(1_000);
      over = true;
      await told(`${what} of nothing but values that hang`, growth(), await serving, `; ${refused()} refused`);
      expect(growth()).toBeLessThan(RSS_GROWTH);
    },
    120_000,
  );

  it("is bounded under results that nobody reads, of which those without room end with the fault limit [bounded]", async () => {
    const { gateway, attacker, honest, growth, told } = await scene({ large: faultServer("large") }, [["pid", {}]]);
    const count = figure(6, 15);
    let over = false;
    const serving = serveHonest(honest, () => over);
    const call = callBody(attacker.head, "fill", { bytes: 60_000_000 });
    for (let n = 0; n < count; n++) raw(gateway, [call], false);
    await sleep(500);
    // The server answers one after another: when this one has its answer, all have.
    const last = await attacker.call("fill", { bytes: 60_000_000 });
    await sleep(500);
    const peak = growth();
    if (full) {
      // Readers that stand still are cut while there is no room; then there is room.
      const fits = async () => (await attacker.call("fill", { bytes: 60_000_000 })).text?.length === 60_000_000;
      await until("room again", fits, 90_000);
    }
    over = true;
    const served = await serving;
    await told(`${count} results of 60 MB that nobody reads`, Math.max(peak, growth()), served, `; "${last.error}"`);
    expect(last.error).toContain("limits.heldBytes");
    expect(growth()).toBeLessThan(RSS_GROWTH);
  }, 300_000);

  it("is bounded under answers that servers on pipes leave half written [bounded]", async () => {
    const count = figure(3, 8);
    const names = Array.from({ length: count }, (_, n) => `half${n}`);
    const servers = Object.fromEntries(
      names.map((name) => [name, { ...faultServer("hoarder"), tools: { half: { name }, tell: { hide: true } } }]),
    );
    const { attacker, honest, growth, told } = await scene(
      servers,
      names.map((name) => [name, { bytes: 10, endAfterMs: 0 }]),
    );
    let over = false;
    const serving = serveHonest(honest, () => over);
    const args = { bytes: 60_000_000, endAfterMs: 8_000 };
    const answers = await Promise.all(names.map((name) => attacker.call(name, args)));
    over = true;
    const served = await serving;
    const limited = answers.filter(({ error }) => error?.includes("limits.heldBytes"));
    await told(
      `${count} servers with half an answer of 60 MB`,
      growth(),
      served,
      `; ${limited.length} ended with the fault limit`,
    );
    expect(limited.length).toBeGreaterThanOrEqual(count - 2);
    const others = answers.filter((one) => !limited.includes(one));
    expect(others.map(({ text, error }) => error ?? text?.length)).toEqual(others.map(() => 60_000_000));
    expect(growth()).toBeLessThan(RSS_GROWTH);
  }, 300_000);

  it("is bounded under answers that an HTTP server leaves half written [bounded]", async () => {
    const port = await freePort();
    const one = start("hoarder", process.execPath, [
      join(root, "test/faults/servers/hoarder.mjs"),
      "--http",
      String(port),
    ]);
    started.push(one);
    await until("its server", () => one.log() !== "");
    const hoarder = { type: "http", url: `http://127.0.0.1:${port}/mcp` };
    const { attacker, honest, growth, told } = await scene({ hoarder }, [["half", { bytes: 10, endAfterMs: 0 }]]);
    let over = false;
    const serving = serveHonest(honest, () => over);
    const args = { bytes: 1_900_000, endAfterMs: 10_000 };
    const answers = await Promise.all(Array.from({ length: 200 }, () => attacker.call("half", args)));
    over = true;
    const served = await serving;
    const limited = answers.filter(({ error }) => error?.includes("limits.heldBytes"));
    await told(
      "200 answers of 1.9 MB that do not end",
      growth(),
      served,
      `; ${limited.length} ended with the fault limit`,
    );
    expect(limited.length).toBeGreaterThan(0);
    expect(answers.filter(({ text }) => text?.length === 1_900_000).length).toBe(200 - limited.length);
    expect(growth()).toBeLessThan(RSS_GROWTH);
  }, 300_000);

  it("is bounded under streams that nobody reads or resumes [bounded] [agent-12]", async () => {
    const { gateway, honest, growth, told } = await scene({ hoarder: faultServer("hoarder") }, [
      ["half", { bytes: 10, endAfterMs: 0 }],
    ]);
    let over = false;
    const serving = serveHonest(honest, () => over);
    const principals = await Promise.all(["a", "b", "c"].map((id) => agentOf(gateway, id)));
    const streams: Raw[] = [];
    for (let n = 0; n < figure(60, 300); n++) {
      const { head } = principals[n % 3] as Agent;
      streams.push(raw(gateway, [callBody(head, "tell", { count: 15, bytes: 250_000, endAfterMs: 10_000 })], false));
      if (n % 10 === 9) await sleep(300);
    }
    await sleep(figure(3_000, 8_000));
    // Half of them leave, and do not come back.
    for (const { socket } of streams.slice(0, streams.length / 2)) socket.destroy();
    await sleep(2_000);
    over = true;
    const served = await serving;
    await told(`${streams.length} streams with 3.75 MB each that nobody reads`, growth(), served);
    expect(growth()).toBeLessThan(RSS_GROWTH);
  }, 300_000);
});

describe("bodies that trickle", () => {
  it("are ended when they bring less than 32 KiB a second over 10 s; others go on [bounded]", async () => {
    const gateway = await startGateway({ mcpServers: { plain: faultServer("plain") } }, { auth: true });
    const attacker = await agentOf(gateway, "attacker");
    const count = figure(20, 500);
    const head = `${attacker.head}Content-Length: 1000000\r\n\r\n`;
    const begun = performance.now();
    const slow = Array.from({ length: count }, () => raw(gateway, [head]));
    const brisk = raw(gateway, [head]);
    const trickle = setInterval(() => {
      for (const { socket } of slow) if (!socket.destroyed) socket.write("x".repeat(1024));
      if (!brisk.socket.destroyed) brisk.socket.write("x".repeat(40 * 1024));
    }, 1_000);
    try {
      await until("their end", () => slow.every(({ said, closed }) => said !== "" && closed), 30_000);
      const seconds = (performance.now() - begun) / 1000;
      report("bodies that trickle", `${count} at 1 KiB/s, all ended after ${seconds.toFixed(1)} s with 408 [bounded]`);
      for (const { said } of slow) expect(said).toMatch(/^HTTP\/1\.1 408 /);
      expect(brisk.said).toBe("");
      expect(brisk.closed).toBe(false);
    } finally {
      clearInterval(trickle);
    }
  }, 120_000);
});
