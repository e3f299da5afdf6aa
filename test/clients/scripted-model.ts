// The models behind the clients, as far as one tool call needs them: each client's own API over server-sent events. A
// request that offers the tool is answered with a call of it, one that has its result with the last words, any other
// (a title, a count of tokens) with a word.

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { closeHttp, listenOnLoopback } from "../fixtures/loopback.js";

/** The model's last words, for the test to look for in the client's output. */
export const FINAL_MESSAGE = "The tool has answered.";

export interface ScriptedModel {
  readonly origin: string;
  /** What was asked, for a test that fails. */
  readonly asked: readonly string[];
  close(): Promise<void>;
}

interface Script {
  /** What the tool's name ends with, whatever the client puts before it. */
  readonly tool: string;
  readonly args: object;
  /** A word that only the tool's result has. */
  readonly result: string;
}

interface Api {
  readonly path: RegExp;
  answer(body: string, script: Script): string;
}

type Turn = { readonly kind: "call"; readonly name: string } | { readonly kind: "say"; readonly text: string };

/** What the model does, from all that it is told. `offered` are the tools' names as the client has them. */
function turnFor(body: string, offered: readonly string[], { tool, result }: Script): Turn {
  const name = offered.find((one) => one.endsWith(tool));
  if (name === undefined) return { kind: "say", text: "Hello." };
  return body.includes(result) ? { kind: "say", text: FINAL_MESSAGE } : { kind: "call", name };
}

const event = (data: object, name?: string) =>
  `${name === undefined ? "" : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`;

/** Anthropic's messages. */
const messages: Api = {
  path: /\/v1\/messages(?:\?|$)/,
  answer(body, script) {
    const { tools = [], model = "" } = JSON.parse(body) as { tools?: { name: string }[]; model?: string };
    const turn = turnFor(
      body,
      tools.map(({ name }) => name),
      script,
    );
    const named = (data: { readonly type: string; readonly [key: string]: unknown }) => event(data, data.type);
    const isCall = turn.kind === "call";
    const usage = { input_tokens: 1, output_tokens: 1 };
    const start = { id: "msg_1", type: "message", role: "assistant", model, content: [], stop_reason: null, usage };
    return [
      { type: "message_start", message: { ...start, stop_sequence: null } },
      {
        type: "content_block_start",
        index: 0,
        content_block: isCall
          ? { type: "tool_use", id: "toolu_1", name: turn.name, input: {} }
          : { type: "text", text: "" },
      },
      {
        type: "content_block_delta",
        index: 0,
        delta: isCall
          ? { type: "input_json_delta", partial_json: JSON.stringify(script.args) }
          : { type: "text_delta", text: turn.text },
      },
      { type: "content_block_stop", index: 0 },
      {
        type: "message_delta",
        delta: { stop_reason: isCall ? "tool_use" : "end_turn", stop_sequence: null },
        usage: { output_tokens: 1 },
      },
      { type: "message_stop" },
    ]
      .map(named)
      .join("");
  },
};

/** Gemini's contents. */
const contents: Api = {
  path: /:(?:stream)?[gG]enerateContent/,
  answer(body, script) {
    const { tools = [] } = JSON.parse(body) as { tools?: { functionDeclarations?: { name: string }[] }[] };
    const offered = tools.flatMap(({ functionDeclarations = [] }) => functionDeclarations.map(({ name }) => name));
    const turn = turnFor(body, offered, script);
    const part = turn.kind === "call" ? { functionCall: { name: turn.name, args: script.args } } : { text: turn.text };
    const usageMetadata = { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 };
    const candidate = { content: { role: "model", parts: [part] }, finishReason: "STOP", index: 0 };
    return event({ candidates: [candidate], usageMetadata });
  },
};

/** The chat completions that many providers have. */
const completions: Api = {
  path: /\/chat\/completions/,
  answer(body, script) {
    const { tools = [], model = "" } = JSON.parse(body) as {
      tools?: { function?: { name: string } }[];
      model?: string;
    };
    const turn = turnFor(
      body,
      tools.map((one) => one.function?.name ?? ""),
      script,
    );
    const called = (name: string) => ({
      tool_calls: [
        { index: 0, id: "call_1", type: "function", function: { name, arguments: JSON.stringify(script.args) } },
      ],
    });
    const delta = turn.kind === "call" ? called(turn.name) : { content: turn.text };
    const chunk = (more: object) => event({ id: "c1", object: "chat.completion.chunk", created: 1, model, ...more });
    const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
    return [
      chunk({ choices: [{ index: 0, delta: { role: "assistant", ...delta }, finish_reason: null }] }),
      chunk({
        choices: [{ index: 0, delta: {}, finish_reason: turn.kind === "call" ? "tool_calls" : "stop" }],
        usage,
      }),
      "data: [DONE]\n\n",
    ].join("");
  },
};

/** OpenAI's responses: a server's tools are a namespace, or flat under one long name. */
const responses: Api = {
  path: /\/responses(?:\?|$)/,
  answer(body, script) {
    const { tools = [] } = JSON.parse(body) as {
      tools?: { type: string; name?: string; tools?: { name?: string }[] }[];
    };
    const inSpaces = tools.flatMap((space) =>
      (space.tools ?? []).map(({ name = "" }) => ({ name, space: space.name })),
    );
    const flat = tools.map(({ name = "" }) => name);
    const turn = turnFor(body, [...inSpaces.map(({ name }) => name), ...flat], script);
    const args = JSON.stringify(script.args);
    const namespace = turn.kind === "call" ? inSpaces.find(({ name }) => name === turn.name)?.space : undefined;
    const item =
      turn.kind === "call"
        ? {
            type: "function_call",
            id: "fc_1",
            call_id: "call_1",
            name: turn.name,
            arguments: args,
            ...(namespace === undefined ? {} : { namespace }),
          }
        : {
            type: "message",
            id: "msg_1",
            role: "assistant",
            status: "completed",
            content: [{ type: "output_text", text: turn.text, annotations: [] }],
          };
    const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 };
    return [
      { type: "response.created", response: { id: "resp_1", object: "response", status: "in_progress" } },
      { type: "response.output_item.added", output_index: 0, item },
      { type: "response.output_item.done", output_index: 0, item },
      {
        type: "response.completed",
        response: { id: "resp_1", object: "response", status: "completed", output: [item], usage },
      },
    ]
      .map((data) => event(data, data.type))
      .join("");
  },
};

const APIS = [messages, contents, completions, responses];

export async function startScriptedModel(script: Script): Promise<ScriptedModel> {
  const asked: string[] = [];
  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const { method, url = "" } = request;
    const api = method === "POST" ? APIS.find(({ path }) => path.test(url)) : undefined;
    asked.push(`${method} ${url}${api === undefined ? " (unknown)" : ""}`);
    if (api === undefined) {
      // A count of tokens, a look for updates, a list of models: clients go on without them.
      response.writeHead(404, { "content-type": "application/json" }).end("{}");
      return;
    }
    const text = api.answer(Buffer.concat(parts).toString(), script);
    response.writeHead(200, { "content-type": "text/event-stream" }).end(text);
  };
  const server = createServer((request, response) => void serve(request, response));
  const port = await listenOnLoopback(server);
  return { origin: `http://127.0.0.1:${port}`, asked, close: () => closeHttp(server) };
}
