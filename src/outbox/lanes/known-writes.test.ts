import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it, vi } from "vitest";
import { ownToolName } from "../../contracts/names.js";
import type { WriteState } from "../../contracts/outbox.js";
import { KIB } from "../../runtime/sizes.js";
import { KnownWrites, WriteIndex } from "./known-writes.js";
import { KeptWrite } from "./lane.js";
import {
  ENDED_MS,
  MAX_ENDED_A_PRINCIPAL,
  MAX_ENDED_BYTES,
  MAX_ENDED_BYTES_A_PRINCIPAL,
  MAX_KEPT_RESULT_BYTES,
  MAX_MESSAGE_BYTES,
} from "./limits.js";
import type { WriteFacts } from "./write.js";

let sequence = 0;

function ended(known: KnownWrites, principal: string, state: WriteState, bytes: number, resultBytes: number) {
  const facts = {
    id: `receipt-${++sequence}`,
    server: "tracker",
    tool: ownToolName("create_issue"),
    principal: { id: principal, role: "agent" },
    keyHash: `key-${sequence}`,
    bytes,
  } as WriteFacts;
  const write = new KeptWrite(sequence, facts, 0);
  write.state = state;
  write.resultBytes = resultBytes;
  known.add(write);
  return { write, ...known.ended(write) };
}

const bytesOf = (known: KnownWrites) => [...known.all].reduce((sum, { endedBytes }) => sum + endedBytes, 0);

it("results of ended writes do not fill the state: the oldest of the same principal go, their receipts stay and say how large they were, and others keep theirs [ack-is-durable]", () => {
  const known = new KnownWrites();
  const other = ended(known, "bert", "done", KIB, KIB).write;
  const large = () => ended(known, "anna", "done", KIB, MAX_KEPT_RESULT_BYTES);
  const first = large().write;
  const second = ended(known, "anna", "failed", KIB, KIB).write;
  const most = MAX_ENDED_BYTES_A_PRINCIPAL / MAX_KEPT_RESULT_BYTES;
  for (let i = 1; i < most - 1; i++) expect(large()).toMatchObject({ gone: [], thinned: [] });
  expect(large()).toMatchObject({ gone: [], thinned: [first] });
  expect(first).toMatchObject({ hasResult: false, resultBytes: 0, lostBytes: MAX_KEPT_RESULT_BYTES });
  expect(known.ofKey(first.facts.keyHash)).toBe(first);
  expect(large().thinned[0]).toBe(second);
  expect(bytesOf(known)).toBeLessThanOrEqual(MAX_ENDED_BYTES_A_PRINCIPAL + 2 * KIB);
  expect(known.get(other.facts.id)).toBe(other);
});

it("neither do the texts of failed writes, of however many principals; what is tried again is not counted any more", () => {
  const known = new KnownWrites();
  for (let i = 0; i < 500; i++) {
    const { write } = ended(known, `agent-${i % 10}`, "failed", MAX_MESSAGE_BYTES, 0);
    expect(bytesOf(known)).toBeLessThanOrEqual(MAX_ENDED_BYTES);
    if (i % 3 === 0) {
      known.remove(write);
    }
  }
  expect(bytesOf(known)).toBeGreaterThan(MAX_ENDED_BYTES / 2);
});

it("receipts that ended are kept for a week, and the last 10,000 of a principal [bounded]", () => {
  expect([ENDED_MS, MAX_ENDED_A_PRINCIPAL]).toEqual([7 * 24 * 3_600_000, 10_000]);
  const known = new KnownWrites();
  const other = ended(known, "bert", "done", 1, 1).write;
  const first = ended(known, "anna", "done", 1, 1).write;
  for (let i = 1; i < MAX_ENDED_A_PRINCIPAL; i++) expect(ended(known, "anna", "unknown", 1, 0).gone).toEqual([]);
  expect(ended(known, "anna", "done", 1, 1).gone).toEqual([first]);
  other.endedMs = 1_000;
  const isThere = () => known.get(other.facts.id) !== undefined;
  known.sweep(1_000 + ENDED_MS - 1);
  expect(isThere()).toBe(true);
  known.sweep(1_000 + ENDED_MS);
  expect(isThere()).toBe(false);
});

