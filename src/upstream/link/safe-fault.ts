// The last look at an error before anybody is told of it: whoever made it, nothing in it is a secret of the entry.

import { Fault } from "../../protocol/errors.js";
import { isObject, type JsonObject } from "../../protocol/jsonrpc.js";
import { isRedacted, LEFT_OUT, type Redactor, withoutRedacted } from "../../runtime/redact/redactor.js";

/** The same error where there is nothing to take out; else a Fault in its place, without the cause. */
export function withoutSecrets<E extends Error>(error: E, redactor: Redactor): E | Fault {
  const said = error instanceof Fault ? error.forOperator : error.message;
  const forOperator = redactor.redact(said);
  const message = forAgents(error.message, redactor);
  if (forOperator === said && message === error.message) return error;
  const code = error instanceof Fault ? error.code : "unavailable";
  return new Fault(code, message, { forOperator, ...(error instanceof Fault ? { data: error.data } : {}) });
}

/** What our own words show redacted (an address with a token in its path) was meant to be shown so. */
function forAgents(message: string, redactor: Redactor): string {
  const redacted = redactor.redact(message);
  if (!isRedacted(redacted) || redacted === message) return redacted;
  if (!isRedacted(message)) return withoutRedacted(redacted);
  return LEFT_OUT;
}

/** A card of a server, with every text in it redacted. It is bounded by its size. */
export function cardWithoutSecrets(card: JsonObject, redactor: Redactor): JsonObject {
  const clean = (value: unknown): unknown => {
    if (typeof value === "string") return redactor.redact(value);
    if (Array.isArray(value)) return value.map(clean);
    return isObject(value) ? cardWithoutSecrets(value, redactor) : value;
  };
  return Object.fromEntries(Object.entries(card).map(([key, value]) => [key, clean(value)]));
}
