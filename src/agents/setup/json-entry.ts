// Entries in JSON with comments, as most clients have it.

import { isDeepStrictEqual } from "node:util";
import { insertMember, memberOf, removeMember, replaceValue, treeOf, valueNode } from "../../config/edit/members.js";
import { Source } from "../../config/jsonc.js";
import { Report } from "../../config/mistakes.js";
import { isObject } from "../../runtime/words/json-object.js";
import { jsonCopy } from "../../runtime/words/json-values.js";
import { type ClientEntryPlace, type EntryText, refuseWrongEdit } from "./entry-text.js";

type Fields = Record<string, unknown>;

export const jsonEntry: EntryText = {
  read(text, place) {
    const group = text.trim() === "" ? undefined : readRoot(text, place)[place.group];
    return isObject(group) && Object.hasOwn(group, place.name) ? group[place.name] : undefined;
  },

  put(before, place, entry, owned) {
    const { group, name } = place;
    if (before === undefined || before.trim() === "") {
      return `${JSON.stringify({ [group]: { [name]: entry } }, null, 2)}\n`;
    }
    const root = readRoot(before, place);
    const servers = (root[group] ?? {}) as Fields;
    const old = Object.hasOwn(servers, name) ? servers[name] : undefined;
    const now = isObject(old) ? { ...without(old, owned), ...entry } : entry;
    const text = isObject(old) ? fields(before, place, old, now) : whole(before, place, now);
    const expected = { ...root, [group]: { ...servers, [name]: now } };
    refuseWrongEdit(isDeepStrictEqual(jsonCopy(readRoot(text, place)), jsonCopy(expected)), place);
    return text;
  },

  hasGroup(text, place) {
    return text.trim() !== "" && Object.hasOwn(readRoot(text, place), place.group);
  },

  take(before, place, withGroup = false) {
    const { group, name } = place;
    if (jsonEntry.read(before, place) === undefined) return before;
    const root = readRoot(before, place);
    const taken = removeMember(before, groupNode(before, group), name);
    const { offset, length } = groupNode(taken, group);
    // Where somebody wrote a comment into it, it stays for that.
    const isEmpty = /^\{\s*\}$/.test(taken.slice(offset, offset + length));
    const isGone = withGroup && isEmpty;
    const text = isGone ? removeMember(taken, treeOf(taken), group) : taken;
    const left = without(root[group] as Fields, [name]);
    const expected = isGone ? without(root, [group]) : { ...root, [group]: left };
    refuseWrongEdit(isDeepStrictEqual(jsonCopy(readRoot(text, place)), jsonCopy(expected)), place);
    return text;
  },
};

/** An entry that is not there yet, or is no object. */
function whole(text: string, { group, name }: ClientEntryPlace, entry: unknown): string {
  const root = treeOf(text);
  const held = memberOf(root, group);
  if (held === undefined) return insertMember(text, root, group, { [name]: entry });
  const old = memberOf(valueNode(held), name);
  return old === undefined ? insertMember(text, valueNode(held), name, entry) : replaceValue(text, old, entry);
}

/** Key by key, so that comments between them stay. */
function fields(before: string, { group, name }: ClientEntryPlace, old: Fields, now: Fields): string {
  const entryNode = (text: string) => {
    const member = memberOf(groupNode(text, group), name);
    if (member === undefined) throw new Error("an entry that was read must be in the tree");
    return valueNode(member);
  };
  let text = before;
  for (const [key, value] of Object.entries(now)) {
    if (isDeepStrictEqual(old[key], value)) continue;
    const member = memberOf(entryNode(text), key);
    text = member === undefined ? insertMember(text, entryNode(text), key, value) : replaceValue(text, member, value);
  }
  for (const key of Object.keys(old)) if (!(key in now)) text = removeMember(text, entryNode(text), key);
  return text;
}

function groupNode(text: string, group: string) {
  const member = memberOf(treeOf(text), group);
  if (member === undefined) throw new Error("a group that was read must be in the tree");
  return valueNode(member);
}

function readRoot(text: string, { file, group }: ClientEntryPlace): Fields {
  const source = new Source(text);
  const report = new Report(file, source);
  const value = source.read((at, offset, message, hint) => report.mistakeAt(at, offset, message, hint));
  if (!report.failed && !isObject(value)) report.mistake([], "expected an object");
  else if (isObject(value) && value[group] !== undefined && !isObject(value[group])) {
    report.mistake([group], "expected an object with a server under each name");
  }
  report.throwIfFailed();
  return value as Fields;
}

function without(value: Fields, keys: readonly string[]): Fields {
  return Object.fromEntries(Object.entries(value).filter(([key]) => !keys.includes(key)));
}
