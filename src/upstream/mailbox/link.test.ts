// A link over a real broker on real sockets, with a machine behind it that answers as each test says.

import { createHash } from "node:crypto";
import type { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ScriptedSharer } from "../../../test/fixtures/mailbox/scripted-sharer.js";
import { SlowWay } from "../../../test/fixtures/mailbox/slow-way.js";
import { TestBroker } from "../../../test/fixtures/mailbox/test-broker.js";
import type { MailboxTarget } from "../../contracts/server-spec.js";
import { WorkerLines } from "../../mailbox/join/worker-lines.js";
import type { Fault } from "../../protocol/errors.js";
import { ownHolder } from "../../runtime/memory/held-bytes.js";
import type { LinkEvents, Ticket } from "../link/link.js";
import { MailboxLink } from "./link.js";

const SOON = { timeout: 30_000, interval: 10 };

class Seen implements LinkEvents {
  readonly messages: { text: string; ticket: Ticket | undefined }[] = [];
  readonly failed: { ticket: Ticket; fault: Fault; sent: boolean }[] = [];
  readonly pieces: Buffer[][] = [];
  readonly large: { head: Buffer; rest: Readable; length: number | undefined }[] = [];
  closed: Fault | undefined;

  onMessage(bytes: Buffer, ticket: Ticket | undefined): void {
    this.messages.push({ text: bytes.toString(), ticket });
  }
  onPieces(pieces: Buffer[]): void {
    this.pieces.push(pieces);
  }
  onLargeReply(_ticket: Ticket, head: Buffer, rest: Readable, length: number | undefined): void {
    this.large.push({ head, rest, length });
  }
  onFailed(ticket: Ticket, fault: Fault, sent: boolean): void {
    this.failed.push({ ticket, fault, sent });
  }
  onClosed(fault: Fault): void {
    this.closed = fault;
  }
  onNoise(): void {}
}

let test: TestBroker;
let studio: ScriptedSharer | undefined;
let workers: WorkerLines;
const links: MailboxLink[] = [];
beforeEach(async () => {
  test = await TestBroker.open();
  workers = new WorkerLines({ now: () => performance.now(), random: Math.random, addressPart: () => "x7" });
});
afterEach(async () => {
  for (const link of links.splice(0)) await link.close();
  studio?.close();
  studio = undefined;
  await test.end();
});

function make(options: Partial<MailboxTarget> = {}): { link: MailboxLink; seen: Seen } {
  const target: MailboxTarget = {
    kind: "mailbox",
    mailbox: "studio",
    broker: test.url,
    token: "worker-token",
    awayWaitMs: 20_000,
    ...options,
  };
  const seen = new Seen();
  const link = new MailboxLink(target, seen, {
    worker: workers.of(target.broker, target.token),
    newHolder: ownHolder,
  });
  links.push(link);
  return { link, seen };
}

async function open(options: Partial<MailboxTarget> = {}): Promise<{ link: MailboxLink; seen: Seen }> {
  const made = make(options);
  await made.link.open(AbortSignal.timeout(30_000));
  return made;
}

let lastId = 0;
function call(link: MailboxLink, more: Partial<Ticket> & { params?: string } = {}): Ticket {
  const { params = "{}", ...rest } = more;
  const ticket: Ticket = { id: ++lastId, method: "tools/call", subject: undefined, sessionKey: "s1", ...rest };
  link.send(`{"jsonrpc":"2.0","id":${ticket.id},"method":"${ticket.method}","params":${params}}`, ticket);
  return ticket;
}

const discover = (link: MailboxLink) => call(link, { method: "server/discover", sessionKey: undefined });

