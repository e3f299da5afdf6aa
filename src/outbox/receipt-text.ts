// A receipt in words: the result that an agent gets whose call was kept, and what it reads when it asks later. Every fact
// stands in the text and in the structured content, since each client passes on only one of them. Pure.

import { RECEIPT_TOOL, type Receipt, type WriteState } from "../contracts/outbox.js";
import { isObject, type JsonObject } from "../protocol/jsonrpc.js";
import { scanMembers } from "../protocol/scan.js";
import { sentence } from "../runtime/words/sentence.js";
import type { KeptResult } from "./journal.js";
import type { KeptWrite } from "./lanes/lane.js";
import { STATE_WORDS } from "./lanes/write.js";

const ENDS: ReadonlySet<WriteState> = new Set(["done", "failed", "unknown", "expired", "cancelled"]);

export function hasEnded({ state }: Pick<Receipt, "state">): boolean {
  return ENDS.has(state);
}

/** `isEnding`: what became of it is not on disk yet, and nobody is told of it before. */
export function receiptOf(
  write: KeptWrite,
  position: number | undefined,
  isEnding: boolean,
  kept: KeptResult | undefined,
): Receipt {
  const { facts } = write;
  return {
    id: facts.id,
    server: facts.server,
    tool: facts.tool,
    state: isEnding ? "sending" : write.state,
    idempotencyKey: facts.key,
    position,
    takenMs: facts.takenMs,
    sinceMs: write.sinceMs,
    why: isEnding ? undefined : write.why,
    attempts: write.attempts,
    result: kept?.result,
    error: kept?.error,
    lostBytes: isEnding ? undefined : write.lostBytes,
  };
}

/** What is known of a write, without its result. */
export function factsOf(receipt: Receipt): JsonObject {
  const { id, state, server, tool, idempotencyKey, position, takenMs, sinceMs, attempts } = receipt;
  // One that was not tried yet waits for those of its lane, and for nothing else that is known.
  const why =
    receipt.why ?? (state === "queued" && (position ?? 0) > 0 ? "others of its lane are before it" : undefined);
  return {
    receipt: id,
    state,
    server,
    tool,
    idempotencyKey,
    ...(position === undefined ? {} : { position }),
    taken: new Date(takenMs).toISOString(),
    since: new Date(sinceMs).toISOString(),
    attempts,
    ...(why === undefined ? {} : { why }),
    ...(receipt.lostBytes === undefined ? {} : { resultNotKept: lostText(receipt.lostBytes) }),
  };
}

function lostText(bytes: number): string {
  const size = bytes === 0 ? "" : ` of ${bytes} bytes`;
  return `its result${size} is not kept: it was too large, or made room for newer ones`;
}

/** The result of a call that has none yet. An agent that takes it for done is told twice that it is not. */
export function queuedResult(receipt: Receipt): JsonObject {
  const { id, state, tool, server } = receipt;
  const begun =
    state === "sending"
      ? `Not done yet: the call of "${tool}" was sent to "${server}", which has not answered so far.`
      : `Queued, not done yet: the call of "${tool}" is kept on disk until "${server}" takes it.`;
  // A repeat under the key of one that is over gets its receipt too: it is told the end, and not to wait for it.
  const isOver = hasEnded(receipt);
  const told = isOver ? stateSentence(receipt) : `${begun} Do not make it again: it is delivered by itself.`;
  const isError = isOver && state !== "done";
  const note = `${told} To learn ${isOver ? "more" : "what became of it"}, call ${RECEIPT_TOOL} with {"id":"${id}"}.`;
  const { taken: _taken, attempts: _attempts, ...facts } = factsOf(receipt);
  const structuredContent: JsonObject = {
    queued: !isError,
    ...facts,
    note,
    ask: { tool: RECEIPT_TOOL, arguments: { id } },
  };
  const content = [{ type: "text", text: `${note}\n${lines(facts)}` }];
  return { content, structuredContent, ...(isError ? { isError } : {}) };
}

/**
 * What an agent reads that asks for one receipt, as JSON: all of it, and the server's own result with its pictures and texts,
 * each as it was written, since a number may say more than a double holds.
 */
