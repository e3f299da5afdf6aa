// A kill at each point of a message's way that has a name. The process is held there until it is killed, so that no luck is
// needed to meet a point; then it is started again, and what its caller is told is compared with what ran.

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { root, temporaryDirectory, until } from "../e2e/harness.js";
import { figure } from "./length.js";
import { type Broker, endParts, Machine, type Part, Sender, startBroker } from "./mailbox-parts.js";
import { linux, report } from "./measure.js";

const KILLS = figure(1, 20);
/** Longer than any of these tests: nothing ends by its time. */
const LEFT_MS = 600_000;

type Told = "the result" | "that it is unknown";

/** A point, who is killed there, and what must be so afterwards. */
interface Point {
  readonly name: string;
  readonly held: string;
  readonly who: "broker" | "sharer";
  /** Whether the sender was told that it is delivered when the process was killed. */
  readonly isDelivered: boolean;
  readonly told: Told;
  readonly effects: 0 | 1;
}

const ONCE = { told: "the result", effects: 1 } as const;
const POINTS: readonly Point[] = [
  { name: "came, before its commit", held: "before delivery", who: "broker", isDelivered: false, ...ONCE },
  { name: 'is on disk, before "delivered"', held: "after delivery", who: "broker", isDelivered: false, ...ONCE },
  { name: "is leased, before the journal has it", held: "before start", who: "sharer", isDelivered: true, ...ONCE },
  {
    name: "is in the journal, before it runs",
    held: "after start",
    who: "sharer",
    isDelivered: true,
    told: "that it is unknown",
    effects: 0,
  },
  {
    name: "has run, before its outcome is written",
    held: "before outcome",
    who: "sharer",
    isDelivered: true,
    told: "that it is unknown",
    effects: 1,
  },
  { name: "has its outcome, before its reply", held: "after outcome", who: "sharer", isDelivered: true, ...ONCE },
  { name: "is replied to, before the commit", held: "before reply", who: "broker", isDelivered: true, ...ONCE },
  { name: "has its reply on disk, before it is told", held: "after reply", who: "broker", isDelivered: true, ...ONCE },
  { name: "has its reply, before it knows", held: "after reply", who: "sharer", isDelivered: true, ...ONCE },
];

describe.skipIf(!linux)("a kill", () => {
  let broker: Broker;
  let machine: Machine;
  let brokerPlan: string;
  let sharerPlan: string;
  let calls = 0;

  const planned = async (): Promise<string> => {
    const file = join(await temporaryDirectory(), "plan");
    await writeFile(file, "");
    return file;
  };
  const heldCli = (plan: string) => [join(root, "test/faults/held-cli.mjs"), plan];

  beforeAll(async () => {
    brokerPlan = await planned();
    sharerPlan = await planned();
    broker = await startBroker(heldCli(brokerPlan));
    machine = await Machine.start(broker, "studio", heldCli(sharerPlan));
  });
  let hasFailed = false;
  beforeEach(({ onTestFailed }) => {
    onTestFailed(() => {
      hasFailed = true;
    });
  });
  afterAll(() => endParts(hasFailed));

  /** Who has to be killed does not say who is held: a broker that does not go on leaves its sharer waiting. */
  const heldAt = ({ held }: Point): { plan: string; part: Part } =>
    /delivery|reply/.test(held) ? { plan: brokerPlan, part: broker.part } : { plan: sharerPlan, part: machine.part };

  const effects = async (text: string) => (await machine.effects()).filter((effect) => effect === text).length;

  for (const point of POINTS) {
    const { who, name, told } = point;
    it(
      `of the ${who} when a call ${name}, ${KILLS} of them, tells the caller ${told} and doubles no effect [ack-is-durable] [no-double-effect] [unknown-is-said]`,
      async () => {
        for (let n = 0; n < KILLS; n++) {
          const id = `${point.held} ${calls++}`.replaceAll(" ", "-");
          const { plan, part } = heldAt(point);
          const before = await Sender.connect(broker);
          await writeFile(plan, point.held);
          before.note("studio", id, LEFT_MS);
          await until(`it to be held ${point.held}`, () => part.log.includes(`held: ${point.held}`));
          if (point.isDelivered) await until("it to be delivered", () => before.delivered.has(id));
          else expect(before.delivered.has(id)).toBe(false);
          await writeFile(plan, "");
          await (who === "broker" ? broker : machine).part.kill();
          // The other one knows what it knew, unless it waits for one that is held for ever.
          if (who === "sharer" && part === broker.part) await broker.part.kill();
          before.cut();
          if (who === "broker" || part === broker.part) await broker.part.start();
          const after = await Sender.connect(broker);
          // Whoever was not told that it is delivered sends it again, as it was.
          if (!point.isDelivered) after.note("studio", id, LEFT_MS);
          if (who === "sharer") await machine.part.start();
          const reply = await after.reply(id);
          if (told === "the result") expect(reply.result).toMatchObject({ success: true, result: `noted ${id}` });
          else expect(reply).toMatchObject({ outcome: "unknown", error: expect.stringContaining("note") });
          expect(await effects(id)).toBe(point.effects);
          after.cut();
          // Its waits grow with each line that ends soon: a new one begins with short ones.
          if (who === "broker" && n < KILLS - 1) {
            await machine.part.kill();
            await machine.part.start();
          }
        }
        report("mailboxes", `${KILLS} kills of the ${who} when a call ${name}: told ${told} [no-double-effect]`);
      },
      figure(120_000, 900_000),
    );
  }

  it(
    "of a caller that has its reply and did not acknowledge it brings the same reply again, until it does [ack-is-durable] [no-double-effect]",
    async () => {
      for (let n = 0; n < KILLS; n++) {
        const id = `reply-unacknowledged-${n}`;
        const before = await Sender.connect(broker, { acknowledges: false });
        before.note("studio", id, LEFT_MS);
        const first = await before.reply(id);
        before.cut();
        const after = await Sender.connect(broker);
        expect(await after.reply(id)).toEqual(first);
        expect(first.result).toMatchObject({ success: true });
        expect(await effects(id)).toBe(1);
        // What it acknowledged does not come again: the next reply is that of the next call.
        after.note("studio", `${id}-next`, LEFT_MS);
        await after.reply(`${id}-next`);
        after.cut();
        const last = await Sender.connect(broker);
        last.note("studio", `${id}-last`, LEFT_MS);
        await last.reply(`${id}-last`);
        expect([...last.replies.keys()]).toEqual([`${id}-last`]);
        last.cut();
      }
    },
    figure(120_000, 900_000),
  );
});
