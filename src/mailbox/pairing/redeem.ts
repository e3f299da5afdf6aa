// The worker's side of pairing: turns the word that somebody reads out into a token, over HTTP.

import { isObject } from "../../protocol/jsonrpc.js";
import { ExpectedError, type ExpectedKind } from "../../runtime/expected-error.js";
import { within } from "../../runtime/wait.js";
import { valueIn } from "../../runtime/words/json-values.js";
import type { ReadPairWord } from "./code-text.js";

/** A broker answers at once, or is not there. */
const ANSWER_MS = 10_000;
/** An id, a token, a mailbox. */
const MAX_ANSWER_BYTES = 16_384;

/** What a worker has from its pairing on. */
export interface PairedWorker {
  readonly broker: string;
  /** The id of its token. */
  readonly id: string;
  readonly token: string;
  readonly mailbox: string;
}

/** It came to nothing: why, and what to do. */
export class PairingFailed extends ExpectedError {
  override readonly name = "PairingFailed";
  override readonly kind: ExpectedKind = "failed";
}

/** `name` is what this machine is called: the token's id begins with it. Throws a PairingFailed. */
export async function redeemCode(
  { broker, code }: ReadPairWord,
  { name, signal }: { readonly name: string; readonly signal: AbortSignal },
): Promise<PairedWorker> {
  const url = `${broker.replace(/^ws/, "http").replace(/\/mailboxes$/, "")}/mailboxes/pair`;
  let status: number;
  let text: string;
  try {
    const response = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ code, name }),
      // A code is for the broker that was named.
      redirect: "error",
      signal: within(ANSWER_MS, signal),
    });
    status = response.status;
    text = await boundedText(response);
  } catch (error) {
    signal.throwIfAborted();
    const { cause, message } = error as Error;
    if (isNoTls(cause)) {
      const plain = broker.replace(/^wss:/, "ws:");
      const how = `If it is one without TLS in a network that you trust, write ${plain}/${code} instead`;
      throw new PairingFailed(`What answers at ${broker} speaks no TLS. ${how}.`);
    }
    const why = isRefused(cause)
      ? "nothing listens there (ECONNREFUSED). Does `toolway share --pair` still run on that machine?"
      : cause instanceof Error && cause.message !== ""
        ? cause.message
        : message;
    throw new PairingFailed(`The broker at ${broker} was not reached: ${why}`);
  }
  const answer = valueIn(text);
  if (status === 404) {
    throw new PairingFailed(`At ${broker} nobody is paired: it is no broker, or one that asks for no tokens.`);
  }
  if (status !== 200) throw new PairingFailed(refusalIn(answer) ?? `The broker at ${broker} answered ${status}.`);
  const { id, token, mailbox } = isObject(answer) ? answer : {};
  if (typeof id !== "string" || typeof token !== "string" || typeof mailbox !== "string") {
    throw new PairingFailed(`What answers at ${broker} is no broker of Toolway.`);
  }
  return { broker, id, token, mailbox };
}

/** OpenSSL got something that is none of its records. */
function isNoTls(cause: unknown): boolean {
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : "";
  return code === "EPROTO" || /^ERR_SSL_(?:WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG)$/.test(code);
}

function isRefused(cause: unknown): boolean {
  return cause instanceof Error && "code" in cause && cause.code === "ECONNREFUSED";
}

async function boundedText(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const piece of response.body ?? []) {
    text += decoder.decode(piece as Uint8Array, { stream: true });
    if (text.length > MAX_ANSWER_BYTES) throw new Error("the answer is too long for a broker's");
  }
  return text;
}

function refusalIn(answer: unknown): string | undefined {
  const error = isObject(answer) ? answer["error"] : undefined;
  const message = isObject(error) ? error["message"] : undefined;
  return typeof message === "string" ? message.slice(0, 500) : undefined;
}
