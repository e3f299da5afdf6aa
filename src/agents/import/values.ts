// Reads the values of other clients' files: what is not of the form that is asked for counts as absent.

import { isObject } from "../../runtime/words/json-object.js";
import { textsOf } from "../../runtime/words/json-values.js";

export type ClientFields = Readonly<Record<string, unknown>>;

export function table(value: unknown): ClientFields {
  return isObject(value) ? value : {};
}

/** A text that is not empty. */
export function filled(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** Named values, numbers and switches as texts. */
export function record(value: unknown): Record<string, string> {
  const pairs = Object.entries(table(value)).filter(([, item]) =>
    ["string", "number", "boolean"].includes(typeof item),
  );
  return Object.fromEntries(pairs.map(([key, item]) => [key, String(item)]));
}

/** A program and its arguments: a string, opencode's list, or the object of older Zed versions. */
export function commandOf(command: unknown): string[] {
  if (typeof command === "string" && command !== "") return [command];
  if (Array.isArray(command)) return textsOf(command);
  const { path, args } = table(command);
  return typeof path === "string" ? [path, ...textsOf(args)] : [];
}
