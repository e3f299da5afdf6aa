// Three gateways on one engine are upgraded one after another, as docs/scale.md says it: drained, ended, started again, while agents
// go on calling through a balancer that looks at /readyz and makes nothing again.

import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { makeEngineKey } from "../../src/gateway/engine/keys.js";
import { type ClientV1, connectV1, connectV2 } from "../e2e/clients.js";
import {
  freePort,
  type Gateway,
  startGateway,
  startHttpFixture,
  stdioFixture,
  temporaryDirectory,
  until,
} from "../e2e/harness.js";
import { hasTool, statusOfAll, toolway } from "../e2e/operator.js";
import { balanceRequests } from "../fixtures/balancer.js";
import { effectsIn } from "../fixtures/ledger.js";
import { NO_NATS, natsPrograms, startNats } from "../fixtures/nats.js";
import { figure } from "./length.js";
import { report } from "./measure.js";

const GATEWAYS = 3;
/** Of them so many are drained and started again. */
const TURNS = figure(1, GATEWAYS);
/** What an agent goes without an answer, at the most. A takeover after a kill takes as long; here somebody hands over. */
const LONGEST_GAP_MS = 10_000;
const CALLS_BETWEEN = 30;
/** An agent's plain calls take so long: it is there all the time, and leaves room for others on a small machine. */
const PAUSE_MS = 50;
const LOOK_MS = 250;
/** As a balancer that looks every second and takes a gateway out at the second 503: until then it goes on sending requests there. */
const OUT_AFTER_MS = 2_000;
/** Of 64 partitions. */
const SHARE = Math.floor(64 / GATEWAYS);

const title = natsPrograms.length === 0 ? `a rolling upgrade, ${NO_NATS}` : "a rolling upgrade";

interface Answer {
  readonly structuredContent?: { readonly receipt?: string };
  readonly isError?: boolean;
}

describe.skipIf(natsPrograms.length === 0)(title, () => {
  const ends: (() => unknown)[] = [];
  afterAll(() => {
    for (const end of ends) end();
  });

  it("of all gateways, one after another, fails no call and leaves no agent without an answer for long [engine-drain] [session-split] [no-double-effect]", async () => {
    const nats = await startNats();
    const ledger = join(await temporaryDirectory(), "ledger.jsonl");
    const { url: address } = await startHttpFixture("tracker", ["--ledger", ledger]);
    const outbox = { lane: "arguments.project", key: "arguments.request_id" };
    const tracker = { type: "http", url: address, tools: { create_issue: { outbox } } };
    const env = { ...process.env, ENGINE_KEY: makeEngineKey() } as Record<string, string>;
    const engine = { nats: nats.urls, key: { env: "ENGINE_KEY" }, replicas: 1 };
    const config = { engine, mcpServers: { tracker, slow: stdioFixture("slow") } };
    const gateways: Gateway[] = await Promise.all(
      Array.from({ length: GATEWAYS }, async () => startGateway(config, { env, port: await freePort() })),
    );
    const hasAll = async (gateway: Gateway) => {
      for (const tool of ["create_issue", "sleep"]) await until(tool, () => hasTool(gateway.url, tool));
      await until("each to have its share", async () => {
        const all = (await statusOfAll(gateway)).engine?.gateways ?? [];
        return all.length === GATEWAYS && all.every(({ partitions }) => partitions >= SHARE);
      });
    };
    for (const gateway of gateways) await hasAll(gateway);
    /** By port, until when each is sent requests. */
    const inUntilMs = new Map<number, number>();
    const look = async ({ origin, port }: Gateway) => {
      const isReady = await fetch(`${origin}/readyz`).then(
        ({ ok }) => ok,
        () => false,
      );
      const nowMs = performance.now();
      if (isReady) inUntilMs.set(port, Number.POSITIVE_INFINITY);
      else inUntilMs.set(port, Math.min(inUntilMs.get(port) ?? nowMs, nowMs + OUT_AFTER_MS));
    };
    await Promise.all(gateways.map(look));
    const looking = setInterval(() => void Promise.all(gateways.map(look)), LOOK_MS);
    ends.push(() => clearInterval(looking));
    const isIn = (port: number) => (inUntilMs.get(port) ?? 0) > performance.now();
    const balancer = await balanceRequests(() => gateways.map(({ port }) => port).filter(isIn));
    ends.push(() => balancer.close());
    const url = `http://127.0.0.1:${balancer.port}/mcp`;
    const auto = { capabilities: {}, versionNegotiation: { mode: "auto" } } as const;
    const clients = [await connectV1(url), (await connectV2(url, auto)) as unknown as ClientV1];

    const sessions = clients.map(({ transport }) => transport?.sessionId);
    expect(sessions.filter((one) => one !== undefined)).toHaveLength(1);

    let isOver = false;
    let answers = 0;
    let longestMs = 0;
    const made: string[] = [];
    const failed: string[] = [];
    const agents = clients.map(async (client, agent) => {
      let lastMs = performance.now();
      const call = async (name: string, args: Record<string, unknown>) => {
        try {
          const answer = (await client.callTool({ name, arguments: args })) as Answer;
          if (answer.isError === true) failed.push(JSON.stringify(answer));
        } catch (error) {
          failed.push(String(error));
        }
        const nowMs = performance.now();
        longestMs = Math.max(longestMs, nowMs - lastMs);
        lastMs = nowMs;
        answers++;
      };
      for (let n = 0; !isOver && failed.length === 0; n++) {
        const key = `write-${agent}-${n}`;
        made.push(key);
        await call("create_issue", { project: `p${n % 8}`, title: key, request_id: key });
        await call("sleep", { ms: PAUSE_MS, label: "plain" });
      }
    });
    const some = async () => {
      const goal = answers + CALLS_BETWEEN;
      await until("some calls", () => answers >= goal || failed.length > 0);
    };
    for (let turn = 0; turn < TURNS && failed.length === 0; turn++) {
      const leaving = gateways[turn] as Gateway;
      await some();
      expect(await toolway(leaving, "drain", "this")).toMatchObject({ code: 0, err: "" });
      await leaving.exited;
      await some();
      gateways[turn] = await leaving.again();
      await hasAll(gateways[turn] as Gateway);
    }
    await some();
    isOver = true;
    await Promise.all(agents);

    report(
      "rolling",
      `${TURNS} of ${GATEWAYS} gateways drained and started again in turn, under ${clients.length} agents behind a balancer: ` +
        `${answers} calls, ${failed.length} failed, at most ${Math.round(longestMs)} ms without an answer [engine-drain]`,
    );
    expect(failed).toEqual([]);
    expect(clients.map(({ transport }) => transport?.sessionId)).toEqual(sessions);
    expect(longestMs).toBeLessThan(LONGEST_GAP_MS);
    await until("every write to be delivered", () => effectsIn(ledger).length >= made.length);
    const effects = effectsIn(ledger).map(({ title: name }) => name);
    expect(effects).toHaveLength(made.length);
    expect(made.filter((key) => !effects.includes(key))).toEqual([]);
  }, 300_000);
});
