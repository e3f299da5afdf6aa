// A broker, the machines that share through it and the gateway that uses them, each a process of its own, killed and stopped
// in the middle of calls. A tool writes down each of its effects, and that is compared with what the callers were told.

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { freePort, temporaryDirectory, until } from "../e2e/harness.js";
import { callTool, hasTool } from "../e2e/operator.js";
import { sleep } from "../fixtures/wait.js";
import { figure, full } from "./length.js";
import {
  compare,
  cut,
  effectsOf,
  endParts,
  Machine,
  Part,
  Sender,
  startBroker,
  type Told,
  tellingOf,
} from "./mailbox-parts.js";
import { linux, report } from "./measure.js";

afterEach(({ task }) => endParts(task.result?.state === "fail"));

// ── Callers behind a gateway ───────────────────────────────────────────────────────────────────────────────────────

describe.skipIf(!linux)("kills during calls over mailboxes", () => {
  const MAILBOXES = figure(2, 4);
  const KILLS = figure(1, 20);
  const CALLS = figure(150, 2_000);
  const CALLERS = 8;
  /** From the ready line of what was killed until all works again. */
  const AGAIN_MEDIAN_MS = 2_000;
  const AGAIN_MS = 5_000;
  /** A line that stood so long is dialled again at once: kills in a row are one long outage, and measure waits. */
  const HEALTHY_MS = figure(0, 10_500);

  it(`of broker, sharers and gateway, ${KILLS} of each, lose no answer and double no effect, and each caller is told [ack-is-durable] [no-double-effect] [unknown-is-said]`, async () => {
    const broker = await startBroker();
    const boxes = Array.from({ length: MAILBOXES }, (_, n) => `box${n}`);
    const machines = await Promise.all(boxes.map((box) => Machine.start(broker, box)));
    const folder = await temporaryDirectory();
    const config = join(folder, "toolway.json");
    const entries = boxes.map((mailbox) => [mailbox, { mailbox, broker: broker.url }]);
    await writeFile(config, JSON.stringify({ names: "prefixed", mcpServers: Object.fromEntries(entries) }));
    const listen = `127.0.0.1:${await freePort()}`;
    const line = ["serve", config, "--listen", listen, "--state", join(folder, "state"), "--no-auth", "--json"];
    const gateway = await new Part("gateway", line, '{"').start();
    const url = `http://${listen}/mcp`;

    const told = new Map<string, Told>();
    let calls = 0;
    let isOver = false;
    let gatewayUp = Promise.resolve();
    let slowestMs = 0;

    const call = async (text: string, box: string): Promise<Told> => {
      const began = performance.now();
      const outcome = await callTool(url, `${box}__note`, { text, ms: 1 + (calls % 20) }).then(tellingOf, cut);
      slowestMs = Math.max(slowestMs, performance.now() - began);
      told.set(text, outcome);
      return outcome;
    };
    const works = (box: string) => async () => {
      const outcome = await call(`probe-${calls++}`, box);
      if (outcome.kind !== "result") throw new Error(JSON.stringify(outcome));
      return true;
    };
    for (const box of boxes) await until(`the tools of ${box}`, () => hasTool(url, `${box}__note`));

    const callers = Array.from({ length: CALLERS }, async () => {
      while (!isOver || calls < CALLS) {
        await gatewayUp;
        const n = calls++;
        const { kind } = await call(`call-${n}`, boxes[n % MAILBOXES] ?? "");
        // What is refused at once is not asked for in a circle.
        if (kind !== "result") await sleep(50);
      }
    });
    const again: { readonly who: string; readonly outMs: number; readonly againMs: number }[] = [];
    const killed = async (who: string, part: Part, affected: readonly string[]) => {
      const before = told.size;
      await until("calls", () => told.size >= before + 2 * CALLERS);
      let up = () => {};
      if (part === gateway) {
        gatewayUp = new Promise((resolve) => {
          up = resolve;
        });
      }
      const out = performance.now();
      await part.kill();
      await part.start();
      up();
      const ready = performance.now();
      await Promise.all(affected.map((box) => until(`${box} to work again`, works(box))));
      again.push({ who, outMs: ready - out, againMs: performance.now() - ready });
    };
    for (let kill = 0; kill < KILLS; kill++) {
      await sleep(HEALTHY_MS);
      await killed("broker", broker.part, boxes);
      const n = kill % MAILBOXES;
      const machine = machines[n];
      if (machine !== undefined) await killed("sharer", machine.part, [boxes[n] ?? ""]);
      await killed("gateway", gateway, boxes);
    }
    isOver = true;
    await Promise.all(callers);

    const { sums, wrong, lost, doubled } = compare(told, await effectsOf(machines));
    const seconds = (ms = 0) => `${(ms / 1000).toFixed(2)} s`;
    again.sort((a, b) => a.againMs - b.againMs);
    const median = again[again.length >> 1];
    const slowest = again.at(-1);
    report(
      "mailboxes",
      `${3 * KILLS} kills, ${told.size} calls over ${MAILBOXES} mailboxes: ${sums.result} answered, ${sums.unknown} said ` +
        `to be unknown, ${sums["not run"]} not run, ${sums.cut} cut with their gateway; ${lost} lost, ${doubled} doubled; working again ` +
        `from the ready line: median ${seconds(median?.againMs)}, at most ${seconds(slowest?.againMs)} (the ${slowest?.who}, ` +
        `which took ${seconds(slowest?.outMs)} to be ready); ` +
        `slowest call ${seconds(slowestMs)} [ack-is-durable] [no-double-effect]`,
    );
    expect(wrong).toEqual([]);
    // Times are judged where nobody else needs the machine.
    if (full) {
      expect(median?.againMs).toBeLessThan(AGAIN_MEDIAN_MS);
      expect(again.filter(({ againMs }) => againMs >= AGAIN_MS)).toEqual([]);
    }
    // One after each kill at least.
    expect(sums.result).toBeGreaterThanOrEqual(3 * KILLS);
  }, 900_000);
});

