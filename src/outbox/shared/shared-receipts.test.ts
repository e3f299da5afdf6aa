// A receipt of a write that another gateway keeps: what an agent is told that subscribes to it here.

import { expect, it } from "vitest";
import type { Partitions } from "../../contracts/engine/partitions.js";
import type { Peers } from "../../contracts/engine/peers.js";
import { RECEIPT_URI } from "../../contracts/outbox.js";
import type { AgentCall } from "../../contracts/service.js";
import { Fault } from "../../protocol/errors.js";
import { parseMessage, type RequestMessage } from "../../protocol/message.js";
import type { Reply } from "../../protocol/reply.js";
import type { LocalReceiptHandler } from "../receipts.js";
import type { SharedOutbox } from "./shared-outbox.js";
import { SharedReceiptHandler } from "./shared-receipts.js";

it.each([
  ["where there is room is kept", "new", { kind: "result", result: {} }],
  [
    "where there is none is refused with the limit that was met, as it is at the owner",
    new Fault("limit", "No room."),
    { kind: "error", error: { code: -31_006, message: "No room." }, fault: { code: "limit" } },
  ],
] as const)("a subscription %s", async (_where, kept, told) => {
  const handler = new SharedReceiptHandler(
    {} as LocalReceiptHandler,
    {
      outbox: {
        at: () => undefined,
        pass: async ({ call }: { call: AgentCall }) => call.reply({ kind: "result", result: {} }),
      } as unknown as SharedOutbox,
      partitions: { count: 4 } as unknown as Partitions,
      peers: { answer: () => () => {} } as unknown as Peers,
      self: "a",
      movedTo: () => 1,
    },
    {
      hasOutbox: () => true,
      keyOf: ({ id }) => id,
      taskIds: { expose: () => "", open: () => undefined },
      subscribers: { subscribe: () => kept, unsubscribe: () => {}, updated: () => {} },
    },
  );
  const params = { uri: `${RECEIPT_URI}r1` };
  const text = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "resources/subscribe", params });
  const reply = new Promise<Reply>((resolve) => {
    const caller = { principal: { id: "anna", role: "default" }, sessionKey: "s", capabilities: {}, clientInfo: {} };
    const message = parseMessage(text) as RequestMessage;
    const call = { caller, message, scope: undefined, onCancel: undefined, reply: resolve } as unknown as AgentCall;
    expect(handler.handle(call)).toBe(true);
  });
  expect(await reply).toMatchObject(told);
});
