// Two gateways on one engine whose entries of one name mean two servers: what is queued for the one is never delivered to the other.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { startHttpFixture } from "../e2e/harness.js";
import { callTool } from "../e2e/operator.js";
import { type EngineGateway, mayActFor, startOnEngine } from "../fixtures/engine-gateways.js";
import { temporaryFolder } from "../fixtures/folders.js";
import { entry } from "../fixtures/gateways.js";
import { effectsIn } from "../fixtures/ledger.js";
import { NO_NATS, natsPrograms, startNats } from "../fixtures/nats.js";
import { until } from "../fixtures/wait.js";

const title = natsPrograms.length === 0 ? `entries that differ, ${NO_NATS}` : "entries of one name that differ";

describe.skipIf(natsPrograms.length === 0)(title, () => {
  const open: EngineGateway[] = [];
  afterAll(async () => {
    await Promise.all(open.map(({ gateway }) => gateway.close({ drainMs: 0 })));
  });

  it("keep their writes apart: what was queued for one is held at the other, shown, and delivered where it was meant [engine-entries]", async () => {
    const nats = await startNats();
    const folder = temporaryFolder("toolway-entries-");
    const ledgers = [join(folder, "a.jsonl"), join(folder, "b.jsonl")] as const;
    const trackers = [
      await startHttpFixture("tracker", ["--ledger", ledgers[0]]),
      await startHttpFixture("tracker", ["--ledger", ledgers[1]]),
    ] as const;
    const tools = { create_issue: { outbox: { lane: "arguments.project", key: "arguments.request_id" } } };
    const startWith = async (url: string): Promise<EngineGateway> => {
      const tracker = { type: "http" as const, url, tools };
      const one = await startOnEngine(nats, { names: "plain", mcpServers: { tracker } });
      open.push(one);
      await one.gateway.servers.get("tracker")?.firstTry;
      return one;
    };
    const first = await startWith(trackers[0].url);
    await until("the first to have all", () => mayActFor(first, "tracker"));
    await trackers[0].kill();
    const write = { project: "a", title: "for the first", request_id: "k1" };
    const { result } = await callTool(first.url, "create_issue", write, first.gateway.token);
    const { receipt: id = "" } = (result?.["structuredContent"] ?? {}) as { receipt?: string };

    const second = await startWith(trackers[1].url);
    await until("the difference to be shown", () => second.gateway.status().engine?.differences.length === 1);
    expect(second.gateway.status().engine?.differences[0]).toContain('another config: server "tracker"');
    // Its own calls go to its own server, whoever keeps the writes of that name.
    const own = { project: "b", title: "for the second", request_id: "k2" };
    const live = await callTool(second.url, "create_issue", own, second.gateway.token);
    expect(live.result?.["structuredContent"]).toEqual({ issue: 1, title: "for the second" });
    await first.gateway.close({ drainMs: 0 });
    await until("the second to have it in hand", () => mayActFor(second, "tracker"));
    await until("the write to be held", async () => {
      const shown = await second.gateway.outbox?.show(id);
      return JSON.stringify(shown).includes("means another server");
    });
    expect(effectsIn(ledgers[1]).map(({ title: name }) => name)).toEqual(["for the second"]);

    // A gateway by the entry that it was taken by.
    await startHttpFixture("tracker", ["--ledger", ledgers[0]], trackers[0].port);
    const third = await startWith(trackers[0].url);
    await second.gateway.close({ drainMs: 0 });
    await until("the third to have it in hand", () => mayActFor(third, "tracker"));
    await until("the write to be delivered", () => effectsIn(ledgers[0]).length === 1);
    expect(effectsIn(ledgers[0]).map(({ title: name }) => name)).toEqual(["for the first"]);
    expect(effectsIn(ledgers[1]).map(({ title: name }) => name)).toEqual(["for the second"]);
  }, 120_000);

  it("have pins of their own, which begin with what was accepted for the name [engine-entries]", async () => {
    const nats = await startNats();
    const folder = temporaryFolder("toolway-entries-");
    const startWith = async (name: string, says: string, tag: string): Promise<EngineGateway> => {
      const file = join(folder, name);
      writeFileSync(file, says);
      const rug = entry("rug", ["--description", file], { env: { TAG: tag } });
      const one = await startOnEngine(nats, { mcpServers: { rug } });
      open.push(one);
      await one.gateway.servers.get("rug")?.firstTry;
      return one;
    };
    const stateAt = ({ gateway }: EngineGateway) => gateway.pins.list().find(({ tool }) => tool === "add")?.state;
    const first = await startWith("a", "Adds two numbers.", "a");
    await until("the pin of the first", () => stateAt(first) === "pinned");
    const second = await startWith("b", "Adds two numbers, and more.", "b");
    // Another definition under a name that is known: no entry shows agents what nobody accepted.
    await until("the difference", () => stateAt(second) === "changed");
    expect(stateAt(first)).toBe("pinned");
    await second.gateway.pins.accept("rug");
    expect(stateAt(second)).toBe("pinned");
    const third = await startWith("b", "Adds two numbers, and more.", "b");
    await until("what the second accepted, at one of its entry", () => stateAt(third) === "pinned");
    // What was accepted for the other server says nothing of this one.
    await first.gateway.reloadServer("rug");
    expect(stateAt(first)).toBe("pinned");
    expect(first.gateway.pins.list().find(({ tool }) => tool === "add")?.hash).not.toBe(
      second.gateway.pins.list().find(({ tool }) => tool === "add")?.hash,
    );
  });
});
