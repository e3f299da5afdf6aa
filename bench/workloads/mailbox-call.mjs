// A small call to a server behind a mailbox, through gateway, broker and sharer, against the same call to the same server
// that the gateway started itself. The CPU of all three is charged, with that of the server.

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ask } from "../ask.mjs";
import { contest, workDirectory } from "../contest.mjs";
import { firstLine, startNode } from "../processes.mjs";
import { stdioEntry } from "../servers/index.mjs";
import { CLI, startProgram, toolName } from "../toolway.mjs";

const SERVER = "tiny";
const NEAR = "call, stdio";
const FAR = "call, gateway, broker and sharer";
const IN_FLIGHT = 32;
const PLAN = { calls: 3_000, warm: 3_000, rewarm: 64, maxMs: 4_000 };
const READY_MS = 60_000;
const POLL_MS = 100;

/** `broker` is one that runs, with its process. */
export async function callRows(context, own, broker) {
  const target = context.targets.find(({ group }) => group === "toolway");
  if (target === undefined) return [];
  const { name: _, ...server } = stdioEntry(SERVER, { era: "modern" });
  const sharer = await startSharer(own, broker.url, server);
  const near = await sideOf(NEAR, server, [], target, own);
  const mailbox = { mailbox: "studio", broker: broker.url };
  const far = await sideOf(FAR, mailbox, [broker.pid, sharer.pid], target, own);
  return contest([near, far], context.plan(PLAN), context);
}

async function startSharer(own, broker, server) {
  const dir = await workDirectory(own);
  const config = join(dir, "mcp.json");
  await writeFile(config, JSON.stringify({ mcpServers: { [SERVER]: server } }));
  const line = [CLI, "share", config, "--broker", broker, "--as", "studio", "--state", join(dir, "state"), "--json"];
  const started = startNode(line);
  own(started.stop);
  await firstLine(started, "toolway share");
  return { pid: started.child.pid };
}

async function sideOf(variant, entry, alsoCharged, target, own) {
  const servers = [{ name: SERVER, ...entry }];
  const { started, headers } = await startProgram({ servers, workDir: await workDirectory(own) }, 0);
  own(started.stop);
  const { endpoint: url } = await firstLine(started, "toolway");
  await untilListed({ url, headers, era: "modern" }, started);
  return {
    target,
    running: { url, headers, pid: started.child.pid, alsoCharged, toolName, sessions: false, stop: started.stop },
    setup: { upstream: "stdio", answers: "json", era: "modern", servers, names: ["echo"] },
    inFlight: IN_FLIGHT,
    workload: "mailbox",
    variant,
    expected: { kind: "echo" },
    names: [toolName(SERVER, "echo")],
    against: (other) => other.variant === NEAR,
  };
}

async function untilListed(to, started) {
  const deadline = Date.now() + READY_MS;
  for (;;) {
    const { tools } = await ask(to, "tools/list", {});
    if (tools.some(({ name }) => name === toolName(SERVER, "echo"))) return;
    if (Date.now() > deadline) throw new Error(`The server is not listed. ${started.output()}`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}
