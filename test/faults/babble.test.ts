// Garbage from the other side: a server whose stdout is full of it still answers, and harms nobody else.

import { describe, expect, it } from "vitest";
import { isAlive, sleep, startGateway, temporaryDirectory, until } from "../e2e/harness.js";
import { openHttpWire } from "../e2e/wire.js";
import { callText, faultServer } from "./gateway.js";
import { figure } from "./length.js";
import { linux, MB, megabytes, report, rss } from "./measure.js";
import { runSeed } from "./random.js";
import { expectShortTurn, watchedTurns } from "./turns.js";

const LINES = figure(5_000, 100_000);
const LINES_PER_CALL = 50;
/** Agents that call the babbler at once: whose message a line is cannot always be told then. */
const AGENTS = 4;
/** As much as is measured: V8 lets the heap swing by tens of megabytes, and only what grows on is a leak. */
const WARM_UP_CALLS = figure(20, 500);
const RSS_GROWTH = 50 * MB;

describe.skipIf(!linux)("fuzzed lines on a server's stdout", () => {
  it("lose no answer, and delay no other server's [bounded] [one-bad-server]", async () => {
    const seed = runSeed();
    const turns = watchedTurns(await temporaryDirectory());
    const mcpServers = {
      babbler: faultServer("babbler", [String(LINES_PER_CALL), String(seed)]),
      plain: faultServer("plain"),
    };
    const gateway = await startGateway({ mcpServers }, { env: turns.env });
    const other = await openHttpWire(gateway.url);
    await until("both servers", async () => {
      return (await callText(other, "echo")) === "{}" && (await callText(other, "babble", { word: "up" })) === "up";
    });
    const agents = await Promise.all(Array.from({ length: AGENTS }, () => openHttpWire(gateway.url)));
    let right = 0;
    const babble = async (calls: number) => {
      await Promise.all(
        agents.map(async (wire, agent) => {
          for (let n = 0; n < calls; n++) {
            const word = `${agent} ${n}`;
            if ((await callText(wire, "babble", { word })) === word) right++;
          }
        }),
      );
    };
    await babble(WARM_UP_CALLS);
    const before = rss(gateway.pid);
    turns.begin();
    right = 0;
    const calls = Math.ceil(LINES / LINES_PER_CALL / AGENTS);
    let slowestMs = 0;
    let others = 0;
    let over = false;
    const meanwhile = (async () => {
      while (!over) {
        const started = performance.now();
        expect(await callText(other, "echo", { n: others })).toBe(`{"n":${others}}`);
        slowestMs = Math.max(slowestMs, performance.now() - started);
        others++;
        await sleep(5);
      }
    })();
    await babble(calls);
    over = true;
    await meanwhile;
    const growth = rss(gateway.pid) - before;
    const turn = await turns.longest();
    report(
      "fuzzed lines",
      `${calls * AGENTS * LINES_PER_CALL} on a server's stdout (seed ${seed}): ${right} of ${calls * AGENTS} answers right; ` +
        `${others} calls to another server meanwhile, the slowest ${Math.round(slowestMs)} ms; RSS +${megabytes(growth)}; ` +
        `longest turn ${turns.text(turn)} [bounded] [one-bad-server]`,
    );
    expect(isAlive(gateway.pid)).toBe(true);
    expect(right).toBe(calls * AGENTS);
    expect(gateway.log().match(/^.*(failed inside|uncaught|unhandled).*$/im)?.[0]).toBeUndefined();
    expect(growth).toBeLessThan(RSS_GROWTH);
    expectShortTurn(turn);
  }, 900_000);
});
