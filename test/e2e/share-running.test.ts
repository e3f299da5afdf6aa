// A gateway that serves and shares its tools by its config, and `toolway share` beside it, which shares those of the gateway
// that runs. The gateway is its own broker; whoever calls knows the frames alone.

import { readdirSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { BareClient, closeBareClients } from "../fixtures/mailbox/bare-client.js";
import { start } from "../fixtures/processes.js";
import {
  cli,
  freePort,
  type Gateway,
  type GatewayConfig,
  startGateway,
  stdioFixture,
  temporaryDirectory,
  until,
} from "./harness.js";
import { callTool, statusOfAll, toolway } from "./operator.js";

interface Reply {
  readonly manifest?: { readonly function: { readonly name: string } }[];
  readonly result?: { readonly result: string };
}

let gateway: Gateway;
let broker: string;
let ledger: string;
let client: BareClient;
let asked = 0;

const configWith = (as: string): GatewayConfig => ({
  mcpServers: { ledger: stdioFixture("ledger", [], { env: { LEDGER: ledger } }) },
  mailboxes: {},
  share: { broker, as },
});

beforeAll(async () => {
  const port = await freePort();
  broker = `ws://127.0.0.1:${port}`;
  ledger = join(await temporaryDirectory(), "ledger.txt");
  await writeFile(ledger, "");
  gateway = await startGateway(configWith("studio"), { port });
  client = await BareClient.connect(broker, "worker", "");
  client.send({ kind: "subscribe" });
});
afterAll(closeBareClients);

async function ask(to: string, body: object): Promise<Reply> {
  const id = `m-${++asked}`;
  client.deliver(to, id, body);
  for (;;) {
    const message = await client.message();
    client.send({ kind: "ack", id: message.id });
    if (message["correlation_id"] === id) return message["body"] as Reply;
  }
}

const note = (text: string) => ({ op: "call", tool: "note", arguments: { text } });

/** The processes of the server whose effects are in the ledger. */
function servers(): string[] {
  return readdirSync("/proc").filter((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      if (!readFileSync(`/proc/${pid}/cmdline`, "latin1").includes("ledger.mjs")) return false;
      return readFileSync(`/proc/${pid}/environ`, "latin1").includes(ledger);
    } catch {
      return false;
    }
  });
}

const A_TIME = expect.stringMatching(/^\d{4}-.*Z$/);

const shares = async () => (await statusOfAll(gateway)).shares;

it("shares by its config what it serves, and says so in its status [status-true]", async () => {
  const { manifest } = await ask("studio", { op: "manifest" });
  expect(manifest?.map((tool) => tool.function.name)).toEqual(["note", "echo", "wait", "secret"]);
  expect((await ask("studio", note("from far"))).result?.result).toBe("noted from far");
  expect((await callTool(gateway.url, "note", { text: "from near" })).error).toBeUndefined();
  expect(readFileSync(ledger, "utf8")).toBe("from far\nfrom near\n");
  const { out } = await toolway(gateway, "status", "--json");
  expect(JSON.parse(out)).toMatchObject({ shares: [{ mailbox: "studio", state: "connected", since: A_TIME }] });
});

it("is what `toolway share` beside it shares, for as long as that runs: no server is started twice", async () => {
  const line = [
    "share",
    gateway.configPath,
    "--state",
    gateway.stateDir,
    "--broker",
    broker,
    "--as",
    "annex",
    "--json",
  ];
  const env = { ...process.env };
  delete env["TOOLWAY_TOKEN"];
  const verb = start("toolway share", process.execPath, [cli, ...line], env);
  await until("the share", () => {
    if (verb.child.exitCode !== null) throw new Error(verb.log());
    return verb.log().includes('"connected"');
  });
  expect((await ask("annex", note("by the verb"))).result?.result).toBe("noted by the verb");
  expect(servers()).toHaveLength(1);
  expect((await shares()).map(({ mailbox }) => mailbox)).toEqual(["studio", "annex"]);
  await verb.stop("SIGTERM");
  await until("its end", async () => (await shares()).length === 1);
  expect((await ask("studio", note("goes on"))).result?.result).toBe("noted goes on");
});

it("shares elsewhere when its config says so, and no more where it did", async () => {
  await gateway.writeConfig(configWith("attic"));
  gateway.signal("SIGHUP");
  await until("the other mailbox", async () => {
    const now = await shares();
    return now.length === 1 && now[0]?.mailbox === "attic" && now[0].state === "connected";
  });
  expect((await ask("attic", note("moved"))).result?.result).toBe("noted moved");
  expect(servers()).toHaveLength(1);
});
