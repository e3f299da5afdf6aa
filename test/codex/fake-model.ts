// The model behind Codex, as far as one tool call needs it: the Responses API over SSE. The first turn calls the tool,
// the next one hears its result and says so.

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { closeHttp, listenOnLoopback } from "../fixtures/loopback.js";

/** The tool as its MCP server names it. */
export interface ToolCall {
  readonly server: string;
  readonly name: string;
  readonly arguments: object;
}

export interface FakeModel {
  /** What Codex takes as `base_url`. */
  readonly baseUrl: string;
  close(): Promise<void>;
}

/** The model's last words, for the test to look for in Codex's output. */
export const FINAL_MESSAGE = "The tool has answered.";

const CALL_ID = "call_1";

interface OfferedTool {
  readonly type: string;
  readonly name?: string;
}

interface ModelRequest {
  readonly input?: readonly { readonly type?: string; readonly call_id?: string }[];
  readonly tools?: readonly OfferedTool[];
}

export async function startFakeModel(tool: ToolCall): Promise<FakeModel> {
  const answer = (request: ModelRequest): object => {
    const output = request.input?.find((item) => item.type === "function_call_output" && item.call_id === CALL_ID);
    if (output !== undefined) {
      const content = [{ type: "output_text", text: FINAL_MESSAGE, annotations: [] }];
      return { type: "message", id: "msg_1", role: "assistant", status: "completed", content };
    }
    const args = JSON.stringify(tool.arguments);
    return { type: "function_call", id: "fc_1", call_id: CALL_ID, ...callName(request, tool), arguments: args };
  };

  const server = createServer((request, response) => void serve(request, response, answer));
  const port = await listenOnLoopback(server);
  return {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    close: () => closeHttp(server),
  };
}

async function serve(
  request: IncomingMessage,
  response: ServerResponse,
  answer: (request: ModelRequest) => object,
): Promise<void> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  if (request.method !== "POST" || !request.url?.endsWith("/responses")) {
    response.writeHead(404).end();
    return;
  }
  const body = Buffer.concat(parts).toString();
  const item = answer(JSON.parse(body) as ModelRequest);
  const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 };
  const whole = { id: "resp_1", object: "response", status: "completed", output: [item], usage };
  response.writeHead(200, { "content-type": "text/event-stream" });
  event(response, { type: "response.created", response: { id: "resp_1", object: "response", status: "in_progress" } });
  event(response, { type: "response.output_item.added", output_index: 0, item });
  event(response, { type: "response.output_item.done", output_index: 0, item });
  event(response, { type: "response.completed", response: whole });
  response.end();
}

function event(response: ServerResponse, data: { readonly type: string; readonly [member: string]: unknown }): void {
  response.write(`event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`);
}

/** Codex offers the tools of an MCP server as a namespace, or flat under one long name. */
function callName(request: ModelRequest, tool: ToolCall): { readonly name: string; readonly namespace?: string } {
  const namespace = request.tools?.find((one) => one.type === "namespace" && one.name?.includes(tool.server));
  if (namespace?.name !== undefined) return { name: tool.name, namespace: namespace.name };
  return { name: `mcp__${tool.server}__${tool.name}` };
}
