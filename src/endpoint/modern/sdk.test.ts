// The real SDK v2 client pinned to 2026-07-28, and the real SDK v1 client beside it, against the endpoint alone.

import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from "@modelcontextprotocol/client";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { afterEach, describe, expect, it } from "vitest";
import { type Rig, startRig, stopRigs, until } from "../../../test/fixtures/endpoint/http.js";
import { note } from "../../../test/fixtures/endpoint/service.js";

afterEach(stopRigs);

const AUTH = { headers: { Authorization: "Bearer token-a" } };
const PINNED = { mode: { pin: "2026-07-28" } };
const elicit = {
  method: "elicitation/create",
  params: { message: "Who?", requestedSchema: { type: "object", properties: { name: { type: "string" } } } },
};
const sample = {
  method: "sampling/createMessage",
  params: { messages: [{ role: "user", content: { type: "text", text: "hello" } }], maxTokens: 5 },
};

function text(result: unknown): string {
  return (result as { content: { text: string }[] }).content[0]?.text ?? "";
}

async function pinned(rig: Rig): Promise<ClientV2> {
  const capabilities = { elicitation: { form: {} }, sampling: {} };
  const client = new ClientV2({ name: "v2", version: "1" }, { capabilities, versionNegotiation: PINNED });
  client.setRequestHandler("elicitation/create", () => ({ action: "accept", content: { name: "modern" } }));
  client.setRequestHandler("sampling/createMessage", () => ({
    role: "assistant",
    content: { type: "text", text: "sampled" },
    model: "m",
  }));
  await client.connect(new TransportV2(new URL(rig.url), { requestInit: AUTH }));
  return client;
}

describe("SDK v2 pinned to 2026-07-28", () => {
  it("discovers, lists, reads, calls, follows progress and reads large replies", async () => {
    const rig = await startRig();
    const client = await pinned(rig);
    expect(client.getServerVersion()).toMatchObject({ name: "test" });
    expect(client.getInstructions()).toBe("Be kind.");
    expect((await client.listTools()).tools.map((tool) => tool.name)).toContain("echo");
    expect(text(await client.callTool({ name: "echo", arguments: { a: 1 } }))).toBe('{"a":1}');
    const steps: number[] = [];
    const options = { onprogress: ({ progress }: { progress: number }) => steps.push(progress) };
    expect(text(await client.callTool({ name: "progress", arguments: { steps: 4 } }, options))).toBe("done");
    expect(steps).toEqual([1, 2, 3, 4]);
    expect(text(await client.callTool({ name: "large", arguments: { size: 1_000_000 } }))).toHaveLength(1_000_000);
    expect((await client.readResource({ uri: "test://a" })).contents).toHaveLength(1);
    await expect(client.readResource({ uri: "none://a" })).rejects.toMatchObject({ code: -32602 });
    await client.close();
  });

  it("answers what a legacy server asks, in rounds, and never gets a request", async () => {
    const rig = await startRig();
    const client = await pinned(rig);
    const rounds = [[elicit, sample], [elicit]];
    const answers = JSON.parse(text(await client.callTool({ name: "rounds", arguments: { rounds } }))) as object[];
    expect(answers).toMatchObject([
      { action: "accept", content: { name: "modern" } },
      { role: "assistant", model: "m" },
      { action: "accept", content: { name: "modern" } },
    ]);
    await client.close();
  });

  it("cancels a call", async () => {
    const rig = await startRig();
    const client = await pinned(rig);
    const abort = new AbortController();
    const call = client.callTool({ name: "hold" }, { signal: abort.signal });
    await until(() => rig.service.held.length === 1);
    abort.abort("enough");
    await expect(call).rejects.toThrow();
    await until(() => rig.service.cancelled.length === 1);
    await client.close();
  });

  it("listens, hears of what it asked for, and learns of a graceful end", async () => {
    const rig = await startRig();
    const client = await pinned(rig);
    const heard: string[] = [];
    client.setNotificationHandler("notifications/tools/list_changed", () => void heard.push("tools"));
    client.setNotificationHandler("notifications/resources/updated", ({ params }) => void heard.push(params.uri));
    const filter = {
      toolsListChanged: true,
      promptsListChanged: true,
      resourceSubscriptions: ["test://a", "none://a"],
    };
    const open = await client.listen(filter);
    expect(open.honoredFilter).toEqual({ toolsListChanged: true, resourceSubscriptions: ["test://a"] });
    const other = await client.listen({ resourcesListChanged: true });
    rig.service.opened[0]?.notify(note("notifications/tools/list_changed"));
    rig.service.opened[0]?.notify(note("notifications/resources/updated", { uri: "test://a" }));
    await until(() => heard.length === 2);
    expect(heard).toEqual(["tools", "test://a"]);
    await other.close();
    await until(() => rig.endpoint.stats().streams === 1);
    void rig.endpoint.close({ drainMs: 1000 });
    expect(await open.closed).toBe("graceful");
    await client.close();
  });

  it("elicits beside a legacy client on the same endpoint, at the same time", async () => {
    const rig = await startRig();
    const modern = await pinned(rig);
    const legacy = new Client({ name: "v1", version: "1" }, { capabilities: { elicitation: {} } });
    legacy.setRequestHandler(ElicitRequestSchema, () => ({ action: "accept" as const, content: { name: "legacy" } }));
    await legacy.connect(new StreamableHTTPClientTransport(new URL(rig.url), { requestInit: AUTH }) as never);
    const params = { name: "rounds", arguments: { rounds: [[elicit], [elicit]] } };
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, n) => (n % 2 === 0 ? modern.callTool(params) : legacy.callTool(params))),
    );
    for (const [n, answer] of answers.entries()) {
      const name = n % 2 === 0 ? "modern" : "legacy";
      expect(JSON.parse(text(answer))).toMatchObject([{ content: { name } }, { content: { name } }]);
    }
    expect(new Set(rig.service.opened.map(({ era }) => era))).toEqual(new Set(["legacy", "modern"]));
    await Promise.all([modern.close(), legacy.close()]);
  });
});
