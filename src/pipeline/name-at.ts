// Where in a request the name stands that it is about.

import { type ExposedName, exposedName } from "../contracts/names.js";
import type { AgentCall } from "../contracts/service.js";
import { Fault } from "../protocol/errors.js";
import { isObject } from "../protocol/jsonrpc.js";

export const NAME: readonly string[] = ["params", "name"];

/** Throws a Fault `invalid` where there is no name. */
export function nameAt({ message }: AgentCall, path: readonly string[]): ExposedName {
  let value: unknown = message;
  for (const key of path) value = isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
  if (typeof value === "string") return exposedName(value);
  throw new Fault("invalid", `${message.method} needs "${path.slice(1).join(".")}".`);
}
