// What a message of a mailbox asks for: whole MCP requests, and the two bare ones that any client can write by hand. What
// is passed on is cut out of the body as it was written: a number may say more than a double holds.

import { excessOf, type TextBounds } from "../../protocol/bytes/text-bounds.js";
import { isObject, type JsonObject } from "../../protocol/jsonrpc.js";
import { type Message, toMessage } from "../../protocol/message.js";
import { deeperThan, type Member, scanMembers } from "../../protocol/scan.js";
import { ExpectedError } from "../../runtime/expected-error.js";
import { KIB } from "../../runtime/sizes.js";

export type MailboxRequest =
  | { readonly op: "rpc" | "listen"; readonly session: string | undefined; readonly message: Message }
  | { readonly op: "manifest" }
  | { readonly op: "call"; readonly tool: string; readonly args: Arguments };

/** What a bare call gives its tool: the text that is passed on, and what was read of it. */
export interface Arguments {
  readonly json: string;
  readonly value: JsonObject;
}

/** A body that cannot be read: why. */
export class BadBody extends ExpectedError {
  override readonly name = "BadBody";
  override readonly kind = "failed";
}

/** It is a hash of 32 hex digits; what is longer is none. */
const MAX_SESSION_CHARS = 128;

/** A text that is shorter has no room for as many values as are too many. */
const COUNTED_CHARS = 64 * KIB;

/** The JSON-RPC message of a body with nothing else to read in it. Throws a BadBody. */
export function readBodyMessage(text: string, bounds: TextBounds): Message {
  return messageIn(text, bodyIn(text, bounds));
}

function bodyIn(text: string, bounds: TextBounds): JsonObject {
  refuseExcess(text, bounds, "the body");
  const body = parsed(text, "the body is not JSON");
  if (!isObject(body)) throw new BadBody('the body is an object with "op"');
  return body;
}

/** By the same bounds as what comes over HTTP: to parse more takes longer than everybody else should wait. */
function refuseExcess(text: string, bounds: TextBounds, what: string): void {
  const { depth } = bounds;
  let excess: string | undefined;
  if (text.length >= COUNTED_CHARS) excess = excessOf([Buffer.from(text)], bounds);
  else if (text.length > 2 * depth && deeperThan(text, depth)) excess = `is nested deeper than ${depth} levels`;
  if (excess !== undefined) throw new BadBody(`${what} ${excess}`);
}

/** Throws a BadBody. */
export function readBody(text: string, bounds: TextBounds): MailboxRequest {
  const body = bodyIn(text, bounds);
  switch (body["op"]) {
    case "rpc":
    case "listen":
      return { op: body["op"], session: sessionOf(body), message: messageIn(text, body) };
    case "manifest":
      return { op: "manifest" };
    case "call":
      return { op: "call", tool: toolOf(body), args: argumentsIn(text, body["arguments"], bounds) };
    default:
      throw new BadBody(`"op" is "rpc", "manifest" or "call", and not ${JSON.stringify(body["op"]) ?? "left out"}`);
  }
}

function sessionOf({ session }: JsonObject): string | undefined {
  if (session === undefined) return undefined;
  if (typeof session === "string" && session.length <= MAX_SESSION_CHARS) return session;
  throw new BadBody(`"session" is a text of at most ${MAX_SESSION_CHARS} characters`);
}

/** The JSON-RPC message in a body that was parsed already. */
function messageIn(text: string, { message }: JsonObject): Message {
  const { start, end } = memberIn(text, "message");
  try {
    return toMessage(text.slice(start, end), message);
  } catch (error) {
    throw new BadBody((error as Error).message);
  }
}

function toolOf({ tool }: JsonObject): string {
  if (typeof tool === "string") return tool;
  throw new BadBody('"tool" is the name of a tool');
}

/** Programs write an object; language models a text with one in it. */
function argumentsIn(text: string, args: unknown, bounds: TextBounds): Arguments {
  if (args === undefined || args === "") return { json: "{}", value: {} };
  if (isObject(args)) {
    const { start, end } = memberIn(text, "arguments");
    return { json: text.slice(start, end), value: args };
  }
  if (typeof args === "string") {
    refuseExcess(args, bounds, 'the text of "arguments"');
    const value = parsed(args, '"arguments" is a text that is not JSON');
    if (isObject(value)) return { json: args, value };
  }
  throw new BadBody('"arguments" is a JSON object, or a text with one');
}

function memberIn(text: string, key: string): Member {
  const found = scanMembers(text, text.indexOf("{")).filter((member) => member.key === key);
  const [member] = found;
  if (member !== undefined && found.length === 1) return member;
  throw new BadBody(`"${key}" stands in the body once`);
}

function parsed(text: string, why: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new BadBody(why);
  }
}
