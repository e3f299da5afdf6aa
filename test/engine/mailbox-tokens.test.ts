// What peers that know the frames alone, pairing and the operator find at brokers of one engine, whichever of them they ask.

import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { pairWord, readPairWord } from "../../src/mailbox/pairing/code-text.js";
import { redeemCode } from "../../src/mailbox/pairing/redeem.js";
import { openLine } from "../../src/mailbox/peer/line.js";
import { type EngineGateway, startOnEngine } from "../fixtures/engine-gateways.js";
import { BareClient, closeBareClients } from "../fixtures/mailbox/bare-client.js";
import { NO_NATS, natsPrograms, startNats } from "../fixtures/nats.js";
import { until } from "../fixtures/wait.js";

const title = natsPrograms.length === 0 ? `peers of mailboxes in NATS, ${NO_NATS}` : "peers of mailboxes in NATS";
const NO_EVENTS = { onMessage() {}, onLive() {}, onCancel() {}, onPresence() {}, onDrain() {}, onClose() {} };
/** Enough for both brokers to have some of them in hand. */
const MACHINES = Array.from({ length: 6 }, (_, n) => `machine-${n}`);

describe.skipIf(natsPrograms.length === 0)(title, () => {
  const brokers: EngineGateway[] = [];
  const tokens: Record<string, string> = {};
  const urlOf = (n: number) => (brokers[n] as EngineGateway).url.replace("http", "ws").replace("/mcp", "/mailboxes");

  beforeAll(async () => {
    const nats = await startNats();
    for (let n = 0; n < 2; n++) brokers.push(await startOnEngine(nats, { mcpServers: {}, mailboxes: {} }));
    const { gateway } = brokers[0] as EngineGateway;
    const create = (id: string, role: string, maySendTo?: readonly string[]) =>
      gateway.state.tokens.create({ id, role, ...(maySendTo === undefined ? {} : { maySendTo }) }, Date.now());
    for (const id of MACHINES) tokens[id] = await create(id, "sharer");
    tokens["worker"] = await create("worker", "dev", MACHINES);
    await until("both to have mailboxes in hand", async () => {
      const seen = (await gateway.state.engine?.mailPartitions())?.gateways();
      return seen?.length === 2 && seen.every(({ partitions }) => partitions === 32);
    });
  });
  afterAll(async () => {
    closeBareClients();
    for (const { gateway } of brokers) await gateway.close({ drainMs: 0 });
  });

  it("reach each other from broker to broker, and what waits is there after a reconnect at another [mail-anywhere]", async () => {
    let worker = await BareClient.connect(urlOf(1), "worker", tokens["worker"] ?? "");
    worker.send({ kind: "subscribe" });
    for (const to of MACHINES) {
      worker.deliver(to, `to-${to}`, { op: "call" });
      expect(await worker.next("delivered", "error")).toMatchObject({ kind: "delivered", id: `to-${to}` });
    }
    const list = await (await (brokers[1] as EngineGateway).gateway.mailboxes.operator())?.list({
      offset: 0,
      limit: 50,
    });
    const waiting = list?.items.filter(({ waiting: count }) => count === 1).map(({ mailbox }) => mailbox);
    expect(waiting?.sort()).toEqual(MACHINES);
    // It is away when they answer, and comes back elsewhere.
    worker.socket.terminate();
    for (const id of MACHINES) {
      const machine = await BareClient.connect(urlOf(0), id, tokens[id] ?? "");
      machine.send({ kind: "subscribe" });
      expect(await machine.message()).toMatchObject({ id: `to-${id}`, from: { session_id: "worker" } });
      const answer = { kind: "mcp_reply", correlation_id: `to-${id}` };
      machine.deliver("worker", `re-${id}`, { done: true }, { ack: { id: `to-${id}`, from: "worker" } }, answer);
      expect(await machine.next("delivered", "error")).toMatchObject({ kind: "delivered" });
      machine.socket.terminate();
    }
    worker = await BareClient.connect(urlOf(0), "worker", tokens["worker"] ?? "");
    worker.send({ kind: "subscribe" });
    const answers = new Set<string>();
    for (const _ of MACHINES) {
      const { id } = await worker.message();
      answers.add(id);
      worker.send({ kind: "ack", id });
    }
    expect(answers).toEqual(new Set(MACHINES.map((id) => `re-${id}`)));
    const operator = await (brokers[0] as EngineGateway).gateway.mailboxes.operator();
    await until("all to be taken", async () => {
      const { items } = (await operator?.list({ offset: 0, limit: 50 })) ?? { items: [] };
      return items.every(({ waiting: count, leased }) => count + leased === 0);
    });
    worker.socket.terminate();
  });

  it("hear who is there, and what is said live, across brokers [mail-anywhere]", async () => {
    for (const id of MACHINES) {
      const worker = await BareClient.connect(urlOf(1), "worker#mcp-1", tokens["worker"] ?? "", { version: 1 });
      worker.send({ kind: "subscribe", kinds: ["mcp_reply"] });
      worker.send({ kind: "presence", mailbox: id });
      expect(await worker.next("presence")).toMatchObject({ mailbox: id, connected: false });
      const machine = await BareClient.connect(urlOf(0), id, tokens[id] ?? "", {
        version: 1,
        journal: `journal of ${id}`,
      });
      machine.send({ kind: "subscribe", kinds: ["mcp_request"] });
      machine.send({ kind: "credit", messages: 1 });
      const came = await worker.next("presence");
      expect(came).toMatchObject({ mailbox: id, connected: true, version: 1, journal: `journal of ${id}` });
      worker.deliver(id, "live-1");
      const { left_ms: _, message } = await machine.next("message");
      expect(message).toMatchObject({ id: "live-1", from: { session_id: "worker#mcp-1" } });
      machine.send({ kind: "live", to: "worker#mcp-1", correlation_id: "live-1", body: { step: 1 } });
      expect(await worker.next("live")).toMatchObject({ from: { session_id: id }, body: { step: 1 } });
      machine.send({ kind: "extend", ids: [{ id: "live-1", from: "worker#mcp-1" }] });
      expect(await machine.next("extended")).toEqual({
        kind: "extended",
        ids: [{ id: "live-1", from: "worker#mcp-1" }],
      });
      worker.send({ kind: "cancel", to: id, correlation_id: "live-1" });
      expect(await machine.next("cancel")).toMatchObject({ correlation_id: "live-1", from: "worker#mcp-1" });
      expect(await worker.next("cancelled")).toMatchObject({ removed: false });
      machine.send({ kind: "ack", id: "live-1", from: "worker#mcp-1" });
      machine.socket.terminate();
      expect(await worker.next("presence")).toMatchObject({ mailbox: id, connected: false });
      worker.socket.terminate();
    }
  });

  it("finish with a delivery what they were handed in another partition [mail-anywhere] [no-double-effect]", async () => {
    const partitions = await (brokers[0] as EngineGateway).gateway.state.engine?.mailPartitions();
    if (partitions === undefined) throw new Error("no engine");
    const home = partitions.of("worker");
    const [first, second] = MACHINES.filter((id, n) => {
      const place = partitions.of(id);
      return place !== home && MACHINES.findIndex((other) => partitions.of(other) === place) === n;
    }) as [string, string];
    for (const n of [0, 1]) {
      const worker = await BareClient.connect(urlOf(n), "worker", tokens["worker"] ?? "");
      worker.send({ kind: "subscribe" });
      worker.deliver(first, `ask-${n}`);
      const machine = await BareClient.connect(urlOf(1 - n), first, tokens[first] ?? "");
      machine.send({ kind: "subscribe" });
      while ((await machine.message()).id !== `ask-${n}`);
      const answer = { kind: "mcp_reply", correlation_id: `ask-${n}` };
      machine.deliver("worker", `answer-${n}`, {}, { ack: { id: `ask-${n}`, from: "worker" } }, answer);
      while ((await worker.message()).id !== `answer-${n}`);
      // The answer is in the partition of the first machine, and what finishes it goes to that of the second.
      worker.deliver(second, `next-${n}`, {}, { ack: { id: `answer-${n}` } });
      while ((await worker.next("delivered"))["id"] !== `next-${n}`);
      const operator = await (brokers[n] as EngineGateway).gateway.mailboxes.operator();
      await until("it to be finished", async () => {
        const { items } = (await operator?.list({ offset: 0, limit: 50 })) ?? { items: [] };
        const own = items.find(({ mailbox }) => mailbox === "worker");
        return own === undefined || own.waiting + own.leased === 0;
      });
      machine.socket.terminate();
      worker.socket.terminate();
    }
  });

  it("that extend wrongly are told so, and get the answers to what they asked after it [mail-anywhere]", async () => {
    const { gateway } = brokers[0] as EngineGateway;
    const friend = await gateway.state.tokens.create({ id: "friend", role: "dev", maySendTo: ["worker"] }, Date.now());
    const partitions = await gateway.state.engine?.mailPartitions();
    const away = MACHINES.find((id) => partitions?.of(id) !== partitions?.of("worker")) ?? "";
    const worker = await BareClient.connect(urlOf(0), "worker", tokens["worker"] ?? "");
    worker.send({ kind: "extend", ids: ["none"] });
    expect(await worker.next("error")).toMatchObject({ reason: "this connection has not subscribed" });
    worker.send({ kind: "subscribe" });
    worker.deliver(away, "ask-far");
    const machine = await BareClient.connect(urlOf(1), away, tokens[away] ?? "");
    machine.send({ kind: "subscribe" });
    while ((await machine.message()).id !== "ask-far");
    const answer = { kind: "mcp_reply", correlation_id: "ask-far" };
    machine.deliver("worker", "far", {}, { ack: { id: "ask-far", from: "worker" } }, answer);
    while ((await worker.message()).id !== "far");
    await until("the token", async () => {
      const sender = await BareClient.connect(urlOf(1), "friend", friend).catch(() => undefined);
      sender?.deliver("worker", "near", {}, {}, { kind: "note" });
      return sender !== undefined;
    });
    while ((await worker.message()).id !== "near");
    worker.send({ kind: "extend", ids: ["near", "far"] });
    expect(((await worker.next("extended"))["ids"] as unknown[]).length).toBe(2);
    worker.send({ kind: "ack", ids: ["near", "far"] });
    machine.socket.terminate();
    worker.socket.terminate();
  });

  it("open no line to another broker for whom they may not send to [bounded] [mail-anywhere]", async () => {
    const { gateway } = brokers[1] as EngineGateway;
    const peers = gateway.state.engine?.peers;
    if (peers === undefined) throw new Error("no engine");
    const connect = vi.spyOn(peers, "connect");
    const machine = await BareClient.connect(urlOf(1), MACHINES[0] ?? "", tokens[MACHINES[0] ?? ""] ?? "", {
      version: 1,
    });
    const before = connect.mock.calls.length;
    for (let n = 0; n < 50; n++) {
      machine.deliver(`nobody-${n}`, `m-${n}`);
      expect((await machine.next("delivered", "error"))["reason"]).toContain(`may not send to "nobody-${n}"`);
      machine.send({ kind: "presence", mailbox: `nobody-${n}` });
      expect((await machine.next("presence", "error"))["reason"]).toContain(`may not send to "nobody-${n}"`);
      machine.send({ kind: "live", to: `nobody-${n}`, body: {} });
      machine.send({ kind: "cancel", to: `nobody-${n}`, correlation_id: "c" });
      await machine.next("cancelled");
    }
    expect(connect.mock.calls.length).toBe(before);
    connect.mockRestore();
    machine.socket.terminate();
  });

  it("that say another's address or role are refused, and nobody else notices", async () => {
    // Both brokers, and mailboxes that either has in hand: the refusal comes from here and from there.
    for (const [n, id] of MACHINES.entries()) {
      const token = tokens[id] ?? "";
      const other = MACHINES[(n + 1) % MACHINES.length] ?? "";
      await expect(BareClient.connect(urlOf(n % 2), other, token)).rejects.toThrow();
      const agent = { session_id: id, role: "admin" };
      await expect(BareClient.connect(urlOf(n % 2), id, token, { agent })).rejects.toThrow();
    }
    for (const n of [0, 1]) {
      const machine = await BareClient.connect(urlOf(n), MACHINES[0] ?? "", tokens[MACHINES[0] ?? ""] ?? "");
      machine.socket.terminate();
    }
  });

  it("get a token at one for a code of another, once; a token that is revoked at one is refused at the other", async () => {
    for (const id of MACHINES.slice(0, 3)) {
      const line = await openLine(
        { url: urlOf(0), token: tokens[id] ?? "", address: id, kinds: ["mcp_request"] },
        NO_EVENTS,
      );
      const { code } = await line.pair();
      line.close();
      const word = readPairWord(pairWord(urlOf(1), code));
      if (word === undefined) throw new Error("no word");
      const options = { name: "laptop", signal: new AbortController().signal };
      const paired = await redeemCode(word, options);
      const worker = await BareClient.connect(urlOf(0), "#mcp", paired.token);
      worker.deliver(id, "hello");
      expect(await worker.next("delivered", "error")).toMatchObject({ kind: "delivered" });
      await expect(redeemCode(word, options)).rejects.toThrow();
    }
    const worker = await BareClient.connect(urlOf(1), "worker", tokens["worker"] ?? "");
    await (brokers[0] as EngineGateway).gateway.state.tokens.revoke("worker");
    await until("its connection to end", () => worker.closed !== undefined);
    expect(worker.closed?.code).toBe(1008);
  });
});
