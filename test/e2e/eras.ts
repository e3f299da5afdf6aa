// Agents of both eras behind one interface, and raw modern requests: SDK v1 for the legacy era, SDK v2 pinned to
// 2026-07-28 for the modern one. They know nothing of what is tested.

import { Client as ClientV2, StreamableHTTPClientTransport as HttpV2 } from "@modelcontextprotocol/client";
import { StdioClientTransport as StdioV2 } from "@modelcontextprotocol/client/stdio";
import { Client as ClientV1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as StdioV1 } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport as HttpV1 } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport as TransportV1 } from "@modelcontextprotocol/sdk/shared/transport.js";
import {
  CreateMessageRequestSchema,
  ElicitationCompleteNotificationSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
  LoggingMessageNotificationSchema,
  PromptListChangedNotificationSchema,
  ResourceListChangedNotificationSchema,
  ResourceUpdatedNotificationSchema,
  ToolListChangedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { hearInTurn } from "../fixtures/in-turn.js";
import { track } from "./clients.js";
import { cli, type Gateway, type ServerEntry, startHttpFixture, stdioFixture, until } from "./harness.js";
import { post, type WireAnswer } from "./wire.js";

export type Era = "legacy" | "modern";
export const ERAS: readonly Era[] = ["legacy", "modern"];
export const REVISION = "2026-07-28";
const LOG_LEVEL = "io.modelcontextprotocol/logLevel";

export interface ToolResult {
  readonly content: readonly { readonly type: string; readonly text?: string }[];
  readonly isError?: boolean;
  readonly [key: string]: unknown;
}

export interface CallOptions {
  readonly signal?: AbortSignal;
  readonly onprogress?: (progress: { progress: number; message?: string | undefined }) => void;
  /** The modern era's way to ask for log messages. */
  readonly logLevel?: string;
}

/** What reached the agent besides answers. */
export interface Heard {
  readonly method: string;
  readonly params: Record<string, unknown>;
}

export interface Agent {
  readonly era: Era;
  readonly client: ClientV1 | ClientV2;
  /** The servers' questions, in order. */
  readonly asked: Heard[];
  readonly notified: Heard[];
  call(name: string, args?: Record<string, unknown>, options?: CallOptions): Promise<ToolResult>;
  text(name: string, args?: Record<string, unknown>, options?: CallOptions): Promise<string>;
  names(): Promise<string[]>;
  /** Resolves when the tools are there: ready means that the endpoint answers. */
  waitFor(...names: string[]): Promise<void>;
  /** Hears of changes from here on, in its era's way. */
  listen(what: Listening): Promise<{ close(): Promise<void> }>;
}

export interface Listening {
  readonly lists?: boolean;
  readonly uris?: readonly string[];
}

export interface AgentOptions {
  readonly name?: string;
  readonly capabilities?: Record<string, object>;
  readonly token?: string;
  /** An elicitation is answered with an error that says this. */
  readonly elicitFails?: string;
  /** In place of the global one: which gateway a request goes to, say. */
  readonly fetch?: typeof fetch;
  /** `toolway stdio` instead of the gateway's URL. */
  readonly stdio?: boolean;
}

const ASKABLE = { sampling: {}, elicitation: { form: {}, url: {} }, roots: {} };

/** Each answer names the agent, so that a test can tell whom a server reached. */
function answers(name: string, asked: Heard[], elicitFails: string | undefined) {
  const hear = (method: string, params: unknown = {}) => {
    asked.push({ method, params: params as Record<string, unknown> });
  };
  return {
    elicit(params: { message: string; mode?: string | undefined }) {
      hear("elicitation/create", params);
      if (elicitFails !== undefined) throw new Error(elicitFails);
      const accepted = { action: "accept" as const };
      return params.mode === "url" ? accepted : { ...accepted, content: { answer: `${name}: ${params.message}` } };
    },
    sample(params: unknown) {
      hear("sampling/createMessage", params);
      const content = { type: "text" as const, text: `${name} samples` };
      return { role: "assistant" as const, model: "test", content };
    },
    roots() {
      hear("roots/list");
      return { roots: [{ uri: `file:///${name}`, name }] };
    },
  };
}

export async function connect(era: Era, target: Gateway | string, options: AgentOptions = {}): Promise<Agent> {
  const { name = era, capabilities = ASKABLE } = options;
  const asked: Heard[] = [];
  const notified: Heard[] = [];
  const answer = answers(name, asked, options.elicitFails);
  const hear = ({ method, params = {} }: { method: string; params?: unknown }) => {
    notified.push({ method, params: params as Record<string, unknown> });
  };
  return era === "legacy" ? legacyAgent() : modernAgent();

  async function legacyAgent(): Promise<Agent> {
    const client = track(new ClientV1({ name, version: "1.0.0" }, { capabilities }));
    if ("elicitation" in capabilities) {
      client.setRequestHandler(ElicitRequestSchema, ({ params }) => answer.elicit(params));
    }
    if ("sampling" in capabilities) {
      client.setRequestHandler(CreateMessageRequestSchema, ({ params }) => answer.sample(params));
    }
    if ("roots" in capabilities) client.setRequestHandler(ListRootsRequestSchema, () => answer.roots());
    client.setNotificationHandler(ElicitationCompleteNotificationSchema, hear);
    client.setNotificationHandler(LoggingMessageNotificationSchema, hear);
    client.setNotificationHandler(ToolListChangedNotificationSchema, hear);
    client.setNotificationHandler(PromptListChangedNotificationSchema, hear);
    client.setNotificationHandler(ResourceListChangedNotificationSchema, hear);
    client.setNotificationHandler(ResourceUpdatedNotificationSchema, hear);
    // The SDK's own types disagree with exactOptionalPropertyTypes.
    const transport = options.stdio ? new StdioV1(stdioCommand()) : new HttpV1(new URL(urlOf(target)), headers());
    await client.connect(transport as TransportV1);
    hearInTurn(transport);
    return agent(
      client,
      (params, more) =>
        client.callTool(params as { name: string }, undefined, more as { signal?: AbortSignal }) as Promise<ToolResult>,
      async ({ uris = [] }) => {
        for (const uri of uris) await client.subscribeResource({ uri });
        return {
          async close() {
            for (const uri of uris) await client.unsubscribeResource({ uri });
          },
        };
      },
    );
  }

  async function modernAgent(): Promise<Agent> {
    const versionNegotiation = { mode: { pin: REVISION } };
    const client = track(new ClientV2({ name, version: "1.0.0" }, { capabilities, versionNegotiation }));
    if ("elicitation" in capabilities) {
      client.setRequestHandler("elicitation/create", ({ params }) => answer.elicit(params));
    }
    if ("sampling" in capabilities) {
      client.setRequestHandler("sampling/createMessage", ({ params }) => answer.sample(params));
    }
    if ("roots" in capabilities) client.setRequestHandler("roots/list", () => answer.roots());
    client.setNotificationHandler("notifications/message", hear);
    client.setNotificationHandler("notifications/tools/list_changed", hear);
    client.setNotificationHandler("notifications/prompts/list_changed", hear);
    client.setNotificationHandler("notifications/resources/list_changed", hear);
    client.setNotificationHandler("notifications/resources/updated", hear);
    await client.connect(options.stdio ? new StdioV2(stdioCommand()) : new HttpV2(new URL(urlOf(target)), headers()));
    hearInTurn(client.transport);
    return agent(
      client,
      (params, more) => client.callTool(params as { name: string }, more as { signal?: AbortSignal }),
      async ({ lists = false, uris = [] }) =>
        await client.listen({
          ...(lists ? { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true } : {}),
          ...(uris.length > 0 ? { resourceSubscriptions: [...uris] } : {}),
        }),
    );
  }

  function agent(
    client: ClientV1 | ClientV2,
    callTool: (params: object, options: object) => Promise<unknown>,
    listen: Agent["listen"],
  ): Agent {
    const call: Agent["call"] = async (tool, args = {}, { logLevel, ...more } = {}) => {
      const meta = logLevel === undefined ? {} : { _meta: { [LOG_LEVEL]: logLevel } };
      return (await callTool({ name: tool, arguments: args, ...meta }, more)) as ToolResult;
    };
    const names = async () => (await client.listTools()).tools.map((tool) => tool.name);
    return {
      era,
      client,
      asked,
      notified,
      call,
      text: async (...all) => (await call(...all)).content[0]?.text ?? "",
      names,
      async waitFor(...wanted) {
        await until(`the tools ${wanted.join(", ")}`, async () => {
          const there = new Set(await names());
          return wanted.every((one) => there.has(one));
        });
      },
      listen,
    };
  }

  function headers() {
    const { token, fetch } = options;
    const requestInit = token === undefined ? {} : { requestInit: { headers: { authorization: `Bearer ${token}` } } };
    return fetch === undefined ? requestInit : { ...requestInit, fetch };
  }

  function stdioCommand() {
    const { configPath, stateDir } = target as Gateway;
    return {
      command: process.execPath,
      args: [cli, "stdio", configPath, "--state", stateDir],
      stderr: "pipe" as const,
    };
  }
}

function urlOf(target: Gateway | string): string {
  return typeof target === "string" ? target : target.url;
}

/**
 * Waits until the gateway listens to the fixture `cached`: what it kept before may be out of date, and is dropped then. A
 * subscription is answered only once the server has acknowledged that it is listened to.
 */
export async function listensToCached(target: Gateway | string, options: AgentOptions = {}): Promise<void> {
  const agent = await connect("legacy", target, options);
  await agent.waitFor("stamp");
  await agent.listen({ uris: ["cached://a"] });
}

/** The same fixture four times: each era over HTTP and stdio, as `legacy_http`, `modern_stdio` and so on. */
export async function fourServers(
  fixture: string,
  more: object = {},
  argsOf: (server: string) => readonly string[] = () => [],
): Promise<Record<string, ServerEntry>> {
  const servers: Record<string, ServerEntry> = {};
  for (const era of ERAS) {
    const args = (kind: string) => ["--era", era, ...argsOf(`${era}_${kind}`)];
    const { entry } = await startHttpFixture(fixture, args("http"));
    servers[`${era}_http`] = { ...entry, ...more };
    servers[`${era}_stdio`] = stdioFixture(fixture, args("stdio"), more);
  }
  return servers;
}

export const SERVERS = ["legacy_http", "legacy_stdio", "modern_http", "modern_stdio"] as const;

/** Agent's era × server: every case of a table. */
export const COMBINATIONS = ERAS.flatMap((era) => SERVERS.map((server) => ({ era, server })));

export interface ModernRequest {
  readonly method: string;
  readonly params?: Record<string, unknown>;
  readonly id?: unknown;
  readonly meta?: Record<string, unknown>;
  readonly capabilities?: object;
  readonly headers?: Record<string, string>;
}

/** One modern request as it goes over the wire; `headers` go before those that belong to it. */
export function modernRequest(request: ModernRequest): { text: string; headers: Record<string, string> } {
  const { method, params = {}, id = 1, meta = {}, capabilities = ASKABLE } = request;
  const name = params["name"] ?? params["uri"];
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": REVISION,
    "io.modelcontextprotocol/clientInfo": { name: "wire", version: "1" },
    "io.modelcontextprotocol/clientCapabilities": capabilities,
    ...meta,
  };
  const headers = {
    "mcp-protocol-version": REVISION,
    "mcp-method": method,
    ...(typeof name === "string" ? { "mcp-name": name } : {}),
    ...request.headers,
  };
  return { text: JSON.stringify({ jsonrpc: "2.0", id, method, params: { ...params, _meta } }), headers };
}

export interface Reply {
  readonly id?: unknown;
  readonly result?: Record<string, unknown>;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

/** Sends one modern request and resolves with the last of its messages, parsed. */
export async function send(url: string, request: ModernRequest): Promise<WireAnswer & { readonly reply: Reply }> {
  const { text, headers } = modernRequest(request);
  const answer = await post(url, text, headers);
  return { ...answer, reply: JSON.parse(answer.messages.at(-1) ?? "{}") as Reply };
}
