// What becomes of a link's calls and of what it draws when its line to the broker ends for good, or stays away. The line is
// the test's: no socket.

import type { Readable } from "node:stream";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { WorkerLine } from "../../mailbox/join/worker-line.js";
import type { BrokerLine, LineEvents } from "../../mailbox/peer/line.js";
import type { Fault } from "../../protocol/errors.js";
import { HeldBytes } from "../../runtime/memory/held-bytes.js";
import { LARGE_REPLY_BYTES } from "../link/large-body.js";
import type { LinkEvents, Ticket } from "../link/link.js";
import { MailboxLink } from "./link.js";

const PIECE = Buffer.alloc(64 * 1024, "x");

let held: HeldBytes;
let events: LineEvents;
let dials: number;
let isUp: boolean;
let asks: { id: string; offset: number }[];
let delivered: string[];
let worker: WorkerLine;
let link: MailboxLink;
let failed: { ticket: Ticket; fault: Fault }[];
let closed: Fault | undefined;
let large: Readable | undefined;

beforeEach(async () => {
  vi.useFakeTimers({ now: 0 });
  held = new HeldBytes();
  [dials, isUp, asks, delivered, failed, closed, large] = [0, true, [], [], [], undefined, undefined];
  const line: Partial<BrokerLine> = {
    deliver: ({ id }) => {
      delivered.push(id);
      return Promise.resolve();
    },
    cancel: () => Promise.resolve(false),
    extend: () => Promise.resolve([]),
    live: (_to, id = "", body) => {
      const { op, offset } = JSON.parse(body) as { op: string; offset: number };
      if (op === "draw") asks.push({ id, offset });
      return true;
    },
    ack() {},
    credit() {},
    close() {},
    watch: (mailbox) => events.onPresence({ mailbox, connected: true, since: undefined, version: 1 }),
  };
  worker = new WorkerLine({
    open: (given) => {
      dials++;
      events = given;
      return isUp ? Promise.resolve(line as BrokerLine) : Promise.reject(new Error("nobody listens"));
    },
    failureOf: (error) => ({ why: (error as Error).message, final: false }),
    now: () => Date.now(),
    random: () => 0.5,
  });
  const seen: LinkEvents = {
    onMessage() {},
    onPieces() {},
    onLargeReply: (_ticket, _head, rest) => {
      large = rest;
    },
    onFailed: (ticket, fault) => void failed.push({ ticket, fault }),
    onClosed: (fault) => {
      closed = fault;
    },
    onNoise() {},
  };
  const target = { kind: "mailbox", mailbox: "studio", broker: "ws://127.0.0.1:1", token: "t", awayWaitMs: 20_000 };
  link = new MailboxLink(target as never, seen, {
    worker,
    newHolder: () => held.holder("studio"),
    now: () => Date.now(),
  });
  await link.open(AbortSignal.timeout(60_000));
});
afterEach(async () => {
  await link.close();
  vi.useRealTimers();
});

function call(id: number): Ticket {
  const ticket: Ticket = { id, method: "tools/call", subject: undefined, sessionKey: "s" };
  link.send(`{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{}}`, ticket);
  return ticket;
}

/** A large answer has come, and its first piece; of others before it, as many as it takes until it has its turn. */
async function draw(ticket: Ticket, bytes: number): Promise<void> {
  await vi.advanceTimersByTimeAsync(0);
  const correlationId = idOf(ticket);
  const reply = { id: `r-${ticket.id}`, from: "studio", role: "sharer", kind: "mcp_reply", correlationId };
  const body = JSON.stringify({ large: { bytes, sha256: "0".repeat(64) } });
  events.onMessage({ ...reply, body, requestCorrelationId: undefined, leftMs: undefined, repeated: false });
  for (let asked = asks.shift(); asked !== undefined; asked = asks.shift()) {
    const { id, offset } = asked;
    const head = offset === 0 ? `{"jsonrpc":"2.0","id":${ticket.id},"result":{"t":"` : "";
    const data = Buffer.concat([Buffer.from(head), PIECE])
      .subarray(0, PIECE.length)
      .toString("base64");
    const piece = JSON.stringify({ op: "piece", offset, data });
    events.onLive({ from: "studio", role: "sharer", correlationId: id, body: piece });
    if (id === correlationId) return;
  }
  throw new Error("it was never asked for");
}

/** The id of its message. */
function idOf({ id }: Ticket): string {
  return delivered.find((one) => one.endsWith(`-${id}`)) ?? "";
}

describe("a link whose broker refuses it in the middle of large answers", () => {
  it("ends them: a reader is told why, nothing is held, and nothing is waited for [bounded]", async () => {
    const small = call(1);
    await draw(small, 1_000_000);
    expect(held.used).toBeGreaterThan(0);
    const streamed = call(2);
    await draw(streamed, LARGE_REPLY_BYTES * 2);
    const read = new Promise<Error>((resolve) => large?.once("error", resolve));
    link.forget(streamed);
    expect(large).toBeDefined();
    events.onPresence({ mailbox: "studio", connected: false, since: undefined, version: undefined });
    call(3);
    events.onClose("the token has ended", true);
    expect(closed).toMatchObject({ code: "unauthorized" });
    expect(await read).toMatchObject({ message: expect.stringContaining("the token has ended") });
    expect(held.used).toBe(0);
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe("a link whose broker stays away in the middle of large answers", () => {
  it("fails them with the other calls, and leaves no place taken for the next [bounded] [unknown-is-said]", async () => {
    const small = call(1);
    await draw(small, 1_000_000);
    const streamed = call(2);
    await draw(streamed, LARGE_REPLY_BYTES * 2);
    const read = new Promise<Error>((resolve) => large?.once("error", resolve));
    link.forget(streamed);
    isUp = false;
    events.onClose("the line broke", false);
    await vi.advanceTimersByTimeAsync(6_000);
    expect(dials).toBe(6);
    expect(failed.map(({ ticket, fault }) => [ticket, fault.code])).toEqual([[small, "outcome-unknown"]]);
    expect(await read).toMatchObject({ message: expect.stringContaining("This is passing") });
    expect(held.used).toBe(0);
    isUp = true;
    await vi.advanceTimersByTimeAsync(20_000);
    expect(worker.line).toBeDefined();
    asks = [];
    const next = call(3);
    await draw(next, 1_000_000);
    expect(new Set(asks.map(({ id }) => id))).toEqual(new Set([idOf(next)]));
  });
});
