// The last look at an error before anybody is told of it: whoever made it, nothing in it is a secret of the entry.

import { Fault } from "../../protocol/errors.js";
import { isObject, type JsonObject } from "../../protocol/jsonrpc.js";
import { isRedacted, LEFT_OUT, type Redactor, withoutRedacted } from "../../runtime/redact/redactor.js";

/** The same error where there is nothing to take out; else a Fault in its place, without the cause. */
export function withoutSecrets<E extends Error>(error: E, redactor: Redactor): E | Fault {
  const fault = error instanceof Fault ? error : new Fault("unavailable", error.message);
  const { code, data, outcome, reason, wire } = fault;
  const fact = redactor.redact(fault.fact);
  const plain = forAgents(fault.plain, redactor);
  const remedy = fault.remedy && redactor.redact(fault.remedy);
  if (fact === fault.fact && plain === fault.plain && remedy === fault.remedy) return error;
  return new Fault(code, plain, { forOperator: fact, data, outcome, reason, remedy, wire });
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
