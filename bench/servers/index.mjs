// Starts the tiny servers, and makes the entries with which a target finds them.

import { fileURLToPath } from "node:url";
import { firstLine, startNode } from "../processes.mjs";

const file = (name) => fileURLToPath(new URL(`./${name}.mjs`, import.meta.url));

/** One process that stands for any number of servers: each has a path of its own. */
export async function startHttpServer({ era, answers, tools = 2, results = false }) {
  const more = results ? ["--results"] : [];
  const started = startNode([file("http"), "--era", era, "--answers", answers, "--tools", String(tools), ...more]);
  const { port } = await firstLine(started, "The HTTP server");
  return { entry: (name) => ({ name, url: `http://127.0.0.1:${port}/${name}/mcp` }), stop: started.stop };
}

/** Bodies over plain HTTP, for the workload `executor`. */
export async function startBodies() {
  const started = startNode([file("bodies")]);
  const { port } = await firstLine(started, "The server of bodies");
  return { port, url: `http://127.0.0.1:${port}`, stop: started.stop };
}

/** The entry of a server that is in trouble; `trouble` is its name, too. */
export function troubledEntry(trouble) {
  return { name: trouble, command: process.execPath, args: [file("troubled"), trouble] };
}

/** The entry of a server that its target starts. */
export function stdioEntry(name, { era, tools = 2, results = false }) {
  const more = results ? ["--results"] : [];
  return { name, command: process.execPath, args: [file("stdio"), "--era", era, "--tools", String(tools), ...more] };
}
