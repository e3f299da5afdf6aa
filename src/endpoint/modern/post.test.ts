import type { IncomingMessage, ServerResponse } from "node:http";
import { expect, it } from "vitest";
import { parseMessage } from "../../protocol/message.js";
import type { AgentPost } from "../http/read-post.js";
import type { ModernEra } from "./era.js";
import { ModernPosts } from "./post.js";

it("makes no call for an agent that has gone while its body waited to be read [bounded]", () => {
  const served: string[] = [];
  const era = {
    serve: ({ message }: { message: { method: string } }) => void served.push(message.method),
  } as unknown as ModernEra;
  const http = { waiting: { now: () => 0, add: () => undefined } } as unknown as ConstructorParameters<
    typeof ModernPosts
  >[1];
  const posts = new ModernPosts(era, http, undefined);
  const version = "2026-07-28";
  const meta = {
    "io.modelcontextprotocol/protocolVersion": version,
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  const post = (isGone: boolean): AgentPost => ({
    req: { headers: { "mcp-protocol-version": version, "mcp-method": "tools/list" } } as unknown as IncomingMessage,
    res: { destroyed: isGone, on: () => undefined } as unknown as ServerResponse,
    principal: { id: "ann", role: "default" },
    scope: undefined,
    accepts: { json: true, events: true },
    isPassed: false,
  });
  const list = () =>
    parseMessage(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params: { _meta: meta } }));
  posts.message(post(true), list());
  expect(served).toEqual([]);
  posts.message(post(false), list());
  expect(served).toEqual(["tools/list"]);
});
