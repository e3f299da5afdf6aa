// Whether a tool's own schema takes the argument that the idempotency key is put into.

import { isObject } from "../jsonrpc.js";

/** What is wrong with the place of the key, in a sentence; undefined where nothing says that the server would refuse it. */
export function refusedKey(
  server: string,
  tool: string,
  inputSchema: unknown,
  path: readonly string[],
): string | undefined {
  const [first = "", second] = path;
  if (!isObject(inputSchema)) return undefined;
  const { properties, additionalProperties } = inputSchema;
  const property = isObject(properties) && Object.hasOwn(properties, first) ? properties[first] : undefined;
  const type = isObject(property) ? property["type"] : undefined;
  const takesText =
    second !== undefined || type === undefined || type === "string" || (Array.isArray(type) && type.includes("string"));
  const why =
    property === undefined && additionalProperties === false
      ? "which its schema forbids"
      : takesText
        ? undefined
        : "which its schema wants to be no text";
  if (why === undefined) return undefined;
  return (
    `Tool "${tool}" of server "${server}" gets the key of its "outbox" in the argument "${path.join(".")}", ${why}: ` +
    `the server may refuse every call. Name another "key" in the config, or none.`
  );
}
