// `POST /mailboxes/pair`: whoever brings a pairing code gets a token. It asks for none itself: the code is the proof, of
// one use and soon over, and how often somebody may guess is bounded behind it.

import type { IncomingMessage, ServerResponse } from "node:http";
import { DENIED } from "../../protocol/errors.js";
import { ErrorCode, isObject } from "../../protocol/jsonrpc.js";
import { valueIn } from "../../runtime/words/json-values.js";
import { isJsonType } from "./checks.js";
import { refuse, refuseMethod, sendJson } from "./write-reply.js";

export const PAIR_PATH = "/mailboxes/pair";

/** A code and a name, with room to spare. */
const MAX_BODY_BYTES = 1_024;

export type PairAnswer =
  | { readonly kind: "paired"; readonly id: string; readonly token: string; readonly mailbox: string }
  | { readonly kind: "wrong" }
  | { readonly kind: "paused"; readonly leftMs: number };

/** Undefined where nobody is paired here. Rejects where the token cannot be kept. */
export type Pair = (code: string, name: string | undefined) => Promise<PairAnswer | undefined>;

export function pairDoor(
  req: IncomingMessage,
  res: ServerResponse,
  pair: Pair,
  failed: (error: unknown) => void,
): void {
  if (req.method !== "POST") {
    refuseMethod(res, "POST");
    return;
  }
  // A page of any origin may send what is no JSON, without its browser asking first.
  if (!isJsonType(req.headers["content-type"])) {
    refuse(res, 415, ErrorCode.invalidRequest, "Content-Type must be application/json.");
    return;
  }
  const pieces: Buffer[] = [];
  let bytes = 0;
  req.on("error", () => {});
  req.on("data", (piece: Buffer) => {
    bytes += piece.length;
    if (bytes <= MAX_BODY_BYTES) pieces.push(piece);
  });
  req.on("end", () => {
    if (bytes > MAX_BODY_BYTES) {
      refuse(res, 413, ErrorCode.invalidRequest, `The body has at most ${MAX_BODY_BYTES} bytes.`);
      return;
    }
    answer(Buffer.concat(pieces).toString(), res, pair).catch((error: unknown) => {
      failed(error);
      refuse(res, 500, ErrorCode.internal, "The token could not be made; the broker's log has the details.");
    });
  });
}

const WRONG_CODE = 'This code is wrong, used or too old. "toolway mailbox pair MAILBOX" at the broker makes a new one.';

async function answer(text: string, res: ServerResponse, pair: Pair): Promise<void> {
  const body = valueIn(text);
  const code = isObject(body) ? body["code"] : undefined;
  const name = isObject(body) ? body["name"] : undefined;
  if (typeof code !== "string") {
    refuse(res, 400, ErrorCode.invalidRequest, 'The body is {"code": "ABCD-EFGH-JKMN"}.');
    return;
  }
  const paired = await pair(code, typeof name === "string" ? name : undefined);
  if (paired === undefined) refuse(res, 404, ErrorCode.invalidRequest, "Nobody is paired here.");
  else if (paired.kind === "paired") {
    const { id, token, mailbox } = paired;
    sendJson(res, 200, JSON.stringify({ id, token, mailbox }), ["Cache-Control", "no-store"]);
  } else if (paired.kind === "paused") {
    const seconds = String(Math.ceil(paired.leftMs / 1000));
    const why = `Too many wrong codes were tried. Try again in ${seconds} s.`;
    refuse(res, 429, DENIED, why, ["Retry-After", seconds]);
  } else refuse(res, 403, DENIED, WRONG_CODE);
}
