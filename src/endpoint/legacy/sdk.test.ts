// The real SDK clients, both generations, against the endpoint alone.

import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from "@modelcontextprotocol/client";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import {
  CreateMessageRequestSchema,
  LoggingMessageNotificationSchema,
  ToolListChangedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { afterEach, describe, expect, it } from "vitest";
import { type Rig, startRig, stopRigs, until } from "../../../test/fixtures/endpoint/http.js";
import { note } from "../../../test/fixtures/endpoint/service.js";

afterEach(stopRigs);

const AUTH = { headers: { Authorization: "Bearer token-a" } };
const SAMPLED = { role: "assistant" as const, content: { type: "text" as const, text: "hi" }, model: "m" };

function text(result: unknown): string {
  return (result as { content: { text: string }[] }).content[0]?.text ?? "";
}

/** A fetch whose POSTs can be broken off, as a bad line would. */
class BadLine {
  requests = 0;
  #posts: AbortController[] = [];

  readonly fetch = (input: string | URL, init: RequestInit = {}): Promise<Response> => {
    this.requests++;
    if (init.method !== "POST") return fetch(input, init);
    const abort = new AbortController();
    this.#posts.push(abort);
    const signal = init.signal ? AbortSignal.any([init.signal, abort.signal]) : abort.signal;
    return fetch(input, { ...init, signal });
  };

  cut(): void {
    for (const post of this.#posts.splice(0)) post.abort();
  }
}

async function v1(
  rig: Rig,
  line = new BadLine(),
): Promise<{ client: Client; transport: StreamableHTTPClientTransport }> {
  const client = new Client({ name: "v1", version: "1" }, { capabilities: { sampling: {} } });
  client.setRequestHandler(CreateMessageRequestSchema, () => SAMPLED);
  const transport = new StreamableHTTPClientTransport(new URL(rig.url), { requestInit: AUTH, fetch: line.fetch });
  // The SDK's own types do not fit each other under exactOptionalPropertyTypes.
  await client.connect(transport as never);
  return { client, transport };
}

describe("SDK v1", () => {
  it("lists, calls, follows progress, answers sampling, hears list_changed and says goodbye", async () => {
    const rig = await startRig();
    const { client, transport } = await v1(rig);
    let changed = 0;
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => {
      changed++;
    });
    expect((await client.listTools()).tools.map((tool) => tool.name)).toContain("echo");
    expect(text(await client.callTool({ name: "echo", arguments: { a: 1 } }))).toBe('{"a":1}');
    const steps: number[] = [];
    const options = { onprogress: ({ progress }: { progress: number }) => steps.push(progress) };
    expect(text(await client.callTool({ name: "progress", arguments: { steps: 5 } }, undefined, options))).toBe("done");
    expect(steps).toEqual([1, 2, 3, 4, 5]);
    expect(JSON.parse(text(await client.callTool({ name: "sampling" })))).toMatchObject({ model: "m" });
    expect(text(await client.callTool({ name: "large", arguments: { size: 1_000_000 } }))).toHaveLength(1_000_000);
    rig.service.opened[0]?.notify(note("notifications/tools/list_changed"));
    await until(() => changed === 1);
    await transport.terminateSession();
    await client.close();
    await until(() => rig.service.closed.length === 1);
  });

  it("cancels a call", async () => {
    const rig = await startRig();
    const { client } = await v1(rig);
    const abort = new AbortController();
    const call = client.callTool({ name: "hold" }, undefined, { signal: abort.signal });
    await until(() => rig.service.held.length === 1);
    abort.abort("enough");
    await expect(call).rejects.toThrow();
    await until(() => rig.service.cancelled.length === 1);
    expect(text(await client.callTool({ name: "echo" }))).toBe("{}");
    await client.close();
  });

  it("gets its reply although the connection broke, and does not come back for more", async () => {
    const rig = await startRig();
    const line = new BadLine();
    const { client } = await v1(rig, line);
    const heard: unknown[] = [];
    client.setNotificationHandler(LoggingMessageNotificationSchema, (message) => {
      heard.push(message);
    });
    for (const outcome of ["result", "error"] as const) {
      const call = client.callTool({ name: "hold" });
      await until(() => rig.service.held.length === 1);
      const held = rig.service.held.pop();
      held?.caller.notify(note("notifications/message", { level: "info", data: "x" }));
      await until(() => heard.length === 1);
      heard.pop();
      line.cut();
      await until(() => rig.endpoint.stats().streams === 1);
      if (outcome === "result") {
        held?.reply({ kind: "result", result: { content: [{ type: "text", text: "late" }] } });
        expect(text(await call)).toBe("late");
      } else {
        held?.reply({ kind: "error", error: { code: 7, message: "late error" } });
        await expect(call).rejects.toThrow("late error");
      }
    }
    await until(() => rig.endpoint.stats().streams === 1);
    const before = line.requests;
    await new Promise((resolve) => setTimeout(resolve, 2500));
    expect(line.requests - before).toBeLessThanOrEqual(2);
    await client.close();
  });

  it("goes on with its session after a restart [restart-unseen]", async () => {
    const rig = await startRig();
    const { client } = await v1(rig);
    expect(text(await client.callTool({ name: "echo" }))).toBe("{}");
    await rig.endpoint.close({ drainMs: 0 });
    // The client's pool needs a moment to see that its connections are gone.
    await new Promise((resolve) => setTimeout(resolve, 200));
    const again = await startRig({ sealer: rig.sealer, port: rig.port });
    expect(text(await client.callTool({ name: "echo", arguments: { again: 1 } }))).toBe('{"again":1}');
    expect(again.service.opened).toHaveLength(1);
    await client.close();
  });

  it("speaks the old HTTP+SSE", async () => {
    const rig = await startRig();
    const client = new Client({ name: "old", version: "1" }, { capabilities: { sampling: {} } });
    client.setRequestHandler(CreateMessageRequestSchema, () => SAMPLED);
    const url = new URL(rig.url.replace("/mcp", "/sse"));
    const transport = new SSEClientTransport(url, { requestInit: AUTH });
    await client.connect(transport as never);
    expect(text(await client.callTool({ name: "echo", arguments: { old: 1 } }))).toBe('{"old":1}');
    expect(JSON.parse(text(await client.callTool({ name: "sampling" })))).toMatchObject({ model: "m" });
    await client.close();
    await until(() => rig.service.closed.length === 1);
  });
});

describe("SDK v2", () => {
  it.each(["legacy", "auto"] as const)("connects in mode %s, calls and says goodbye", async (mode) => {
    const rig = await startRig();
    const client = new ClientV2({ name: "v2", version: "1" }, { versionNegotiation: { mode } });
    const transport = new TransportV2(new URL(rig.url), { requestInit: AUTH });
    await client.connect(transport);
    expect((await client.listTools()).tools).toHaveLength(9);
    expect(text(await client.callTool({ name: "echo", arguments: { b: 2 } }))).toBe('{"b":2}');
    const steps: number[] = [];
    const options = { onprogress: ({ progress }: { progress: number }) => steps.push(progress) };
    expect(text(await client.callTool({ name: "progress" }, options))).toBe("done");
    expect(steps).toEqual([1, 2, 3]);
    await transport.terminateSession();
    await client.close();
    // Only a legacy client has a session to end.
    if (mode === "legacy") await until(() => rig.service.closed.length === 1);
    expect(rig.service.opened[0]?.era).toBe(mode === "legacy" ? "legacy" : "modern");
  });
});
