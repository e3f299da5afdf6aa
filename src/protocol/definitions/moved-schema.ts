// A JSON Schema that comes to stand deeper in another one: its references are led to where what they mean stands then. Pure.

import { isObject, type JsonObject } from "../jsonrpc.js";

/** Values under these are data, though they may look like schemas. */
export const DATA = new Set(["const", "enum", "default", "examples"]);
/** Names under these are the author's, and their values are schemas. */
export const NAMED = new Set([
  "properties",
  "patternProperties",
  "$defs",
  "definitions",
  "dependentSchemas",
  "dependencies",
]);

export interface SchemaMove {
  /** Where the schema comes to stand. */
  readonly within: string;
  /** `$recursiveRef: "#"` means its root. */
  readonly isRecursive: boolean;
  /** `isInside`: no other schema with an address of its own is around it, so that `#` means the root of what is moved. */
  movedRef(ref: string, isInside: boolean): string;
}

export function movedSchema(root: JsonObject, move: SchemaMove): JsonObject {
  return moved(root, false, true, move) as JsonObject;
}

/** In the dialect of 2019-09, `$recursiveRef: "#"` means the root, unless the root says that it can be extended. */
export function isRecursive({ $schema, $recursiveAnchor }: JsonObject): boolean {
  const is2019 = typeof $schema === "string" && /^https?:\/\/json-schema\.org\/draft\/2019-09\/schema#?$/.test($schema);
  return is2019 && $recursiveAnchor !== true;
}

/** A fragment alone is the name of a place, as drafts before 2019 wrote it: addresses stay what they were. */
function hasOwnBase({ $id }: JsonObject): boolean {
  return $id !== undefined && !(typeof $id === "string" && $id.startsWith("#"));
}

function moved(node: unknown, isNames: boolean, isInside: boolean, move: SchemaMove): unknown {
  if (Array.isArray(node)) return node.map((one) => moved(one, false, isInside, move));
  if (!isObject(node)) return node;
  const inside = isInside && (isNames || !hasOwnBase(node));
  const out: [string, unknown][] = [];
  let toRoot = false;
  for (const [key, value] of Object.entries(node)) {
    if (isNames) out.push([key, moved(value, false, inside, move)]);
    else if ((key === "$ref" || key === "$dynamicRef") && typeof value === "string") {
      out.push([key, move.movedRef(value, inside)]);
    } else if (key === "$recursiveRef" && value === "#" && move.isRecursive && inside) toRoot = true;
    else out.push([key, DATA.has(key) ? value : moved(value, NAMED.has(key), inside, move)]);
  }
  const result = Object.fromEntries(out) as JsonObject;
  if (!toRoot) return result;
  const ref = { $ref: move.within };
  if (result["$ref"] === undefined) return { ...result, ...ref };
  const others = Array.isArray(result["allOf"]) ? (result["allOf"] as unknown[]) : [];
  return { ...result, allOf: [...others, ref] };
}
