// A small MCP server on stdio, so that a fresh gateway has something to call: no network, no state, no dependency.
// Written by hand and on its own: it shows how little a server needs, and imports nothing of the gateway.

import { createInterface } from "node:readline";

type Json = Record<string, unknown>;
type Id = string | number;

interface Tool {
  readonly description: string;
  readonly inputSchema: Json;
  readonly annotations: Json;
  readonly outputSchema?: Json;
  call(args: Json, progress: (done: number, total: number) => void, signal: AbortSignal): Promise<Json>;
}

/** Old to new; the last is offered to a client that asks for one that we do not know. */
const VERSIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/** Long enough to see a deadline or a cancel at work, short enough not to be forgotten. */
const MAX_WAIT_SECONDS = 600;

const READ_ONLY = { readOnlyHint: true, idempotentHint: true, openWorldHint: false };

class BadParams extends Error {}

const text = (value: string): Json => ({ content: [{ type: "text", text: value }] });

function numberOf(args: Json, key: string): number {
  const value = args[key];
  if (typeof value !== "number" || !Number.isFinite(value)) throw new BadParams(`"${key}" must be a number.`);
  return value;
}

const tools: Readonly<Record<string, Tool>> = {
  echo: {
    description: "Gives back the text that it gets.",
    inputSchema: {
      type: "object",
      properties: { text: { type: "string", description: "What to give back." } },
      required: ["text"],
    },
    annotations: READ_ONLY,
    call: async (args) => {
      if (typeof args["text"] !== "string") throw new BadParams('"text" must be a string.');
      return text(args["text"]);
    },
  },
  add: {
    description: "Adds two numbers.",
    inputSchema: {
      type: "object",
      properties: { a: { type: "number" }, b: { type: "number" } },
      required: ["a", "b"],
    },
    outputSchema: { type: "object", properties: { sum: { type: "number" } }, required: ["sum"] },
    annotations: READ_ONLY,
    call: async (args) => {
      const sum = numberOf(args, "a") + numberOf(args, "b");
      return { ...text(String(sum)), structuredContent: { sum } };
    },
  },
  now: {
    description: "Tells the time, in UTC or in a time zone such as Europe/Berlin.",
    inputSchema: { type: "object", properties: { timeZone: { type: "string", description: "An IANA name." } } },
    annotations: { ...READ_ONLY, idempotentHint: false },
    call: async (args) => {
      const now = new Date();
      const zone = args["timeZone"];
      if (zone === undefined) return text(now.toISOString());
      try {
        return text(now.toLocaleString("sv-SE", { timeZone: String(zone), timeZoneName: "longOffset" }));
      } catch {
        return { ...text(`There is no time zone ${JSON.stringify(zone)}.`), isError: true };
      }
    },
  },
  wait: {
    description: "Waits, and tells how far it is: for trying progress, deadlines and cancelling.",
    inputSchema: {
      type: "object",
      properties: { seconds: { type: "number", minimum: 0, maximum: MAX_WAIT_SECONDS, default: 3 } },
    },
    annotations: READ_ONLY,
    call: async (args, progress, signal) => {
      const seconds = args["seconds"] === undefined ? 3 : numberOf(args, "seconds");
      if (seconds < 0 || seconds > MAX_WAIT_SECONDS) throw new BadParams(`"seconds" is 0 to ${MAX_WAIT_SECONDS}.`);
      const stepMs = Math.min(1000, (seconds * 1000) / 3);
      const until = Date.now() + seconds * 1000;
      for (;;) {
        const left = until - Date.now();
        if (left <= 0 || signal.aborted) break;
        await sleep(Math.min(stepMs, left), signal);
        progress(Math.min(seconds, seconds - (until - Date.now()) / 1000), seconds);
      }
      return text(`Waited ${seconds} s.`);
    },
  },
};

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((done) => {
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      done();
    });
  });
}

const ABOUT = "demo://about";

const ABOUT_TEXT = `# The demo server of Toolway

It is here so that there is something to call before you have configured anything:

- \`echo\` gives back a text, \`add\` adds two numbers, \`now\` tells the time;
- \`wait\` takes a while and reports progress: cancel it, or let it run into a deadline;
- this page is a resource, and \`explain-a-tool\` is a prompt.

Put servers of your own into toolway.json, or take those of your clients: \`toolway import --write\`.
`;

const prompt = {
  name: "explain-a-tool",
  description: "Asks for an explanation of one of the tools.",
  arguments: [{ name: "tool", description: "The tool's name.", required: true }],
};

