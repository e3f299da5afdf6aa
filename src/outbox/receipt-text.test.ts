import { expect, it } from "vitest";
import { ownToolName } from "../contracts/names.js";
import type { Receipt } from "../contracts/outbox.js";
import { queuedResult } from "./receipt-text.js";

const RECEIPT: Receipt = {
  id: "r1",
  server: "tracker",
  tool: ownToolName("create_issue"),
  state: "queued",
  idempotencyKey: "k",
  position: undefined,
  takenMs: 0,
  sinceMs: 0,
  why: undefined,
  attempts: 1,
  result: undefined,
  error: undefined,
};

it.each(["unknown", "failed", "expired", "cancelled"] as const)(
  "a repeat under the key of a write that is %s is not told that it is queued [unknown-is-said]",
  (state) => {
    const result = queuedResult({ ...RECEIPT, state });
    expect(result).toMatchObject({ isError: true, structuredContent: { queued: false, state } });
    expect(JSON.stringify(result)).not.toMatch(/Queued|delivered by itself/);
  },
);

it("one that is done without a kept result says so; one that waits says that it does", () => {
  const done = queuedResult({ ...RECEIPT, state: "done" });
  expect(done).not.toHaveProperty("isError");
  expect(JSON.stringify(done)).toMatch(/is done/);
  // What waits behind others says so: nothing else has been tried of it.
  const behind = queuedResult({ ...RECEIPT, position: 1 });
  expect(behind).toMatchObject({ structuredContent: { why: "others of its lane are before it" } });
  expect(JSON.stringify(queuedResult(RECEIPT))).toMatch(/Queued, not done yet.*delivered by itself/);
});
