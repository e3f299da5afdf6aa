// An executor's connection that is cut again and again, at random points: what goes on arrives whole and in order, what
// does not ends with an error, and nothing is ever cut short in silence.

import { afterEach, describe, expect, it } from "vitest";
import { Destinations } from "../../src/executor/allow/destinations.js";
import { SocketClient } from "../../src/executor/client/client.js";
import { createExecutor, type Executor } from "../../src/executor/server/executor.js";
import { listenForClients } from "../../src/executor/server/listener.js";
import { ExecutorError } from "../../src/executor/wire/types.js";
import { dialSocket } from "../../src/sockets/dial.js";
import { type CuttingProxy, startCuttingProxy, startPlainProxy } from "./cutting-proxy.js";
import { download, type Origin, type Outcome, startOrigin, upload } from "./executor-bodies.js";
import { figure } from "./length.js";
import { report } from "./measure.js";
import { type Random, runSeed, seeded } from "./random.js";

const CUTS = figure(40, 500);
/** At once: enough to be in the middle of something whenever the cut comes. */
const WORKERS = 8;
const MOST_BODY_BYTES = 1_500_000;
const RUN_MS = 900_000;

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

interface Net {
  readonly origin: Origin;
  readonly executor: Executor;
  readonly client: SocketClient;
  readonly proxy: CuttingProxy;
}

async function network(startProxy: (url: string) => Promise<CuttingProxy>): Promise<Net> {
  const origin = await startOrigin();
  const executor = createExecutor({ destinations: Destinations.parse([`127.0.0.1:${origin.port}`]) });
  const door = await listenForClients(executor, { host: "127.0.0.1", port: 0, token: undefined });
  const proxy = await startProxy(door.url);
  const client = new SocketClient({ dial: (signal) => dialSocket(proxy.url, { signal }) });
  cleanups.push(
    () => origin.close(),
    () => executor.close(),
    () => door.close(),
    () => proxy.close(),
    () => client.close(),
  );
  return { origin, executor, client, proxy };
}

/** Sends bodies both ways until there have been enough cuts; how each ended. */
async function traffic({ origin, client, proxy }: Net, random: Random): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  const work = async (worker: number): Promise<void> => {
    for (let turn = 0; proxy.cuts < CUTS; turn++) {
      // Of one in four there is nothing but an end.
      const bytes = random.chance(0.25) ? random.int(2) : random.int(MOST_BODY_BYTES);
      const seed = worker * 1_000 + turn;
      if (client.state !== "lost") await client.ready();
      outcomes.push(await (random.chance(0.4) ? upload : download)(client, origin, seed, bytes));
    }
  };
  await Promise.all(Array.from({ length: WORKERS }, (_, worker) => work(worker)));
  return outcomes;
}

/** Of a seed that brings the run back. */
async function withSeed(run: (random: Random) => Promise<void>): Promise<void> {
  const random = seeded(runSeed());
  try {
    await run(random);
  } catch (error) {
    throw new Error(`TOOLWAY_SEED=${random.seed} brings it back, more or less.`, { cause: error });
  }
}

const errorsOf = (outcomes: readonly Outcome[]): Error[] =>
  outcomes.flatMap((outcome) => (typeof outcome === "object" ? [outcome.error] : []));

/** Nothing is left of it at either end, or at the server. */
async function expectIdle({ origin, executor, client }: Net): Promise<void> {
  expect(client.inFlight).toBe(0);
  await expect.poll(() => executor.status().requests).toBe(0);
  await expect.poll(() => origin.open).toBe(0);
}

describe("a connection that is cut", () => {
  it(`[exec-4] ${CUTS} times, with resume: every body arrives whole, both ways`, { timeout: RUN_MS }, () =>
    withSeed(async (random) => {
      const net = await network((url) => startCuttingProxy(url, random, 1_000_000));
      const outcomes = await traffic(net, random);
      net.proxy.heal();
      const errors = errorsOf(outcomes);
      report(
        "executor, connection cut with resume",
        `${net.proxy.cuts} cuts; ${outcomes.length} bodies both ways: ${outcomes.length - errors.length} whole, ` +
          `${errors.length} with an error, ${outcomes.filter((one) => one === "short").length} cut short in silence`,
      );
      expect(outcomes.filter((one) => one === "short")).toEqual([]);
      expect(errors.map(({ message }) => message)).toEqual([]);
      expect(net.executor.status().sessions).toBeLessThanOrEqual(1 + net.executor.status().retained);
      await expectIdle(net);
    }),
  );

  it(
    `[exec-3] [exec-keep] ${CUTS} times, between plain ends: whole, or an error that says so`,
    { timeout: RUN_MS },
    () =>
      withSeed(async (random) => {
        const net = await network((url) => startPlainProxy(url, random, 60));
        const outcomes = await traffic(net, random);
        net.proxy.heal();
        const errors = errorsOf(outcomes);
        report(
          "executor, connection cut between plain ends",
          `${net.proxy.cuts} cuts; ${outcomes.length} bodies: ${outcomes.length - errors.length} whole, ` +
            `${errors.length} with an error, ${outcomes.filter((one) => one === "short").length} cut short in silence`,
        );
        expect(net.client.extended).toBe(false);
        expect(outcomes.filter((one) => one === "short")).toEqual([]);
        expect(outcomes).toContain("complete");
        expect(errors.length).toBeGreaterThan(0);
        for (const error of errors) {
          expect(error).toBeInstanceOf(ExecutorError);
          expect(["disconnected", "unavailable"], error.message).toContain((error as ExecutorError).code);
        }
        await expectIdle(net);
      }),
  );
});
