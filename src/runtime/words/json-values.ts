// JSON that others wrote, read without a mistake: what is not of the form that is asked for counts as absent.

import { isObject } from "./json-object.js";

/** Undefined where the text is no JSON. */
export function valueIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Undefined where the text is no object of JSON. */
export function objectIn(text: string): Readonly<Record<string, unknown>> | undefined {
  const value = valueIn(text);
  return isObject(value) ? value : undefined;
}

export function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((one) => typeof one === "string");
}

/** Of a list, those that are texts. */
export function textsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === "string") : [];
}

/** As it comes back from a file: copies, without prototypes and absent keys. */
export function jsonCopy(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}
