// The real clients through a real gateway to the reference servers: SDK v1 and v2, over HTTP and stdio.

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import {
  type ClientV1,
  type ClientV2,
  callText,
  connectStdioV1,
  connectStdioV2,
  connectV1,
  connectV2,
  toolNames,
  waitForTools,
} from "./clients.js";
import { type Gateway, npmServer, startGateway, temporaryDirectory } from "./harness.js";

let gateway: Gateway;
let files: string;

beforeAll(async () => {
  files = await temporaryDirectory();
  await writeFile(join(files, "hello.txt"), "Hello from a file.\n");
  gateway = await startGateway({
    names: "prefixed",
    mcpServers: {
      everything: npmServer("everything", ["stdio"]),
      filesystem: npmServer("filesystem", [files]),
      memory: { ...npmServer("memory"), env: { MEMORY_FILE_PATH: join(files, "memory.jsonl") } },
    },
  });
});

type Connect = () => Promise<ClientV1 | ClientV2>;

const AUTO = { capabilities: {}, versionNegotiation: { mode: "auto" } } as const;

/** No gateway runs for this state. */
async function alone() {
  return { configPath: gateway.configPath, stateDir: join(await temporaryDirectory(), "state") };
}

const clients: Record<string, Connect> = {
  "SDK v1 over HTTP": () => connectV1(gateway.url),
  "SDK v2 over HTTP": () => connectV2(gateway.url),
  "SDK v2 over HTTP, which tries 2026-07-28 first": () => connectV2(gateway.url, AUTO),
  "SDK v1 over stdio, joined to the gateway": () => connectStdioV1(gateway),
  "SDK v2 over stdio, joined to the gateway": () => connectStdioV2(gateway),
  "SDK v2 over stdio, joined to the gateway, which tries 2026-07-28 first": () => connectStdioV2(gateway, AUTO),
  "SDK v1 over stdio, a gateway of its own": async () => connectStdioV1(await alone()),
  "SDK v2 over stdio, a gateway of its own": async () => connectStdioV2(await alone()),
  "SDK v2 over stdio, a gateway of its own, which tries 2026-07-28 first": async () =>
    connectStdioV2(await alone(), AUTO),
};

describe.each(Object.entries(clients))("%s, as the agent,", (name, connect) => {
  // One client of all: a test asks for what that one offers in both SDKs.
  const connected = async () => {
    const client = (await connect()) as ClientV1;
    await waitForTools(client, "everything__echo", "filesystem__read_text_file", "memory__create_entities");
    return client;
  };

  it("lists the tools of all servers, and calls each", async () => {
    const client = await connected();
    expect(await callText(client, "everything__echo", { message: "hi" })).toBe("Echo: hi");
    const path = join(files, "hello.txt");
    expect(await callText(client, "filesystem__read_text_file", { path })).toBe("Hello from a file.\n");
    const entities = [{ name: "Ada", entityType: "person", observations: ["writes programs"] }];
    await callText(client, "memory__create_entities", { entities });
    expect(await callText(client, "memory__search_nodes", { query: "Ada" })).toContain("writes programs");
  });

  it("passes structured content, pictures and tool errors", async () => {
    const client = await connected();
    const weather = await client.callTool({
      name: "everything__get_structured_content",
      arguments: { location: "Chicago" },
    });
    expect(weather.structuredContent).toMatchObject({ temperature: expect.any(Number) });
    const image = await client.callTool({ name: "everything__get_tiny_image", arguments: {} });
    expect(JSON.stringify(image.content)).toContain("image/png");
    const missing = await client.callTool({
      name: "filesystem__read_text_file",
      arguments: { path: join(files, "no-such-file") },
    });
    expect(missing.isError).toBe(true);
  });

  it("refuses a tool that is not in the menu", async () => {
    const client = await connected();
    await expect(client.callTool({ name: "everything__no_such_tool", arguments: {} })).rejects.toMatchObject({
      code: -32602,
    });
  });

  it("passes prompts, resources and completion", async () => {
    const client = await connected();
    const { prompts } = await client.listPrompts();
    const name = prompts.map((prompt) => prompt.name).find((prompt) => prompt.includes("args")) ?? "";
    expect(name).toMatch(/^everything__/);
    const prompt = await client.getPrompt({ name, arguments: { city: "Paris", state: "France" } });
    expect(JSON.stringify(prompt.messages)).toContain("Paris");
    const { resources } = await client.listResources();
    const uri = resources[0]?.uri ?? "";
    expect((await client.readResource({ uri })).contents[0]?.uri).toBe(uri);
    const { resourceTemplates } = await client.listResourceTemplates();
    expect(resourceTemplates.length).toBeGreaterThan(0);
    const completable = prompts.map(({ name: one }) => one).find((one) => one.includes("completable")) ?? "";
    const completed = await client.complete({
      ref: { type: "ref/prompt", name: completable },
      argument: { name: "department", value: "E" },
    });
    expect(completed.completion.values).toContain("Engineering");
  });

  it("answers ping, and says who it is", async () => {
    const client = await connected();
    // The modern era has no ping, and its SDK refuses to send one.
    if (!name.includes("2026-07-28")) await client.ping();
    expect(client.getServerVersion()?.name).toBe("toolway");
    expect(client.getServerCapabilities()).toMatchObject({ tools: { listChanged: true } });
  });
});

it("serves one server alone at /mcp/<server>, under the server's own names", async () => {
  const client = await connectV1(`${gateway.url}/memory`);
  await waitForTools(client, "read_graph");
  expect((await toolNames(client)).filter((name) => /echo|read_text_file/.test(name))).toEqual([]);
});
