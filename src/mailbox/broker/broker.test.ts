// A broker on a real store with real sockets, spoken to by a bare client that knows the frames of the protocol alone.

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { BareClient } from "../../../test/fixtures/mailbox/bare-client.js";
import { TestBroker } from "../../../test/fixtures/mailbox/test-broker.js";
import { MIB } from "../../runtime/sizes.js";
import { MailboxOperator } from "./operator.js";

let test: TestBroker;
beforeEach(async () => {
  test = await TestBroker.open();
});
afterEach(() => test.end());

const connect = (address: string, token: string, hello: object = {}): Promise<BareClient> =>
  BareClient.connect(test.url, address, token, hello);

describe("a broker", () => {
  it("passes a call and its reply between clients that know the bare frames alone", async () => {
    const worker = await connect("worker-1#mcp", "worker-token");
    worker.send({ kind: "subscribe" });
    const body = { op: "call", tool: "screen", arguments: '{"a":1}' };
    worker.deliver("studio", "m-1", body, {}, { from: { session_id: "root" }, created_at: "1970" });
    expect(await worker.next("delivered", "error")).toEqual({ kind: "delivered", id: "m-1" });
    const studio = await connect("studio", "studio-token", {
      agent: { session_id: "studio", role: "sharer" },
    });
    studio.send({ kind: "subscribe" });
    const call = await studio.message();
    expect(call).toMatchObject({ id: "m-1", kind: "mcp_request", body });
    // Who sent it is what the token says, and when is the broker's.
    expect(call["from"]).toEqual({ session_id: "worker-1#mcp", role: "researcher" });
    expect(call["created_at"]).not.toBe("1970");
    const reply = { id: "r-1", kind: "mcp_reply", body: { result: { success: true } }, correlation_id: "m-1" };
    studio.send({ kind: "deliver", to: "worker-1#mcp", message: reply });
    expect(await studio.next("delivered", "error")).toEqual({ kind: "delivered", id: "r-1" });
    studio.send({ kind: "ack", id: "m-1" });
    expect(await worker.message()).toMatchObject({ ...reply, from: { session_id: "studio", role: "sharer" } });
    worker.send({ kind: "ack", id: "r-1" });
    worker.send({ kind: "ack", id: "r-1" });
    expect(await worker.next("error")).toMatchObject({ id: "r-1" });
    await expect.poll(() => [...test.store.log("mail").entries()]).toEqual([]);
  });

  it("keeps what it has taken over a restart, and hands it out again [ack-is-durable]", async () => {
    let worker = await connect("worker-1", "worker-token");
    for (let n = 1; n <= 20; n++) worker.deliver("studio", `m-${n}`, { n });
    for (let n = 1; n <= 20; n++) await worker.next("delivered");
    let studio = await connect("studio", "studio-token");
    studio.send({ kind: "subscribe" });
    for (let n = 1; n <= 3; n++) {
      expect((await studio.message()).id).toBe(`m-${n}`);
      studio.send({ kind: "ack", id: `m-${n}` });
    }
    await test.restart();
    studio = await connect("studio", "studio-token");
    studio.send({ kind: "subscribe" });
    for (let n = 4; n <= 20; n++) {
      expect((await studio.message()).id).toBe(`m-${n}`);
      studio.send({ kind: "ack", id: `m-${n}` });
    }
    worker = await connect("worker-1", "worker-token");
    worker.deliver("studio", "m-21");
    expect((await studio.message()).id).toBe("m-21");
  });

  it("takes a repeat for what it is, and another message of the same id for a mistake", async () => {
    const worker = await connect("worker-1", "worker-token");
    for (let n = 0; n < 3; n++) worker.deliver("studio", "m-1", { n: 1 });
    for (let n = 0; n < 3; n++) expect(await worker.next("delivered", "error")).toMatchObject({ kind: "delivered" });
    worker.deliver("studio", "m-1", { n: 2 });
    expect(await worker.next("error")).toMatchObject({ id: "m-1", reason: expect.stringContaining("another message") });
    const studio = await connect("studio", "studio-token");
    studio.send({ kind: "subscribe" });
    expect(await studio.message()).toMatchObject({ body: { n: 1 } });
    worker.deliver("studio", "m-2");
    expect((await studio.message()).id).toBe("m-2");
  });

  it("takes a message for another one by its recipient and by its kind, not by its body alone", async () => {
    const worker = await connect("worker-2", "other-token");
    worker.deliver("studio", "m-1", { n: 1 });
    expect(await worker.next("delivered", "error")).toMatchObject({ kind: "delivered" });
    for (const [to, kind] of [
      ["barn", "mcp_request"],
      ["studio", "note"],
    ] as const) {
      worker.deliver(to, "m-1", { n: 1 }, {}, { kind });
      expect(await worker.next("delivered", "error")).toMatchObject({
        id: "m-1",
        reason: expect.stringContaining("another message"),
      });
    }
    expect([...test.store.log("mail").entries()]).toHaveLength(1);
  });

  it("lets nobody send where its token may not, and answers only to whoever asked", async () => {
    const worker = await connect("worker-1", "worker-token");
    const other = await connect("worker-2", "other-token");
    const studio = await connect("studio", "studio-token");
    studio.send({ kind: "subscribe" });
    worker.deliver("worker-2", "m-1");
    expect(await worker.next("error")).toMatchObject({ reason: expect.stringContaining("may not send") });
    other.deliver("attic", "m-2");
    expect(await other.next("error")).toMatchObject({ reason: expect.stringContaining('no token has the id "attic"') });
    worker.deliver("studio", "m-3");
    await studio.message();
    for (const [to, correlation] of [
      ["worker-2", "m-3"],
      ["worker-1", "m-4"],
      ["worker-1#mcp", "m-3"],
    ]) {
      studio.deliver(to as string, "r-1", {}, {}, { kind: "mcp_reply", correlation_id: correlation });
      expect(await studio.next("error", "delivered")).toMatchObject({ kind: "error", id: "r-1" });
    }
    studio.deliver("worker-1", "r-1", {}, {}, { kind: "mcp_reply", correlation_id: "m-3" });
    expect(await studio.next("error", "delivered")).toMatchObject({ kind: "delivered" });
  });

  it.each([
    ["another first frame", { kind: "subscribe" }, /first frame is "hello"/],
    [
      "a token that nobody has",
      { kind: "hello", agent: { session_id: "studio" }, token: "wrong" },
      /token is not known/,
    ],
    [
      "another's mailbox",
      { kind: "hello", agent: { session_id: "studio" }, token: "worker-token" },
      /this token is "worker-1"/,
    ],
    [
      "another role",
      { kind: "hello", agent: { session_id: "worker-1", role: "root" }, token: "worker-token" },
      /the role "researcher"/,
    ],
    [
      "an id of a kilobyte",
      { kind: "hello", agent: { session_id: "x".repeat(1024) }, token: "worker-token" },
      /at most 128 characters/,
    ],
    ["no JSON", "hello", /a frame is a JSON/],
  ])("refuses and closes at %s", async (_what, frame, reason) => {
    const client = await BareClient.open(test.url);
    client.send(frame as object);
    expect(await client.next("error")).toMatchObject({ reason: expect.stringMatching(reason) });
    await expect(client.next("nothing more")).rejects.toThrow("closed");
    expect(client.closed?.code).toBe(1008);
  });

  it("answers frames that it does not know with an error that changes nothing", async () => {
    const worker = await connect("worker-1", "worker-token");
    worker.send({ kind: "dance" });
    expect(await worker.next("error")).toMatchObject({ reason: expect.stringContaining('"dance"') });
    worker.deliver("studio", "m-1");
    expect(await worker.next("delivered", "error")).toMatchObject({ kind: "delivered" });
  });

  it("takes ids that look like paths, subjects and patterns for nothing but ids", async () => {
    const worker = await connect("worker-1", "worker-token");
    const studio = await connect("studio", "studio-token");
    studio.send({ kind: "subscribe" });
    for (const id of ["../studio", "*", ">", ".", "🦊", "a\u0001b", "#"]) {
      worker.deliver("studio", id);
      expect((await studio.message()).id).toBe(id);
      studio.send({ kind: "ack", id });
    }
    worker.deliver("studio", "x".repeat(129));
    expect(await worker.next("error")).toMatchObject({ reason: expect.stringContaining("128 characters") });
  });

  it("tells the sender when the end of its message has come, and never hands it out then", async () => {
    const worker = await connect("worker-1", "worker-token");
    worker.send({ kind: "subscribe" });
    worker.deliver("studio", "m-1", {}, { left_ms: 5_000 });
    worker.deliver("studio", "m-2", {}, { left_ms: 500_000 });
    await worker.next("delivered");
    await worker.next("delivered");
    test.aheadMs += 60_000;
    const studio = await connect("studio", "studio-token");
    studio.send({ kind: "subscribe" });
    expect((await studio.message()).id).toBe("m-2");
    const told = await worker.message();
    expect(told).toMatchObject({
      kind: "mcp_reply",
      correlation_id: "m-1",
      from: { session_id: "studio", role: "broker" },
    });
    expect(told["body"]).toEqual({ error: expect.stringContaining("it was not run"), outcome: "not run" });
    expect(studio.left).toEqual([]);
  });

  it("hands a journal's message to that journal alone, and says that the outcome is unknown when it never comes back [no-double-effect] [unknown-is-said]", async () => {
    const worker = await connect("worker-1", "worker-token");
    worker.send({ kind: "subscribe" });
    const first = await connect("studio", "studio-token", { version: 1, journal: "J1" });
    first.send({ kind: "subscribe", kinds: ["mcp_request"] });
    first.send({ kind: "credit", messages: 1 });
    worker.deliver("studio", "m-1", {}, { left_ms: 20_000 });
    expect((await first.message()).id).toBe("m-1");
    first.socket.terminate();
    const second = await connect("studio", "studio-token", { version: 1, journal: "J2" });
    second.send({ kind: "subscribe" });
    second.send({ kind: "credit", messages: 10 });
    worker.deliver("studio", "m-2");
    expect((await second.message()).id).toBe("m-2");
    await test.restart();
    const again = await connect("worker-1", "worker-token");
    again.send({ kind: "subscribe" });
    const third = await connect("studio", "studio-token", { version: 1, journal: "J2" });
    third.send({ kind: "subscribe" });
    third.send({ kind: "credit", messages: 10 });
    expect((await third.message()).id).toBe("m-2");
    third.send({ kind: "ack", id: "m-2", from: "worker-1" });
    test.aheadMs += 30_000;
    again.deliver("studio", "m-3");
    expect((await third.message()).id).toBe("m-3");
    expect(await again.message()).toMatchObject({ correlation_id: "m-1", body: { outcome: "unknown" } });
  });

  it("keeps what ended in somebody's hands apart, to be sent again under a new id, but no read and nothing that was never handed out [unknown-is-said]", async () => {
    const worker = await connect("worker-1", "worker-token");
    worker.send({ kind: "subscribe" });
    const first = await connect("studio", "studio-token", { version: 1, journal: "J1" });
    first.send({ kind: "subscribe" });
    first.send({ kind: "credit", messages: 2 });
    for (const id of ["write", "read", "waits"]) worker.deliver("studio", id, { id }, { left_ms: 20_000 });
    expect([(await first.message()).id, (await first.message()).id]).toEqual(["write", "read"]);
    first.send({ kind: "extend", ids: [{ id: "read", from: "worker-1" }], repeatable: true });
    await first.next("extended");
    first.socket.terminate();
    await expect.poll(() => test.connections.size).toBe(1);
    test.aheadMs += 30_000;
    worker.deliver("studio", "new");
    for (let n = 0; n < 3; n++) await worker.message();
    const { broker } = test;
    const operator = new MailboxOperator(broker.inside);
    const range = { offset: 0, limit: 10 };
    expect(operator.deadLetters("studio", range)).toMatchObject({
      total: 1,
      items: [{ id: "write", reason: expect.stringContaining("its outcome is unknown") }],
    });
    const { id } = await operator.retry("studio", "write", undefined);
    expect(id).not.toBe("write");
    const second = await connect("studio", "studio-token", { version: 1, journal: "J2" });
    second.send({ kind: "subscribe" });
    second.send({ kind: "credit", messages: 10 });
    expect(new Set([(await second.message()).id, (await second.message()).id])).toEqual(new Set(["new", id]));
    expect(operator.deadLetters("studio", range).total).toBe(0);
  });

  it("keeps what failed too often apart, the last ones only, and tells its sender why [bounded]", async () => {
    const worker = await connect("worker-1", "worker-token");
    worker.send({ kind: "subscribe" });
    const studio = await connect("studio", "studio-token", { version: 1 });
    studio.send({ kind: "subscribe" });
    studio.send({ kind: "credit", messages: 100 });
    worker.deliver("studio", "m-1", { secret: 1 });
    for (let time = 1; time <= 5; time++) {
      expect((await studio.message()).id).toBe("m-1");
      studio.send({ kind: "release", id: "m-1", from: "worker-1", failed: true, reason: `no ${time}` });
    }
    const told = await worker.message();
    expect(told["body"]).toMatchObject({ error: expect.stringContaining("no 5"), outcome: "unknown" });
    const [[, dead] = []] = [...test.store.log("dead-letters").entries()];
    expect(JSON.parse(dead ?? "")).toMatchObject({ mailbox: "studio", why: expect.stringContaining("no 5") });
    // A week later it is nobody's business any more.
    test.aheadMs += 8 * 24 * 3_600_000;
    worker.deliver("studio", "m-2");
    for (let time = 1; time <= 5; time++) {
      expect((await studio.message()).id).toBe("m-2");
      studio.send({ kind: "release", id: "m-2", from: "worker-1", failed: true });
    }
    await expect.poll(() => [...test.store.log("dead-letters").entries()].map(([sequence]) => sequence)).toEqual([2]);
  });

  it("removes what was cancelled before it was handed out, and tells whoever has it else", async () => {
    const worker = await connect("worker-1", "worker-token", { version: 1 });
    worker.deliver("studio", "m-1");
    await worker.next("delivered");
    worker.send({ kind: "cancel", to: "studio", correlation_id: "m-1" });
    expect(await worker.next("cancelled")).toEqual({ kind: "cancelled", correlation_id: "m-1", removed: true });
    const studio = await connect("studio", "studio-token");
    studio.send({ kind: "subscribe" });
    worker.deliver("studio", "m-2");
    expect((await studio.message()).id).toBe("m-2");
    const other = await connect("worker-2", "other-token", { version: 1 });
    other.send({ kind: "cancel", to: "studio", correlation_id: "m-2" });
    expect(await other.next("cancelled")).toMatchObject({ removed: false });
    worker.send({ kind: "cancel", to: "studio", correlation_id: "m-2" });
    expect(await worker.next("cancelled")).toMatchObject({ removed: false });
    expect(await studio.next("cancel")).toMatchObject({ correlation_id: "m-2" });
    expect(studio.left).toEqual([]);
  });

  it("takes the first answer to a message, its repeats for what they are, and no second one [no-double-effect]", async () => {
    const worker = await connect("worker-1", "worker-token");
    worker.send({ kind: "subscribe" });
    let studio = await connect("studio", "studio-token");
    studio.send({ kind: "subscribe" });
    worker.deliver("studio", "m-1");
    await studio.message();
    const answer = (id: string, n: number, more: object = {}) =>
      studio.deliver("worker-1", id, { n }, more, { kind: "mcp_reply", correlation_id: "m-1" });
    answer("r-1", 1);
    expect(await studio.next("delivered", "error")).toMatchObject({ kind: "delivered", id: "r-1" });
    expect(await worker.message()).toMatchObject({ id: "r-1", body: { n: 1 } });
    worker.send({ kind: "ack", id: "r-1" });
    answer("r-2", 2);
    expect(await studio.next("delivered", "error")).toMatchObject({
      id: "r-2",
      reason: expect.stringContaining("first answer counts"),
    });
    answer("r-1", 2);
    expect(await studio.next("delivered", "error")).toMatchObject({ kind: "error", id: "r-1" });
    // Nobody has acknowledged the question: it comes again, and is answered.
    studio.socket.terminate();
    studio = await connect("studio", "studio-token", { version: 1 });
    studio.send({ kind: "subscribe" });
    studio.send({ kind: "credit", messages: 10 });
    expect((await studio.message()).id).toBe("m-1");
    answer("r-3", 3);
    expect(await studio.next("delivered", "error")).toMatchObject({ kind: "error", id: "r-3" });
    // A repeat of the first is no second, and may finish the question.
    answer("r-1", 1, { ack: { id: "m-1", from: "worker-1" } });
    expect(await studio.next("delivered", "error")).toMatchObject({ kind: "delivered", id: "r-1" });
    await expect.poll(() => [...test.store.log("mail").entries()]).toEqual([]);
    // The same question once more is another message: whoever repeats is always answered.
    worker.deliver("studio", "m-1");
    expect((await studio.message()).id).toBe("m-1");
    answer("r-1", 1);
    expect(await worker.message()).toMatchObject({ id: "r-1", body: { n: 1 } });
    expect(worker.left.filter(({ kind }) => kind === "message")).toEqual([]);
  });

  it("brings a question's own correlation id back beside that of its answer, in the broker's answers too", async () => {
    const worker = await connect("worker-1", "worker-token");
    worker.send({ kind: "subscribe" });
    worker.deliver("studio", "m-1", {}, {}, { correlation_id: "c-9" });
    worker.deliver("studio", "m-2", {}, { left_ms: 5_000 }, { correlation_id: "c-10" });
    await worker.next("delivered");
    await worker.next("delivered");
    await test.restart();
    const again = await connect("worker-1", "worker-token");
    again.send({ kind: "subscribe" });
    const studio = await connect("studio", "studio-token");
    studio.send({ kind: "subscribe" });
    expect(await studio.message()).toMatchObject({ id: "m-1", correlation_id: "c-9" });
    studio.deliver("worker-1", "r-1", {}, {}, { kind: "mcp_reply", correlation_id: "m-1" });
    expect(await again.message()).toMatchObject({ correlation_id: "m-1", request_correlation_id: "c-9" });
    again.send({ kind: "ack", id: "r-1" });
    studio.socket.terminate();
    test.aheadMs += 40_000;
    expect(await again.message()).toMatchObject({ correlation_id: "m-2", request_correlation_id: "c-10" });
  });

  it("lets anybody have what a journal gave back unstarted, also after a restart [no-double-effect]", async () => {
    const worker = await connect("worker-1", "worker-token", { version: 1 });
    const take = async (journal: string) => {
      const studio = await connect("studio", "studio-token", { version: 1, journal });
      studio.send({ kind: "subscribe" });
      studio.send({ kind: "credit", messages: 1 });
      return studio;
    };
    const first = await take("J1");
    worker.deliver("studio", "m-1");
    expect((await first.message()).id).toBe("m-1");
    first.send({ kind: "release", id: "m-1", from: "worker-1" });
    // It is answered behind the release.
    first.send({ kind: "extend", ids: [] });
    await first.next("extended");
    worker.send({ kind: "cancel", to: "studio", correlation_id: "never" });
    await worker.next("cancelled");
    await test.restart();
    const second = await take("J2");
    expect((await second.message()).id).toBe("m-1");
    // What it was handed is its from then on.
    await test.restart();
    const third = await take("J3");
    const back = await take("J2");
    expect((await back.message()).id).toBe("m-1");
    expect(third.left).toEqual([]);
    back.send({ kind: "ack", id: "m-1", from: "worker-1" });
    await expect.poll(() => [...test.store.map("mail-bindings").entries()]).toEqual([]);
  });

  it("takes no frame of more than 1 MiB, says so, and goes on with the next [bounded]", async () => {
    const worker = await connect("worker-1", "worker-token");
    worker.deliver("studio", "m-1", "x".repeat(MIB - 500));
    expect(await worker.next("delivered", "error")).toMatchObject({ kind: "delivered" });
    worker.deliver("studio", "m-2", "x".repeat(MIB));
    expect(await worker.next("delivered", "error")).toMatchObject({
      kind: "error",
      reason: expect.stringContaining("a frame has at most 1048576 bytes"),
    });
    worker.deliver("studio", "m-3");
    expect(await worker.next("delivered", "error")).toMatchObject({ kind: "delivered", id: "m-3" });
  });

  it("hands a bare client 16 messages that it has not acknowledged, and one more for each that it has [bounded]", async () => {
    const [worker, studio] = [await connect("worker-1", "worker-token"), await connect("studio", "studio-token")];
    for (let n = 1; n <= 20; n++) worker.deliver("studio", `m-${n}`);
    for (let n = 1; n <= 20; n++) await worker.next("delivered");
    studio.send({ kind: "subscribe" });
    for (let n = 1; n <= 16; n++) expect((await studio.message()).id).toBe(`m-${n}`);
    // It is answered behind whatever was handed out before.
    studio.send({ kind: "dance" });
    await studio.next("error");
    expect(studio.left).toEqual([]);
    studio.send({ kind: "ack", id: "m-1" });
    expect((await studio.message()).id).toBe("m-17");
    studio.send({ kind: "dance" });
    await studio.next("error");
    expect(studio.left).toEqual([]);
  });

  it("forgets an address at which nobody is once its last message has ended, and not before [bounded]", async () => {
    const worker = await connect("worker-1#mcp-x7", "worker-token");
    const studio = await connect("studio", "studio-token");
    studio.send({ kind: "subscribe" });
    worker.deliver("studio", "m-1", {}, { left_ms: 60_000 });
    await studio.message();
    worker.socket.terminate();
    studio.deliver("worker-1#mcp-x7", "r-1", {}, { left_ms: 60_000 }, { kind: "mcp_reply", correlation_id: "m-1" });
    await studio.next("delivered");
    studio.send({ kind: "ack", id: "m-1" });
    const isKnown = () => test.broker.inside.mailboxes.has("worker-1#mcp-x7");
    expect(isKnown()).toBe(true);
    test.aheadMs += 120_000;
    await expect.poll(isKnown, { timeout: 30_000 }).toBe(false);
  });

  it("counts what it holds for peers, and refuses by name what there is no room for [bounded]", async () => {
    const worker = await connect("worker-1", "worker-token");
    const text = "x".repeat(1_000_000);
    test.held.take("somebody", 12 * MIB);
    test.held.take("somebody else", 3 * MIB);
    worker.deliver("studio", "m-0", text);
    expect(await worker.next("delivered", "error")).toMatchObject({
      id: "m-0",
      reason: expect.stringContaining("limits.heldBytes"),
    });
    test.held.giveBack("somebody", 12 * MIB);
    test.held.giveBack("somebody else", 3 * MIB);
    for (let n = 1; n <= 10; n++) {
      worker.deliver("studio", `m-${n}`, text);
      expect(await worker.next("delivered", "error")).toMatchObject({ kind: "delivered" });
    }
    // What is not read is counted, too, and not any more when it is.
    const studio = await connect("studio", "studio-token", { version: 1 });
    studio.socket.pause();
    studio.send({ kind: "subscribe" });
    studio.send({ kind: "credit", messages: 100 });
    await expect.poll(() => test.held.usedBy("studio")).toBeGreaterThan(0);
    studio.socket.resume();
    for (let n = 1; n <= 10; n++) {
      const { id } = await studio.message();
      studio.send({ kind: "ack", id, from: "worker-1" });
    }
    await expect.poll(() => test.held.used).toBe(0);
  });
});
