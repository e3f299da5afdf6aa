// Many streams at once over one connection of an executor, and one that nobody reads beside them.

import { afterEach, describe, expect, it } from "vitest";
import { Destinations } from "../../src/executor/allow/destinations.js";
import { SocketClient } from "../../src/executor/client/client.js";
import { createExecutor } from "../../src/executor/server/executor.js";
import { listenForClients } from "../../src/executor/server/listener.js";
import type { ExecutorError } from "../../src/executor/wire/types.js";
import { dialSocket } from "../../src/sockets/dial.js";
import { LARGEST_WINDOW_BYTES } from "../../src/sockets/limits.js";
import { Checker, download, type Origin, startOrigin, upload } from "./executor-bodies.js";
import { figure } from "./length.js";
import { megabytes, report } from "./measure.js";

const STREAMS = figure(200, 1_000);
const BYTES = 300_000;
/** What a stream that nobody reads may take from its server: a window, and what sockets on the way hold. */
const TAKEN_BYTES = LARGEST_WINDOW_BYTES + 12_000_000;
const UNREAD_BYTES = 3 * TAKEN_BYTES;
const RUN_MS = 600_000;

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function connected() {
  const origin = await startOrigin();
  const executor = createExecutor({ destinations: Destinations.parse([`127.0.0.1:${origin.port}`]) });
  const door = await listenForClients(executor, { host: "127.0.0.1", port: 0, token: undefined });
  const client = new SocketClient({ dial: (signal) => dialSocket(door.url, { signal }) });
  cleanups.push(
    () => origin.close(),
    () => executor.close(),
    () => door.close(),
    () => client.close(),
  );
  await client.ready();
  return { origin, executor, client };
}

/** A stream that is asked for and paused: what of it has come, and how it ends once it is read. */
function unread(client: SocketClient, url: string, seed: number) {
  const checker = new Checker(seed);
  const seen: { ended: string | undefined; wrong: unknown } = { ended: undefined, wrong: undefined };
  const exchange = client.start(
    { method: "GET", url, headers: [] },
    {
      onHead() {},
      onData(chunk) {
        try {
          checker.take(chunk);
        } catch (error) {
          seen.wrong = error;
        }
      },
      onEnd() {
        seen.ended = "end";
      },
      onError(error: ExecutorError) {
        seen.ended = error.message;
      },
    },
  );
  exchange.pause();
  return { exchange, checker, seen };
}

/** Until nothing more is taken from it: the same figure twice, some time apart. */
async function standsStill(origin: Origin): Promise<void> {
  let before = -1;
  const still = () => {
    const now = origin.given;
    const isStill = now > 0 && now === before;
    before = now;
    return isStill;
  };
  await expect.poll(still, { interval: 500 }).toBe(true);
}

describe("one connection", () => {
  it(`[exec-1] [exec-7] carries ${STREAMS} streams at once, and one that nobody reads holds up none`, {
    timeout: RUN_MS,
  }, async () => {
    const { origin, executor, client } = await connected();
    const idle = unread(client, origin.bodyUrl(1, UNREAD_BYTES), 1);
    await expect.poll(() => origin.open).toBe(1);
    await standsStill(origin);
    expect(origin.given).toBeLessThan(TAKEN_BYTES);
    const begin = performance.now();
    // Uploads among them: one in five.
    const running = Array.from({ length: STREAMS }, (_, i) =>
      (i % 5 === 4 ? upload : download)(client, origin, i + 2, BYTES),
    );
    const mostAtOnce = client.inFlight;
    const outcomes = await Promise.all(running);
    const seconds = (performance.now() - begin) / 1000;
    report(
      "executor, streams at once",
      `${mostAtOnce} over one connection, ${BYTES / 1000} kB each: ${outcomes.filter((one) => one === "complete").length} ` +
        `whole in ${seconds.toFixed(1)} s`,
    );
    expect(outcomes.filter((one) => one !== "complete")).toEqual([]);
    expect(mostAtOnce).toBe(STREAMS + 1);

    // All that time it waited, and all of it is still to be had.
    expect([idle.checker.bytes, idle.seen.ended, client.inFlight]).toEqual([0, undefined, 1]);
    idle.exchange.resume();
    await expect.poll(() => idle.seen.ended).toBe("end");
    expect([idle.seen.wrong, idle.checker.bytes]).toEqual([undefined, UNREAD_BYTES]);
    await expect.poll(() => executor.status().requests).toBe(0);
    await expect.poll(() => origin.open).toBe(0);
  });

  it("[exec-1] [exec-2] holds little of many that nobody reads, and frees all of it when they are given up", {
    timeout: RUN_MS,
  }, async () => {
    const { origin, executor, client } = await connected();
    const count = figure(50, 300);
    const all = Array.from({ length: count }, (_, i) => unread(client, origin.bodyUrl(i, 64_000_000), i));
    await expect.poll(() => origin.open).toBe(count);
    await standsStill(origin);
    report("executor, streams that nobody reads", `${count}: ${megabytes(origin.given)} taken from their server`);
    expect(origin.given).toBeLessThan(count * TAKEN_BYTES);
    // Small requests go on beside them.
    for (let i = 0; i < 20; i++) expect(await download(client, origin, i, 1_000)).toBe("complete");
    expect(await download(client, origin, 7, 3 * LARGEST_WINDOW_BYTES)).toBe("complete");
    for (const { exchange } of all) exchange.abort();
    expect(client.inFlight).toBe(0);
    // Their server hears of it, too.
    await expect.poll(() => origin.open).toBe(0);
    await expect.poll(() => executor.status().requests).toBe(0);
    expect(all.every(({ seen, checker }) => seen.ended === undefined && checker.bytes === 0)).toBe(true);
  });
});
