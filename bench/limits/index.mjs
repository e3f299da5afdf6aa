// The bare limits as targets: what any gateway in Node has to pay at least.

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { firstLine, startNode } from "../processes.mjs";

const file = (name) => fileURLToPath(new URL(`./${name}.mjs`, import.meta.url));
const plainName = (_server, tool) => tool;

/** @type {import("../target.mjs").Target} */
const direct = {
  name: "direct",
  group: "limit",
  supports: ({ upstream, servers }) => upstream === "http" && servers.length === 1,
  start: async ({ servers: [server] }) => ({
    url: server.url,
    pid: undefined,
    headers: {},
    toolName: plainName,
    sessions: false,
    stop: async () => {},
  }),
};

/**
 * @param {string} name
 * @param {import("../target.mjs").Target["supports"]} supports
 * @param {(setup: import("../target.mjs").Setup) => string[] | Promise<string[]>} args
 * @returns {import("../target.mjs").Target}
 */
function limit(name, supports, args) {
  return {
    name,
    group: "limit",
    supports,
    async start(setup) {
      const started = startNode([file(name), ...(await args(setup))]);
      const { port } = await firstLine(started, name);
      return {
        url: `http://127.0.0.1:${port}/mcp`,
        pid: started.child.pid,
        headers: {},
        toolName: plainName,
        sessions: false,
        stop: started.stop,
      };
    },
  };
}

const isHttp = ({ upstream, servers }) => upstream === "http" && servers.length === 1;

/** @type {import("../target.mjs").Target[]} */
export const limits = [
  direct,
  limit("pass-through", isHttp, ({ servers: [server] }) => [server.url]),
  limit("parse", isHttp, ({ servers: [server] }) => [server.url]),
  limit(
    "bridge",
    ({ upstream }) => upstream === "stdio",
    ({ servers: [server] }) => [server.command, ...server.args],
  ),
  limit(
    "list",
    ({ list }) => list !== undefined,
    async ({ list, workDir }) => {
      const path = join(workDir, "list.json");
      await writeFile(path, list);
      return [path];
    },
  ),
  limit(
    "bare",
    () => false,
    () => [],
  ),
  // No endpoint for MCP: the workload `executor` starts it.
  limit(
    "tunnel",
    () => false,
    () => [],
  ),
];

/** Not among the limits: only for who asks for it by name. */
export const liar = limit("liar", isHttp, () => []);

/** The far end of the bare tunnel. */
export async function startTunnel() {
  const started = startNode([file("tunnel")]);
  const { port } = await firstLine(started, "tunnel");
  return { url: `ws://127.0.0.1:${port}`, pid: started.child.pid, stop: started.stop };
}

/** A WebSocket that says what it was told. */
export async function startEcho() {
  const started = startNode([file("ws-echo")]);
  const { port } = await firstLine(started, "ws-echo");
  return { url: `ws://127.0.0.1:${port}`, pid: started.child.pid, stop: started.stop };
}

/** For measuring the start: a limit on a given port, which does not yet listen. */
export const startLimit = (name, args, port) => startNode([file(name), ...args, "--port", String(port)]);
