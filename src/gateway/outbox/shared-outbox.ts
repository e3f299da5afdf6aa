// Puts together the outbox that this gateway shares with others on one engine. Loaded only where the config has an engine.

import type { GatewayEngine } from "../../contracts/engine/engine.js";
import type { OutboxLimits } from "../../contracts/outbox.js";
import type { AgentCall } from "../../contracts/service.js";
import { MAX_SHARED_RESULT_BYTES } from "../../outbox/lanes/limits.js";
import type { OutboxParts } from "../../outbox/parts.js";
import type { LocalReceiptHandler, ReceiptHandlerOptions } from "../../outbox/receipts.js";
import { SharedOutbox, SharedReceiptHandler, SharedReceipts } from "../../outbox/shared/index.js";
import { Fault } from "../../protocol/errors.js";
import { systemClock } from "../../runtime/clock.js";
import type { OpenOutbox, OutboxModule } from "./outbox.js";

interface SharedOutboxParts {
  readonly parts: (handler: () => LocalReceiptHandler) => Omit<OutboxParts, "store" | "giveBack">;
  /** As the config says it now. */
  readonly limits: () => OutboxLimits;
  readonly handlerParts: Omit<ReceiptHandlerOptions, "receipts">;
  readonly giveBack: (call: AgentCall, server: string) => void;
}

export function openSharedOutbox(
  { LocalReceiptHandler, Outbox, OutboxOperations }: OutboxModule,
  engine: GatewayEngine,
  { parts: partsOf, limits, handlerParts, giveBack }: SharedOutboxParts,
): OpenOutbox {
  const { self, partitions, peers, shared } = engine;
  const parts = partsOf(() => handler);
  const moved = shared.map<{ readonly partition: number }>("moved-receipts");
  // One that stays there since the engine was away costs a line in memory, and nothing else.
  const forgot = (id: string) => {
    if (moved.get(id) !== undefined) moved.delete(id).catch(() => {});
  };
  const outbox = new SharedOutbox({
    self,
    partitions,
    peers,
    clock: systemClock,
    status: () => engine.status(),
    watch: (listener) => engine.watch(listener),
    make: ({ mayAct, ...own }) => {
      const send: OutboxParts["send"] = (call, server, tool) => {
        if (!mayAct()) throw new Fault("unavailable", "Another gateway keeps this server's writes by now.");
        parts.send(call, server, tool);
      };
      const one = new Outbox({
        ...parts,
        ...own,
        send,
        forgot,
        limits: limits(),
        maxResultBytes: MAX_SHARED_RESULT_BYTES,
      });
      return { outbox: one, operations: new OutboxOperations(one, systemClock) };
    },
    targetOf: (server) => parts.targetOf?.(server),
    termsOf: (server, tool) => parts.terms(server, tool),
    deliver: parts.send,
    giveBack,
  });
  const movedTo = (id: string) => moved.get(id)?.partition;
  const all = { outbox, self, partitions, peers, movedTo };
  const operator = new SharedReceipts(all);
  const handler = new LocalReceiptHandler({ ...handlerParts, receipts: operator });
  return { outbox, operator, handler, receipts: new SharedReceiptHandler(handler, all, handlerParts) };
}