it("the oldest that goes for a new one is found without a walk past all that went before it", () => {
  const known = new KnownWrites();
  const all = Array.from({ length: MAX_ENDED_A_PRINCIPAL }, () => ended(known, "anna", "done", 1, 1).write);
  const revived = all[1] as KeptWrite;
  known.revived(revived);
  // With the first that goes a walk begins, which goes on.
  for (let i = 0; i < 2; i++) ended(known, "anna", "done", 1, 1);
  const values = vi.spyOn(Set.prototype, "values");
  const iterator = vi.spyOn(Set.prototype, Symbol.iterator);
  try {
    const gone = Array.from({ length: 5 }, () => ended(known, "anna", "done", 1, 1).gone).flat();
    expect(gone).toEqual(all.slice(2, 7));
    expect([values.mock.calls.length, iterator.mock.calls.length]).toEqual([0, 0]);
  } finally {
    values.mockRestore();
    iterator.mockRestore();
  }
});

it("ended receipts that are forgotten after their week are not kept by the walk over the oldest [bounded]", async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const known = new KnownWrites();
  const forgotten: WeakRef<KeptWrite>[] = [];
  for (let week = 0; week < 4; week++) {
    // Another is over by then: the principal is never without any.
    const nowMs = week * ENDED_MS;
    known.sweep(nowMs);
    for (let i = 0; i < 1_000; i++) {
      const { write } = ended(known, "anna", "done", 1, 1);
      write.endedMs = nowMs + (i === 999 ? 1 : 0);
      if (week < 3 && i < 999) forgotten.push(new WeakRef(write));
    }
  }
  // A weak reference holds what it was made of until its turn of the loop is over.
  await new Promise((done) => setImmediate(done));
  collect();
  expect(forgotten.filter((one) => one.deref() !== undefined)).toHaveLength(0);
});

const write = (id: string) => new KeptWrite(1, { id, takenMs: 0 } as WriteFacts, 0);
const ofIds = (random: number) => new WriteIndex(({ facts }) => facts.id, random);

it("writes are found by a text that the index does not hold, as in a map [bounded]", () => {
  const index = ofIds(0.4);
  const known = new Map<string, KeptWrite>();
  for (let n = 0; n < 5_000; n++) {
    const id = `gateway-1.${(n * 7919).toString(36).padStart(8, "a")}`;
    known.set(id, write(id));
    index.add(known.get(id) as KeptWrite);
    if (n % 3 !== 0) continue;
    expect(index.remove(known.get(id) as KeptWrite)).toBe(true);
    expect(index.remove(known.get(id) as KeptWrite)).toBe(false);
    known.delete(id);
  }
  for (const [id, one] of known) expect(index.get(id)).toBe(one);
  expect(index.get("gateway-1.zzzzzzzz")).toBeUndefined();
  expect(new Set(index.all())).toEqual(new Set(known.values()));
});

it("texts whose numbers meet stay apart, and the last of one text counts", () => {
  // What is before the last characters has no part in the number.
  const [a, b, c] = ["x-ABCDEFGHIJKL", "y-ABCDEFGHIJKL", "z-ABCDEFGHIJKL"].map(write) as [
    KeptWrite,
    KeptWrite,
    KeptWrite,
  ];
  const index = ofIds(0.9);
  for (const one of [a, b, c]) index.add(one);
  expect([a, b, c].map(({ facts }) => index.get(facts.id))).toEqual([a, b, c]);
  expect([...index.all()]).toEqual([a, b, c]);
  const again = write(b.facts.id);
  index.add(again);
  expect(index.get(b.facts.id)).toBe(again);
  expect(index.remove(b)).toBe(false);
  expect(index.remove(again)).toBe(true);
  expect(index.remove(a)).toBe(true);
  expect([...index.all()]).toEqual([c]);
});
