// What an operator sees of a broker and does to it, on a real store, with clients that know the bare frames alone.

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { BareClient } from "../../../test/fixtures/mailbox/bare-client.js";
import { TestBroker } from "../../../test/fixtures/mailbox/test-broker.js";
import { until } from "../../../test/fixtures/wait.js";
import { MailboxOperator } from "./operator.js";

const ALL = { offset: 0, limit: 1_000 };

let test: TestBroker;
beforeEach(async () => {
  test = await TestBroker.open();
});
afterEach(() => test.end());

const operator = () => new MailboxOperator(test.broker.inside);
const worker = () => BareClient.connect(test.url, "worker-1", "worker-token");
const other = () => BareClient.connect(test.url, "worker-2", "other-token");

async function subscribed(address: string, token: string): Promise<BareClient> {
  const client = await BareClient.connect(test.url, address, token, { version: 1 });
  client.send({ kind: "subscribe" });
  client.send({ kind: "credit", messages: 100 });
  return client;
}

async function delivered(client: BareClient, id: string, body: unknown = {}): Promise<void> {
  client.deliver("studio", id, body);
  expect(await client.next("delivered", "error")).toMatchObject({ kind: "delivered", id });
}

/** Takes a message and gives it back as failed, until it is a dead letter. */
async function fail(studio: BareClient, reason: string): Promise<void> {
  for (let time = 0; time < 5; time++) {
    const { id, from } = (await studio.message()) as unknown as { id: string; from: { session_id: string } };
    studio.send({ kind: "release", id, from: from.session_id, failed: true, reason });
  }
}

