// The bodies of messages between a worker and a machine that shares its servers, as the worker writes and reads them. A
// message within one is cut out as it was written: a number may say more than a double holds.

import { Fault, type FaultCode, isFaultCode, OUTCOME_UNKNOWN, type WireFacts } from "../../protocol/errors.js";
import { isObject } from "../../protocol/jsonrpc.js";
import { scanMembers } from "../../protocol/scan.js";
import { objectIn } from "../../runtime/words/json-values.js";
import { sentence } from "../../runtime/words/sentence.js";

const MESSAGE_FIRST = '{"message":{';
const NOTIFICATION_FIRST = '{"op":"notification","message":{';

/** `text` is a whole JSON-RPC request; `session` a hash of the agent's. The message is last. */
export function requestBody(op: "rpc" | "listen", session: string | undefined, text: string): string {
  return session === undefined
    ? `{"op":"${op}","message":${text}}`
    : `{"op":"${op}","session":"${session}","message":${text}}`;
}

export type ReplyBody =
  | { readonly kind: "message"; readonly text: string }
  | { readonly kind: "large"; readonly bytes: number; readonly sha256: string }
  | {
      readonly kind: "error";
      readonly error: string;
      readonly outcome: "not run" | "unknown" | undefined;
      readonly code: string | undefined;
    }
  | { readonly kind: "unreadable" };

export function readReply(body: string): ReplyBody {
  // The machine's own form, which needs no reading: what is in it is judged as any server's answer is.
  if (body.startsWith(MESSAGE_FIRST) && body.endsWith("}}")) {
    return { kind: "message", text: body.slice(MESSAGE_FIRST.length - 1, -1) };
  }
  const value = objectIn(body);
  if (value === undefined) return { kind: "unreadable" };
  const { large, error, outcome, code, message } = value;
  if (isObject(message)) return { kind: "message", text: memberOf(body, "message") };
  if (isObject(large)) {
    const { bytes, sha256 } = large;
    const isGood = typeof bytes === "number" && Number.isSafeInteger(bytes) && bytes > 0 && typeof sha256 === "string";
    return isGood ? { kind: "large", bytes, sha256 } : { kind: "unreadable" };
  }
  if (typeof error !== "string") return { kind: "unreadable" };
  return {
    kind: "error",
    error,
    outcome: outcome === "not run" || outcome === "unknown" ? outcome : undefined,
    code: typeof code === "string" ? code : undefined,
  };
}

export type LiveBody =
  | { readonly kind: "notification" | "reply"; readonly text: string }
  | { readonly kind: "piece"; readonly offset: number; readonly data: string }
  | { readonly kind: "no piece"; readonly error: string }
  | { readonly kind: "end"; readonly error: string }
  | undefined;

/** Undefined for what is not known here. */
export function readLive(body: string): LiveBody {
  if (body.startsWith(NOTIFICATION_FIRST) && body.endsWith("}}")) {
    return { kind: "notification", text: body.slice(NOTIFICATION_FIRST.length - 1, -1) };
  }
  const value = objectIn(body);
  if (value === undefined) return undefined;
  const { op, message, offset, data, error } = value;
  if ((op === "notification" || op === "reply") && isObject(message)) {
    return { kind: op, text: memberOf(body, "message") };
  }
  if (op === "reply" && typeof error === "string") return { kind: "end", error };
  if (op !== "piece") return undefined;
  if (typeof error === "string") return { kind: "no piece", error };
  return typeof offset === "number" && typeof data === "string" ? { kind: "piece", offset, data } : undefined;
}

function memberOf(text: string, key: string): string {
  const member = scanMembers(text, text.indexOf("{")).find((one) => one.key === key);
  return member === undefined ? "" : text.slice(member.start, member.end);
}

/** What a machine or the broker says of a call that was not answered by a server. */
export function failure(error: string, outcome: "not run" | "unknown" | undefined, code: string | undefined): Fault {
  if (outcome === "unknown") {
    const wire: WireFacts = { final: true };
    const isSaid = /unknown/i.test(error);
    return new Fault("outcome-unknown", sentence(error), isSaid ? { wire } : { wire, outcome: OUTCOME_UNKNOWN });
  }
  const own: FaultCode = code !== undefined && isFaultCode(code) ? code : "unavailable";
  return new Fault(own, sentence(error));
}
