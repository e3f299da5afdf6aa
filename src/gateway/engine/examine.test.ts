import type { NatsConnection } from "@nats-io/transport-node";
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

/** So much of JetStream's API as an examination asks for. A stream is made as it was asked for, but for `made`. */
function playJetStream(connection: NatsConnection, made: object): void {
  const at = new Date().toISOString();
  connection.subscribe("$JS.API.>", {
    callback: (_, message) => {
      const asked = message.data.length === 0 ? {} : (message.json() as { readonly last_by_subj?: string });
      const call = message.subject.replace(/^\$JS\.API\.(STREAM\.)?/, "").split(".", 1)[0] ?? "";
      const answers: Readonly<Record<string, object>> = {
        INFO: { memory: 0, storage: 0, streams: 0, consumers: 0, limits: {}, api: { total: 0, errors: 0 } },
        LIST: { type: "io.nats.jetstream.api.v1.stream_list_response", total: 0, offset: 0, limit: 256, streams: [] },
        CREATE: { config: { ...asked, ...made }, created: at, state: { messages: 0, first_seq: 0, last_seq: 0 } },
        MSG: { message: { subject: asked.last_by_subj ?? "", seq: 1, data: "", time: at } },
        DELETE: { success: true },
      };
      message.respond(JSON.stringify(answers[call] ?? { error: { code: 404, description: call } }));
    },
  });
  let seq = 0;
  connection.subscribe("tw.doctor.>", {
    callback: (_, message) => void message.respond(JSON.stringify({ stream: "played", seq: ++seq })),
  });
}

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

  it("[engine-told] that makes a stream otherwise than it was asked to is no engine to run on, and each difference is named", async (context) => {
    if (!there) return context.skip(NO_NATS);
    const bare = await startNats({ jetStream: false });
    const nodes = [{ host: "127.0.0.1", port: bare.nodes[0]?.port ?? 0 }];
    await using player = await openEngine(settings({ nodes, monitor: undefined }), { env });
    // As a server that knows no `max_msgs_per_subject` leaves it out, and one that has its own mind on copies.
    const made = { num_replicas: 2, allow_direct: true, max_msgs_per_subject: undefined };
    playJetStream(player.connection, made);
    await player.connection.flush();
    const { ok, problems, writes } = await examine(settings({ nodes, monitor: undefined }));
    expect(writes?.count).toBeGreaterThan(0);
    expect(problems).toEqual([
      "A stream was made with num_replicas 2, where 1 was asked for.",
      "A stream was made with allow_direct true, where false was asked for.",
      "A stream was made with max_msgs_per_subject undefined, where 1000 was asked for.",
    ]);
    expect(ok).toBe(false);
    await bare.stop();
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
