// What agents are shown of the outbox: the tool that says what became of a write, the template of its resource, and the
// form of the result that a kept call gets, which the tool's own output schema must admit.

import {
  DEFAULT_RECEIPTS_LISTED,
  MAX_RECEIPT_WAIT_S,
  MAX_RECEIPTS_LISTED,
  RECEIPT_TOOL,
  RECEIPT_URI,
} from "../contracts/outbox.js";
import { isObject, type JsonObject } from "../protocol/jsonrpc.js";
import { type Era, TASKS_EXTENSION } from "../protocol/modern.js";

export const RECEIPT_DEFINITION: string = JSON.stringify({
  name: RECEIPT_TOOL,
  title: "Ask after a queued call",
  description:
    'Says what became of calls that were answered with "queued": queued, sending, done (with the whole result), failed, ' +
    "unknown, expired or cancelled. Give the id of a receipt, or none for all of yours, the newest first.",
  inputSchema: {
    type: "object",
    properties: {
      id: { type: "string", description: "The id of the receipt. Without it: all of your receipts, without results." },
      wait: {
        type: "number",
        minimum: 0,
        maximum: MAX_RECEIPT_WAIT_S,
        description: "With an id: waits for its end, so many seconds at most.",
      },
      limit: { type: "integer", minimum: 1, maximum: MAX_RECEIPTS_LISTED, default: DEFAULT_RECEIPTS_LISTED },
    },
  },
  // Codex refuses a tool without these where nobody can be asked.
  annotations: { readOnlyHint: true, openWorldHint: false },
});

export const RECEIPT_TEMPLATE: string = JSON.stringify({
  uriTemplate: `${RECEIPT_URI}{id}`,
  name: "receipt",
  title: "Receipt of a queued call",
  description: "What became of a call that was answered with a receipt. Subscribe to it to be told of its end.",
  mimeType: "application/json",
});

const text = { type: "string" };

/** The structured result of a call that was kept. Nothing in it refers to anything, and no draft reads it differently. */
export const RECEIPT_SCHEMA: JsonObject = {
  type: "object",
  description: "The call was kept, and will be delivered: this is its receipt.",
  properties: {
    queued: { enum: [true] },
    receipt: text,
    state: text,
    server: text,
    tool: text,
    idempotencyKey: text,
    position: { type: "integer" },
    since: text,
    why: text,
    note: text,
    ask: { type: "object" },
  },
  required: ["queued", "receipt", "state", "tool", "idempotencyKey", "note"],
};

/**
 * What an agent is told at its start where calls may be kept: there are resources of ours, and it may subscribe. A modern
 * one may have the receipt as a task, where it declares the extension.
 */
export function withReceipts(capabilities: JsonObject, era: Era): JsonObject {
  const ours = { tools: { listChanged: true }, resources: { listChanged: true, subscribe: true } };
  const { extensions } = capabilities;
  const tasks = { [TASKS_EXTENSION]: {}, ...(isObject(extensions) ? extensions : {}) };
  return { ...capabilities, ...ours, ...(era === "modern" ? { extensions: tasks } : {}) };
}
