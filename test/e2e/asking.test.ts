// A server's requests to the agent: sampling, elicitation and roots reach the session whose call caused them.

import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { beforeAll, describe, expect, it } from "vitest";
import { type ClientV1, callJson, callText, connectStdioV1, connectV1, connectV2, waitForTools } from "./clients.js";
import { fixtureOver, type Gateway, sleep, startGateway, stdioFixture, until } from "./harness.js";

const ASKABLE = { capabilities: { sampling: {}, elicitation: {}, roots: { listChanged: true } } };

function answerAs(client: ClientV1, name: string): void {
  client.setRequestHandler(CreateMessageRequestSchema, ({ params }) => ({
    role: "assistant",
    model: "test",
    content: { type: "text", text: `${name} answers ${JSON.stringify(params.messages[0]?.content)}` },
  }));
  client.setRequestHandler(ElicitRequestSchema, ({ params }) => ({
    action: "accept",
    content: { answer: `${name} answers ${params.message}` },
  }));
  client.setRequestHandler(ListRootsRequestSchema, () => ({ roots: [{ uri: `file:///${name}`, name }] }));
}

async function askable(gateway: Gateway, name: string): Promise<ClientV1> {
  const client = await connectV1(gateway.url, ASKABLE);
  answerAs(client, name);
  await waitForTools(client, "sample");
  return client;
}

describe.each(["stdio", "http"] as const)("a server over %s", (kind) => {
  let shared: Gateway;
  let isolated: Gateway;

  beforeAll(async () => {
    const entry = await fixtureOver(kind, "asker");
    shared = await startGateway({ mcpServers: { asker: entry } });
    isolated = await startGateway({ mcpServers: { asker: { ...entry, isolation: "session" } } });
  });

  it("asks the session whose call caused it, with SDK v1 and v2", async () => {
    const v1 = await askable(shared, "v1");
    expect(await callText(v1, "sample", { what: "a" })).toContain("v1 answers");
    expect(await callText(v1, "elicit", { what: "b" })).toContain("v1 answers b");
    expect(await callText(v1, "roots")).toContain("file:///v1");
    const v2 = await connectV2(shared.url, ASKABLE);
    v2.setRequestHandler("elicitation/create", () => ({ action: "accept", content: { answer: "v2 answers" } }));
    expect(await callText(v2, "elicit")).toContain("v2 answers");
  });

  it("asks two isolated sessions at the same time, and each answers its own question", async () => {
    const clients = await Promise.all(["ada", "bob", "eve"].map((name) => askable(isolated, name)));
    const answers = await Promise.all(
      clients.map((client, at) => callText(client, "elicit", { what: `q${at}`, delayMs: 100 })),
    );
    expect(answers[0]).toContain("ada answers q0");
    expect(answers[1]).toContain("bob answers q1");
    expect(answers[2]).toContain("eve answers q2");
  });

  it("asks each of several sessions for its own call, or nobody, when they share it", async () => {
    const [ada, bob] = [await askable(shared, "ada"), await askable(shared, "bob")];
    const [a, b] = await Promise.all([
      callText(ada, "elicit", { what: "qa", delayMs: 200 }),
      callText(bob, "elicit", { what: "qb", delayMs: 200 }),
    ]);
    // Over HTTP the stream tells whose call it is; over stdio nothing does.
    if (kind === "http") {
      expect(a).toContain("ada answers qa");
      expect(b).toContain("bob answers qb");
    } else {
      expect(`${a} ${b}`).not.toContain("ada answers qb");
      expect(`${a} ${b}`).not.toContain("bob answers qa");
      expect(`${a} ${b}`).toContain("isolation");
    }
  });

  it("a request outside of any call is refused, with a hint at isolation", async () => {
    const client = await askable(shared, "ada");
    await callText(client, "ask_outside", { kind: "elicit", delayMs: 100 });
    // With nothing in flight: a call at that moment might pass for its cause.
    await sleep(2_000);
    const outcomes = await until("the outcome", async () => {
      const list = await callJson<{ error?: { code: number; message: string }; result?: unknown }[]>(
        client,
        "outcomes",
      );
      return list.length > 0 ? list : undefined;
    });
    expect(outcomes[0]?.error?.message).toMatch(/isolation/i);
    expect(outcomes[0]?.result).toBeUndefined();
  });

  it("asks the isolated session that owns the connection, outside of any call", async () => {
    const [ada, bob] = [await askable(isolated, "ada"), await askable(isolated, "bob")];
    await callText(ada, "ask_outside", { kind: "elicit", delayMs: 100 });
    await callText(bob, "ask_outside", { kind: "elicit", delayMs: 100 });
    for (const [client, name] of [
      [ada, "ada"],
      [bob, "bob"],
    ] as const) {
      const outcome = await until("the outcome", async () => {
        const list = await callJson<unknown[]>(client, "outcomes");
        return list.length > 0 ? JSON.stringify(list) : undefined;
      });
      expect(outcome).toContain(`${name} answers`);
    }
  });

  it("an agent that cannot be asked is not asked: the server gets an error", async () => {
    const mute = await connectV1(shared.url);
    await waitForTools(mute, "sample");
    for (const tool of ["sample", "elicit", "roots"]) {
      const result = await mute.callTool({ name: tool, arguments: {} });
      expect(result.isError, tool).toBe(true);
    }
  });
});

it("an agent on stdio is asked as well", async () => {
  const gateway = await startGateway({ mcpServers: { asker: stdioFixture("asker") } });
  const client = await connectStdioV1(gateway, ASKABLE);
  answerAs(client, "stdio");
  await waitForTools(client, "sample");
  expect(await callText(client, "elicit", { what: "x" })).toContain("stdio answers x");
  expect(await callText(client, "roots")).toContain("file:///stdio");
});

it("a change of roots reaches a server that has the session's own connection", async () => {
  const gateway = await startGateway({ mcpServers: { asker: stdioFixture("asker", [], { isolation: "session" }) } });
  const client = await askable(gateway, "ada");
  await callText(client, "roots");
  await client.sendRootsListChanged();
  await until("the notification", async () => {
    const { rootsChanged } = await callJson<{ rootsChanged: number }>(client, "roots_changed");
    return rootsChanged === 1;
  });
});
