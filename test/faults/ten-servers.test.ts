// Ten servers, five of them in trouble of five kinds, all called at once: the other five lose no call.

import { describe, expect, it } from "vitest";
import { isAlive, startGateway, temporaryDirectory, until } from "../e2e/harness.js";
import { openHttpWire } from "../e2e/wire.js";
import { call, callText, faultServer } from "./gateway.js";
import { figure } from "./length.js";
import { linux, MB, megabytes, report, rss } from "./measure.js";
import { expectShortTurn, watchedTurns } from "./turns.js";

const TROUBLES = ["hangs", "floods", "dies_at_start", "dies_in_calls", "wrong_ids"];
const HEALTHY = ["h1", "h2", "h3", "h4", "h5"];
const CALLS_EACH = figure(200, 5_000);
/** What a flood and the timeouts of seconds may hold; a leak passes it soon. */
const RSS_GROWTH = 100 * MB;

describe.skipIf(!linux)("ten servers, five in trouble", () => {
  it("the other five lose no call [one-bad-server] [bounded]", async () => {
    const troubled = TROUBLES.map((trouble) => [trouble, faultServer("troubled", [trouble], { callTimeoutMs: 1_000 })]);
    const healthy = HEALTHY.map((name) => [name, faultServer("plain")]);
    const turns = watchedTurns(await temporaryDirectory());
    const mcpServers = Object.fromEntries([...troubled, ...healthy]);
    const gateway = await startGateway({ names: "prefixed", mcpServers }, { env: turns.env });
    const wire = await openHttpWire(gateway.url);
    await until("the healthy five", async () => {
      const answers = await Promise.all(HEALTHY.map((name) => callText(wire, `${name}__echo`, {}, name)));
      return answers.every((text) => text === "{}");
    });
    const before = rss(gateway.pid);
    turns.begin();
    let over = false;
    const told = new Map<string, Set<number | "answered">>();
    const calling = TROUBLES.map(async (trouble) => {
      const agent = await openHttpWire(gateway.url);
      const codes = new Set<number | "answered">();
      told.set(trouble, codes);
      while (!over) {
        codes.add((await call(agent, `${trouble}__echo`)).error?.code ?? "answered");
        // A refusal comes at once, and an agent would not ask again in the same millisecond.
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    });
    let right = 0;
    let slowestMs = 0;
    const started = performance.now();
    await Promise.all(
      HEALTHY.map(async (name) => {
        const agent = await openHttpWire(gateway.url);
        for (let n = 0; n < CALLS_EACH; n++) {
          const from = performance.now();
          if ((await callText(agent, `${name}__echo`, { n }, n)) === `{"n":${n}}`) right++;
          slowestMs = Math.max(slowestMs, performance.now() - from);
        }
      }),
    );
    const seconds = (performance.now() - started) / 1000;
    // Until each trouble has been met, in a run that is short.
    await until("a timeout of the one that hangs", () => told.get("hangs")?.has(-31004), 30_000);
    await until("a death in a call", () => told.get("dies_in_calls")?.has(-31003), 30_000);
    await until("a timeout of wrong ids", () => told.get("wrong_ids")?.has(-31004), 30_000);
    over = true;
    await Promise.all(calling);
    const growth = rss(gateway.pid) - before;
    const turn = await turns.longest();
    report(
      "ten servers, five in trouble",
      `${right} of ${HEALTHY.length * CALLS_EACH} calls to the other five answered in ${seconds.toFixed(1)} s, the slowest ` +
        `after ${Math.round(slowestMs)} ms; RSS +${megabytes(growth)}; longest turn ${turns.text(turn)} [one-bad-server] [bounded]`,
    );
    expect(right).toBe(HEALTHY.length * CALLS_EACH);
    // The flood is in the way of nobody, not even of its own server.
    expect([...(told.get("floods") ?? [])]).toEqual(["answered"]);
    for (const trouble of ["hangs", "dies_at_start", "dies_in_calls", "wrong_ids"]) {
      expect(told.get(trouble)).not.toContain("answered");
    }
    expect(isAlive(gateway.pid)).toBe(true);
    expect(gateway.log().match(/^.*(failed inside|uncaught|unhandled).*$/im)?.[0]).toBeUndefined();
    expect(growth).toBeLessThan(RSS_GROWTH);
    expectShortTurn(turn);
  }, 600_000);
});