describe("a link to a machine behind a mailbox", () => {
  it("carries a request and its answer with every character of them, and the hash of the agent's session", async () => {
    studio = await ScriptedSharer.open(
      test.url,
      ({ id }) => `{"message":{"jsonrpc":"2.0","id":${id},"result":{"n":1e3,"x":12345678901234567890}}}`,
    );
    const { link, seen } = await open();
    const ticket = call(link, { params: '{"a":1E2,"long":98765432109876543210}', longestMs: 60_000 });
    await expect.poll(() => seen.messages.length, SOON).toBe(1);
    expect(seen.messages[0]).toEqual({
      text: `{"jsonrpc":"2.0","id":${ticket.id},"result":{"n":1e3,"x":12345678901234567890}}`,
      ticket,
    });
    const [asked] = studio.asked;
    expect(asked?.message.body).toContain('"params":{"a":1E2,"long":98765432109876543210}}}');
    expect(asked?.session).toBe(createHash("sha256").update("s1").digest("hex").slice(0, 32));
    expect(asked?.message.from).toBe("worker-1#mcp-x7");
    expect(asked?.message.leftMs).toBeLessThanOrEqual(60_000);
  });

  it("loses no call with its line: what was delivered is answered through the next one, and runs once [no-double-effect]", async () => {
    studio = await ScriptedSharer.open(test.url, () => undefined);
    const { link, seen } = await open();
    const ticket = call(link);
    await expect.poll(() => studio?.asked.length, SOON).toBe(1);
    for (const connection of [...test.connections]) {
      if (connection.owner === "worker-1") connection.end("for the test");
    }
    const [asked] = studio.asked;
    await studio.reply(asked?.message as never, `{"message":{"jsonrpc":"2.0","id":${ticket.id},"result":{"late":1}}}`);
    await expect.poll(() => seen.messages.map(({ text }) => text).join(), SOON).toContain('"late":1');
    // It may be handed out again under its id, which is what a journal knows it by.
    expect(new Set(studio.asked.map(({ message }) => message.id)).size).toBe(1);
    expect(seen.failed).toEqual([]);
    expect(seen.closed).toBeUndefined();
  });

  it("reconnects for the next call when the broker was closed after one, and a third goes the same new way", async () => {
    studio = await ScriptedSharer.open(test.url);
    const { link, seen } = await open();
    call(link);
    await expect.poll(() => seen.messages.length, SOON).toBe(1);
    await test.stop();
    await test.start();
    studio = await ScriptedSharer.open(test.url);
    const startedMs = performance.now();
    call(link);
    await expect.poll(() => seen.messages.length, SOON).toBe(2);
    expect(performance.now() - startedMs).toBeLessThan(15_000);
    const { line } = workers.of(test.url, "worker-token");
    call(link);
    await expect.poll(() => seen.messages.length, SOON).toBe(3);
    expect(workers.of(test.url, "worker-token").line).toBe(line);
    expect(seen.failed).toEqual([]);
  });

  it("fails all calls together when the broker stays away: unsent ones as such, others as unknown [unknown-is-said]", async () => {
    studio = await ScriptedSharer.open(test.url, () => undefined);
    workers = new WorkerLines({ now: () => performance.now(), random: () => 0.01, addressPart: () => "x7" });
    const { link, seen } = await open();
    const sent = call(link);
    await expect.poll(() => studio?.asked.length, SOON).toBe(1);
    await test.stop();
    await expect.poll(() => workers.of(test.url, "worker-token").line, SOON).toBeUndefined();
    const unsent = call(link);
    await expect.poll(() => seen.failed.length, SOON).toBe(2);
    expect(seen.failed.map(({ ticket, sent: was, fault }) => [ticket, was, fault.code])).toEqual([
      [sent, true, "outcome-unknown"],
      [unsent, false, "unavailable"],
    ]);
    expect(seen.failed[1]?.fault.message).toMatch(/^The broker at ws:.* cannot be reached just now: .*This is passing/);
    // It is never given up: a call that comes when the broker is back is answered.
    await test.start();
    studio = await ScriptedSharer.open(test.url);
    await expect
      .poll(() => {
        if (seen.messages.length === 0) call(link);
        return seen.messages.length;
      }, SOON)
      .toBeGreaterThan(0);
  });

  it("waits for a machine that is away, says so as progress, and then takes the call back: it never runs", async () => {
    studio = await ScriptedSharer.open(test.url);
    const { link, seen } = await open({ awayWaitMs: 50 });
    discover(link);
    await expect.poll(() => seen.messages.length, SOON).toBe(1);
    studio.close();
    await expect.poll(() => workers.of(test.url, "worker-token").presenceOf("studio")?.connected, SOON).toBe(false);
    const ticket = call(link, { wantsProgress: true });
    await expect.poll(() => seen.failed.length, SOON).toBe(1);
    expect(seen.failed[0]).toMatchObject({ ticket, sent: false, fault: { code: "unavailable" } });
    expect(seen.failed[0]?.fault.message).toMatch(/^studio is away since \d\d:\d\d; not run\.$/);
    expect(JSON.parse(seen.messages[1]?.text ?? "")).toMatchObject({
      method: "notifications/progress",
      params: { progressToken: ticket.id, message: expect.stringMatching(/^studio is away since \d\d:\d\d; waiting$/) },
    });
    studio = await ScriptedSharer.open(test.url);
    // Before that is known here, it would be taken back in a moment too.
    await expect.poll(() => workers.of(test.url, "worker-token").presenceOf("studio")?.connected, SOON).toBe(true);
    call(link);
    await expect.poll(() => studio?.asked.length, SOON).toBe(1);
    expect(studio.asked[0]?.rpc.id).toBe(ticket.id + 1);
  });

  it("answers a call that a machine which was away comes back for in time", async () => {
    studio = await ScriptedSharer.open(test.url);
    const { link, seen } = await open();
    studio.close();
    await expect.poll(() => workers.of(test.url, "worker-token").presenceOf("studio")?.connected, SOON).toBe(false);
    call(link);
    studio = await ScriptedSharer.open(test.url);
    await expect.poll(() => seen.messages.length, SOON).toBe(1);
    expect(seen.failed).toEqual([]);
  });

  it("says who an absent machine is from before, and fails at once what the gateway itself asks of it", async () => {
    studio = await ScriptedSharer.open(test.url);
    const first = await open();
    discover(first.link);
    await expect.poll(() => first.seen.messages.length, SOON).toBe(1);
    studio.close();
    await expect.poll(() => workers.of(test.url, "worker-token").presenceOf("studio")?.connected, SOON).toBe(false);
    const { link, seen } = await open();
    const asked = discover(link);
    call(link, { method: "tools/list", sessionKey: undefined });
    await expect.poll(() => seen.failed.length + seen.messages.length, SOON).toBe(2);
    expect(seen.messages[0]?.text).toContain(`"id":${asked.id},"result":{"resultType":"complete"`);
    expect(seen.failed[0]).toMatchObject({ sent: false, fault: { code: "unavailable" } });
  });

  it("takes a call back that nobody waits for: removed where it was not handed out, else told to the machine", async () => {
    studio = await ScriptedSharer.open(test.url, () => undefined);
    const { link } = await open();
    const ticket = call(link);
    await expect.poll(() => studio?.asked.length, SOON).toBe(1);
    link.forget(ticket);
    await expect.poll(() => studio?.cancels, SOON).toEqual([studio.asked[0]?.message.id]);
  });

  it("knows of a call that is taken back whether anybody had it, by what the broker or the machine says [unknown-is-said]", async () => {
    studio = await ScriptedSharer.open(test.url, () => undefined);
    const { link, seen } = await open();
    const handedOut = call(link);
    await expect.poll(() => studio?.asked.length, SOON).toBe(1);
    expect(await link.withdraw(handedOut)).toBe(false);
    // The machine says that it did not begin it: it is over by that, and goes out no more.
    await studio.reply(studio.asked[0]?.message as never, '{"error":"It was taken back.","outcome":"not run"}');
    await expect.poll(() => seen.failed.length, SOON).toBe(1);
    expect(seen.failed[0]).toMatchObject({ sent: true, fault: { code: "cancelled", wire: { left: false } } });
    link.forget(handedOut);
    studio.close();
    await expect.poll(() => workers.of(test.url, "worker-token").presenceOf("studio")?.connected, SOON).toBe(false);
    const waiting = call(link);
    expect(await link.withdraw(waiting)).toBe(true);
    link.forget(waiting);
    studio = await ScriptedSharer.open(test.url);
    call(link);
    await expect.poll(() => seen.messages.length, SOON).toBe(1);
    expect(studio.asked).toHaveLength(1);
  });

  it("is closed for good where the broker refuses the token, and says what to check", async () => {
    const { link } = make({ token: "stolen" });
    await expect(link.open(AbortSignal.timeout(30_000))).rejects.toMatchObject({
      code: "unauthorized",
      message: expect.stringMatching(/refuses us: .*toolway token list/),
    });
  });

  it.each([
    ['{"error":"The queue is full.","outcome":"not run","code":"limit"}', "limit", false],
    ['{"error":"It ended while it ran.","outcome":"unknown"}', "outcome-unknown", true],
    ['{"error":"bad mcp request: x","code":"no such code"}', "unavailable", true],
    ['{"odd":1}', "protocol", true, "missing result"],
  ])("reads the answer %s as a fault %s", async (body, code, sent, said = "") => {
    studio = await ScriptedSharer.open(test.url, () => body);
    const { link, seen } = await open();
    const ticket = call(link);
    await expect.poll(() => seen.failed.length, SOON).toBe(1);
    expect(seen.failed[0]).toMatchObject({ ticket, sent, fault: { code, message: expect.stringContaining(said) } });
  });

  it("takes progress by live frames, for the call that it is about", async () => {
    studio = await ScriptedSharer.open(test.url, () => undefined);
    const { link, seen } = await open();
    const ticket = call(link);
    await expect.poll(() => studio?.asked.length, SOON).toBe(1);
    const [{ message }] = studio.asked as [ScriptedSharer["asked"][number]];
    const { id, from } = message;
    const text = `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":${ticket.id},"progress":1e0}}`;
    studio.line.live(from, id, `{"op":"notification","message":${text}}`);
    await expect.poll(() => seen.messages, SOON).toEqual([{ text, ticket }]);
  });

  it("listens live, and fails that when the machine has been away, so that lists are read anew", async () => {
    studio = await ScriptedSharer.open(test.url);
    const { link, seen } = await open();
    const listening = call(link, { method: "subscriptions/listen", sessionKey: undefined });
    await expect.poll(() => studio?.lives.length, SOON).toBe(1);
    expect(JSON.parse(studio.lives[0]?.body ?? "")).toMatchObject({ op: "listen", message: { id: listening.id } });
    studio.close();
    await expect.poll(() => workers.of(test.url, "worker-token").presenceOf("studio")?.connected, SOON).toBe(false);
    expect(seen.failed).toEqual([]);
    studio = await ScriptedSharer.open(test.url);
    await expect.poll(() => seen.failed.length, SOON).toBe(1);
    expect(seen.failed[0]?.ticket).toBe(listening);
  });

  it("counts as listening while nobody is there, and is told when somebody is", async () => {
    studio = await ScriptedSharer.open(test.url);
    const { link, seen } = await open();
    studio.close();
    await expect.poll(() => workers.of(test.url, "worker-token").presenceOf("studio")?.connected, SOON).toBe(false);
    const params = '{"notifications":{"toolsListChanged":true}}';
    const listening = call(link, { method: "subscriptions/listen", sessionKey: undefined, params });
    await expect.poll(() => seen.messages.length, SOON).toBe(1);
    expect(JSON.parse(seen.messages[0]?.text ?? "")).toMatchObject({
      method: "notifications/subscriptions/acknowledged",
      params: { notifications: { toolsListChanged: true } },
    });
    studio = await ScriptedSharer.open(test.url);
    await expect.poll(() => seen.failed[0]?.ticket, SOON).toBe(listening);
  });

  it("uses one line for all mailboxes of a broker and token, which ends with the last of them", async () => {
    studio = await ScriptedSharer.open(test.url);
    const one = await open();
    const two = await open();
    expect([...test.connections].filter(({ owner }) => owner === "worker-1")).toHaveLength(1);
    await one.link.close();
    call(two.link);
    await expect.poll(() => two.seen.messages.length, SOON).toBe(1);
    await two.link.close();
    await expect.poll(() => [...test.connections].filter(({ owner }) => owner === "worker-1").length, SOON).toBe(0);
  });
});

