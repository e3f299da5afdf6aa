// What a client changed in the settings that a run gave it, and putting that into the user's own, key by key: what the
// user changed meanwhile stays, and so do comments. Pure.

import { isDeepStrictEqual } from "node:util";
import { applyEdits, modify } from "jsonc-parser";
import { Source } from "../../config/jsonc.js";
import { isObject } from "../../runtime/words/json-object.js";
import { type ClientFields, table } from "../import/values.js";

interface Change {
  readonly path: readonly string[];
  /** As the client was given it; undefined where it was not there. */
  readonly before: unknown;
  /** Undefined where it took it out. */
  readonly after: unknown;
}

const BYTE_ORDER_MARK = "\uFEFF";

/** Deeper than settings are; below it a value counts as one. */
const MAX_DEPTH = 16;

/**
 * The user's text with what the client changed, but for the places that are ours. A client that was killed while it wrote
 * leaves half a text, whose missing keys nobody took out: then, and where the user's own is broken, nothing is changed.
 */
export function settingsGivenBack(
  user: string,
  given: string,
  now: string,
  ours: readonly (readonly string[])[],
): string {
  // What edits the text does not know a byte order mark, which stays where it is.
  if (user.startsWith(BYTE_ORDER_MARK) && user.trim() !== "")
    return BYTE_ORDER_MARK + settingsGivenBack(user.slice(1), given, now, ours);
  let text = user.trim() === "" ? "{}" : user;
  if (isBroken(now) || isBroken(text)) return text;
  for (const { path, before, after } of changesOf(parsed(given), parsed(now))) {
    if (ours.some((place) => place.every((key, i) => path[i] === key))) continue;
    const found = valueAt(parsed(text), path);
    // Somebody else has changed it meanwhile, or it is done already.
    if (!isDeepStrictEqual(found, before)) continue;
    text = applyEdits(text, modify(text, [...path], after, { formattingOptions: { insertSpaces: true, tabSize: 2 } }));
  }
  return text;
}

function changesOf(before: ClientFields, after: ClientFields, path: readonly string[] = []): Change[] {
  const keys = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...keys].flatMap((key) => {
    const [old, now] = [before[key], after[key]];
    if (isDeepStrictEqual(old, now)) return [];
    const inner = [...path, key];
    if (isObject(old) && isObject(now) && inner.length < MAX_DEPTH) return changesOf(old, now, inner);
    return [{ path: inner, before: old, after: now }];
  });
}

function valueAt(root: ClientFields, path: readonly string[]): unknown {
  return path.reduce<unknown>((value, key) => (isObject(value) ? value[key] : undefined), root);
}

function isBroken(text: string): boolean {
  let isWrong = false;
  const value = new Source(text).read(() => {
    isWrong = true;
  });
  return isWrong || !isObject(value);
}

function parsed(text: string): ClientFields {
  return table(new Source(text).read(() => {}));
}
