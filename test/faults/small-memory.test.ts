// Attacks on the gateway's memory by many small things: none of them is large enough to be refused for itself, and all
// together are. One principal attacks in four ways, another is served meanwhile.

import { beforeAll, describe, expect, it } from "vitest";
import { modernRequest } from "../e2e/eras.js";
import { type Gateway, until } from "../e2e/harness.js";
import { faultServer } from "./gateway.js";
import { figure } from "./length.js";
import { linux, MB } from "./measure.js";
import {
  type Agent,
  callBody,
  openAgent,
  type Raw,
  RSS_GROWTH,
  raw,
  scene,
  serveHonest,
  type Told,
} from "./memory-scene.js";

const MIB = 1024 * 1024;
/** In the short run there is less to fill, and what a heap at work takes beside it is most of what is measured. */
const HELD_BYTES = figure(16, 128) * MIB;
/**
 * In the short run 58 to 72 MB were seen, most of it a heap at work, and more is taken on a busy machine. Held without a
 * bound, 900 bodies of 60 kB that count three times are 162 MB beside that heap.
 */
const GROWTH = figure(180 * MB, RSS_GROWTH);
/** What is small has 64 MiB of it at most, and one principal three quarters. */
const SHARE = Math.min(HELD_BYTES, 64 * MIB) * 0.75;
/** In one body or one reply: just below what was once too small to be counted. */
const BYTES = 60_000;
/** A body in flight is counted three times. */
const MOST_CALLS = Math.floor(SHARE / (3 * BYTES));
/** A session has 1,000 calls in flight at most, and so has a modern principal at one path. */
const CALLS_A_SESSION = 950;

describe.skipIf(!linux)("memory for what is small", () => {
  let gateway: Gateway;
  let attacker: Agent;
  let honest: Agent;
  let growth: () => number;
  let told: Told;

  beforeAll(async () => {
    const hangs = (name: string) => faultServer("troubled", ["hangs"], { tools: { echo: { name } } });
    const servers = { large: faultServer("large"), a: hangs("a"), b: hangs("b"), c: hangs("c"), d: hangs("d") };
    const settings = { limits: { heldBytes: HELD_BYTES } };
    ({ gateway, attacker, honest, growth, told } = await scene(servers, [["pid", {}]], settings));
  }, 60_000);

  /** While `attack` runs, the honest agent is served; then the figures are told and held against their bound. */
  async function under(what: string, attack: () => Promise<string>): Promise<void> {
    let over = false;
    const serving = serveHonest(honest, () => over);
    try {
      const more = await attack();
      over = true;
      await told(what, growth(), await serving, more);
    } finally {
      over = true;
    }
    expect(growth()).toBeLessThan(GROWTH);
  }

  /** Sessions of the attacker. */
  function agentNotifications(count: number): Promise<Agent[]> {
    return Promise.all(Array.from({ length: count }, () => openAgent(gateway, attacker.authorization)));
  }

  /**
   * Waits until no more than `most` are left that were not refused, and looks at what the others were told. On a slow
   * machine, bodies may also be ended for coming too slowly, and a server that reads slowly has its own part of the room.
   */
  async function refused(all: readonly Raw[], most: number): Promise<string> {
    const isOver = ({ said, closed }: Raw) => closed || said.includes("limits.heldBytes") || said.includes(" 408 ");
    await until("those without room to be refused", () => all.filter(isOver).length >= all.length - most, 60_000);
    const texts = all.map(({ said }) => said).filter((said) => said.startsWith("HTTP/1.1 503 "));
    expect(texts.length).toBeGreaterThan(0);
    for (const text of texts) {
      expect(text).toMatch(/\r\nRetry-After: \d+\r\n/);
      expect(text).toContain("limits.heldBytes");
    }
    return `; ${texts.length} refused: "${/"message":"([^"]*)/.exec(texts[0] ?? "")?.[1]}"`;
  }

  it("is bounded under calls of the modern era that hang [bounded]", async () => {
    const count = figure(900, 3_600);
    await under(`${count} modern calls of 60 kB that hang`, async () => {
      const calls = ["a", "b", "c", "d"].map((name) => {
        const params = { name, arguments: { x: "x".repeat(BYTES) } };
        const { text, headers } = modernRequest({ method: "tools/call", params });
        const lines = Object.entries({ ...headers, authorization: attacker.authorization });
        return (
          `POST /mcp/${name} HTTP/1.1\r\nHost: 127.0.0.1:${gateway.port}\r\nContent-Type: application/json\r\n` +
          `Accept: application/json, text/event-stream\r\nContent-Length: ${text.length}\r\n` +
          `${lines.map(([key, value]) => `${key}: ${value}\r\n`).join("")}\r\n${text}`
        );
      });
      const all = Array.from({ length: count }, (_, n) =>
        raw(gateway, [calls[Math.floor(n / CALLS_A_SESSION)] as string]),
      );
      return refused(all, MOST_CALLS);
    });
  }, 120_000);

  it("is bounded under small bodies that never end [bounded]", async () => {
    const count = figure(900, 6_000);
    await under(`${count} bodies of 60 kB that never end`, async () => {
      const whole = callBody(attacker.head, "echo", { x: "x".repeat(BYTES) });
      const most = Math.floor(SHARE / BYTES);
      const all = Array.from({ length: count }, () => raw(gateway, [whole.slice(0, -10)]));
      return refused(all, most);
    });
  }, 120_000);

  it("is bounded under replies that wait behind one that hangs, on connections that are then cut [bounded]", async () => {
    const count = figure(10, 100);
    await under(`${count} connections with 80 replies of 60 kB behind one that hangs`, async () => {
      const agents = await agentNotifications(Math.ceil(count / 10));
      const all = Array.from({ length: count }, (_, n) => {
        const { head } = agents[n % agents.length] as Agent;
        const fills = Array.from({ length: 80 }, () => callBody(head, "fill", { bytes: BYTES }));
        return raw(gateway, [callBody(head, "a", {}) + fills.join("")]);
      });
      const cut = () => all.filter(({ closed }) => closed).length;
      // A reply counts once at least, and more while it is being read. One connection may have a part of its replies. They
      // come at the pace of the machine: on a busy one, a few connections a second are full.
      const most = Math.ceil(SHARE / (80 * BYTES));
      await until("connections without room to be cut", () => cut() >= count - most, 150_000);
      expect(all.filter(({ said }) => said.includes("result"))).toEqual([]);
      return `; ${cut()} cut`;
    });
  }, 240_000);

  // The last one: what agents of this era asked for goes on for half a minute when they have gone.
  it("is bounded under calls that hang, of which those without room are refused with 503 [bounded]", async () => {
    const count = figure(900, 5_700);
    await under(`${count} calls of 60 kB that hang`, async () => {
      const agents = await agentNotifications(Math.ceil(count / CALLS_A_SESSION));
      const x = "x".repeat(BYTES);
      const all = Array.from({ length: count }, (_, n) => {
        const { head } = agents[n % agents.length] as Agent;
        return raw(gateway, [callBody(head, "a", { x })]);
      });
      return refused(all, MOST_CALLS);
    });
  }, 120_000);
});