describe("a large reply through a mailbox", () => {
  /** A machine that has this reply, in pieces. */
  async function shareLarge(make: (id: number) => Buffer, sha256?: string): Promise<() => number> {
    let whole: Buffer = Buffer.alloc(0);
    let draws = 0;
    const sharer = await ScriptedSharer.open(test.url, ({ id }) => {
      whole = make(id);
      const hash = sha256 ?? createHash("sha256").update(whole).digest("hex");
      return `{"large":{"bytes":${whole.length},"sha256":"${hash}"}}`;
    });
    sharer.onLive = ({ from, correlationId, body }) => {
      const { op, offset, bytes } = JSON.parse(body) as { op: string; offset: number; bytes: number };
      if (op !== "draw") return;
      draws++;
      const data = whole.subarray(offset, offset + bytes).toString("base64");
      sharer.line.live(from, correlationId, `{"op":"piece","offset":${offset},"data":"${data}"}`);
    };
    studio = sharer;
    return () => draws;
  }
  const ofSize = (bytes: number) => (id: number) =>
    Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":{"text":"${"x".repeat(bytes)}"}}`);

  it("is drawn in pieces, checked, and acknowledged when it is whole", async () => {
    const draws = await shareLarge(ofSize(1_000_000));
    const { link, seen } = await open();
    const ticket = call(link);
    await expect.poll(() => seen.pieces.length, SOON).toBe(1);
    expect(Buffer.concat(seen.pieces[0] ?? []).equals(ofSize(1_000_000)(ticket.id))).toBe(true);
    expect(draws()).toBe(16);
    await expect.poll(() => studio?.lives.at(-1)?.body, SOON).toBe('{"op":"drawn"}');
  });

  it("of 8 MiB is a stream that is drawn no faster than it is read", async () => {
    const draws = await shareLarge(ofSize(8 * 1024 * 1024));
    const { link, seen } = await open();
    const ticket = call(link);
    await expect.poll(() => seen.large.length, SOON).toBe(1);
    const [{ head, rest, length }] = seen.large as [Seen["large"][number]];
    link.forget(ticket);
    // Nobody reads: what is under way comes, and nothing more is asked for.
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(draws()).toBeLessThan(20);
    const whole = Buffer.concat([head, await buffer(rest)]);
    expect(whole.length).toBe(length);
    expect(whole.equals(ofSize(8 * 1024 * 1024)(ticket.id))).toBe(true);
  });

  it("goes on where it was when the line is lost within it", async () => {
    const draws = await shareLarge(ofSize(4 * 1024 * 1024));
    const { link, seen } = await open();
    const ticket = call(link);
    await expect.poll(() => seen.large.length, SOON).toBe(1);
    for (const connection of [...test.connections]) if (connection.owner === "worker-1") connection.end("for the test");
    const [{ head, rest }] = seen.large as [Seen["large"][number]];
    const whole = Buffer.concat([head, await buffer(rest)]);
    expect(whole.equals(ofSize(4 * 1024 * 1024)(ticket.id))).toBe(true);
    expect(draws()).toBeLessThan(64 + 12);
  });

  it("ends with a fault where its machine is gone for a minute, and is asked for no more [bounded] [unknown-is-said]", async () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    try {
      let nowMs = 0;
      workers = new WorkerLines({ now: () => nowMs, random: Math.random, addressPart: () => "x7" });
      const draws = await shareLarge(ofSize(8 * 1024 * 1024));
      const { link, seen } = await open();
      const ticket = call(link);
      await expect.poll(() => seen.large.length, SOON).toBe(1);
      link.forget(ticket);
      const [{ rest }] = seen.large as [Seen["large"][number]];
      const ended = buffer(rest).then(
        () => "whole",
        (fault: Fault) => fault,
      );
      await expect.poll(draws, SOON).toBeGreaterThan(20);
      studio?.close();
      await expect.poll(() => workers.of(test.url, "worker-token").presenceOf("studio")?.connected, SOON).toBe(false);
      for (let tick = 0; tick < 14; tick++) {
        nowMs += 5_000;
        vi.advanceTimersByTime(1_000);
      }
      expect(await ended).toMatchObject({
        code: "outcome-unknown",
        message: expect.stringContaining("studio is away"),
      });
    } finally {
      vi.useRealTimers();
    }
  });

  it("holds up no small answer by more than 200 ms, on a line of 2 MB a second [bounded]", async () => {
    const BYTES_A_SECOND = 2_000_000;
    const MOST_MS = 200;
    const SMALL_CALLS = 6;
    await shareLarge(ofSize(8 * 1024 * 1024));
    const way = await SlowWay.open(test.url, { bytesASecond: BYTES_A_SECOND, mark: '"small":true' });
    try {
      const { link, seen } = await open({ broker: way.url });
      const ticket = call(link);
      await expect.poll(() => seen.large.length, SOON).toBe(1);
      link.forget(ticket);
      const [{ rest }] = seen.large as [Seen["large"][number]];
      rest.resume();
      if (studio !== undefined) {
        studio.answer = ({ id }) => `{"message":{"jsonrpc":"2.0","id":${id},"result":{"small":true}}}`;
      }
      for (let n = 1; n <= SMALL_CALLS; n++) {
        call(link);
        await expect.poll(() => seen.messages.length, SOON).toBe(n);
      }
      // They met it on its way: the rest of it is still to come.
      expect(rest.readableEnded).toBe(false);
      expect(way.ahead).toHaveLength(SMALL_CALLS);
      // By bytes, and not by a clock: what stood before an answer on the way, and how long that takes there.
      const longestMs = (Math.max(...way.ahead) / BYTES_A_SECOND) * 1_000;
      expect(longestMs).toBeGreaterThan(0);
      expect(longestMs).toBeLessThanOrEqual(MOST_MS);
    } finally {
      way.close();
    }
  });

  it("is a fault where its pieces do not make what was announced", async () => {
    await shareLarge(ofSize(300_000), "0".repeat(64));
    const { link, seen } = await open();
    call(link);
    await expect.poll(() => seen.failed.length, SOON).toBe(1);
    expect(seen.failed[0]?.fault).toMatchObject({ code: "protocol" });
    expect(seen.pieces).toEqual([]);
  });
});

describe("a machine that the broker has never seen", () => {
  it("is told from one that went away, with what to start there [told-why]", async () => {
    const { link } = make({ awayWaitMs: 20 });
    links.push(link);
    await expect(link.open(new AbortController().signal)).rejects.toThrow(
      /has not seen studio since it started: is `toolway share --as studio` running/,
    );
    const seen = await ScriptedSharer.open(test.url, () => "{}");
    seen.close();
    const { link: second } = make({ awayWaitMs: 20 });
    links.push(second);
    await expect
      .poll(() => second.open(new AbortController().signal).catch((fault: Fault) => fault.message), SOON)
      .toMatch(/^studio is away since \d\d:\d\d/);
  });
});