function send(message: Json): void {
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
}

/** Calls in flight, for cancelling. */
const running = new Map<Id, AbortController>();

const methods: Readonly<Record<string, (params: Json, id: Id) => Json | Promise<Json | undefined>>> = {
  initialize: (params) => ({
    protocolVersion: VERSIONS.find((version) => version === params["protocolVersion"]) ?? VERSIONS.at(-1),
    capabilities: { tools: {}, resources: {}, prompts: {}, completions: {} },
    serverInfo: { name: "toolway-demo", title: "Toolway demo", version: "1.0.0" },
    instructions: "Small tools to try a gateway with: echo, add, now, wait.",
  }),
  ping: () => ({}),
  "tools/list": () => ({
    tools: Object.entries(tools).map(([name, { call, ...definition }]) => ({ name, ...definition })),
  }),
  "tools/call": callTool,
  "resources/list": () => ({
    resources: [{ uri: ABOUT, name: "about", description: "What this server is for.", mimeType: "text/markdown" }],
  }),
  "resources/templates/list": () => ({ resourceTemplates: [] }),
  "resources/read": (params) => {
    if (params["uri"] !== ABOUT) throw new BadParams(`There is no resource ${JSON.stringify(params["uri"])}.`);
    return { contents: [{ uri: ABOUT, mimeType: "text/markdown", text: ABOUT_TEXT }] };
  },
  "prompts/list": () => ({ prompts: [prompt] }),
  "prompts/get": (params) => {
    if (params["name"] !== prompt.name) throw new BadParams(`There is no prompt ${JSON.stringify(params["name"])}.`);
    const tool = objectOf(params["arguments"])["tool"];
    if (typeof tool !== "string") throw new BadParams('The prompt needs the argument "tool".');
    const ask = `Explain what the tool "${tool}" does, and show one call of it with its result.`;
    return { description: prompt.description, messages: [{ role: "user", content: { type: "text", text: ask } }] };
  },
  "completion/complete": (params) => {
    const typed = String(objectOf(params["argument"])["value"] ?? "");
    const values = Object.keys(tools).filter((name) => name.startsWith(typed));
    return { completion: { values, total: values.length, hasMore: false } };
  },
};

async function callTool(params: Json, id: Id): Promise<Json | undefined> {
  const name = params["name"];
  const tool = typeof name === "string" && Object.hasOwn(tools, name) ? tools[name] : undefined;
  if (tool === undefined) throw new BadParams(`There is no tool ${JSON.stringify(name)}.`);
  const token = objectOf(params["_meta"])["progressToken"];
  const progress = (done: number, total: number): void => {
    if (token === undefined) return;
    const message = `${done.toFixed(1)} of ${total} s`;
    send({ method: "notifications/progress", params: { progressToken: token, progress: done, total, message } });
  };
  const cancelled = new AbortController();
  running.set(id, cancelled);
  try {
    const result = await tool.call(objectOf(params["arguments"]), progress, cancelled.signal);
    // Whoever cancelled does not wait for an answer.
    return cancelled.signal.aborted ? undefined : result;
  } finally {
    running.delete(id);
  }
}

function objectOf(value: unknown): Json {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Json) : {};
}

async function receive(line: string): Promise<void> {
  let message: Json;
  try {
    message = objectOf(JSON.parse(line));
  } catch {
    send({ id: null, error: { code: -32700, message: "Not JSON." } });
    return;
  }
  const { id, method } = message;
  const params = objectOf(message["params"]);
  if (method === "notifications/cancelled") running.get(params["requestId"] as Id)?.abort();
  if (typeof method !== "string" || (typeof id !== "string" && typeof id !== "number")) return;
  try {
    const handler = Object.hasOwn(methods, method) ? methods[method] : undefined;
    if (handler === undefined) {
      send({ id, error: { code: -32601, message: `There is no method ${method}.` } });
      return;
    }
    const result = await handler(params, id);
    if (result !== undefined) send({ id, result });
  } catch (error) {
    const code = error instanceof BadParams ? -32602 : -32603;
    send({ id, error: { code, message: error instanceof Error ? error.message : String(error) } });
  }
}

// Without its client it has nothing to do; calls in flight end with it.
createInterface({ input: process.stdin })
  .on("line", (line) => {
    if (line.trim() !== "") void receive(line);
  })
  .on("close", () => process.exit(0));
