// Two brokers on one engine behind a small balancer, machines that share through them and a gateway that calls; the broker that
// has a mailbox in hand is killed in the middle of calls, and in the full form frozen past its lease and stopped too. A tool
// writes down each of its effects, and that is compared with what the callers were told.

import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { type AddressInfo, connect, createServer } from "node:net";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { makeEngineKey } from "../../src/gateway/engine/keys.js";
import { freePort, temporaryDirectory, until } from "../e2e/harness.js";
import { callTool, hasTool } from "../e2e/operator.js";
import { lookOn, spread } from "../fixtures/engine-look.js";
import { NO_NATS, natsPrograms, startNats } from "../fixtures/nats.js";
import { sleep } from "../fixtures/wait.js";
import { figure, full } from "./length.js";
import {
  type Broker,
  compare,
  cut,
  effectsOf,
  endParts,
  Machine,
  Part,
  startBroker,
  type Told,
  tellingOf,
} from "./mailbox-parts.js";
import { linux, report } from "./measure.js";

afterEach(({ task }) => endParts(task.result?.state === "fail"));

const BOXES = figure(2, 4);
const CALLERS = 8;
const CALLS_BETWEEN = figure(16, 100);
/** From the kill to the next that has the mailbox in hand, where the engine has a leader. Short runs share their cores. */
const TAKEOVER_MS = 10_000;
const EVENTS: readonly ("kill" | "freeze" | "stop")[] = full
  ? ["kill", "freeze", "stop", "kill", "freeze", "stop", "kill", "kill"]
  : ["kill"];

const title = natsPrograms.length === 0 ? `brokers on one engine, ${NO_NATS}` : "brokers on one engine that die";

describe.skipIf(natsPrograms.length === 0 || !linux)(title, () => {
  const ends: (() => Promise<unknown>)[] = [];
  afterAll(async () => void (await Promise.allSettled(ends.map((end) => end()))));

  it("lose no answer, double no effect and work on, whoever has the mailbox in hand [mail-anywhere] [takeover] [one-owner] [ack-is-durable] [no-double-effect] [unknown-is-said]", async () => {
    const nats = await startNats();
    const folder = await temporaryDirectory();
    const key = makeEngineKey();
    await writeFile(join(folder, "engine.key"), key, { mode: 0o600 });
    const engine = { nats: nats.urls, key: { file: join(folder, "engine.key") }, replicas: 1 };
    const engineConfig = join(folder, "engine.json");
    await writeFile(engineConfig, JSON.stringify({ engine, mcpServers: {} }));
    const look = await lookOn(nats.nodes[0]?.port ?? 0, key);
    ends.push(() => look.close());
    const partitions = await look.mailPartitions();
    const place = partitions.of("box0");
    const names = () => partitions.gateways().map(({ gateway }) => gateway);

    const running = new Map<string, Broker>();
    const started = async (start: () => Promise<Broker>) => {
      const before = new Set(names());
      const broker = await start();
      running.set(await until("a broker to come", () => names().find((one) => !before.has(one))), broker);
    };
    for (let n = 0; n < 2; n++) await started(() => startBroker(undefined, ["--engine", engineConfig]));
    await spread(partitions, place);
    const balancer = await balance(() => [...running.values()].map(({ url }) => Number(new URL(url).port)));
    ends.push(balancer.close);

    const boxes = Array.from({ length: BOXES }, (_, n) => `box${n}`);
    const machines = await Promise.all(boxes.map((box) => Machine.start(balancer, box)));
    const config = join(folder, "toolway.json");
    const entries = boxes.map((mailbox) => [mailbox, { mailbox, broker: balancer.url }]);
    await writeFile(config, JSON.stringify({ names: "prefixed", mcpServers: Object.fromEntries(entries) }));
    const listen = `127.0.0.1:${await freePort()}`;
    const line = ["serve", config, "--listen", listen, "--state", join(folder, "state"), "--no-auth", "--json"];
    await new Part("gateway", line, '{"').start();
    const url = `http://${listen}/mcp`;
    for (const box of boxes) await until(`the tools of ${box}`, () => hasTool(url, `${box}__note`));

    const told = new Map<string, Told>();
    let calls = 0;
    let answered = 0;
    let isOver = false;
    const callers = Array.from({ length: CALLERS }, async () => {
      while (!isOver) {
        const n = calls++;
        const text = `call-${n}`;
        const box = boxes[n % BOXES] ?? "";
        const outcome = await callTool(url, `${box}__note`, { text, ms: 1 + (n % 20) }).then(tellingOf, cut);
        told.set(text, outcome);
        if (outcome.kind === "result") answered++;
        else await sleep(50);
      }
    });
    const more = async (what: string) => {
      const goal = answered + CALLS_BETWEEN;
      await until(what, () => answered >= goal);
    };

    const takeovers: string[] = [];
    const afterKillsMs: number[] = [];
    for (const [turn, event] of EVENTS.entries()) {
      await more("calls");
      const owner = partitions.ownerOf(place) as string;
      const broker = running.get(owner) as Broker;
      running.delete(owner);
      const beganMs = performance.now();
      if (event === "freeze") broker.part.signal("SIGSTOP");
      else await broker.part.kill(event === "kill" ? "SIGKILL" : "SIGTERM");
      await until("another to have it in hand", () => ![owner, undefined].includes(partitions.ownerOf(place)));
      const tookMs = performance.now() - beganMs;
      takeovers.push(`${event} ${(tookMs / 1000).toFixed(1)} s`);
      if (event === "kill") afterKillsMs.push(tookMs);
      await more("calls after it");
      if (event === "freeze") {
        broker.part.signal("SIGCONT");
        running.set(owner, broker);
      } else if (turn < EVENTS.length - 1) {
        await started(async () => {
          await broker.part.start();
          return broker;
        });
      }
      if (turn < EVENTS.length - 1) await spread(partitions, place);
    }
    isOver = true;
    await Promise.all(callers);

    const { sums, wrong, lost, doubled } = compare(told, await effectsOf(machines));
    report(
      "engine",
      `${told.size} calls over ${BOXES} mailboxes at two brokers, takeovers: ${takeovers.join(", ")}; ${sums.result} answered, ` +
        `${sums.unknown} said to be unknown, ${sums["not run"]} not run, ${sums.cut} cut; ${lost} lost, ${doubled} doubled`,
    );
    expect(wrong).toEqual([]);
    if (full) expect(Math.max(...afterKillsMs)).toBeLessThan(TAKEOVER_MS);
    expect({ lost, doubled }).toEqual({ lost: 0, doubled: 0 });
  }, 600_000);
});

/** Takes connections, and passes each to the next of those that are there. */
async function balance(ports: () => readonly number[]): Promise<{ url: string; close: () => Promise<void> }> {
  let turn = 0;
  const server = createServer((socket) => {
    const all = ports();
    const far = connect(all[turn++ % all.length] ?? 0, "127.0.0.1");
    const end = () => {
      socket.destroy();
      far.destroy();
    };
    socket.on("error", end).on("close", end).pipe(far);
    far.on("error", end).on("close", end).pipe(socket);
    ends.add(end);
  }).listen(0, "127.0.0.1");
  const ends = new Set<() => void>();
  await once(server, "listening");
  return {
    url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      for (const end of ends) end();
      server.close();
      await once(server, "close");
    },
  };
}
