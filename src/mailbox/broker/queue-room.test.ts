// What the queues of one process hold together, where stored messages are in memory.

import { describe, expect, it } from "vitest";
import { SharedRoom } from "../../runtime/memory/shared-room.js";
import { KIB, MIB } from "../../runtime/sizes.js";
import { refusalOf } from "./broker-texts.js";
import { QUEUE_LIMITS } from "./limits.js";
import { MailboxQueue } from "./queue.js";
import type { QueuedMessage } from "./queue-terms.js";

const message = (sequence: number, sender: string, bytes: number): QueuedMessage => {
  return { sequence, id: `m${sequence}`, sender, kind: "note", bytes, endMs: 1_000, bound: undefined };
};

describe("the room for the mail of one process", () => {
  it("is one for all mailboxes, no sender has more than half of it, and a refusal names what is held [bounded]", () => {
    let limit = 8 * MIB;
    const room = new SharedRoom(() => limit);
    const account = room.open();
    const queues = [1, 2, 3].map(() => new MailboxQueue(QUEUE_LIMITS, account));
    const [first, second, third] = queues as [MailboxQueue, MailboxQueue, MailboxQueue];
    let sequence = 0;
    const put = (queue: MailboxQueue, sender: string, bytes: number) => {
      const refused = queue.admit(sender, "note", bytes);
      if (refused === undefined) queue.add(message(++sequence, sender, bytes));
      return refused;
    };
    for (const queue of queues) expect(put(queue, "flood", MIB)).toBeUndefined();
    expect(put(first, "flood", MIB)).toBe("half");
    expect(refusalOf("half", "box", "flood", room)).toBe(
      'the broker holds 3.0 MiB of mail that "flood" sent, limit 4.0 MiB: send it later',
    );
    for (const sender of ["ann", "bob", "cid"]) expect(put(second, sender, MIB)).toBeUndefined();
    expect(put(third, "dan", 2 * MIB)).toBe("room");
    expect(refusalOf("room", "box", "dan", room)).toBe(
      "the broker holds 6.0 MiB of mail, limit 8.0 MiB: send it later",
    );
    // Each message has a cost of its own, however short it is.
    for (let n = 0; n < 400; n++) put(third, "eve", 1);
    expect(room.used).toBeGreaterThan(6 * MIB + 400 * 2 * KIB);
    limit = 16 * MIB;
    expect(put(third, "dan", 2 * MIB)).toBeUndefined();
    first.finish("flood", "m1");
    limit = 8 * MIB;
    expect(put(first, "flood", 512 * KIB)).toBe("room");
  });

  it("has what a reply was promised, also where it is full; a longer one has to find the rest [bounded]", () => {
    const room = new SharedRoom(() => 64 * KIB);
    const queue = new MailboxQueue(QUEUE_LIMITS, room.open());
    for (const id of ["r1", "r2"]) expect(queue.reserve(id)).toBe(true);
    for (const sender of ["ann", "bob", "cid"]) queue.admit(sender, "note", 18 * KIB);
    expect(queue.admit("dan", "note", QUEUE_LIMITS.replyBytes)).toBe("room");
    expect(queue.admit("dan", "mcp_reply", QUEUE_LIMITS.replyBytes, "r1")).toBeUndefined();
    expect(queue.admit("dan", "mcp_reply", QUEUE_LIMITS.replyBytes + 1, "r2")).toBe("room");
  });

  it("is free of what another broker has in hand now, and of all that comes from the one that had it [bounded]", () => {
    const room = new SharedRoom(() => 8 * MIB);
    const account = room.open();
    const [gone, kept] = [new MailboxQueue(QUEUE_LIMITS, account), new MailboxQueue(QUEUE_LIMITS, room.open())];
    gone.restore(message(1, "ann", MIB));
    gone.admit("ann", "note", MIB);
    kept.restore(message(2, "ann", MIB));
    account.close();
    // A write that fails late.
    gone.abandon("ann", "note", MIB);
    gone.finish("ann", "m1");
    expect(Math.floor(room.used / MIB)).toBe(1);
    kept.finish("ann", "m2");
    expect(room.used).toBe(0);
  });
});
