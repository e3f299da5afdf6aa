// The demo server as a process, from dist/, with a real client.

import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hearInTurn } from "../../test/fixtures/in-turn.js";

const demo = fileURLToPath(new URL("../../dist/demo/server.js", import.meta.url));

beforeAll(() => {
  if (!existsSync(demo)) throw new Error("These tests run what is in dist/: run `npm run build` first.");
});

describe("the demo server, with the SDK's client", () => {
  let client: Client;

  beforeAll(async () => {
    client = new Client({ name: "test", version: "1" });
    await client.connect(new StdioClientTransport({ command: process.execPath, args: [demo] }));
    hearInTurn(client.transport);
  });

  afterAll(() => client.close());

  it("introduces itself and lists what it has", async () => {
    expect(client.getServerVersion()?.name).toBe("toolway-demo");
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(["echo", "add", "now", "wait"]);
    expect((await client.listResources()).resources).toHaveLength(1);
    expect((await client.listPrompts()).prompts).toHaveLength(1);
  });

  it("answers calls, structured content included", async () => {
    const sum = await client.callTool({ name: "add", arguments: { a: 2, b: 3.5 } });
    expect(sum).toMatchObject({ content: [{ type: "text", text: "5.5" }], structuredContent: { sum: 5.5 } });
    const echo = await client.callTool({ name: "echo", arguments: { text: "grüße\n" } });
    expect(echo.content).toEqual([{ type: "text", text: "grüße\n" }]);
    const now = await client.callTool({ name: "now", arguments: { timeZone: "Nowhere/City" } });
    expect(now.isError).toBe(true);
    await expect(client.callTool({ name: "add", arguments: { a: "2" } })).rejects.toThrow('"a" must be a number');
    await expect(client.callTool({ name: "constructor" })).rejects.toThrow("no tool");
  });

  it("reports progress, and can be cancelled", async () => {
    const seen: number[] = [];
    const onprogress = ({ progress }: { progress: number }): void => void seen.push(progress);
    await client.callTool({ name: "wait", arguments: { seconds: 0.3 } }, undefined, { onprogress });
    expect(seen.length).toBeGreaterThan(1);
    expect(seen).toEqual(seen.toSorted((a, b) => a - b));
    const cancel = new AbortController();
    const call = client.callTool({ name: "wait", arguments: { seconds: 60 } }, undefined, { signal: cancel.signal });
    cancel.abort();
    await expect(call).rejects.toThrow();
    expect(await client.ping()).toEqual({});
  });

  it("serves its resource, prompt and completion", async () => {
    const { contents } = await client.readResource({ uri: "demo://about" });
    expect(contents[0]).toMatchObject({ mimeType: "text/markdown" });
    const { messages } = await client.getPrompt({ name: "explain-a-tool", arguments: { tool: "add" } });
    expect(messages).toHaveLength(1);
    const ref = { type: "ref/prompt", name: "explain-a-tool" } as const;
    const { completion } = await client.complete({ ref, argument: { name: "tool", value: "e" } });
    expect(completion.values).toEqual(["echo"]);
  });
});

it("the demo server ends when its input does, and survives what is no message", () => {
  const lines = [
    "nonsense",
    "[]",
    '{"jsonrpc":"2.0","id":1,"method":"none"}',
    '{"jsonrpc":"2.0","id":2,"method":"ping"}',
  ];
  const run = spawnSync(process.execPath, [demo], {
    input: `${lines.join("\n")}\n`,
    encoding: "utf8",
    timeout: 60_000,
  });
  expect(run.status).toBe(0);
  const answers = run.stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { id: unknown; error?: { code: number } });
  expect(answers.map(({ id, error }) => [id, error?.code])).toEqual([
    [null, -32700],
    [1, -32601],
    [2, undefined],
  ]);
});
