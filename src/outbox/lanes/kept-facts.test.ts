import { expect, it } from "vitest";
import { ownToolName } from "../../contracts/names.js";
import { CommonFacts, writtenFacts } from "./kept-facts.js";
import type { WriteFacts } from "./write.js";

const facts = (more: Partial<WriteFacts> = {}): WriteFacts => ({
  id: "r1",
  server: "tracker",
  tool: ownToolName("create_issue"),
  principal: { id: "anna", role: "dev" },
  byToken: true,
  lane: "project p1",
  key: "k",
  keyHash: "kh",
  sentKey: "kh",
  argumentsHash: "ah",
  terms: { key: undefined, lane: { by: "principal" }, maxAgeMs: 1, onUnknown: "skip", confirm: undefined, tells: true },
  era: "legacy",
  version: "2025-06-18",
  takenMs: 7,
  bytes: 9,
  ...more,
});

it("what writes have in common is once in memory, and each is written down whole [bounded]", () => {
  const common = new CommonFacts();
  // As from disk: equal, and not the same.
  const [one, two] = [facts(), facts({ id: "r2", key: "l", keyHash: "lh", sentKey: undefined, bytes: 8 })];
  const [first, second] = [common.keep(one), common.keep(two)];
  expect(second.terms).toBe(first.terms);
  expect(second.principal).toBe(first.principal);
  expect([writtenFacts(first), writtenFacts(second)]).toEqual([one, two]);
  for (const other of [
    facts({ lane: "project p2" }),
    facts({ lane: undefined }),
    facts({ byToken: undefined }),
    facts({ principal: { id: "anna", role: "ops" } }),
    facts({ terms: { ...one.terms, maxAgeMs: 2 } }),
  ]) {
    expect(writtenFacts(common.keep(other))).toEqual(other);
  }
});

it("lanes without an end fill no memory: what is common is looked for among the last ones [bounded]", () => {
  const common = new CommonFacts();
  const first = common.keep(facts());
  for (let n = 0; n < 5_000; n++) common.keep(facts({ lane: `project ${n}` }));
  const again = common.keep(facts());
  expect(again.terms).not.toBe(first.terms);
  expect(again.terms).toEqual(first.terms);
});
