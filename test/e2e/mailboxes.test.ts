// Mailboxes of a real gateway, by the command line and by a client that knows the frames alone.

import { type ChildProcess, spawn } from "node:child_process";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { BareClient, closeBareClients } from "../fixtures/mailbox/bare-client.js";
import { cli, type Gateway, root, startGateway, temporaryDirectory, until } from "./harness.js";
import { createToken, runCli, toolway } from "./operator.js";

let gateway: Gateway;
let url: string;
const tokens: Record<string, string> = {};
const children: ChildProcess[] = [];

beforeAll(async () => {
  gateway = await startGateway({ mcpServers: {}, mailboxes: {} } as never, { auth: true });
  url = `${gateway.origin.replace("http", "ws")}/mailboxes`;
  tokens["studio"] = await createToken(gateway, "studio", "sharer");
  tokens["agent"] = await createToken(gateway, "agent", "dev");
  tokens["worker-1"] = await createToken(gateway, "worker-1", "dev", "studio");
});
afterEach(closeBareClients);
afterAll(() => {
  for (const child of children) child.kill();
});

const connect = (id: string, hello: object = {}) => BareClient.connect(url, id, tokens[id] ?? "", hello);

it("are for sharers and for those who may send, and a sharer's token opens nothing else", async () => {
  await expect(BareClient.open(url, { authorization: `Bearer ${tokens["agent"]}` })).rejects.toThrow("403");
  await expect(BareClient.open(url, { authorization: "Bearer wrong" })).rejects.toThrow("401");
  await expect(connect("agent")).rejects.toThrow("may not use mailboxes");
  await expect(BareClient.open(url, { origin: "https://page.example" })).rejects.toThrow("403");
  await expect(BareClient.open(url, { host: "page.example" })).rejects.toThrow("403");
  const headers = { authorization: `Bearer ${tokens["studio"]}`, "content-type": "application/json" };
  expect((await fetch(gateway.url, { method: "POST", headers, body: "{}" })).status).toBe(403);
  // The token of the upgrade is as good as that of the hello.
  const studio = await BareClient.open(url, { authorization: `Bearer ${tokens["studio"]}` });
  studio.send({ kind: "hello", agent: { session_id: "studio" } });
  expect(await studio.next("welcome", "error")).toMatchObject({ kind: "welcome" });
});

it("lose those whose tokens are revoked, and keep what is in their boxes for a new token of that id", async () => {
  const worker = await connect("worker-1");
  const studio = await connect("studio");
  worker.deliver("studio", "kept", { text: "for studio's eyes" });
  await worker.next("delivered");
  const { out } = await toolway(gateway, "state", "dump");
  expect(out).toContain('"id":"kept"');
  expect(out).not.toContain("for studio's eyes");
  expect(await toolway(gateway, "token", "revoke", "studio")).toMatchObject({ code: 0 });
  await expect(studio.next("nothing")).rejects.toThrow("the token has ended");
  worker.deliver("studio", "lost");
  expect(await worker.next("error", "delivered")).toMatchObject({ kind: "error", id: "lost" });
  tokens["studio"] = await createToken(gateway, "studio", "sharer");
  const again = await connect("studio");
  again.send({ kind: "subscribe" });
  const found = await until("what was kept", async () => {
    const { id } = await again.message();
    again.send({ kind: "ack", id });
    return id === "kept" ? id : undefined;
  });
  expect(found).toBe("kept");
});

/** `toolway broker` with a state of its own, and what it printed first. */
async function startBroker(...args: string[]): Promise<{ child: ChildProcess; state: string; said: string }> {
  const state = await temporaryDirectory();
  const line = [cli, "broker", "--listen", "127.0.0.1:0", "--state", state, ...args];
  const child = spawn(process.execPath, line, { cwd: root });
  children.push(child);
  let said = "";
  child.stdout.on("data", (text: Buffer) => {
    said += text.toString();
  });
  await until("the broker's own words", () => said.endsWith("\n"));
  return { child, state, said };
}

it("are kept by a broker without servers, which says where it is and where its tokens are made", async () => {
  const { child, state, said } = await startBroker("--json");
  const { broker } = JSON.parse(said) as { broker: string };
  const made = await runCli("token", "create", "--id", "attic", "--role", "sharer", "--state", state);
  // At its root, and at the path that a gateway has.
  const attic = await BareClient.connect(broker, "attic", made.out.trim());
  attic.send({ kind: "subscribe" });
  const { origin } = new URL(broker.replace("ws", "http"));
  const beside = await BareClient.connect(`${origin.replace("http", "ws")}/mailboxes`, "attic", made.out.trim());
  beside.socket.close();
  for (const path of ["/healthz", "/readyz"]) expect((await fetch(origin + path)).status).toBe(200);
  for (const headers of [{ origin: "https://page.example" }, { host: "page.example" }]) {
    await expect(BareClient.open(broker, headers)).rejects.toThrow("403");
  }
  child.kill();
  await expect(attic.next("nothing")).rejects.toThrow("closed");
});

it("of a broker that asks for no token are whose they say, in the usual role, and it says at its start what that means", async () => {
  const { said } = await startBroker("--no-auth");
  expect(said).toContain("any program of this machine may be any mailbox");
  const address = /ws:\/\/127\.0\.0\.1:\d+/.exec(said)?.[0] ?? "";
  const [studio, worker] = [await BareClient.open(address), await BareClient.open(address)];
  studio.send({ kind: "hello", agent: { session_id: "studio" } });
  await studio.next("welcome");
  studio.send({ kind: "subscribe" });
  worker.send({ kind: "hello", agent: { session_id: "worker-9" } });
  expect(await worker.next("welcome", "error")).toMatchObject({ agent: { session_id: "worker-9", role: "default" } });
  worker.deliver("studio", "m-1", { op: "manifest" });
  expect(await studio.message()).toMatchObject({ id: "m-1", from: { session_id: "worker-9", role: "default" } });
  // Nobody takes a role by saying it, either.
  const boss = await BareClient.open(address);
  boss.send({ kind: "hello", agent: { session_id: "worker-10", role: "admin" } });
  await expect(boss.next("welcome")).rejects.toThrow('"worker-10" has the role "default" here');
  const beyond = await runCli("broker", "--listen", "0.0.0.0:0", "--no-auth");
  expect(beyond).toMatchObject({ code: 2, err: expect.stringContaining("could be any mailbox") });
});
