// A gateway as a program of its own, made by the library: with `--empty` its recorder hands records to nobody, which no config
// can say. It is a target of the workload `observe`, and the program that it starts.

import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startNode } from "./processes.mjs";

const SELF = fileURLToPath(import.meta.url);

export async function startSeen({ servers, settings, isEmpty, workDir }) {
  const entries = servers.map(({ name, ...entry }) => [name, entry]);
  const config = join(workDir, "toolway.json");
  await writeFile(config, JSON.stringify({ ...settings, mcpServers: Object.fromEntries(entries) }));
  const token = `bench-${randomBytes(24).toString("hex")}`;
  const args = [SELF, config, join(workDir, "state"), ...(isEmpty ? ["--empty"] : [])];
  return { started: startNode(args, { env: { TOOLWAY_TOKEN: token } }), headers: { Authorization: `Bearer ${token}` } };
}

async function main([config, stateDir, flag]) {
  const { createGateway } = await import("../dist/index.js");
  const gateway = await createGateway(config, { stateDir });
  if (flag === "--empty") gateway.diagnostics.records.recorder.setSinks([]);
  const { url } = await gateway.listen({ host: "127.0.0.1", port: 0 });
  process.stdout.write(`${JSON.stringify({ endpoint: url })}\n`);
  process.once("SIGTERM", () => void gateway.close({ drainMs: 0 }).then(() => process.exit(0)));
}

if (process.argv[1] === SELF) await main(process.argv.slice(2));
