// A write to a machine behind a mailbox, with nothing but `"outbox": true`: the id of its message is its key. The gateway is
// killed when the machine has answered and nothing of that is on disk; the machine when it is in the middle of the call.

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { freePort, root, temporaryDirectory, until } from "../e2e/harness.js";
import { callTool, hasTool } from "../e2e/operator.js";
import { figure } from "./length.js";
import { type Broker, endParts, Machine, Part, startBroker } from "./mailbox-parts.js";
import { linux, report } from "./measure.js";

const KILLS = figure(1, 20);
/** The effect is there, and the answer this much later: a kill falls in between. */
const ANSWER_MS = 60_000;

describe.skipIf(!linux)("a write to a machine behind a mailbox", () => {
  let broker: Broker;
  let machine: Machine;
  let gateway: Part;
  let plan: string;
  let url: string;
  let calls = 0;

  beforeAll(async () => {
    broker = await startBroker();
    machine = await Machine.start(broker, "box");
    const folder = await temporaryDirectory();
    plan = join(folder, "plan");
    await writeFile(plan, "");
    const config = join(folder, "toolway.json");
    const box = { mailbox: "box", broker: broker.url, tools: { note: { outbox: true } } };
    await writeFile(config, JSON.stringify({ names: "prefixed", mcpServers: { box } }));
    const listen = `127.0.0.1:${await freePort()}`;
    url = `http://${listen}/mcp`;
    const line = ["serve", config, "--listen", listen, "--state", join(folder, "state"), "--no-auth", "--json"];
    gateway = await new Part("gateway", line, '{"', [join(root, "test/faults/held-cli.mjs"), plan]).start();
    await until("the tools", () => hasTool(url, "box__note"));
  });
  afterAll(() => endParts(false));

  const write = (text: string, ms = 0) =>
    callTool(url, "box__note", { text, ms }, undefined, { "toolway/idempotencyKey": text });

  /** What became of it, as its agent is told under the same key. */
  const ended = (text: string, ms = 0) =>
    until(`the end of ${text}`, async () => {
      const { result, error } = await write(text, ms);
      if (error !== undefined) return /unknown/.test(JSON.stringify(error)) && "unknown";
      const { state = "done" } = (result?.["structuredContent"] ?? {}) as { state?: string };
      return state !== "queued" && state !== "sending" && state;
    });

  const effects = async (text: string) => (await machine.effects()).filter((one) => one === text).length;

  it(`is done once, though the gateway is killed after the machine has answered and before that is on disk, ${KILLS} times [ack-is-durable] [no-double-effect]`, async () => {
    for (let n = 0; n < KILLS; n++) {
      const text = `write-${calls++}`;
      await writeFile(plan, "before done");
      const cut = write(text).catch(() => undefined);
      await until("it to be held", () => gateway.log.includes("held: before done note\n"));
      await gateway.kill();
      await cut;
      await writeFile(plan, "");
      await gateway.start();
      await until("the tools", () => hasTool(url, "box__note"));
      expect(await ended(text)).toBe("done");
      expect(await effects(text)).toBe(1);
    }
    report(
      "outbox",
      `${KILLS} kills of the gateway when a machine behind a mailbox has answered and nothing is marked: done once, by ` +
        `the id of the message [ack-is-durable] [no-double-effect]`,
    );
  }, 300_000);

  it("is unknown, and is not made again, where the machine is killed in the middle of it [unknown-is-said] [no-double-effect]", async () => {
    const text = `write-${calls++}`;
    const told = write(text, ANSWER_MS).catch(() => undefined);
    await until("its effect", async () => (await effects(text)) === 1);
    await machine.part.kill();
    await machine.part.start();
    await told;
    expect(await ended(text, ANSWER_MS)).toBe("unknown");
    expect(await effects(text)).toBe(1);
  }, 60_000);
});
