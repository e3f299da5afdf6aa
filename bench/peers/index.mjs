// The other proxies that Toolway is measured beside, each as a target: how it is started, what it can do, what it calls
// a tool. Each in the way that costs it least; what a peer cannot do is left out.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { firstLine, freePort, startNode } from "../processes.mjs";
import { install } from "./install.mjs";
import { closeSession, listed } from "./listed.mjs";

const file = (name) => fileURLToPath(new URL(name, import.meta.url));
const plain = (_server, tool) => tool;

/**
 * All peers that can be measured here. Installs what is missing, and says what it goes without.
 * @param {(line: string) => void} log
 * @returns {Promise<import("../target.mjs").Target[]>}
 */
export async function peers(log) {
  const programs = await install(log);
  const others = [supergateway, mcpProxy, mcpHub].filter(({ program }) => programs.has(program));
  return [sdk("v1", ["legacy"]), sdk("v2", ["legacy", "modern"]), ...others.map((peer) => peer.target(programs))];
}

/** A proxy of ours on the official SDK; see sdk-v1.mjs and sdk-v2.mjs. */
function sdk(version, eras) {
  return {
    name: `sdk-${version}`,
    group: "peer",
    supports: ({ era, servers }) => eras.includes(era) && servers.length === 1,
    async start({ era, servers, names }) {
      const [{ url, command, args = [] }] = servers;
      const behind = url === undefined ? ["--", command, ...args] : ["--url", url];
      const started = startNode([file(`./sdk-${version}.mjs`), "--era", era, ...behind]);
      return await running(started, era, names, async () => {
        const { port } = await firstLine(started, `sdk-${version}`);
        return { url: `http://127.0.0.1:${port}/mcp`, toolName: plain };
      });
    },
  };
}

/**
 * Stateful, so that a session keeps its child: without, and for every request of the modern era, it starts a process for
 * each call, which is another order of magnitude. Its log has each message at the default level: off.
 */
const supergateway = {
  program: "supergateway",
  target: (programs) => ({
    name: "supergateway",
    group: "peer",
    supports: ({ upstream, era, servers }) => upstream === "stdio" && era === "legacy" && servers.length === 1,
    async start({ era, servers, names }) {
      const [{ command, args = [] }] = servers;
      const port = await freePort();
      const line = [command, ...args].map(quoted).join(" ");
      const how = ["--outputTransport", "streamableHttp", "--stateful", "--logLevel", "none", "--port", String(port)];
      const started = startNode([programs.get("supergateway"), "--stdio", line, ...how]);
      return await running(started, era, names, () => ({ url: `http://127.0.0.1:${port}/mcp`, toolName: plain }));
    },
  }),
};

/** Without the store of events for reconnecting clients, which the load does not need. */
const mcpProxy = {
  program: "mcp-proxy",
  target: (programs) => ({
    name: "mcp-proxy",
    group: "peer",
    supports: ({ upstream, servers }) => upstream === "stdio" && servers.length === 1,
    async start({ era, servers, names }) {
      const [{ command, args = [] }] = servers;
      const port = await freePort();
      const how = ["--host", "127.0.0.1", "--port", String(port), "--server", "stream", "--no-eventStore"];
      const eras = era === "modern" ? ["--upstreamProtocol", "modern"] : ["--no-modern"];
      const started = startNode([programs.get("mcp-proxy"), ...how, ...eras, "--", command, ...args]);
      return await running(started, era, names, () => ({ url: `http://127.0.0.1:${port}/mcp`, toolName: plain }));
    },
  }),
};

/** Its endpoint for agents is the old HTTP+SSE: sse-front.mjs stands before it, and is charged to nobody. */
const mcpHub = {
  program: "mcp-hub",
  target: (programs) => ({
    name: "mcp-hub",
    group: "peer",
    supports: ({ era }) => era === "legacy",
    async start({ era, servers, workDir, names }) {
      const port = await freePort();
      const config = join(workDir, "mcp-hub.json");
      const entries = servers.map(({ name, ...entry }) => [name, entry]);
      writeFileSync(config, JSON.stringify({ mcpServers: Object.fromEntries(entries) }));
      const env = { XDG_STATE_HOME: workDir, XDG_CONFIG_HOME: workDir, XDG_DATA_HOME: workDir };
      const started = startNode([programs.get("mcp-hub"), "--port", String(port), "--config", config], { env });
      const front = startNode([file("./sse-front.mjs"), `http://127.0.0.1:${port}/mcp`]);
      const toolName = (server, tool) => `${server}__${tool}`;
      const all = servers.flatMap(({ name }) => names.map((tool) => toolName(name, tool)));
      const stop = async () => void (await Promise.all([front.stop(), started.stop()]));
      const where = async () => ({
        url: `http://127.0.0.1:${(await firstLine(front, "sse-front")).port}/mcp`,
        toolName,
      });
      // The first session stays open: closing one makes mcp-hub's handler call itself until the stack overflows.
      return await running({ ...started, stop }, era, all, where, false);
    },
  }),
};

/** A target that answers. One that does not is ended before that is said. */
async function running(started, era, names, where, closes = true) {
  try {
    const { url, toolName } = await where();
    const session = await listed(started, url, era, names);
    if (closes) await closeSession(url, session);
    const { pid } = started.child;
    return { url, pid, headers: {}, toolName, sessions: era === "legacy", stop: started.stop };
  } catch (error) {
    await started.stop();
    throw error;
  }
}

/** For a command line that a shell reads. */
function quoted(word) {
  return `'${word.replaceAll("'", "'\\''")}'`;
}
