// The gateway that runs a server for all is frozen past its lease, and wakes; another is killed. Real processes: what runs, and
// where, is asked of the server itself.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { makeEngineKey } from "../../src/gateway/engine/keys.js";
import { type Gateway, isAlive, startGateway, stdioFixture } from "../e2e/harness.js";
import { callTool, hasTool, statusOf } from "../e2e/operator.js";
import { full } from "../faults/length.js";
import { temporaryFolder } from "../fixtures/folders.js";
import { NO_NATS, natsPrograms, startNats } from "../fixtures/nats.js";
import { until } from "../fixtures/wait.js";

const title = natsPrograms.length === 0 ? `a server at one gateway, ${NO_NATS}` : "a server at one gateway that";

/** From the kill to the first answer of the next process, where the engine has a leader. */
const TAKEOVER_MS = 10_000;

/** Goes on until it is answered with a result: a call meanwhile may be told that its outcome is unknown. */
async function counted({ url }: Gateway): Promise<{ count: number; pid: number }> {
  return until("an answer of the server", async () => {
    const { result } = await callTool(url, "count");
    const [content] = (result?.["content"] ?? []) as { text: string }[];
    return result?.["isError"] === true || content === undefined
      ? undefined
      : (JSON.parse(content.text) as { count: number; pid: number });
  });
}

async function startBoth(): Promise<{ holder: Gateway; other: Gateway; pid: number }> {
  const nats = await startNats();
  const key = join(temporaryFolder("toolway-placement-"), "key");
  writeFileSync(key, makeEngineKey(), { mode: 0o600 });
  const config = {
    mcpServers: { stateful: stdioFixture("stateful", [], { placement: "one" }) },
    engine: { nats: nats.urls, key: { file: key }, replicas: 1 },
  };
  const both = [await startGateway(config), await startGateway(config)] as const;
  for (const { url } of both) await until("its tools", () => hasTool(url, "count"));
  const isHere = async (one: Gateway) => (await statusOf(one, "stateful")).placement?.isHere === true;
  const isSettled = async () => {
    const seen = await Promise.all(both.map((one) => statusOf(one, "stateful")));
    const areSame = new Set(seen.map(({ placement }) => placement?.gateway)).size === 1;
    return areSame && seen.every(({ state, placement }) => state === "ready" && placement?.gateway !== undefined);
  };
  await until("both to have it", isSettled);
  const [first, second] = both;
  const [holder, other] = (await isHere(first)) ? [first, second] : [second, first];
  const { pid } = await counted(other);
  expect((await statusOf(holder, "stateful")).pid).toBe(pid);
  return { holder, other, pid };
}

describe.skipIf(natsPrograms.length === 0)(title, () => {
  it("is frozen sends its process nothing when it wakes, and ends it before its agents are served again [placement-one] [takeover]", async () => {
    const { holder, other, pid } = await startBoth();
    holder.signal("SIGSTOP");
    const next = await counted(other).then(async (seen) => (seen.pid === pid ? takenOver(other, pid) : seen));
    expect(next.pid).not.toBe(pid);
    // What comes to it in the turn in which it wakes is sent before it has heard anything.
    const early = Array.from({ length: 5 }, () => counted(holder));
    holder.signal("SIGCONT");
    for (const { pid: answering } of await Promise.all(early)) expect(answering).not.toBe(pid);
    await until("the former process to be gone", () => !isAlive(pid));
    // It may get the server back, as a process of its own, now that partitions are spread over both again.
    await until("both to have one process", async () => {
      const [here, there] = [await counted(holder), await counted(other)];
      return here.pid === there.pid && here.pid !== pid;
    });
  }, 120_000);

  it.skipIf(!full)(
    "is killed has it run by the other within 10 s [placement-one] [takeover]",
    async () => {
      const { holder, other, pid } = await startBoth();
      const killedMs = performance.now();
      await holder.stop("SIGKILL");
      const { pid: next, count } = await takenOver(other, pid);
      const tookMs = performance.now() - killedMs;
      console.log(`taken over after ${Math.round(tookMs)} ms`);
      expect(tookMs).toBeLessThan(TAKEOVER_MS);
      expect([next === pid, count]).toEqual([false, 1]);
      await until("the former process to be gone", () => !isAlive(pid));
    },
    120_000,
  );
});

async function takenOver(other: Gateway, pid: number): Promise<{ count: number; pid: number }> {
  return until("another process", async () => {
    const seen = await counted(other);
    return seen.pid === pid ? undefined : seen;
  });
}
