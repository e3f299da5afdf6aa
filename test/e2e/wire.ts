// A client that shows the wire: what it sends and what it gets is text, over HTTP and over stdio.

import { type ChildProcess, spawn } from "node:child_process";
import { createParser } from "eventsource-parser";
import { afterAll } from "vitest";
import { cli } from "./harness.js";

/** From the end of its input to SIGKILL; that it ends by itself has a test of its own. */
const CLOSE_MS = 3_000;

export interface WireAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly type: "json" | "sse" | "none";
  /** Each message as it came. */
  readonly messages: readonly string[];
}

export interface Wire {
  /** Resolves when the answer to the request is complete. */
  send(text: string): Promise<WireAnswer>;
  close(): Promise<void>;
}

export const initialize = (id: string, version = "2025-11-25", capabilities = "{}"): string =>
  `{"jsonrpc":"2.0","id":${id},"method":"initialize","params":{"protocolVersion":"${version}",` +
  `"capabilities":${capabilities},"clientInfo":{"name":"wire","version":"1"}}}`;

export const INITIALIZED = '{"jsonrpc":"2.0","method":"notifications/initialized"}';

/** Progress tokens that a reader of JSON may write otherwise, or take for another: they must come back as they are. */
export const ODD_TOKENS: readonly string[] = [
  '"tok"',
  "12",
  "9007199254740993",
  "-9007199254740993",
  "123456789012345678901234567890",
  "-0",
  "0",
  "1e3",
  "1E400",
  "1.0",
  '"1.0"',
  '""',
  '"\\u0041\\/\\ud800 é\u2028"',
  `"${"long ".repeat(2_000)}"`,
];

/** The answer to a request is the last of its messages. */
export function lastOf(answer: WireAnswer): string {
  const last = answer.messages.at(-1);
  if (last === undefined) throw new Error(`No message, status ${answer.status}.`);
  return last;
}

export interface HttpWire extends Wire {
  readonly sessionId: string;
  readonly initialized: string;
  /** What each of its requests says of the session. */
  readonly headers: Readonly<Record<string, string>>;
  post(text: string, headers?: Record<string, string>): Promise<WireAnswer>;
}

/** Sends one POST; `headers` with an empty value are left out. */
export async function post(url: string, text: string, headers: Record<string, string> = {}): Promise<WireAnswer> {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json, text/event-stream", ...headers },
    body: text,
  });
  const body = await response.text();
  const contentType = response.headers.get("content-type") ?? "";
  const { status } = response;
  if (contentType.includes("text/event-stream")) {
    return { status, headers: response.headers, type: "sse", messages: eventsOf(body) };
  }
  const type = body === "" ? "none" : "json";
  return { status, headers: response.headers, type, messages: body === "" ? [] : [body] };
}

export function eventsOf(body: string): string[] {
  const messages: string[] = [];
  const parser = createParser({
    onEvent: ({ data }) => {
      if (data !== "") messages.push(data);
    },
  });
  parser.feed(body);
  return messages;
}

export async function openHttpWire(url: string, version = "2025-11-25", capabilities = "{}"): Promise<HttpWire> {
  const opened = await post(url, initialize("0", version, capabilities));
  const sessionId = opened.headers.get("mcp-session-id") ?? "";
  const headers = { "mcp-session-id": sessionId, "mcp-protocol-version": version };
  await post(url, INITIALIZED, headers);
  const send = (text: string, more: Record<string, string> = {}) => post(url, text, { ...headers, ...more });
  const wire = {
    sessionId,
    initialized: lastOf(opened),
    headers,
    send,
    post: send,
    async close() {
      await fetch(url, { method: "DELETE", headers });
    },
  };
  return wire;
}

const children = new Set<ChildProcess>();

afterAll(() => {
  for (const child of children) child.kill("SIGKILL");
});

/** `toolway stdio`, line by line; requests are told apart by their id, given as it stands in the text. */
export async function openStdioWire(target: {
  configPath: string;
  stateDir: string;
}): Promise<Wire & { readonly lines: readonly string[] }> {
  const args = [cli, "stdio", target.configPath, "--state", target.stateDir];
  const child = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "ignore"] });
  children.add(child);
  child.once("exit", () => children.delete(child));
  const lines: string[] = [];
  const waiting = new Map<string, (from: number) => void>();
  let rest = "";
  child.stdout.setEncoding("utf8");
  child.stdout.on("data", (chunk: string) => {
    // Only \n ends a line: U+2028 and the like are text.
    const parts = (rest + chunk).split("\n");
    rest = parts.pop() ?? "";
    for (const line of parts) {
      lines.push(line);
      const message = JSON.parse(line) as { id?: unknown; method?: unknown };
      if (message.id === undefined || message.method !== undefined) continue;
      const id = JSON.stringify(message.id);
      waiting.get(id)?.(lines.length);
      waiting.delete(id);
    }
  });
  child.stdin.on("error", () => {});
  const exited = new Promise((resolve) => child.on("exit", resolve));
  const send = async (text: string): Promise<WireAnswer> => {
    const from = lines.length;
    const { id, method } = JSON.parse(text) as { id?: unknown; method?: unknown };
    const answered =
      id === undefined || method === undefined
        ? Promise.resolve(from)
        : new Promise<number>((resolve) => waiting.set(JSON.stringify(id), resolve));
    child.stdin.write(`${text}\n`);
    const to = await answered;
    return { status: 200, headers: new Headers(), type: "json", messages: lines.slice(from, to) };
  };
  const wire = {
    lines,
    send,
    async close() {
      child.stdin.end();
      const timer = setTimeout(() => child.kill("SIGKILL"), CLOSE_MS);
      await exited;
      clearTimeout(timer);
    },
  };
  await send(initialize("0"));
  await send(INITIALIZED);
  return wire;
}
