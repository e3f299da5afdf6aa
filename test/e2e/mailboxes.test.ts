// Mailboxes of a real gateway, by the command line and by a client that knows the frames alone.

import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { BareClient, closeBareClients } from "../fixtures/mailbox/bare-client.js";
import { cli, type Gateway, root, startGateway, temporaryDirectory, until } from "./harness.js";
import { createToken, runCli, toolway } from "./operator.js";

let gateway: Gateway;
let url: string;
const tokens: Record<string, string> = {};

beforeAll(async () => {
  gateway = await startGateway({ mcpServers: {}, mailboxes: {} } as never, { auth: true });
  url = `${gateway.origin.replace("http", "ws")}/mailboxes`;
  tokens["studio"] = await createToken(gateway, "studio", "sharer");
  tokens["agent"] = await createToken(gateway, "agent", "dev");
  const made = await toolway(
    gateway,
    "token",
    "create",
    "--id",
    "worker-1",
    "--role",
    "dev",
    "--may-send-to",
    "studio",
  );
  tokens["worker-1"] = made.out.trim();
});
afterEach(closeBareClients);

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

it("are kept by a broker without servers, which says where it is and where its tokens are made", async () => {
  const state = await temporaryDirectory();
  const { spawn } = await import("node:child_process");
  const child = spawn(process.execPath, [cli, "broker", "--listen", "127.0.0.1:0", "--state", state, "--json"], {
    cwd: root,
  });
  afterAll(() => child.kill());
  const line = await new Promise<string>((done) => child.stdout.once("data", (text: Buffer) => done(text.toString())));
  const { broker } = JSON.parse(line) as { broker: string };
  const made = await runCli("token", "create", "--id", "attic", "--role", "sharer", "--state", state);
  const attic = await BareClient.connect(broker, "attic", made.out.trim());
  attic.send({ kind: "subscribe" });
  expect((await fetch(`${broker.replace("ws", "http")}/healthz`)).status).toBe(200);
  child.kill();
  await expect(attic.next("nothing")).rejects.toThrow("closed");
});
