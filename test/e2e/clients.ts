// The clients of the e2e tests: SDK v1 and SDK v2 over HTTP and stdio behind one small interface, and a raw one that
// shows the bytes. They know nothing of what is tested.

import { Client as ClientV2, StreamableHTTPClientTransport as HttpV2 } from "@modelcontextprotocol/client";
import { StdioClientTransport as StdioV2 } from "@modelcontextprotocol/client/stdio";
import { Client as ClientV1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as StdioV1 } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport as HttpV1 } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport as TransportV1 } from "@modelcontextprotocol/sdk/shared/transport.js";
import { afterAll, afterEach } from "vitest";
import { hearInTurn } from "../fixtures/in-turn.js";
import { cli, until } from "./harness.js";

export type { ClientV1, ClientV2 };

const INFO = { name: "toolway-e2e", version: "1.0.0" };
const open: { close(): Promise<void> }[] = [];

const closeAll = () => Promise.allSettled(open.splice(0).map((client) => client.close()));

// Of tests that run side by side nobody knows whose a client is: theirs stay until all have ended.
afterEach(async ({ task }) => {
  if (task.concurrent !== true) await closeAll();
});
afterAll(async () => void (await closeAll()));

/** Closed after the test, also when it fails; after the file where its tests run side by side. */
export function track<T extends { close(): Promise<void> }>(client: T): T {
  open.push(client);
  return client;
}

type Capabilities = ConstructorParameters<typeof ClientV1>[1];

export async function connectV1(url: string, options: Capabilities = { capabilities: {} }): Promise<ClientV1> {
  const client = track(new ClientV1(INFO, options));
  // The SDK's own types disagree with exactOptionalPropertyTypes.
  await client.connect(new HttpV1(new URL(url)) as TransportV1);
  hearInTurn(client.transport);
  return client;
}

type OptionsV2 = ConstructorParameters<typeof ClientV2>[1];

export async function connectV2(url: string, options: OptionsV2 = { capabilities: {} }): Promise<ClientV2> {
  const client = track(new ClientV2(INFO, options));
  await client.connect(new HttpV2(new URL(url)));
  hearInTurn(client.transport);
  return client;
}

interface StdioTarget {
  readonly configPath: string;
  readonly stateDir: string;
}

function stdioCommand({ configPath, stateDir }: StdioTarget, more: readonly string[] = []) {
  const args = [cli, "stdio", configPath, "--state", stateDir, ...more];
  return { command: process.execPath, args, stderr: "pipe" as const };
}

/** `more`: options of `toolway stdio`. */
export async function connectStdioV1(
  target: StdioTarget,
  options: Capabilities = { capabilities: {} },
  more: readonly string[] = [],
) {
  const client = track(new ClientV1(INFO, options));
  await client.connect(new StdioV1(stdioCommand(target, more)));
  hearInTurn(client.transport);
  return client;
}

export async function connectStdioV2(target: StdioTarget, options: OptionsV2 = { capabilities: {} }) {
  const client = track(new ClientV2(INFO, options));
  await client.connect(new StdioV2(stdioCommand(target)));
  hearInTurn(client.transport);
  return client;
}

interface CanCall {
  callTool(params: { name: string; arguments?: Record<string, unknown> }): Promise<unknown>;
}

interface CanList {
  listTools(params?: { cursor?: string }): Promise<{ tools: { name: string }[]; nextCursor?: string | undefined }>;
}

/** The text of a tool's answer. */
export async function callText(client: CanCall, name: string, args: Record<string, unknown> = {}): Promise<string> {
  const result = (await client.callTool({ name, arguments: args })) as { content: { type: string; text?: string }[] };
  return result.content[0]?.text ?? "";
}

/** The fixtures answer JSON as text. */
export async function callJson<T>(client: CanCall, name: string, args: Record<string, unknown> = {}): Promise<T> {
  return JSON.parse(await callText(client, name, args)) as T;
}

export async function toolNames(client: CanList): Promise<string[]> {
  return (await client.listTools()).tools.map(({ name }) => name);
}

/** Ready means that the endpoint answers; the tools come when their servers do. */
export async function waitForTools(client: CanList, ...names: string[]): Promise<void> {
  await until(`the tools ${names.join(", ")}`, async () => {
    const there = new Set(await toolNames(client));
    return names.every((name) => there.has(name));
  });
}
