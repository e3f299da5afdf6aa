// The config where there is none: a small server of our own, so that there is something to call at once.

import { fileURLToPath } from "node:url";
import type { ConfigInput } from "../config/load.js";

export function demoConfig(): ConfigInput {
  // From this folder, and from that of the bundle's chunks, beside it.
  const script = fileURLToPath(new URL("../demo/server.js", import.meta.url));
  // It is ours, and changes with us.
  return { mcpServers: { demo: { command: process.execPath, args: [script], trust: "always" } } };
}
