import { expect, it } from "vitest";
import { MAX_ANSWERABLE } from "./limits.js";
import { Mailbox, MailboxTable } from "./mailbox.js";
import { type Consumer, keyOf } from "./queue-terms.js";
import type { Letter } from "./record.js";

const consumer: Consumer = { kinds: undefined, journal: "j", window: 1_000, knowsIdsOnly: false };

function handOut(mailbox: Mailbox, id: string, sequence: number, endMs = 1_000): void {
  const key = keyOf("worker", id);
  const letter = { key, sequence, sender: "worker", id, from: "worker#mcp-x", endMs, correlationId: undefined };
  mailbox.wasHandedOut(letter as Letter, consumer);
}

it("may answer its last 10,000 messages, and not many more", () => {
  const mailbox = new Mailbox("studio", "studio", undefined);
  const known = (from: number, until: number) => {
    let count = 0;
    for (let n = from; n < until; n++) if (mailbox.answerable("worker", `m-${n}`, 0) !== undefined) count++;
    return count;
  };
  const all = 4 * MAX_ANSWERABLE + 7;
  for (let n = 0; n < all; n++) {
    handOut(mailbox, `m-${n}`, n);
    if (n % 4_999 === 0 && n >= MAX_ANSWERABLE) expect(known(n + 1 - MAX_ANSWERABLE, n + 1)).toBe(MAX_ANSWERABLE);
  }
  expect(known(0, all)).toBeLessThanOrEqual(1.25 * MAX_ANSWERABLE);
  expect(mailbox.isIdle(999)).toBe(false);
  expect(mailbox.isIdle(1_000)).toBe(true);
});

it("knows a message that comes again long after as the one that was answered, and another of its id as another", () => {
  const mailbox = new Mailbox("studio", "studio", undefined);
  const answer = { id: "r", hash: "h", isStored: true };
  const answerOf = () => mailbox.answerable("worker", "again", 0)?.answer;
  handOut(mailbox, "again", 1, 5_000);
  const first = mailbox.answerable("worker", "again", 0);
  if (first !== undefined) first.answer = answer;
  for (let n = 0; n < MAX_ANSWERABLE / 2; n++) handOut(mailbox, `m-${n}`, 10 + n);
  expect(answerOf()).toBe(answer);
  handOut(mailbox, "again", 1, 5_000);
  for (let n = 0; n < MAX_ANSWERABLE / 2; n++) handOut(mailbox, `n-${n}`, 100_000 + n);
  expect(answerOf()).toBe(answer);
  handOut(mailbox, "again", 2, 1_000);
  expect(answerOf()).toBeUndefined();
  // Its end is that of the last one: the one before is not known any more.
  expect(mailbox.isIdle(1_000)).toBe(true);
});

it("of one token are half of all that are in use at most, what was stored before is taken all the same, and what is not used any more gives way [bounded]", () => {
  const all = new MailboxTable(undefined);
  for (let n = 0; n < 5_000; n++) all.open(`s1#${n}`, "s1");
  expect(() => all.open("s1#5000", "s1")).toThrow('"s1" has 5000 mailboxes in use, and no token gets more');
  // To the mailboxes of others as well.
  expect(() => all.open("box#1", "s1")).toThrow("no token gets more");
  expect(all.open("s1#7", "s1")).toBe(all.get("s1#7"));
  for (let n = 0; n < 4_999; n++) all.open(`s2#${n}`, "s2");
  all.restore("s1#stored", "s1");
  expect(() => all.open("s3", "s3")).toThrow("the broker has 10000 mailboxes in use, which is its limit");
  for (const address of ["s1#0", "s1#1"]) all.close(all.get(address) as Mailbox);
  all.open("s3", "s3");
  all.open("s1#0", "s1");
  expect(all.size).toBe(10_000);
});
