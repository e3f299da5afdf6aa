// The tools of a gateway for a page: in short, and a few in each turn of the event loop, however many there are.

import { setImmediate as nextTurn } from "node:timers/promises";
import type { ToolInShort } from "../../contracts/control/tools.js";
import { ControlError, type ControlRoutes, jsonLines } from "../../control/server.js";

/** So many in one turn: with definitions of some kB each it takes a few milliseconds. */
const TOOLS_A_TURN = 64;
/** As much of a description as a row shows. */
const DESCRIPTION_CHARS = 300;
/** JSON of definitions, as models read it: four characters are about a token. */
const CHARS_A_TOKEN = 4;

interface Listed {
  readonly name: string;
  readonly server: string;
  readonly ownName: string;
  readonly description: string | undefined;
  readonly inputSchema: unknown;
  readonly quarantined?: string;
}

export interface ToolsOfGateway {
  tools(): Promise<readonly Listed[]>;
  /** The rule that hides a tool from a principal; undefined where it may be called. Throws where nobody has this id. */
  hiddenBy(principal: string): (server: string, ownName: string) => string | undefined;
}

/** `GET /tools/lines?as=…`, `GET /tools/one?name=…`. */
export function toolLineRoutes(gateway: ToolsOfGateway): ControlRoutes {
  return {
    "GET /tools/lines": async ({ query, signal }) => {
      const as = query.get("as");
      const rule = as === null ? undefined : gateway.hiddenBy(as);
      return jsonLines(linesOf(await gateway.tools(), rule, signal));
    },
    "GET /tools/one": async ({ query }) => {
      const name = query.get("name");
      const tool = (await gateway.tools()).find((one) => one.name === name);
      if (tool === undefined) throw new ControlError("not-found", "There is no such tool.");
      return { tool };
    },
  };
}

async function* linesOf(
  tools: readonly Listed[],
  rule: ((server: string, ownName: string) => string | undefined) | undefined,
  signal: AbortSignal,
): AsyncIterableIterator<ToolInShort> {
  let n = 0;
  for (const { name, server, ownName, description = "", inputSchema, quarantined } of tools) {
    if (n++ % TOOLS_A_TURN === 0 && n > 1) {
      await nextTurn();
      if (signal.aborted) return;
    }
    const length = name.length + description.length + (JSON.stringify(inputSchema) ?? "").length;
    const hiddenBy = rule?.(server, ownName);
    yield {
      name,
      server,
      ownName,
      description: description.slice(0, DESCRIPTION_CHARS),
      tokens: Math.ceil(length / CHARS_A_TOKEN),
      ...(quarantined === undefined ? {} : { quarantined: true }),
      ...(hiddenBy === undefined ? {} : { hiddenBy }),
    };
  }
}
