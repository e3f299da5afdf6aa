// A write that would be unknown, and a tool of its server that can be asked about it: when it is asked, by which key, and
// what follows from its answer.

import { expect, it } from "vitest";
import {
  DONE,
  eachWorld,
  httpFault,
  KEYED,
  KEYLESS,
  LOST,
  receiptOf,
  type World,
} from "../../test/fixtures/outbox/world.js";
import { ownToolName } from "../contracts/names.js";
import type { OutboxTerms } from "../contracts/outbox.js";
import type { Reply } from "../protocol/reply.js";

const FIND = ownToolName("find_issues");
const CONFIRMED: OutboxTerms = {
  ...KEYED,
  confirm: { tool: FIND, arguments: '{"query":"{key}"}', found: "/issues/0" },
};
const found = (...issues: object[]): Reply => ({ kind: "result", result: { structuredContent: { issues } } });
const REFUSED = httpFault("protocol", 422);

let world: World;

eachWorld((one) => {
  world = one;
  world.terms = CONFIRMED;
});

const isAsked = () => world.sent.at(-1)?.message.params?.["name"] === FIND;

/** A write that was lost, goes again under its key, and whose repeat is refused. */
async function refusedRepeat(): Promise<string> {
  const made = world.call({ n: 1 });
  await world.rest();
  await world.answer(LOST);
  expect(isAsked()).toBe(false);
  await world.pass(1_000);
  expect(world.args(-1)).toEqual(world.args(0));
  await world.answer(REFUSED);
  return receiptOf(made).id;
}

it("under a key it goes again first, and where its repeat is refused the server is asked by the key that it was given [unknown-is-said] [no-double-effect]", async () => {
  const id = await refusedRepeat();
  expect(isAsked()).toBe(true);
  expect(world.args(-1)).toEqual({ query: world.args(0)["request_id"] });
  await world.answer(found({ number: 7 }));
  expect(world.operations.get("anna", id)).toMatchObject({ state: "done" });
});

it("what the server says was not done, and is refused, has failed and is not unknown [unknown-is-said]", async () => {
  const id = await refusedRepeat();
  await world.answer(found());
  expect(isAsked()).toBe(false);
  await world.answer(REFUSED);
  expect(world.operations.get("anna", id)).toMatchObject({ state: "failed" });
});

it("a server that is still at it five times is asked, and what it has not done goes again under its key", async () => {
  const made = world.call({});
  await world.rest();
  await world.answer(LOST);
  for (let i = 0; i < 6; i++) {
    await world.pass(60_000);
    await world.answer(httpFault("protocol", 409));
  }
  await world.pass(60_000);
  expect(isAsked()).toBe(true);
  await world.answer(found());
  await world.pass(60_000);
  expect(world.args(-1)).toEqual(world.args(0));
  await world.answer(DONE);
  expect(world.operations.get("anna", receiptOf(made).id)).toMatchObject({ state: "done" });
});

it("what was taken back on its way is not sent again, by the next start either: the server is asked [no-double-effect]", async () => {
  const made = world.call({});
  await world.rest();
  made.call.onCancel?.("enough");
  await world.rest();
  const next = world.again();
  next.terms = CONFIRMED;
  await next.rest();
  expect(next.sent.map(({ message }) => message.params?.["name"])).toEqual([FIND]);
  await next.answer(found());
  expect(next.records[0]).toMatchObject({ state: "cancelled" });
  await next.outbox.close();
});

it("what is too old is asked about, and has expired only where the server says that it was not done [unknown-is-said]", async () => {
  for (const [answer, state] of [
    [found(), "expired"],
    [found({}), "done"],
  ] as const) {
    const made = world.call({ state });
    await world.rest();
    await world.answer(LOST);
    await world.pass(CONFIRMED.maxAgeMs + 1);
    expect(isAsked()).toBe(true);
    await world.answer(answer);
    expect(world.operations.get("anna", receiptOf(made).id)).toMatchObject({ state });
  }
});

it("a server that cannot be asked for ten minutes leaves it unknown, and its lane goes on [unknown-is-said]", async () => {
  world.terms = { ...CONFIRMED, maxAgeMs: 1_000 };
  const made = world.call({});
  await world.rest();
  await world.answer(LOST);
  for (let i = 0; i < 40; i++) {
    await world.pass(30_000);
    if (world.outbox.lanes.room.writes > 0) await world.answer(LOST);
  }
  expect(world.operations.get("anna", receiptOf(made).id)).toMatchObject({ state: "unknown" });
  expect(world.operations.lanes()).toEqual([]);
});

it("the end of deliveries waits for a question that is under way, and no longer [drain]", async () => {
  world.terms = { ...CONFIRMED, key: KEYLESS.key };
  world.call({}, { meta: { "toolway/idempotencyKey": "mine" } });
  await world.rest();
  await world.answer(LOST);
  await world.pass(1_000);
  expect(isAsked()).toBe(true);
  world.outbox.stop();
  let isDrained = false;
  // Longer than any test waits: it is woken by the answer.
  const drained = world.outbox.drained(3_600_000).then(() => {
    isDrained = true;
  });
  await world.rest();
  expect(isDrained).toBe(false);
  await world.answer(found({}));
  await drained;
  expect(world.records[0]).toMatchObject({ state: "done" });
});
