// An executor that is killed under load, again and again, and started again: the gateway before it stays whole, every
// call ends, and what may have run is not said to have failed.

import { describe, expect, it } from "vitest";
import { RETENTION_MS } from "../../src/executor/wire/limits.js";
import type { Reply } from "../e2e/eras.js";
import { connected, type ExecutorProcess, startExecutor } from "../e2e/executor-process.js";
import { freePort, type Gateway, sleep, startGateway, startHttpFixture, until } from "../e2e/harness.js";
import { callTool, hasTool, made } from "../e2e/operator.js";
import { figure } from "./length.js";
import { descriptors, linux, report } from "./measure.js";
import { type Random, runSeed, seeded } from "./random.js";

const WORKERS = 16;
const TOKEN = "a-token-of-the-tests-0123456789";
/** A process takes its time to start on a busy machine. */
const PATIENCE_MS = 60_000;
/** Between calls that ask whether it is healthy again. */
const PROBE_MS = 500;
/** What ran on a lost executor is kept for it so long; then it must have ended. */
const HANG_MS = RETENTION_MS + PATIENCE_MS;
const RUN_MS = 900_000;
/** The gateway's words for a call that may have reached its server, and for one that cannot be made now. */
const UNKNOWN = -31003;

interface Tally {
  answered: number;
  unknown: number;
  refused: number;
  longestMs: number;
  /** What must not be: a wrong answer, or an error that is not the gateway's. */
  readonly wrong: string[];
}

/** Who calls the gateway. Each call that is under way has a connection, and the agents keep what they have opened. */
class Agents {
  readonly #url: string;
  #underWay = 0;
  mostAtOnce = 0;

  constructor(url: string) {
    this.#url = url;
  }

  async sleep(ms: number, label: string): Promise<Reply> {
    this.mostAtOnce = Math.max(this.mostAtOnce, ++this.#underWay);
    try {
      return await callTool(this.#url, "sleep", { ms, label });
    } finally {
      this.#underWay--;
    }
  }
}

/** Calls one after another until it is told to stop. */
async function work(
  agents: Agents,
  worker: number,
  random: Random,
  tally: Tally,
  goesOn: () => boolean,
): Promise<void> {
  for (let turn = 0; goesOn(); turn++) {
    const label = `w${worker}-${turn}`;
    const begun = performance.now();
    const reply = await agents.sleep(random.int(40), label);
    tally.longestMs = Math.max(tally.longestMs, performance.now() - begun);
    if (reply.error === undefined) {
      if (made<{ label: string }>(reply).label === label) tally.answered++;
      else tally.wrong.push(`another answer for ${label}`);
    } else if (reply.error.code === UNKNOWN) {
      tally.unknown++;
    } else if (reply.error.code <= -31000 && reply.error.code > -31100) {
      tally.refused++;
    } else {
      tally.wrong.push(`${reply.error.code} ${reply.error.message}`);
    }
  }
}

/** Calls again and again until one is answered; one that went to the dead waits as long as those before it. */
async function healthyAgain(agents: Agents): Promise<void> {
  let isAnswered = false;
  await until(
    "an answered call",
    async () => {
      const call = agents.sleep(1, "probe").then(
        ({ error }) => {
          isAnswered ||= error === undefined;
        },
        // It is none that was answered; the next one may be.
        () => {},
      );
      await Promise.race([call, sleep(PROBE_MS)]);
      return isAnswered;
    },
    PATIENCE_MS,
  );
}

async function killedUnderLoad(gateway: Gateway, deaths: number, start: () => ExecutorProcess): Promise<void> {
  const agents = new Agents(gateway.url);
  let executor = start();
  await until("the tools", () => hasTool(gateway.url, "sleep"));
  const openBefore = linux ? descriptors(gateway.pid).length : 0;
  const random = seeded(runSeed());
  const tally: Tally = { answered: 0, unknown: 0, refused: 0, longestMs: 0, wrong: [] };
  let goesOn = true;
  const running = Promise.all(Array.from({ length: WORKERS }, (_, i) => work(agents, i, random, tally, () => goesOn)));
  const recovered: number[] = [];
  for (let death = 0; death < deaths; death++) {
    const enough = tally.answered + 50;
    await until("calls that are answered", () => tally.answered >= enough, HANG_MS);
    await executor.kill();
    executor = start();
    const begun = performance.now();
    // Healthy again: what is asked now is answered, whatever became of what was under way.
    await healthyAgain(agents);
    recovered.push(performance.now() - begun);
  }
  await connected(gateway, "office");
  goesOn = false;
  await running;
  report(
    "executor killed under load",
    `${deaths} times: ${tally.answered} calls answered, ${tally.unknown} reported as unknown, ${tally.refused} refused, ` +
      `${tally.wrong.length} wrong; answers again after ${Math.round(Math.max(...recovered))} ms at most, longest call ` +
      `${Math.round(tally.longestMs)} ms`,
  );
  expect(tally.wrong).toEqual([]);
  expect(tally.longestMs).toBeLessThan(HANG_MS);
  // All is as before: every worker's call is answered.
  const after = await Promise.all(Array.from({ length: WORKERS }, (_, i) => agents.sleep(1, `after${i}`)));
  expect(after.map((reply) => made<{ label: string }>(reply).label)).toEqual(after.map((_, i) => `after${i}`));
  // But for the agents' connections; what would be left of each call would be more.
  const most = openBefore + agents.mostAtOnce + WORKERS;
  if (linux) await until("descriptors as before", () => descriptors(gateway.pid).length < most);
}

describe("an executor that is killed under load", () => {
  const dialled = figure(3, 25);
  it(`${dialled} times, dialled by the gateway: healthy again each time, and no call hangs [unknown-is-said]`, {
    timeout: RUN_MS,
  }, async () => {
    const { entry } = await startHttpFixture("slow");
    const port = await freePort();
    const executors = { office: { url: `ws://127.0.0.1:${port}`, token: TOKEN } };
    const gateway = await startGateway({ mcpServers: { wiki: { ...entry, via: "office" } }, executors });
    await killedUnderLoad(gateway, dialled, () => startExecutor(["--listen", `ws://127.0.0.1:${port}`], TOKEN));
  });

  const dialling = figure(2, 25);
  it(`[exec-8] ${dialling} times, dialling the gateway: healthy again each time, and no call hangs`, {
    timeout: RUN_MS,
  }, async () => {
    const { entry } = await startHttpFixture("slow");
    const gateway = await startGateway({
      mcpServers: { wiki: { ...entry, via: "office" } },
      executors: { office: { noAuth: true } },
    });
    const connect = ["--connect", `ws://127.0.0.1:${gateway.port}/executors/office`];
    await killedUnderLoad(gateway, dialling, () => startExecutor(connect));
  });
});
