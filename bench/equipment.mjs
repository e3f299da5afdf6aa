// What a gateway can be given beside its servers that costs something with every call: roles, budgets, a cached tool and
// telemetry with somebody who takes it.

import { createServer } from "node:http";

/** So many that none is refused. */
const BUDGET = { calls: 1_000_000_000, windowMs: 3_600_000 };

/**
 * What of it stands in the entry of each server, and what beside them.
 * @param {string[]} servers their names
 * @param {string} collectorUrl
 */
export function equipment(servers, collectorUrl) {
  const denied = servers.map((server) => `${server}/big`);
  return {
    entry: { budget: BUDGET, tools: { echo: { readOnly: true, cache: true } } },
    settings: {
      roles: { default: { allow: servers, budget: BUDGET }, other: { deny: denied } },
      telemetry: { otlp: collectorUrl },
    },
  };
}

/** Takes traces and throws them away. */
export async function startCollector() {
  let requests = 0;
  const collector = createServer((request, response) => {
    requests += 1;
    request.resume().on("end", () => response.end("{}"));
  });
  await new Promise((done) => collector.listen(0, "127.0.0.1", done));
  return {
    url: `http://127.0.0.1:${collector.address().port}/v1/traces`,
    requests: () => requests,
    stop: () => collector.closeAllConnections() ?? collector.close(),
  };
}
