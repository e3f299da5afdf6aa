// What the tools of one server want repeated in headers, as its last list of tools had it.

import type { Listed } from "../../contracts/upstream.js";
import { type ParamHeader, readParamHeaders } from "../../protocol/param-headers.js";

/** So many problems are kept for `status`: the first few show what is wrong. */
const MAX_PROBLEMS = 20;

/** All connections of the server share it. */
export class ToolHeaders {
  #byTool = new Map<string, readonly ParamHeader[]>();

  of(tool: string): readonly ParamHeader[] | undefined {
    return this.#byTool.get(tool);
  }

  /** Learns the list, and tells the tools that may be used from those whose annotations are invalid. */
  learn(tools: readonly Listed[]): { kept: readonly Listed[]; problems: readonly string[] } {
    const byTool = new Map<string, readonly ParamHeader[]>();
    const problems: string[] = [];
    const kept = tools.filter(({ value }) => {
      const headers = readParamHeaders(value["inputSchema"]);
      if (typeof headers !== "string") {
        if (headers.length > 0) byTool.set(String(value["name"]), headers);
        return true;
      }
      if (problems.length < MAX_PROBLEMS) {
        problems.push(`Tool ${JSON.stringify(value["name"])} is left out: ${headers}.`);
      }
      return false;
    });
    this.#byTool = byTool;
    return { kept, problems };
  }
}
