// The routes that a page alone asks for: what answers is loaded when somebody does.

import type { ControlRoutes } from "../../control/server.js";
import type { ToolsOfGateway } from "./tool-lines.js";
import type { ServeOperator } from "./tries.js";

export function pageRoutes(gateway: ToolsOfGateway & { readonly serve: ServeOperator }): ControlRoutes {
  let tries: Promise<ControlRoutes> | undefined;
  const loadTries = () => {
    // Calls under way are known to one of them.
    tries ??= import("./tries.js").then(({ tryRoutes }) => tryRoutes(gateway.serve));
    return tries;
  };
  const loadLines = () => import("./tool-lines.js").then(({ toolLineRoutes }) => toolLineRoutes(gateway));
  return {
    ...later(["POST /try", "POST /try/answer"], loadTries),
    ...later(["GET /tools/lines", "GET /tools/one", "GET /roles"], loadLines),
  };
}

function later(keys: readonly string[], load: () => Promise<ControlRoutes>): ControlRoutes {
  return Object.fromEntries(
    keys.map((key): [string, ControlRoutes[string]] => [key, async (request) => (await load())[key]?.(request)]),
  );
}
