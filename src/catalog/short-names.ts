// How one exposed name is spelled: characters, length, hash. Which tool gets which name is decided in names.ts.

import { createHash } from "node:crypto";
import { type ExposedName, exposedName, type OwnName } from "../contracts/names.js";

/** A client's own prefix (`mcp__toolway__`, up to 15) and our name together stay within 63 characters. */
export const MAX_NAME = 48;
/** The longest prefix that clients put before our names: what 63 leaves beside MAX_NAME. */
const CLIENT_PREFIX = 15;
/** Some clients tell names apart by their first and last 30 characters only. */
const END = 30;
/** Leaves at least 26 of 48 characters to the tool's own name. */
const MAX_PREFIX = 20;
/** 36^6 values: two of 10,000 names share one by a chance of 2 %, and then the next salt is taken. */
const HASH_LENGTH = 6;
/** The end of a shortened name; with it the hash always stands at [31, 37), inside the last 30 characters. */
const TAIL_LENGTH = 10;

export const SEPARATOR = "__";

/** What clients compare when they ignore case and punctuation. */
export function fold(name: string): string {
  return name.replace(/[^A-Za-z0-9]+/g, "").toLowerCase();
}

/** Every character outside [A-Za-z0-9_] becomes `_`, a run of them one; accents are dropped first. */
function sanitise(text: string): string {
  return text
    .normalize("NFKD")
    .replace(/[\u0300-\u036f]+/g, "")
    .replace(/[^A-Za-z0-9_]+/g, "_");
}

/** Letters and digits that depend on nothing but the parts. */
function hash(parts: readonly string[], salt: number): string {
  const digest = createHash("sha256")
    .update(JSON.stringify(salt === 0 ? parts : [...parts, salt]))
    .digest();
  return digest.readUIntBE(0, 6).toString(36).padStart(HASH_LENGTH, "0").slice(-HASH_LENGTH);
}

/** The name of `server` before the separator. `attempt` 0 is the plain one; later ones carry a hash. */
export function prefixCandidate(server: string, attempt: number): string {
  const plain = sanitise(server).replace(/_+/g, "_").replace(/^_|_$/g, "");
  if (attempt === 0 && plain !== "" && plain.length <= MAX_PREFIX) return plain;
  const mark = hash([server], Math.max(0, attempt - 1));
  if (plain === "") return `s_${mark}`;
  return `${plain.slice(0, MAX_PREFIX - HASH_LENGTH - 1).replace(/_$/, "")}_${mark}`;
}

/** The exposed name of a tool. `attempt` 0 is the plain one where it fits; later ones carry a hash. */
export function nameCandidate(prefix: string, server: string, own: OwnName, attempt: number): ExposedName {
  const head = prefix + SEPARATOR;
  const room = MAX_NAME - head.length;
  const name = sanitise(own);
  const spellable = fold(name) !== "";
  if (attempt === 0 && spellable && name.length <= room) return exposedName(head + name);
  const mark = hash([server, own], Math.max(0, attempt - 1));
  if (!spellable) return exposedName(head + mark);
  if (name.length + 1 + HASH_LENGTH <= room) return exposedName(`${head}${name}_${mark}`);
  const kept = room - HASH_LENGTH - TAIL_LENGTH - 2;
  return exposedName(`${head}${name.slice(0, kept)}_${mark}_${name.slice(-TAIL_LENGTH)}`);
}

/** True where the own name needs no change: such a tool has the first claim on its plain name. */
export function isExact(own: OwnName): boolean {
  return sanitise(own) === (own as string);
}

/** True for a name that every client can use. */
export function isExposable(name: string): boolean {
  return name.length <= MAX_NAME && /^[A-Za-z0-9_]+$/.test(name) && fold(name) !== "";
}

/** Names that no client takes for one another. */
export class NameSpace {
  readonly #folded = new Set<string>();
  readonly #ends = new Set<string>();

  /** False, and nothing taken, where some client could mistake `name` for one already taken. */
  take(name: string): boolean {
    const folded = fold(name);
    // What is left of the name's two ends behind the longest prefix of a client.
    const ends = `${name.slice(0, END - CLIENT_PREFIX)}/${name.slice(-END)}`;
    if (this.#folded.has(folded) || this.#ends.has(ends)) return false;
    this.#folded.add(folded);
    this.#ends.add(ends);
    return true;
  }
}
