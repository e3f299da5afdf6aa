// Two gateways of one config on one engine keep writes together: one of them has those of a server in hand, and the other passes
// its agents' calls on.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Reply } from "../e2e/eras.js";
import { startHttpFixture } from "../e2e/harness.js";
import { callTool } from "../e2e/operator.js";
import { type EngineGateway, mayActFor, partitionsOf, startOnEngine } from "../fixtures/engine-gateways.js";
import { temporaryFolder } from "../fixtures/folders.js";
import { effectsIn } from "../fixtures/ledger.js";
import { type Nats, NO_NATS, natsPrograms, startNats } from "../fixtures/nats.js";
import { until } from "../fixtures/wait.js";

const title = natsPrograms.length === 0 ? `an outbox of two gateways, ${NO_NATS}` : "an outbox of two gateways";

describe.skipIf(natsPrograms.length === 0)(title, () => {
  let nats: Nats;
  let owner: EngineGateway;
  let other: EngineGateway;
  let server: Awaited<ReturnType<typeof startHttpFixture>>;
  const folder = temporaryFolder("toolway-ledger-");
  const [ledger, answers] = [join(folder, "ledger.jsonl"), join(folder, "answers")];
  const files = ["--ledger", ledger, "--answers", answers];
  const open: EngineGateway[] = [];
  let config: Parameters<typeof startOnEngine>[1];

  const call = ({ url, gateway }: EngineGateway, tool: string, args: Record<string, unknown>): Promise<Reply> =>
    callTool(url, tool, args, gateway.token);
  const receiptIn = ({ result }: Reply) =>
    (result?.["structuredContent"] as { receipt?: string } | undefined)?.receipt ?? "";
  const isOwner = (one: EngineGateway) => mayActFor(one, "tracker");

  /** The one that has the tracker in hand, and the other, when each has half of the partitions. */
  async function whenShared(two: readonly EngineGateway[]): Promise<[EngineGateway, EngineGateway]> {
    for (const { gateway } of two) await gateway.servers.get("tracker")?.firstTry;
    await until("each to have half of the partitions", () =>
      two.every((one) => {
        const seen = partitionsOf(one).gateways();
        return seen.length === 2 && seen.every(({ partitions }) => partitions === 32) && two.some(isOwner);
      }),
    );
    return (isOwner(two[0] as EngineGateway) ? two : [...two].reverse()) as [EngineGateway, EngineGateway];
  }

  beforeAll(async () => {
    nats = await startNats();
    server = await startHttpFixture("tracker", files);
    const outbox = { lane: "arguments.project" };
    const tools = { create_issue: { outbox: { ...outbox, key: "arguments.request_id" } }, add_comment: { outbox } };
    const tracker = { type: "http" as const, url: server.url, tools };
    config = { names: "plain" as const, mcpServers: { tracker } };
    for (let n = 0; n < 2; n++) open.push(await startOnEngine(nats, config));
    [owner, other] = await whenShared(open);
  });
  afterAll(async () => {
    await Promise.all(open.map(({ gateway }) => gateway.close({ drainMs: 0 })));
  });

  it("answers at the one that does not have it in hand as at the one that has [engine-outbox] [no-double-effect]", async () => {
    for (const [n, one] of [owner, other].entries()) {
      const { result } = await call(one, "create_issue", { project: "a", title: `live-${n}`, request_id: `key-${n}` });
      expect(result?.["structuredContent"]).toEqual({ issue: n + 1, title: `live-${n}` });
    }
    // The same key at either is the same write.
    const again = await call(owner, "create_issue", { project: "a", title: "live-1", request_id: "key-1" });
    expect(again.result?.["structuredContent"]).toEqual({ issue: 2, title: "live-1" });
    const another = await call(other, "create_issue", { project: "a", title: "another", request_id: "key-0" });
    expect(JSON.stringify(another)).toContain("This key was used for another call");
    expect(effectsIn(ledger).map(({ title: name }) => name)).toEqual(["live-0", "live-1"]);
  });

  it("shows a receipt, lists them and takes an operator's word at either, and delivers what was queued at the other [engine-outbox] [ack-is-durable]", async () => {
    await server.kill();
    const queued = await call(other, "create_issue", { project: "b", title: "later", request_id: "key-later" });
    const id = receiptIn(queued);
    expect(id).toMatch(/^p\d+_/);
    for (const one of [owner, other]) {
      const shown = await call(one, "toolway__receipt", { id });
      expect(shown.result?.["structuredContent"]).toMatchObject({ receipt: id, state: "queued" });
      const all = await call(one, "toolway__receipt", {});
      expect(JSON.stringify(all.result)).toContain(id);
      expect((await one.gateway.outbox?.show(id))?.state).toBe("queued");
      const listed = (await one.gateway.outbox?.list({ state: "queued", limit: 10 })) ?? [];
      expect(listed.map(({ id: found }) => found)).toEqual([id]);
      expect(await one.gateway.outbox?.firstLanes(10)).toMatchObject({ lanes: [{ depth: 1 }], more: 0 });
    }
    expect(await other.gateway.outbox?.hold("tracker", undefined)).toBeGreaterThan(0);
    server = await startHttpFixture("tracker", files, server.port);
    expect(await other.gateway.outbox?.release("tracker", undefined)).toBeGreaterThan(0);
    const waited = await call(other, "toolway__receipt", { id, wait: 45 });
    expect(waited.result?.["structuredContent"]).toMatchObject({ receipt: id, state: "done" });
    await expect(other.gateway.outbox?.retry(id)).rejects.toThrow("cannot be sent again");
  });

  it("passes to the other without a gap when the one that has it hands over, with all its receipts [engine-outbox] [takeover]", async () => {
    const before = await call(owner, "create_issue", { project: "c", title: "before", request_id: "key-before" });
    const leaving = owner.gateway.close({ drainMs: 5_000 });
    const during = Array.from({ length: 20 }, (_, n) =>
      call(other, "create_issue", { project: "c", title: `during-${n}`, request_id: `during-${n}` }),
    );
    for (const [n, { result }] of (await Promise.all(during)).entries()) {
      expect(result?.["structuredContent"]).toMatchObject({ title: `during-${n}` });
    }
    await leaving;
    // All of them may have been answered by the one that left, before it did.
    await until("the other to have it in hand", () => isOwner(other));
    const repeated = await call(other, "create_issue", { project: "c", title: "before", request_id: "key-before" });
    expect(repeated.result?.["structuredContent"]).toEqual(before.result?.["structuredContent"]);
    const counts = new Map<string, number>();
    for (const { title: name } of effectsIn(ledger)) counts.set(name, (counts.get(name) ?? 0) + 1);
    expect([...counts.values()].every((count) => count === 1)).toBe(true);
    expect(counts.size).toBe(24);
  });

  it("leaves a write that is on its way to the gateway that sent it when that hands over: its answer is its receipt's, and the next of its lane comes after [engine-drain] [lane-order] [unknown-is-said]", async () => {
    open.push(await startOnEngine(nats, config));
    const [leaving, staying] = await whenShared([other, open.at(-1) as EngineGateway]);
    // Longer than a partition that was lost is waited for, and without a key.
    const slow = call(leaving, "add_comment", { project: "slow", title: "slow", ms: 7_000 });
    await until("it to be under way", () => effectsIn(ledger).some(({ title: name }) => name === "slow"));
    const behind = call(staying, "add_comment", { project: "slow", title: "behind" });
    await until(
      "the next",
      async () => (await leaving.gateway.outbox?.list({ state: "queued", limit: 9 }))?.length === 1,
    );
    const closed = leaving.gateway.close({ drainMs: 20_000 });
    // Nobody may begin anything meanwhile, and what is kept is shown as before.
    await until("it to be given away", () => !isOwner(leaving));
    expect(await staying.gateway.outbox?.list({ state: "queued", limit: 9 })).toHaveLength(1);
    const asked = await call(staying, "toolway__receipt", {});
    expect(asked.result?.["structuredContent"]).toMatchObject({
      receipts: expect.arrayContaining([expect.objectContaining({ state: "sending", tool: "add_comment" })]),
    });
    expect(JSON.stringify((await slow).result)).toContain("noted slow");
    await Promise.all([behind, closed]);
    await until("the next to be delivered", () => effectsIn(ledger).some(({ title: name }) => name === "behind"));
    expect(effectsIn(ledger).filter(({ project }) => project === "slow")).toHaveLength(2);
    await until("its answer", () => readFileSync(answers, "utf8").includes("behind"));
    expect(readFileSync(answers, "utf8").match(/^(?:slow|behind)/gm)).toEqual(["slow", "behind"]);
    expect(await staying.gateway.outbox?.list({ state: "unknown", limit: 9 })).toEqual([]);
  });
});
