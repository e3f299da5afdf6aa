// What became of writes whose agents have not been told: a result that the agent gets next carries it, as one more block
// of text. Who has heard what is kept here; the clock and the wire are not.

import type { Receipt } from "../contracts/outbox.js";
import { replySize } from "../protocol/arrived.js";
import { isObject } from "../protocol/jsonrpc.js";
import { locate, parseBytes } from "../protocol/message.js";
import { editedReply, type Reply, renderReply } from "../protocol/reply.js";
import { hasEnded, newsSentence } from "./receipt-text.js";

/** So many receipts that were handed out are remembered: those of a long outage. Of older ones nothing is told unasked. */
const MAX_GIVEN = 10_000;
/** So many ends are told in one block, by name; of the rest the number. */
const MAX_TOLD = 20;
/** So many principals may have something to hear. Agents that never call again must not fill memory. */
const MAX_PRINCIPALS = 1_000;
/** A longer result passes as it is, and the news wait for the next: it would have to be parsed whole. */
const MAX_PARSED_BYTES = 1024 * 1024;

export class News {
  /** Receipts that an agent holds, the oldest first. */
  readonly #given = new Set<string>();
  /** principal → what it has to hear, by receipt. */
  readonly #untold = new Map<string, Map<string, string>>();
  readonly #startedMs: number;

  /** `startedMs`: whoever has a write from before has its receipt too, or lost the connection over it. */
  constructor(startedMs: number) {
    this.#startedMs = startedMs;
  }

  /** An agent was answered with the receipt in place of a result. */
  given(id: string): void {
    this.#given.add(id);
    if (this.#given.size <= MAX_GIVEN) return;
    for (const oldest of this.#given) {
      this.#given.delete(oldest);
      return;
    }
  }

  changed(principal: string, receipt: Receipt): void {
    const { id, takenMs } = receipt;
    if (!hasEnded(receipt)) {
      // It was tried again after its end: what was to be told is no longer so.
      this.heard(principal, id);
      return;
    }
    if (!this.#given.delete(id) && takenMs >= this.#startedMs) return;
    let own = this.#untold.get(principal);
    if (own === undefined) {
      if (this.#untold.size >= MAX_PRINCIPALS) return;
      own = new Map();
      this.#untold.set(principal, own);
    }
    if (own.size < MAX_GIVEN) own.set(id, newsSentence(receipt));
  }

  /** The agent has read it by itself. */
  heard(principal: string, id: string): void {
    const own = this.#untold.get(principal);
    if (own?.delete(id) === true && own.size === 0) this.#untold.delete(principal);
  }

  /** The same reply with a block of what there is to tell; as it was where there is nothing, or no place for it. */
  into(reply: Reply, principal: string): Reply {
    const own = this.#untold.get(principal);
    if (own === undefined) return reply;
    const told = withBlock(reply, blockOf([...own.values()]));
    if (told === undefined) return reply;
    this.#untold.delete(principal);
    return told;
  }
}

function blockOf(sentences: readonly string[]): string {
  const more = sentences.length - MAX_TOLD;
  const told = sentences.slice(0, MAX_TOLD);
  return (more > 0 ? [...told, `And ${more} more.`] : told).join("\n");
}

/** Undefined where the reply is no result with content, or too long to be read. */
export function withBlock(reply: Reply, text: string): Reply | undefined {
  const block = { type: "text", text };
  if (reply.kind === "result") {
    const { result } = reply;
    if (!isObject(result) || !Array.isArray(result["content"])) return undefined;
    return { kind: "result", result: { ...result, content: [...(result["content"] as unknown[]), block] } };
  }
  if (reply.kind !== "bytes" || replySize(reply) > MAX_PARSED_BYTES) return undefined;
  try {
    const message = parseBytes(renderReply(reply, "0"));
    const content = message.kind === "response" && isObject(message.result) ? message.result["content"] : undefined;
    const at = Array.isArray(content) ? locate(message, ["result", "content"]) : undefined;
    if (!Array.isArray(content) || at === undefined) return undefined;
    const comma = content.length === 0 ? "" : ",";
    const added = `${comma}${JSON.stringify(block)}`;
    return editedReply(reply, message, [{ start: at.end - 1, end: at.end - 1, text: added }]);
  } catch {
    // What cannot be read is for its reader.
    return undefined;
  }
}
