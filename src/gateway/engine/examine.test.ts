import { beforeAll, describe, expect, it } from "vitest";
import { type Nats, NO_NATS, natsPrograms, startNats } from "../../../test/fixtures/nats.js";
import { playMonitor, SYNCS } from "../../../test/fixtures/played-monitor.js";
import type { EngineAccess } from "../../contracts/settings.js";
import { openEngine } from "../../store/nats/connection.js";
import { enginePromises } from "../../store/nats/versions.js";
import { adviceOf, examineEngine } from "./examine.js";
import { makeEngineKey } from "./keys.js";

const env = { KEY: makeEngineKey() };
const there = natsPrograms.length > 0;
let nats: Nats;

beforeAll(async () => {
  if (there) nats = await startNats();
});

function settings(more: Partial<EngineAccess> = {}): EngineAccess {
  return {
    nodes: [{ host: "127.0.0.1", port: nats.nodes[0]?.port ?? 0 }],
    tls: undefined,
    auth: undefined,
    key: { from: "env", name: "KEY" },
    replicas: 1,
    prefix: "tw",
    monitor: nats.nodes[0]?.monitor,
    ...more,
  };
}

const examine = (of: EngineAccess, environment: NodeJS.ProcessEnv = env) =>
  examineEngine(of, { env: environment, signal: new AbortController().signal, trialMs: 300 });

describe("an engine that is examined", () => {
  it("[engine-told] is written to, read from and held, and of its version is said what it lacks", async (context) => {
    if (!there) return context.skip(NO_NATS);
    const report = await examine(settings());
    expect(report).toMatchObject({ ok: true, problems: [], facts: { version: nats.version, nodes: 1, replicas: 1 } });
    for (const times of [report.writes, report.reads, report.leases]) {
      expect(times?.count).toBeGreaterThan(0);
      expect(times?.slowestMs).toBeGreaterThanOrEqual(times?.medianMs ?? Number.NaN);
    }
    const said = report.promises.filter(({ holds }) => !holds).map(({ sentence }) => sentence);
    expect(said.join("\n")).toContain("kept by one node");
    if (nats.version === "2.9.10") expect(said.join("\n")).toContain("below 2.10.0 it is synced later");
    expect(report.advice.join("\n")).toContain("While the one node is away nothing is written");
  });

  it.for([
    ["always", true],
    ["later", false],
    ["unsaid", undefined],
  ] as const)(
    "[engine-told] is told by its monitoring port whether it syncs: %s",
    async ([answer, always], context) => {
      if (!there) return context.skip(NO_NATS);
      await using monitor = await playMonitor(SYNCS[answer]);
      const { facts, promises } = await examine(settings({ monitor: monitor.url }));
      expect(facts?.syncsAlways).toBe(always);
      expect(promises).toEqual(enginePromises({ version: nats.version, nodes: 1, replicas: 1, syncsAlways: always }));
    },
  );

  it("[engine-told] is left as it was found", async (context) => {
    if (!there) return context.skip(NO_NATS);
    await examine(settings());
    await using engine = await openEngine(settings(), { env });
    const { jetstreamManager } = await import("@nats-io/jetstream");
    const names: string[] = [];
    for await (const name of (await jetstreamManager(engine.connection)).streams.names()) names.push(name);
    expect(names).toEqual([]);
  });

  it("[engine-told] that has too few nodes for its replicas is told what to set", async (context) => {
    if (!there) return context.skip(NO_NATS);
    const { ok, problems } = await examine(settings({ replicas: 3 }));
    expect(ok).toBe(false);
    expect(problems.join()).toMatch(/cannot keep 3 copies .* it has 1 node\. .* set "replicas" to 1/);
  });

  it("[engine-told] [engine-sealed] without a key, a monitor or a node is told what to mend, all at once", async (context) => {
    if (!there) return context.skip(NO_NATS);
    const away = settings({ nodes: [{ host: "127.0.0.1", port: 1 }] });
    const nobody = await examineEngine(away, { env: {}, signal: new AbortController().signal, connectMs: 200 });
    expect(nobody.problems).toEqual([
      expect.stringContaining("The variable KEY is not set"),
      expect.stringContaining("did not answer"),
    ]);
    const blind = await examine(settings({ monitor: "http://127.0.0.1:1" }));
    expect(blind.problems.join()).toContain('Mend "monitor" in "engine"');
  });
});

it("[engine-told] what the numbers mean is said, and what to set", () => {
  const facts = { version: "2.15.1", nodes: 3, replicas: 3, syncsAlways: true };
  const advice = (slowestMs: number, failed: number, maxPayload: number) =>
    adviceOf({ facts, writes: { count: 9, medianMs: 1, slowestMs }, failed, maxPayload }).join("\n");
  expect(advice(20, 0, 1_048_576)).toMatch(/^The loss of a leader holds writes up for 4 to 15 s[^\n]*$/);
  expect(advice(900, 0, 1_048_576)).toContain("The slowest commit took 900 ms");
  expect(advice(20, 3, 1_048_576)).toContain("3 requests were not answered");
  expect(advice(20, 0, 65_536)).toContain("set `max_payload: 1MB`");
});
