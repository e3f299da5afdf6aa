import { expect, it } from "vitest";
import { heldIo } from "../../../test/fixtures/held-io.js";
import { ownToolName } from "../../contracts/names.js";
import type { OutboxEntry } from "../../contracts/outbox.js";
import { writeText } from "./outbox.js";

it("a write whose result is not kept is shown with its size, where that is known [told-truly]", () => {
  const shown = (lostBytes: number | undefined) => {
    const entry: OutboxEntry = {
      id: "r1",
      server: "tracker",
      tool: ownToolName("create_issue"),
      state: "done",
      idempotencyKey: "k1",
      position: undefined,
      takenMs: 0,
      sinceMs: 0,
      why: undefined,
      attempts: 1,
      result: undefined,
      error: undefined,
      lostBytes,
      principal: "anna",
      lane: "",
      heldFor: undefined,
      nextTryMs: undefined,
      bytes: 10,
    };
    return writeText(entry, heldIo().io, 1_000);
  };
  expect(shown(undefined)).not.toContain("result");
  expect(shown(3_145_728)).toMatch(/result +not kept: it had 3.145.728 bytes/);
  expect(shown(0)).toMatch(/result +not kept$/m);
});
