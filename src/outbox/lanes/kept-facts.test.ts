import { randomBytes } from "node:crypto";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { ownToolName } from "../../contracts/names.js";
import { CommonFacts, writtenFacts } from "./kept-facts.js";
import { Lanes } from "./lanes.js";
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

it("ids and hashes are kept as bytes, and are written down as they were, whatever their form", () => {
  const common = new CommonFacts();
  const word = (size: number) => randomBytes(size).toString("base64url");
  const hash = word(32);
  for (const one of [
    facts({ id: word(16), key: word(16), keyHash: hash, sentKey: hash, argumentsHash: word(32) }),
    facts({ id: word(16), key: word(16), keyHash: hash, sentKey: word(32), argumentsHash: word(32) }),
    facts({ id: `gateway-1.${word(16)}`, key: "my own key, of any length at all", keyHash: hash, sentKey: undefined }),
    // Of the right length, and no such bytes.
    facts({ id: "=".repeat(22), key: "ünïcödé-ünïcödé-ünïcöd", keyHash: `${hash.slice(0, 42)}_`, argumentsHash: "" }),
    facts({ id: `${"A".repeat(21)}B`, key: "" }),
  ]) {
    expect(writtenFacts(common.keep(one))).toEqual(one);
  }
});

it("a write that waits takes under 512 bytes of memory, so that 100,000 stay under 100 MB with all around them [bounded]", () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const limits = { maxWrites: 1_000_000, maxBytes: 1e9 };
  const lanes = new Lanes({ random: () => 0.5, hasWaiters: () => false, limits });
  const keep = (count: number) => {
    for (let n = 0; n < count; n++) {
      const [id, key] = [randomBytes(16).toString("base64url"), randomBytes(16).toString("base64url")];
      const keyHash = randomBytes(32).toString("base64url");
      const words = { id, key, keyHash, sentKey: keyHash, argumentsHash: randomBytes(32).toString("base64url") };
      const accepted = lanes.accept(facts({ ...words, lane: `project ${n % 64}`, takenMs: 1.7e12 + n }), n + 0.5);
      if (accepted.kind === "taken") lanes.committed(accepted.write, n + 0.5, 1.7e12 + n);
    }
  };
  const heap = () => {
    collect();
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  };
  // Tables grow by doubling: both looks are at full ones.
  keep(8_192);
  const before = heap();
  keep(8_192);
  const grown = heap() - before;
  expect(lanes.room.writes).toBe(16_384);
  expect(grown / 8_192).toBeLessThan(512);
});
