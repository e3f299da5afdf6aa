// A small call to a server behind a mailbox, through gateway, broker and sharer, against the same call to the same server
// that the gateway started itself. The CPU of all three is charged, with that of the server.

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { contest, startTarget, workDirectory } from "../contest.mjs";
import { firstLine, startNode } from "../processes.mjs";
import { stdioEntry } from "../servers/index.mjs";
import { CLI, toolName } from "../toolway.mjs";

const SERVER = "tiny";
const NEAR = "call, stdio";
const FAR = "call, gateway, broker and sharer";
const IN_FLIGHT = 32;
const PLAN = { calls: 3_000, warm: 3_000, rewarm: 64, maxMs: 4_000 };

/** `broker` is one that runs, with its process. */
export async function callRows(context, own, broker) {
  const target = context.targets.find(({ group }) => group === "toolway");
  if (target === undefined) return [];
  const { name: _, ...server } = stdioEntry(SERVER, { era: "modern" });
  const sharer = await startSharer(own, broker.url, server);
  const near = await sideOf(NEAR, server, [], target, own, context);
  const mailbox = { mailbox: "studio", broker: broker.url };
  const far = await sideOf(FAR, mailbox, [broker.pid, sharer.pid], target, own, context);
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

/** The gateway with one server, at work; the processes behind it may be charged too. */
async function sideOf(variant, entry, alsoCharged, target, own, context) {
  const setup = {
    upstream: "stdio",
    answers: "json",
    era: "modern",
    servers: [{ name: SERVER, ...entry }],
    names: ["echo"],
  };
  const started = await startTarget(target, setup, own, context);
  return {
    ...started,
    running: { ...started.running, alsoCharged },
    inFlight: IN_FLIGHT,
    workload: "mailbox",
    variant,
    expected: { kind: "echo" },
    names: [toolName(SERVER, "echo")],
    against: (other) => other.variant === NEAR,
  };
}
