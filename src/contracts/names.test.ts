// That the names agents see and the names servers have cannot be taken for one another is the compiler's to see: a line
// below it that compiles after all fails the type check.

import { expect, it } from "vitest";
import type { Cache } from "../cache/cache.js";
import type { Catalog } from "../catalog/catalog.js";
import { decide, type Policy } from "../policy/policy.js";
import { type ExposedName, exposedName, type OwnName, type OwnToolName, ownName, ownToolName } from "./names.js";
import type { Pins } from "./pins.js";
import type { UpstreamCall } from "./upstream.js";

it("names are plain strings at run time", () => {
  expect([exposedName("s__a"), ownToolName("a"), ownName("a")]).toEqual(["s__a", "a", "a"]);
});

it("names of one kind do not compile where another is meant", () => {
  expect(mixUps).toBeTypeOf("function");
});

const principal = { id: "ada", role: "default" };

/** Never run: it is here to be compiled. */
function mixUps(
  parts: { catalog: Catalog; policy: Policy; pins: Pins; cache: Cache },
  names: { exposed: ExposedName; own: OwnName; tool: OwnToolName; text: string },
): unknown {
  const { catalog, policy, pins, cache } = parts;
  const { exposed, own, tool, text } = names;
  return [
    // What is meant.
    catalog.resolveTool(exposed, undefined),
    decide(policy, principal, "s", tool),
    pins.quarantine("s", tool),
    cache.covers("s", "tools/call", tool, true),
    own satisfies UpstreamCall["subject"],
    tool satisfies UpstreamCall["subject"],
    // @ts-expect-error The menu does not know a tool by its server's name.
    catalog.resolveTool(tool, undefined),
    // @ts-expect-error A text that nobody has looked at is no name.
    catalog.resolveTool(text, undefined),
    // @ts-expect-error Policy does not know exposed names.
    decide(policy, principal, "s", exposed),
    // @ts-expect-error Nor names that may be those of prompts.
    decide(policy, principal, "s", own),
    // @ts-expect-error Pins do not know exposed names.
    pins.quarantine("s", exposed),
    // @ts-expect-error Nor does the cache.
    cache.covers("s", "tools/call", exposed, true),
    // @ts-expect-error Nor does a server.
    exposed satisfies UpstreamCall["subject"],
  ];
}
