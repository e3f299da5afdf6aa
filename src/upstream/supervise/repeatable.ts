// Which calls may be made twice: reads of the protocol, tools that the config calls read-only or idempotent, and tools
// that say so themselves on a server that the config trusts.

import { type OwnToolName, ownToolName } from "../../contracts/names.js";
import type { ServerSpec } from "../../contracts/server-spec.js";
import type { Listed, UpstreamCall } from "../../contracts/upstream.js";
import { isObject } from "../../protocol/jsonrpc.js";

/** Methods that change nothing at the server. */
const READS: ReadonlySet<string> = new Set([
  "completion/complete",
  "prompts/get",
  "prompts/list",
  "resources/list",
  "resources/read",
  "resources/templates/list",
  "tools/list",
]);

export class Repeatable {
  readonly #spec: ServerSpec;
  #annotated: ReadonlySet<OwnToolName> = new Set();

  constructor(spec: ServerSpec) {
    this.#spec = spec;
  }

  /** Reads what the server claims of its tools, which counts only where the config trusts the server. */
  learn(tools: readonly Listed[]): void {
    if (this.#spec.trust !== "always") return;
    const names = tools.flatMap(({ value: { name, annotations } }) =>
      typeof name === "string" && isObject(annotations) && isHarmless(annotations) ? [ownToolName(name)] : [],
    );
    this.#annotated = new Set(names);
  }

  has({ method, subject }: Pick<UpstreamCall, "method" | "subject">): boolean {
    if (method !== "tools/call") return READS.has(method);
    if (subject === undefined) return false;
    const tool = ownToolName(subject);
    return this.#spec.repeatable.has(tool) || this.#annotated.has(tool);
  }
}

function isHarmless(annotations: Record<string, unknown>): boolean {
  return annotations["readOnlyHint"] === true || annotations["idempotentHint"] === true;
}