// ── Callers that know the frames alone ─────────────────────────────────────────────────────────────────────────────

describe.skipIf(!linux)("two sharers of one mailbox", () => {
  it("do not run each other's calls: where one is killed after the effect, its caller is told that it is unknown [no-double-effect] [unknown-is-said]", async () => {
    const broker = await startBroker();
    const machines = await Promise.all([Machine.start(broker, "studio"), Machine.start(broker, "studio")]);
    const sender = await Sender.connect(broker);
    // On a slow machine the end may come before the effect: then it is tried with a later one.
    let expired = "";
    let holder: Machine | undefined;
    for (let leftMs = 2_000; holder === undefined; leftMs *= 2) {
      expired = `expired-${leftMs}`;
      sender.note("studio", expired, leftMs, { hang: true });
      holder = await until("the effect, or the end", async () => {
        for (const machine of machines) if ((await machine.effects()).includes(expired)) return machine;
        return sender.replies.has(expired) ? "none" : undefined;
      }).then((found) => (found === "none" ? undefined : found));
      if (sender.replies.has(expired)) holder = undefined;
    }
    await holder.part.kill();
    expect(await sender.reply(expired)).toMatchObject({ outcome: "unknown" });

    // The other one goes on meanwhile, and holds one that it will not have answered.
    const other = machines.find((machine) => machine !== holder) as Machine;
    sender.note("studio", "meanwhile", 300_000);
    expect((await sender.reply("meanwhile")).result).toMatchObject({ success: true });
    expect(await other.effects()).toContain("meanwhile");
    sender.note("studio", "begun", 300_000, { hang: true });
    await until("the effect", async () => (await other.effects()).includes("begun"));
    await holder.part.start();
    await other.part.kill();
    sender.note("studio", "after", 300_000);
    expect((await sender.reply("after")).result).toMatchObject({ success: true });
    // It waits for the one that has it in its journal.
    expect(sender.replies.has("begun")).toBe(false);
    await other.part.start();
    expect(await sender.reply("begun")).toMatchObject({ outcome: "unknown" });
    for (const [effect, count] of await effectsOf(machines)) expect(`${effect}: ${count}`).toBe(`${effect}: 1`);
  }, 240_000);
});

describe.skipIf(!linux)("a machine that sleeps", () => {
  const SLEEP_MS = figure(1_600, 60_000);
  const SHORT_MS = figure(1_000, 5_000);
  /** Of each sort. More than a sharer takes at once: some wait in its socket, and some in the broker. */
  const CALLS = 50;

  it(`for ${SLEEP_MS / 1000} s runs what has not ended meanwhile, once, and nothing that has [no-double-effect]`, async () => {
    const broker = await startBroker();
    const machine = await Machine.start(broker, "studio");
    const sender = await Sender.connect(broker);
    sender.note("studio", "awake", 300_000);
    expect((await sender.reply("awake")).result).toMatchObject({ success: true });
    process.kill(machine.part.pid, "SIGSTOP");
    try {
      for (let n = 0; n < CALLS; n++) {
        sender.note("studio", `short-${n}`, SHORT_MS);
        sender.note("studio", `long-${n}`, 300_000);
      }
      await until("all to be delivered", () => sender.delivered.size === 1 + 2 * CALLS);
      await sleep(SLEEP_MS);
    } finally {
      process.kill(machine.part.pid, "SIGCONT");
    }
    for (let n = 0; n < CALLS; n++) {
      expect((await sender.reply(`long-${n}`)).result).toMatchObject({ success: true });
      const { error, outcome } = await sender.reply(`short-${n}`);
      expect(error).toContain("before the end of the message");
      // Where the line was lost meanwhile, the broker cannot know that nothing was begun.
      expect(outcome).toMatch(/^(not run|unknown)$/);
    }
    const effects = await effectsOf([machine]);
    const ran = ["awake", ...Array.from({ length: CALLS }, (_, n) => `long-${n}`)];
    expect(effects).toEqual(new Map(ran.map((text) => [text, 1])));
  }, 240_000);
});