describe("an operator", () => {
  it("sees what waits, what is worked at and who is connected, and never what messages say [secrets-unseen]", async () => {
    const sender = await worker();
    await delivered(sender, "m-1", { secret: "the body" });
    await delivered(sender, "m-2", { secret: "the body" });
    expect(
      operator()
        .list(ALL)
        .items.find(({ mailbox }) => mailbox === "studio"),
    ).toMatchObject({
      waiting: 2,
      leased: 0,
      dead: 0,
      connections: 0,
      since: undefined,
    });
    const studio = await subscribed("studio", "studio-token");
    await studio.message();
    await studio.message();
    const { items, total } = operator().messages("studio", ALL);
    expect(total).toBe(2);
    expect(items).toMatchObject([
      { id: "m-1", from: "worker-1", kind: "mcp_request", state: "leased", failures: 0 },
      { id: "m-2", state: "leased" },
    ]);
    expect(items[0]?.leftMs).toBeGreaterThan(3_500_000);
    const status = operator().status(2);
    expect(status).toMatchObject({ waiting: 0, leased: 2, dead: 0, connections: 2, oldest: { mailbox: "studio" } });
    const [first] = status.mailboxes;
    expect(first).toMatchObject({ mailbox: "studio", connections: 1, oldestAt: items[0]?.at });
    expect(first?.since).toBeDefined();
    studio.socket.close();
    await until("the messages to be back", () => operator().messages("studio", ALL).items[0]?.state === "returned");
    expect(JSON.stringify([items, status, operator().deadLetters("studio", ALL)])).not.toContain("the body");
  });

  it("gets long lists in pages [bounded]", async () => {
    const sender = await worker();
    for (let n = 0; n < 30; n++) await delivered(sender, `m-${n}`);
    const page = operator().messages("studio", { offset: 20, limit: 5 });
    expect(page.total).toBe(30);
    expect(page.items.map(({ id }) => id)).toEqual(["m-20", "m-21", "m-22", "m-23", "m-24"]);
    expect(operator().list({ offset: 0, limit: 0 })).toMatchObject({ items: [], total: 2 });
  });

  it("drops a message, and its sender is told whether it may have run [unknown-is-said]", async () => {
    const sender = await subscribed("worker-1", "worker-token");
    await delivered(sender, "m-1");
    expect(await operator().drop("studio", { id: "m-1", from: undefined, deadOnly: false })).toEqual({
      messages: 1,
      deadLetters: 0,
    });
    expect(await sender.message()).toMatchObject({
      correlation_id: "m-1",
      kind: "mcp_reply",
      body: { error: "dropped by the operator; not run", outcome: "not run" },
    });
    const studio = await subscribed("studio", "studio-token");
    await delivered(sender, "m-2");
    expect((await studio.message()).id).toBe("m-2");
    await operator().drop("studio", { id: undefined, from: undefined, deadOnly: false });
    expect(await studio.next("cancel")).toMatchObject({ correlation_id: "m-2", from: "worker-1" });
    expect((await sender.message())["body"]).toEqual({
      error: "dropped by the operator; its outcome is unknown",
      outcome: "unknown",
    });
    await test.restart();
    expect(operator().messages("studio", ALL).total).toBe(0);
  });

  it("sends a dead letter again as it was written, under an id that no journal knows [ack-is-durable]", async () => {
    const sender = await worker();
    let studio = await subscribed("studio", "studio-token");
    await delivered(sender, "m-1", { tool: "paint", n: 1 });
    await fail(studio, "no brush");
    await until("the dead letter", () => operator().deadLetters("studio", ALL).items.length === 1);
    await test.restart();
    expect(operator().deadLetters("studio", ALL).items).toMatchObject([
      { id: "m-1", from: "worker-1", kind: "mcp_request", reason: expect.stringContaining("no brush") },
    ]);
    const { id } = await operator().retry("studio", "m-1", undefined);
    expect(id).not.toBe("m-1");
    // It is on disk, and no dead letter any more.
    await test.restart();
    expect(operator().deadLetters("studio", ALL).total).toBe(0);
    studio = await subscribed("studio", "studio-token");
    expect(await studio.message()).toMatchObject({
      id,
      from: { session_id: "worker-1", role: "researcher" },
      kind: "mcp_request",
      body: { tool: "paint", n: 1 },
    });
    // Whoever runs it may answer it.
    studio.deliver("worker-1", "r-1", { done: true }, {}, { kind: "mcp_reply", correlation_id: id });
    expect(await studio.next("delivered", "error")).toMatchObject({ kind: "delivered" });
  });

  it("says whose message is meant where two senders use one id", async () => {
    const [first, second] = [await worker(), await other()];
    await delivered(first, "m-1");
    await delivered(second, "m-1");
    const all = { id: "m-1", from: undefined, deadOnly: false };
    await expect(operator().drop("studio", all)).rejects.toThrow(/several senders use the id "m-1".*--from/);
    expect(await operator().drop("studio", { ...all, from: "worker-2" })).toMatchObject({ messages: 1 });
    expect(operator().messages("studio", ALL).items).toMatchObject([{ id: "m-1", from: "worker-1" }]);
  });

  it("is told by name what there is not, and what is no dead letter", async () => {
    await expect(async () => operator().messages("attic", ALL)).rejects.toThrow(/There is no mailbox "attic"/);
    expect(operator().messages("studio", ALL)).toEqual({ items: [], total: 0 });
    await expect(operator().retry("studio", "m-9", undefined)).rejects.toMatchObject({ code: "not-found" });
    const sender = await worker();
    await delivered(sender, "m-1");
    await expect(operator().retry("studio", "m-1", undefined)).rejects.toThrow(/is in "studio" \(waiting\)/);
    const none = operator().drop("studio", { id: "m-9", from: undefined, deadOnly: false });
    await expect(none).rejects.toThrow(/no message "m-9"/);
  });

  it("drops dead letters alone where that is asked for", async () => {
    const sender = await worker();
    const studio = await subscribed("studio", "studio-token");
    await delivered(sender, "m-1");
    await fail(studio, "no");
    await until("the dead letter", () => operator().deadLetters("studio", ALL).items.length === 1);
    studio.socket.close();
    await delivered(sender, "m-2");
    const dropped = await operator().drop("studio", { id: undefined, from: undefined, deadOnly: true });
    expect(dropped).toEqual({ messages: 0, deadLetters: 1 });
    await test.restart();
    expect(
      operator()
        .list(ALL)
        .items.find(({ mailbox }) => mailbox === "studio"),
    ).toMatchObject({
      waiting: 1,
      dead: 0,
    });
  });
});
