// Garbage at the agents' door: the gateway refuses it, keeps nothing of it, and serves the others.

import { Agent, request } from "node:http";
import { connect } from "node:net";
import { describe, expect, it } from "vitest";
import { type Gateway, isAlive, sleep, startGateway, stdioFixture, temporaryDirectory, until } from "../e2e/harness.js";
import { initialize, openHttpWire, post } from "../e2e/wire.js";
import { type Frame, frame, oddHttp } from "./fuzz-frames.js";
import { callText, faultServer } from "./gateway.js";
import { figure } from "./length.js";
import { descriptors, linux, MB, megabytes, peakRss, report, resetPeak, rss } from "./measure.js";
import { type Random, runSeed, seeded } from "./random.js";
import { expectShortTurn, watchedTurns } from "./turns.js";

const FRAMES = figure(5_000, 100_000);
/** A heap that is collected late differs by tens of MB from run to run; a kB left of each frame would be 100. */
const RSS_GROWTH = 80 * MB;
/** Before the base line: what the code and its buffers take is not growth. */
const WARM_UP = 1_500;
const LANES = 24;
/** Share of frames that are bytes on a bare socket. */
const ODD_HTTP = 0.12;
/** Share of frames after which the session is ended, and another begun. */
const GOODBYES = 0.002;
/** The SDK's servers do not answer what has a member too many. */
const CALL_MS = 1_000;
/** Every well-formed request is answered long before. */
const HUNG_MS = 20_000;
/** Half a request is rightly waited for: the fuzzer leaves. */
const PATIENCE_MS = 150;

describe.skipIf(!linux)("fuzzed frames", () => {
  it("crash nothing and leave nothing [bounded]", async () => {
    const turns = watchedTurns(await temporaryDirectory());
    const resources = stdioFixture("resources", [], { callTimeoutMs: CALL_MS });
    const gateway = await startGateway({ mcpServers: { echo: faultServer("plain"), resources } }, { env: turns.env });
    const wire = await openHttpWire(gateway.url);
    await until("echo", async () => (await callText(wire, "echo")) !== undefined);
    const seed = runSeed();
    await new Fuzzer(gateway, seeded(seed + 1)).run(WARM_UP);
    await sleep(300);
    const before = rss(gateway.pid);
    const openBefore = descriptors(gateway.pid).length;
    resetPeak(gateway.pid);
    turns.begin();
    const started = performance.now();
    const fuzzer = new Fuzzer(gateway, seeded(seed));
    await fuzzer.run(FRAMES);
    const seconds = (performance.now() - started) / 1000;
    expect(isAlive(gateway.pid), gateway.log().slice(-2000)).toBe(true);
    expect(await callText(wire, "echo", { still: "here" })).toBe('{"still":"here"}');
    await until("closed connections", () => descriptors(gateway.pid).length <= openBefore + 2, 15_000);
    const growth = rss(gateway.pid) - before;
    const turn = await turns.longest();
    const peak = peakRss(gateway.pid) - before;
    const statuses = [...fuzzer.statuses].sort(([a], [b]) => a - b).map(([status, count]) => `${status}: ${count}`);
    report(
      "fuzzed frames",
      `${FRAMES} in ${seconds.toFixed(1)} s (seed ${seed}; ${statuses.join(", ")}): 0 crashes, ` +
        `RSS ${growth > 0 ? "+" : ""}${megabytes(growth)}, at most +${megabytes(peak)} meanwhile; ` +
        `longest turn ${turns.text(turn)} [bounded]`,
    );
    expect(fuzzer.hung, `seed ${seed}`).toEqual([]);
    // Nothing that comes in may be an error of the gateway's own.
    expect([...fuzzer.statuses.keys()].filter((status) => status >= 500)).toEqual([]);
    expect(gateway.log().match(/^.*(failed inside|uncaught|unhandled).*$/im)?.[0]).toBeUndefined();
    expect(growth).toBeLessThan(RSS_GROWTH);
    expectShortTurn(turn);
  }, 900_000);
});

class Fuzzer {
  readonly statuses = new Map<number, number>();
  /** Requests that were not answered. */
  readonly hung: string[] = [];
  readonly #gateway: Gateway;
  readonly #random: Random;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: LANES });

  constructor(gateway: Gateway, random: Random) {
    this.#gateway = gateway;
    this.#random = random;
  }

  async run(frames: number): Promise<void> {
    let left = frames;
    const lane = async () => {
      let session = "";
      while (left-- > 0) {
        if (session === "" || this.#random.chance(GOODBYES)) session = await this.#renew(session);
        if (this.#random.chance(ODD_HTTP)) await this.#odd(oddHttp(this.#random, session));
        else await this.#send(frame(this.#random, session));
      }
    };
    await Promise.all(Array.from({ length: LANES }, lane));
    this.#agent.destroy();
  }

  async #renew(session: string): Promise<string> {
    const { url } = this.#gateway;
    if (session !== "") await fetch(url, { method: "DELETE", headers: { "mcp-session-id": session } });
    // Batches are of this version alone.
    const version = this.#random.pick(["2025-03-26", "2025-11-25"]);
    return (await post(url, initialize("0", version))).headers.get("mcp-session-id") ?? "";
  }

  #send(what: Frame): Promise<void> {
    const headers = Object.fromEntries(Object.entries(what.headers).filter(([, value]) => value !== ""));
    const { port } = this.#gateway;
    return new Promise((resolve) => {
      const { method, path } = what;
      const req = request({ host: "127.0.0.1", port, method, path, headers, agent: this.#agent }, (res) => {
        const status = res.statusCode ?? 0;
        this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
        // A GET that was accepted is a stream without an end.
        if (method === "GET" && res.headers["content-type"] === "text/event-stream") req.destroy();
        res.resume();
        res.on("close", done);
      });
      const timer = setTimeout(() => {
        this.hung.push(`${method} ${path} ${JSON.stringify(headers)} ${what.body?.toString().slice(0, 2000)}`);
        req.destroy();
      }, HUNG_MS);
      const done = () => {
        clearTimeout(timer);
        resolve();
      };
      req.on("error", done);
      req.end(what.body);
    });
  }

  #odd(bytes: Buffer): Promise<void> {
    return new Promise((resolve) => {
      const socket = connect(this.#gateway.port, "127.0.0.1", () => socket.write(bytes));
      const timer = setTimeout(() => socket.destroy(), PATIENCE_MS);
      socket.on("data", () => {});
      socket.on("error", () => {});
      socket.on("close", () => {
        clearTimeout(timer);
        resolve();
      });
    });
  }
}