export function receiptResult(receipt: Receipt): string {
  const { result, error } = receipt;
  const blocks = [textBlock(`${stateSentence(receipt)}\n${lines(factsOf(receipt))}`)];
  const own = result === undefined ? undefined : blocksOf(result);
  if (own !== undefined) blocks.push(...own);
  else if (result !== undefined) blocks.push(textBlock(result));
  if (error !== undefined) blocks.push(textBlock(`The error: ${error}`));
  return `{"content":[${blocks.join(",")}],"structuredContent":${receiptJson(receipt)}}`;
}

function textBlock(text: string): string {
  return JSON.stringify({ type: "text", text });
}

/** The blocks of a result as they were written; undefined where it has none. */
function blocksOf(json: string): string[] | undefined {
  const result = parsed(json);
  if (!isObject(result) || !Array.isArray(result["content"])) return undefined;
  // Where the name stands twice, the last counts, as it does to JSON.parse.
  const at = scanMembers(json, json.indexOf("{")).findLast(({ key }) => key === "content");
  const inner = at === undefined ? "" : json.slice(at.start + 1, at.end - 1).trim();
  return inner === "" ? [] : [inner];
}

/** The same as the text of a resource. */
export function receiptJson(receipt: Receipt): string {
  const { result, error } = receipt;
  return withMembers(JSON.stringify(factsOf(receipt)), { result, error });
}

/** A JSON object with these members at its end, which are JSON text; what is none is shown as the text that it is. */
export function withMembers(object: string, members: Readonly<Record<string, string | undefined>>): string {
  let added = "";
  for (const [name, json] of Object.entries(members)) {
    if (json === undefined) continue;
    added += `,${JSON.stringify(name)}:${parsed(json) === json ? JSON.stringify(json) : json}`;
  }
  return added === "" ? object : `${object.slice(0, -1)}${added}}`;
}

/** All of a principal, without their results. */
export function receiptsResult(receipts: readonly Receipt[]): JsonObject {
  const texts = receipts.map((receipt) => `${receipt.id}: ${stateSentence(receipt)}`);
  const text = texts.length === 0 ? "You have no receipts: no call of yours was queued." : texts.join("\n");
  return { content: [{ type: "text", text }], structuredContent: { receipts: receipts.map(factsOf) } };
}

/** What became of it, in one sentence. */
export function stateSentence({ tool, server, state, why, position, lostBytes }: Receipt): string {
  const call = `The call of "${tool}" at "${server}"`;
  const lost = lostBytes === undefined ? "" : ` ${sentence(lostText(lostBytes))}`;
  const because = `${why === undefined ? "" : ` ${sentence(why)}`}${lost}`;
  switch (state) {
    case "queued": {
      const before = position === undefined || position === 0 ? "" : ` ${position} before it.`;
      return `${call} waits to be delivered.${before}${because}`;
    }
    case "sending":
      return `${call} was sent, and is not answered yet.${because}`;
    case "done":
      return `${call} is done.${because}`;
    case "failed":
      return `${call} failed and had no effect that is known.${because}`;
    case "unknown":
      return `${call}: whether it took effect is unknown. It is not sent again; look before you repeat it.${because}`;
    case "expired":
      return `${call} could not be delivered in time, and had no effect.${because}`;
    case "cancelled":
      return `${call} was taken back, and had no effect.${because}`;
  }
}

/** The block that a later result of the same agent carries. */
export function newsSentence({ id, tool, state }: Pick<Receipt, "id" | "tool" | "state">): string {
  return `Receipt ${id} (${tool}) ${STATE_WORDS[state]}.`;
}

/** What was kept is JSON text; what is none is shown as the text that it is. */
export function parsed(json: string | undefined): unknown {
  if (json === undefined) return undefined;
  try {
    return JSON.parse(json);
  } catch {
    return json;
  }
}

function lines(facts: JsonObject): string {
  return Object.entries(facts)
    .map(([name, value]) => `${name}: ${String(value)}`)
    .join("\n");
}
