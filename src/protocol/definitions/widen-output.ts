// A tool's `outputSchema` that admits one more form of result: `{"anyOf": [own, other]}`. The own schema stands one step
// deeper then, so that its references are led there, and what counts for a whole schema is lifted to the root. Pure.

import { isObject, type JsonObject } from "../jsonrpc.js";
import { isRecursive, movedSchema } from "./moved-schema.js";
import { flawOfSchema } from "./output-schema.js";

/** Where the own schema stands in the widened one. */
const WITHIN = "#/anyOf/0";

/** These are found at the root by every reference to them, and stay there. */
const LIFTED = ["$defs", "definitions"] as const;

/**
 * `own` or `other`; undefined where that cannot be said without a reference that leads nowhere, which would cost clients
 * their whole list.
 */
export function widenOutput(own: JsonObject, other: JsonObject): JsonObject | undefined {
  const { $schema, $id, ...rest } = own;
  const base = typeof $id === "string" && !$id.startsWith("#") ? $id : undefined;
  const address = base?.replace(/#$/, "");
  const inner = movedSchema(base === undefined && $id !== undefined ? { $id, ...rest } : rest, {
    within: WITHIN,
    isRecursive: isRecursive(own),
    movedRef: (ref, isInside) => movedRef(ref, isInside, address),
  });
  const lifted: JsonObject = {};
  for (const key of LIFTED) {
    if (!isObject(inner[key])) continue;
    lifted[key] = inner[key];
    delete inner[key];
  }
  const widened: JsonObject = {
    ...(typeof $schema === "string" ? { $schema } : {}),
    ...(base === undefined ? {} : { $id: widenedId(base) }),
    // A legacy client wants it at the root; another type than this one admits no receipt there.
    ...(own["type"] === "object" ? { type: "object" } : {}),
    anyOf: [inner, other],
    ...lifted,
  };
  return flawOfSchema(own) === undefined && flawOfSchema(widened) !== undefined ? undefined : widened;
}

/** Clients keep compiled schemas by this: the widened one must not be taken for the own, nor the own for it. */
function widenedId(base: string): string {
  const plain = base.replace(/#$/, "");
  return `${plain}${plain.includes("?") ? "&" : "?"}toolway=receipt`;
}

/** `base`: the address of the own schema; undefined where it has none. */
function movedRef(ref: string, isInside: boolean, base: string | undefined): string {
  if (base !== undefined && (ref === base || ref.startsWith(`${base}#`))) {
    // Within the schema its own address can be left out.
    return (isInside ? "" : widenedId(base)) + movedFragment(ref.slice(base.length) || "#");
  }
  return isInside && ref.startsWith("#") ? movedFragment(ref) : ref;
}

function movedFragment(fragment: string): string {
  if (fragment === "#" || fragment === "#/") return fragment === "#" ? WITHIN : `${WITHIN}/`;
  if (!fragment.startsWith("#/")) return fragment;
  return LIFTED.some((key) => fragment.startsWith(`#/${key}/`)) ? fragment : WITHIN + fragment.slice(1);
}
