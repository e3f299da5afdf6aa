// A commit as it lies in the stream: one message that carries writes which are made together, its own id, and the ids of
// those before it on its subject. By these a writer whose answer was lost finds out whether it was stored.
//
//   {"v":1,"id":"…","after":[["…",17],…],"writes":[["m","tokens","key",42],["l","mail",0,17],["m","x","gone",-1]]}
//   <the values' JSON, one after the other, of these lengths>
//
// Values stand behind the head as they are, so that what was given as text is passed on unchanged, and not parsed before
// somebody reads it. Where the gateways have a key (`"sealed":1` in the head) they are sealed as one text, for this commit's
// id: the engine, its disks and whoever listens see names and keys, and no value.

import type { TextVault } from "../../runtime/seal.js";

/** Of a map, by key; or of a log, by number. A new entry of a log has its place among those of its commit. */
export type CommitWrite =
  | { readonly kind: "m"; readonly name: string; readonly key: string; readonly json: string | undefined }
  | { readonly kind: "l"; readonly name: string; readonly key: number; readonly json: undefined }
  | { readonly kind: "a"; readonly name: string; readonly key: number; readonly json: string };

/** A commit that another was made on, and where it is. */
export type Ancestor = readonly [id: string, sequence: number];

export interface Commit {
  readonly id: string;
  /** The nearest first. Empty for the first on its subject. */
  readonly after: readonly Ancestor[];
  readonly writes: readonly CommitWrite[];
}

/** Gateways that write to one key between two tries of one of them, some seconds apart: with more the outcome is unknown. */
export const MAX_ANCESTORS = 8;
const VERSION = 1;

/** Why a message is left alone: a newer version wrote it, it is sealed under a key that we do not have, or it is no commit. */
export type UnreadableCommit = "newer" | "sealed" | "foreign";

export function encodeCommit({ id, after, writes }: Commit, vault?: TextVault): string {
  const heads = writes.map(({ kind, name, key, json }) => [kind, name, key, json?.length ?? -1]);
  const head = JSON.stringify({ v: VERSION, id, after, writes: heads, ...(vault === undefined ? {} : { sealed: 1 }) });
  let values = "";
  for (const { json } of writes) if (json !== undefined) values += json;
  return `${head}\n${vault === undefined ? values : vault.seal(purposeOf(id), values)}`;
}

export function decodeCommit(body: string, vault?: TextVault): Commit | UnreadableCommit {
  const end = body.indexOf("\n");
  try {
    const head = JSON.parse(end < 0 ? body : body.slice(0, end)) as {
      readonly v: number;
      readonly id: string;
      readonly after: readonly Ancestor[];
      readonly writes: readonly (readonly [CommitWrite["kind"], string, string | number, number])[];
      readonly sealed?: unknown;
    };
    if (typeof head.v === "number" && head.v > VERSION) return "newer";
    if (head.v !== VERSION || typeof head.id !== "string" || !Array.isArray(head.writes)) return "foreign";
    // What is not sealed in a store that is was not written by whoever has the key.
    if ((head.sealed === undefined) !== (vault === undefined)) return vault === undefined ? "sealed" : "foreign";
    const values = vault === undefined ? body.slice(end + 1) : vault.open(purposeOf(head.id), body.slice(end + 1));
    if (values === undefined) return "sealed";
    let at = 0;
    const writes = head.writes.map(([kind, name, key, length]) => {
      const json = length < 0 ? undefined : values.slice(at, at + length);
      if (length > 0) at += length;
      return { kind, name, key, json } as CommitWrite;
    });
    return { id: head.id, after: head.after, writes };
  } catch {
    return "foreign";
  }
}

function purposeOf(id: string): string {
  return `commit ${id}`;
}

/** What became of a commit, by what is last on its subject now. */
export type Found =
  | { readonly kind: "stored"; readonly sequence: number }
  | { readonly kind: "absent" }
  | { readonly kind: "unknown" };

/** `base` is the commit that it was made on; undefined where there was none. */
export function findCommit(
  id: string,
  base: string | undefined,
  last: Ancestor | undefined,
  after: readonly Ancestor[],
): Found {
  // The subject is empty: where it was so before, nothing came; else what came was removed since.
  if (last === undefined) return base === undefined ? { kind: "absent" } : { kind: "unknown" };
  for (const [known, sequence] of [last, ...after]) {
    if (known === id) return { kind: "stored", sequence };
    // Whatever stands on the commit that ours was to stand on is not ours.
    if (known === base) return { kind: "absent" };
  }
  // The whole line is known where it is short, and ours is not in it.
  return base === undefined && after.length < MAX_ANCESTORS ? { kind: "absent" } : { kind: "unknown" };
}
