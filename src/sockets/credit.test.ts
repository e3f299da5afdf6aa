import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { histories } from "../../test/faults/length.js";
import { CreditAccount, CreditBook } from "./credit.js";
import { FIRST_WINDOW_BYTES, LARGEST_WINDOW_BYTES, MAX_QUEUED_BYTES } from "./limits.js";

type Step =
  | { readonly kind: "open" }
  | { readonly kind: "close"; readonly which: number }
  /** The sender uses up a part of what it may send. */
  | { readonly kind: "send"; readonly which: number; readonly part: number }
  /** The reader takes a part of what waits. */
  | { readonly kind: "read"; readonly which: number; readonly part: number };

const which = fc.nat(1_000);
const part = fc.constantFrom(0.01, 0.3, 0.5, 1, 1, 1);
const steps = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant("open" as const) }),
    fc.record({ kind: fc.constant("close" as const), which }),
    { weight: 3, arbitrary: fc.record({ kind: fc.constant("send" as const), which, part }) },
    { weight: 3, arbitrary: fc.record({ kind: fc.constant("read" as const), which, part }) },
  ),
  { maxLength: 120 },
);

interface Stream {
  readonly account: CreditAccount;
  /** As the two ends see it, without the book. */
  granted: number;
  sent: number;
  read: number;
}

describe("the book of credit", () => {
  it("[exec-1] never grants more than the windows, and all that is read is granted again", () => {
    fc.assert(
      fc.property(fc.nat(200), steps, (before, history: Step[]) => {
        const book = new CreditBook();
        const streams: Stream[] = [];
        const open = (): void => {
          const account = new CreditAccount();
          book.open(account);
          streams.push({ account, granted: FIRST_WINDOW_BYTES, sent: 0, read: 0 });
        };
        const read = (stream: Stream, bytes: number): void => {
          stream.read += bytes;
          stream.granted += book.taken(stream.account, bytes);
        };
        for (let i = 0; i < before; i++) open();
        for (const step of history) {
          if (step.kind === "open") open();
          const at = "which" in step && streams.length > 0 ? step.which % streams.length : -1;
          const stream = streams[at];
          if (stream === undefined) continue;
          if (step.kind === "close") {
            book.close(stream.account);
            streams.splice(at, 1);
          } else if (step.kind === "send") {
            const bytes = Math.floor((stream.granted - stream.sent) * step.part);
            expect(book.arrived(stream.account, bytes)).toBe(true);
            stream.sent += bytes;
          } else if (step.kind === "read") {
            read(stream, Math.floor((stream.sent - stream.read) * step.part));
          }
          let sum = 0;
          let most = 0;
          for (const { granted, read: taken } of streams) {
            sum += granted - taken;
            most = Math.max(most, granted - taken);
          }
          // One look a step: expect() costs more than what is tested.
          const holds =
            most <= LARGEST_WINDOW_BYTES &&
            book.unread === sum &&
            sum <= MAX_QUEUED_BYTES + streams.length * FIRST_WINDOW_BYTES;
          if (!holds) expect.fail(`${most} of one, ${sum} of all, ${book.unread} in the book`);
        }
        // Whatever happened before: who is read to the end may send on, half a first window at least.
        for (const stream of streams) {
          const left = stream.granted - stream.sent;
          const tooMuch = book.arrived(stream.account, left + 1);
          const all = book.arrived(stream.account, left);
          stream.sent += left;
          read(stream, stream.sent - stream.read);
          const goesOn = stream.granted - stream.sent >= FIRST_WINDOW_BYTES / 2;
          if (tooMuch || !all || !goesOn) expect.fail(`${stream.granted} granted, ${stream.sent} sent`);
        }
        for (const { account } of streams) book.close(account);
        expect([book.unread, book.streams]).toEqual([0, 0]);
      }),
      { numRuns: histories(2_000) },
    );
  });

  it("says nothing for a small answer, and little for a large one", () => {
    const book = new CreditBook();
    const account = new CreditAccount();
    book.open(account);
    book.arrived(account, 4_096);
    expect(book.taken(account, 4_096)).toBe(0);
    let grants = 0;
    const piece = 16 * 1024;
    for (let bytes = 0; bytes < 64 * LARGEST_WINDOW_BYTES; bytes += piece) {
      expect(book.arrived(account, piece)).toBe(true);
      if (book.taken(account, piece) > 0) grants++;
    }
    // Half a window each, and a few while it grows.
    expect(grants).toBeLessThanOrEqual(2 * 64 + 6);
  });

  it("gives a first window to each of two thousand streams", () => {
    const book = new CreditBook();
    const accounts = Array.from({ length: 2_000 }, () => new CreditAccount());
    for (const account of accounts) book.open(account);
    for (const account of accounts) {
      book.arrived(account, FIRST_WINDOW_BYTES);
      expect(book.taken(account, FIRST_WINDOW_BYTES)).toBe(FIRST_WINDOW_BYTES);
    }
  });

  it("grants nothing to an account that is closed", () => {
    const book = new CreditBook();
    const account = new CreditAccount();
    book.open(account);
    book.close(account);
    book.close(account);
    expect(book.taken(account, 10)).toBe(0);
    expect([book.unread, book.streams]).toEqual([0, 0]);
  });
});
