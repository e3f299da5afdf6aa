// Resources: URIs as they are, templates, subscriptions that several agents share, completion.

import { ResourceUpdatedNotificationSchema } from "@modelcontextprotocol/sdk/types.js";
import { beforeAll, describe, expect, it } from "vitest";
import { type ClientV1, callJson, callText, connectV1, waitForTools } from "./clients.js";
import { fixtureOver, type Gateway, sleep, startGateway, startHttpFixture, stdioFixture, until } from "./harness.js";

interface Subscriptions {
  readonly subscribed: string[];
  readonly history: string[];
}

function updatesOf(client: ClientV1): string[] {
  const seen: string[] = [];
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => void seen.push(params.uri));
  return seen;
}

describe.each(["stdio", "http"] as const)("resources of a server over %s", (kind) => {
  let gateway: Gateway;

  beforeAll(async () => {
    const entry = await fixtureOver(kind, "resources");
    gateway = await startGateway({ mcpServers: { resources: entry } });
    const client = await connectV1(gateway.url);
    await waitForTools(client, "touch");
    // Each list is read by itself.
    await until("its resources", async () => (await client.listResources()).resources.length > 0);
  });

  it("are listed and read, by template too; what is not there is an error of the server", async () => {
    const client = await connectV1(gateway.url);
    const { resources } = await client.listResources();
    expect(resources.map(({ uri }) => uri)).toEqual(expect.arrayContaining(["fixture://one", "fixture://two"]));
    expect((await client.readResource({ uri: "fixture://one" })).contents).toEqual([
      { uri: "fixture://one", text: "one" },
    ]);
    expect((await client.readResource({ uri: "fixture://colour/red" })).contents).toEqual([
      { uri: "fixture://colour/red", text: "red" },
    ]);
    await expect(client.readResource({ uri: "fixture://nowhere" })).rejects.toMatchObject({
      code: -32602,
      data: { uri: "fixture://nowhere" },
    });
  });

  it("updates reach those who subscribed, until the last has unsubscribed", async () => {
    const uri = "fixture://two";
    const [ada, bob, eve] = [await connectV1(gateway.url), await connectV1(gateway.url), await connectV1(gateway.url)];
    const [adas, bobs, eves] = [updatesOf(ada), updatesOf(bob), updatesOf(eve)];
    await ada.subscribeResource({ uri });
    await bob.subscribeResource({ uri });
    await callText(eve, "touch", { uri });
    await until("the update at both", () => adas.length === 1 && bobs.length === 1);
    await ada.unsubscribeResource({ uri });
    await callText(eve, "touch", { uri });
    await until("the update at the other", () => bobs.length === 2);
    await sleep(200);
    expect([adas, eves]).toEqual([[uri], []]);
    expect((await callJson<Subscriptions>(eve, "subscriptions")).subscribed).toContain(uri);
    await bob.unsubscribeResource({ uri });
    await until("the server's own unsubscribe", async () => {
      const { subscribed } = await callJson<Subscriptions>(eve, "subscriptions");
      return !subscribed.includes(uri);
    });
  });

  it("a session that ends takes its subscriptions along", async () => {
    const uri = "fixture://one";
    const client = await connectV1(gateway.url);
    await client.subscribeResource({ uri });
    await (client.transport as unknown as { terminateSession(): Promise<void> }).terminateSession();
    const other = await connectV1(gateway.url);
    await until("the server's own unsubscribe", async () => {
      const { subscribed } = await callJson<Subscriptions>(other, "subscriptions");
      return !subscribed.includes(uri);
    });
  });

  it("completion of prompts and templates reaches the server, with its context", async () => {
    const client = await connectV1(gateway.url);
    const prompt = await client.complete({
      ref: { type: "ref/prompt", name: "paint" },
      argument: { name: "colour", value: "gre" },
      context: { arguments: { other: "x" } },
    });
    expect(prompt.completion.values).toEqual(["green", "grey"]);
    expect(prompt._meta).toMatchObject({ context: { arguments: { other: "x" } }, ref: { name: "paint" } });
    const template = await client.complete({
      ref: { type: "ref/resource", uri: "fixture://colour/{name}" },
      argument: { name: "name", value: "b" },
    });
    expect(template.completion.values).toEqual(["blue"]);
  });

  it("a resource that is added is listed", async () => {
    const client = await connectV1(gateway.url);
    await callText(client, "add", { uri: `fixture://added-${kind}` });
    await until("the new list", async () =>
      (await client.listResources()).resources.some(({ uri }) => uri === `fixture://added-${kind}`),
    );
  });
});

it("prompts and completion go by the menu's name, and reach the server under its own", async () => {
  const gateway = await startGateway({ names: "prefixed", mcpServers: { paint: stdioFixture("resources") } });
  const client = await connectV1(gateway.url);
  await waitForTools(client, "paint__touch");
  const { prompts } = await client.listPrompts();
  expect(prompts.map(({ name }) => name)).toEqual(["paint__paint"]);
  const prompt = await client.getPrompt({ name: "paint__paint", arguments: { colour: "red" } });
  expect(prompt.messages[0]?.content).toMatchObject({ text: "Paint it red" });
  const completed = await client.complete({
    ref: { type: "ref/prompt", name: "paint__paint" },
    argument: { name: "colour", value: "r" },
  });
  expect(completed.completion.values).toEqual(["red"]);
  expect(completed._meta).toMatchObject({ ref: { name: "paint" } });
});

it("a URI that two servers claim goes to the first of the config", async () => {
  const gateway = await startGateway({
    names: "prefixed",
    mcpServers: { first: stdioFixture("resources"), second: stdioFixture("resources") },
  });
  const client = await connectV1(gateway.url);
  await waitForTools(client, "first__touch", "second__touch");
  await callText(client, "first__touch", { uri: "fixture://one", value: "of the first" });
  await callText(client, "second__touch", { uri: "fixture://one", value: "of the second" });
  expect((await client.readResource({ uri: "fixture://one" })).contents[0]).toMatchObject({ text: "of the first" });
});

it("subscriptions are made again when their server is", async () => {
  const fixture = await startHttpFixture("resources");
  const gateway = await startGateway({ mcpServers: { resources: fixture.entry } });
  const client = await connectV1(gateway.url);
  await waitForTools(client, "touch");
  const seen = updatesOf(client);
  await client.subscribeResource({ uri: "fixture://one" });
  await fixture.kill();
  await startHttpFixture("resources", [], fixture.port);
  await until("an update from the new one", async () => {
    await callText(client, "touch", { uri: "fixture://one" }).catch(() => {});
    return seen.length > 0;
  });
});
