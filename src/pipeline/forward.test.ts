import { describe, expect, it } from "vitest";
import { ownName, ownToolName } from "../contracts/names.js";
import type { AgentCall } from "../contracts/service.js";
import { parseMessage, type RequestMessage } from "../protocol/message.js";
import { type Destination, Forward } from "./forward.js";

describe("a request on its way to a server", () => {
  const NAMED: [method: string, params: object, to: Pick<Destination, "subject" | "tool" | "named">][] = [
    [
      "tools/call",
      { name: "docs__read", arguments: { name: "docs__read" } },
      {
        tool: ownToolName("read"),
        subject: ownToolName("read"),
        named: { path: ["params", "name"], own: ownToolName("read") },
      },
    ],
    [
      "tasks/get",
      { taskId: "docs.7", x: [1] },
      { tool: undefined, subject: undefined, named: { path: ["params", "taskId"], own: ownName("7") } },
    ],
    [
      "resources/read",
      { uri: "file:///a" },
      { tool: undefined, subject: ownName("file:///a"), named: { path: ["params", "uri"], own: undefined } },
    ],
    [
      "completion/complete",
      { ref: { type: "ref/prompt", name: "docs__plan" }, argument: { name: "a", value: "b" } },
      { tool: undefined, subject: ownName("plan"), named: { path: ["params", "ref", "name"], own: ownName("plan") } },
    ],
    ["ping", {}, { tool: undefined, subject: undefined, named: undefined }],
  ];

  it.each(NAMED)("has the params that its text has, the server's own name among them: %s", (method, params, to) => {
    const message = parseMessage(JSON.stringify({ jsonrpc: "2.0", id: 1, method, params })) as RequestMessage;
    const call = { message } as unknown as AgentCall;
    const judge = { refusal: () => undefined, refund: () => {} };
    const forward = new Forward(call, { server: "docs", ...to }, judge, undefined);
    expect(forward.params).toEqual(JSON.parse(forward.render(9)).params);
    // What the agent gave is as it was.
    expect(message.params).toEqual(params);
  });
});
