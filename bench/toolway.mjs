// The product as a target: the built command line program with a config and a token, everything else at its defaults.

import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ask } from "./ask.mjs";
import { firstLine, startNode } from "./processes.mjs";

/** `TOOLWAY_CLI`: another build than the one in dist/. */
export const CLI = process.env.TOOLWAY_CLI ?? fileURLToPath(new URL("../dist/cli/main.js", import.meta.url));
/** 500 servers are met one after another; each takes some milliseconds. */
const READY_MS = 120_000;
const POLL_MS = 200;

/** Starts the program; it may not yet listen. `port` 0 is any free one; `settings` are keys of the config. */
export async function startProgram({ servers, settings = {}, workDir, cli = CLI, env = {} }, port) {
  if (!existsSync(cli)) throw new Error("There is no built program: run `npm run build` first.");
  const entries = servers.map(({ name, ...entry }) => [name, entry]);
  const config = join(workDir, "toolway.json");
  await writeFile(config, JSON.stringify({ ...settings, mcpServers: Object.fromEntries(entries) }));
  const token = `bench-${randomBytes(24).toString("hex")}`;
  const args = [cli, "serve", config, "--state", join(workDir, "state"), "--listen", `127.0.0.1:${port}`, "--json"];
  return {
    started: startNode(args, { env: { ...env, TOOLWAY_TOKEN: token } }),
    headers: { Authorization: `Bearer ${token}` },
  };
}

export const toolName = (server, tool) => `${server}__${tool}`;

/** @type {import("./target.mjs").Target} */
export const toolway = {
  name: "toolway",
  group: "toolway",
  supports: () => true,
  async start(setup) {
    const { started, headers } = await startProgram(setup, 0);
    try {
      const { endpoint: url } = await firstLine(started, "toolway");
      await everyServer(url, headers, setup.servers, started);
      const sessions = setup.era === "legacy";
      return { url, pid: started.child.pid, headers, toolName, sessions, stop: started.stop };
    } catch (error) {
      await started.stop();
      throw error;
    }
  },
};

/** `TOOLWAY_BEFORE`: an older build, which has its turns beside this one. It is no goal's, so it counts as a limit. */
export const before = {
  ...toolway,
  name: "before",
  group: "limit",
  cli: process.env.TOOLWAY_BEFORE,
  start: (setup) => toolway.start({ ...setup, cli: process.env.TOOLWAY_BEFORE }),
};

/** This build or the older one. */
export const isToolway = (target) => target.name === toolway.name || target.name === before.name;

/** Waits until each server has tools in the list. */
async function everyServer(url, headers, servers, started) {
  const deadline = Date.now() + READY_MS;
  for (;;) {
    const tools = await listTools(url, headers);
    const seen = new Set(tools.map(({ name }) => name.slice(0, name.indexOf("__"))));
    if (servers.every(({ name }) => seen.has(name))) return;
    if (Date.now() > deadline) {
      const what = `${seen.size} servers of ${servers.length} are listed, with ${tools.length} tools`;
      throw new Error(`Only ${what}. ${started.output()}`);
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

/** All pages of the list, as a modern agent gets them. */
async function listTools(url, headers) {
  const tools = [];
  let cursor;
  do {
    const result = await ask({ url, headers, era: "modern" }, "tools/list", { cursor });
    tools.push(...result.tools);
    cursor = result.nextCursor;
  } while (cursor !== undefined);
  return tools;
}
