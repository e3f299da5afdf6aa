// The whole way with the real SDK clients of both eras: agent → gateway → broker → sharer → server.

import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connect, ERAS } from "./eras.js";
import {
  cli,
  type Gateway,
  npmServer,
  root,
  startGateway,
  stdioFixture,
  temporaryDirectory,
  until,
} from "./harness.js";
import { hasTool, runCli } from "./operator.js";

/** A gateway, and a machine that it reaches through a broker. */
interface Way {
  readonly gateway: Gateway;
  /** Of the machine. */
  readonly state: string;
}

const children: ChildProcess[] = [];
/** Three processes: the broker is one of its own, as on a third machine. */
let apart: Way;
/** Two: the gateway is its own broker. */
let beside: Way;
/** What server-everything fetches: in base64 it is more than 8 MiB. */
let file: { readonly url: string; readonly bytes: Buffer; readonly server: Server };

function start(...words: string[]): ChildProcess {
  const env = { ...process.env };
  delete env["TOOLWAY_TOKEN"];
  const child = spawn(process.execPath, [cli, ...words], { cwd: root, env, stdio: ["ignore", "pipe", "ignore"] });
  children.push(child);
  return child;
}

/** Resolves when the gateway has these tools, of the last servers to be ready. */
async function share(gateway: Gateway, broker: string, mcpServers: object, ...tools: string[]): Promise<Way> {
  const folder = await temporaryDirectory();
  const config = join(folder, "mcp.json");
  await writeFile(config, JSON.stringify({ mcpServers }));
  const state = join(folder, "state");
  const sharer = start("share", config, "--broker", broker, "--as", "studio", "--state", state, "--json");
  sharer.stdout?.resume();
  for (const tool of tools) await until(tool, () => hasTool(gateway.url, tool));
  return { gateway, state };
}

async function setUpApart(): Promise<Way> {
  const state = join(await temporaryDirectory(), "state");
  const child = start("broker", "--no-auth", "--listen", "127.0.0.1:0", "--state", state, "--json");
  const [line] = (await once(child.stdout as NodeJS.ReadableStream, "data")) as [Buffer];
  const { broker } = JSON.parse(line.toString()) as { broker: string };
  const gateway = await startGateway({ mcpServers: { studio: { mailbox: "studio", broker } } } as never);
  const servers = { everything: npmServer("everything", ["stdio"]), logger: stdioFixture("logger") };
  const last = ["everything__trigger_sampling_request", "everything__trigger_elicitation_request", "logger__log_all"];
  return share(gateway, broker, servers, ...last);
}

async function setUpBeside(): Promise<Way> {
  const gateway = await startGateway({ mailboxes: {}, mcpServers: { studio: { mailbox: "studio" } } } as never);
  const names = ["asker", "fidelity", "slow", "changing", "resources"];
  const servers = Object.fromEntries(names.map((name) => [name, stdioFixture(name)]));
  const last = ["asker__roots", "fidelity__big", "slow__sleep", "changing__set_tool", "resources__touch"];
  return share(gateway, gateway.origin.replace("http", "ws"), servers, ...last);
}

beforeAll(async () => {
  const bytes = randomBytes(6_500_000);
  const server = createServer((_request, response) => void response.end(bytes)).listen(0, "127.0.0.1");
  await once(server, "listening");
  file = { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, bytes, server };
  [apart, beside] = await Promise.all([setUpApart(), setUpBeside()]);
});
afterAll(async () => {
  file.server.close();
  file.server.closeAllConnections();
  for (const child of children) {
    child.kill();
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  }
});

// Before calls are taken back there: such a server goes on with them, and whom it asks for is not known then.
describe.each(ERAS)("an agent of the %s era, and the server of others on that machine", (era) => {
  it("is asked by it, and its answers arrive [eras-meet]", async () => {
    const agent = await connect(era, apart.gateway, { name: `theirs-${era}` });
    const sampled = await agent.text("everything__trigger_sampling_request", { prompt: "hello" });
    expect(sampled).toContain(`theirs-${era} samples`);
    const elicited = await agent.call("everything__trigger_elicitation_request");
    expect(JSON.stringify(elicited)).toContain(`theirs-${era}: `);
    // A third of a second after its handshake that server asks for roots, by itself: of whoever has a call under way then.
    const asked = agent.asked.filter(({ method }) => method !== "roots/list");
    expect(asked.map(({ method }) => method)).toEqual(["sampling/createMessage", "elicitation/create"]);
    expect(JSON.stringify(asked[0]?.params)).toContain("hello");
  });
});

describe.each(ERAS)("an agent of the %s era, and the server of others on that machine", (era) => {
  it("hears of its progress", async () => {
    const agent = await connect(era, apart.gateway);
    const heard: number[] = [];
    const onprogress = ({ progress }: { progress: number }) => void heard.push(progress);
    const steps = { duration: 0.3, steps: 3 };
    const said = await agent.text("everything__trigger_long_running_operation", steps, { onprogress });
    expect(said).toContain("Long running operation completed");
    // A step may be passed over on a slow machine; what is heard is in order.
    expect(heard.length).toBeGreaterThan(0);
    expect(heard).toEqual([...heard].sort((a, b) => a - b));
  });

  it("gets its prompts, and is helped to fill them in", async () => {
    const { client } = await connect(era, apart.gateway);
    const names = (await client.listPrompts()).prompts.map(({ name }) => name);
    const named = (part: string) => names.find((name) => name.startsWith("everything__") && name.includes(part)) ?? "";
    const { messages } = await client.getPrompt({ name: named("args"), arguments: { city: "Paris" } });
    expect(JSON.stringify(messages)).toContain("Paris");
    const ref = { type: "ref/prompt" as const, name: named("completable") };
    const { completion } = await client.complete({ ref, argument: { name: "department", value: "E" } });
    expect(completion.values).toEqual(["Engineering"]);
    const context = { arguments: { department: "Engineering" } };
    const lead = await client.complete({ ref, argument: { name: "name", value: "B" }, context });
    expect(lead.completion.values).toEqual(["Bob"]);
  });

  it("hears what is logged there in its call, from the level on that it asked for", async () => {
    const agent = await connect(era, apart.gateway);
    if (agent.era === "legacy") await agent.client.setLoggingLevel("warning");
    const data = `far ${era}`;
    await agent.call("logger__log_all", { data }, agent.era === "modern" ? { logLevel: "warning" } : {});
    const heard = () =>
      agent.notified.filter(({ params }) => params["data"] === data).map(({ params }) => params["level"]);
    // They are passed on at once, beside the answer, which is stored first and may come before or after.
    await until("the last of them", () => heard().includes("emergency"));
    expect(heard()).toEqual(["warning", "error", "critical", "alert", "emergency"]);
  });

  it("is known there by the name that it gave itself, beside whom the token makes it", async () => {
    const name = `named-${era}`;
    const agent = await connect(era, apart.gateway, { name });
    expect(await agent.text("everything__echo", { message: name })).toBe(`Echo: ${name}`);
    const shown = async () => (await runCli("calls", "--state", apart.state, "--json")).out;
    await until("its name there", async () => (await shown()).includes(`"client":"${name}"`));
  });

  it("takes a call back that it has begun, and goes on with it", async () => {
    const agent = await connect(era, apart.gateway);
    const stop = new AbortController();
    const onprogress = () => stop.abort();
    const minutes = { duration: 600, steps: 6_000 };
    const call = agent.call("everything__trigger_long_running_operation", minutes, { signal: stop.signal, onprogress });
    await expect(call).rejects.toThrow();
    expect(stop.signal.aborted).toBe(true);
    expect(await agent.text("everything__echo", { message: "after" })).toBe("Echo: after");
  });

  it("gets more than 8 MiB from it, every byte", async () => {
    const agent = await connect(era, apart.gateway);
    const { resource } = (await agent
      .call("everything__gzip_file_as_resource", {
        name: `${era}.gz`,
        data: file.url,
        outputType: "resource",
      })
      .then(({ content }) => content[0])) as unknown as { resource: { blob: string } };
    expect(resource.blob.length).toBeGreaterThan(8 * 1024 * 1024);
    expect(gunzipSync(Buffer.from(resource.blob, "base64")).equals(file.bytes)).toBe(true);
  });

  it("hears of the resource of it that it subscribed to [eras-meet]", async () => {
    const agent = await connect(era, apart.gateway);
    const uri = `demo://resource/dynamic/text/${era === "legacy" ? 1 : 2}`;
    const subscription = await agent.listen({ uris: [uri] });
    const updated = () =>
      agent.notified.some(
        ({ method, params }) => method === "notifications/resources/updated" && params["uri"] === uri,
      );
    // It tells at once when it is switched on, and never otherwise within the test.
    expect(await agent.text("everything__toggle_subscriber_updates")).toContain("Started");
    await until("the update", updated);
    expect(await agent.text("everything__toggle_subscriber_updates")).toContain("Stopped");
    await subscription.close();
  });
});

describe.each(ERAS)("an agent of the %s era, and a machine behind a mailbox that its gateway keeps", (era) => {
  it("is asked what that server asks within a call, and its answer arrives there", async () => {
    const agent = await connect(era, beside.gateway, { name: `far-${era}` });
    expect(await agent.text("asker__roots")).toContain(`file:///far-${era}`);
    expect(await agent.text("asker__sample")).toContain(`far-${era} samples`);
    expect(await agent.text("asker__elicit")).toContain(`far-${era}: `);
    const asked = agent.asked.map(({ method }) => method);
    expect(asked).toEqual(["roots/list", "sampling/createMessage", "elicitation/create"]);
  });

  it("gets a result of 1 MiB of what is hard to carry, which is drawn in pieces", async () => {
    const agent = await connect(era, beside.gateway);
    const bytes = 1024 * 1024;
    // As the fixture makes it; a diff of such texts would say nothing.
    const unit = 'a"\\\u2028é😀';
    const wanted = unit.repeat(Math.ceil(bytes / Buffer.byteLength(unit)));
    expect((await agent.text("fidelity__big", { bytes })) === wanted).toBe(true);
  });

  it("hears of progress", async () => {
    const agent = await connect(era, beside.gateway);
    const heard: number[] = [];
    const onprogress = ({ progress }: { progress: number }) => void heard.push(progress);
    await agent.call("slow__sleep", { ms: 600, everyMs: 100, label: "p" }, { onprogress });
    expect(heard.length).toBeGreaterThan(0);
  });

  it("takes a call back, and the server is told", async () => {
    const agent = await connect(era, beside.gateway);
    const label = `back-${era}`;
    const stop = new AbortController();
    const call = agent.call("slow__sleep", { ms: 60_000, label }, { signal: stop.signal }).catch(() => "taken back");
    await until("its start", async () => (await agent.text("slow__started")).includes(label));
    stop.abort();
    expect(await call).toBe("taken back");
    await until("its end", async () => (await agent.text("slow__cancelled")).includes(label));
  });

  it("hears that the tools there have changed, and finds them changed [menu-current]", async () => {
    const agent = await connect(era, beside.gateway);
    const listening = await agent.listen({ lists: true });
    const name = `new_${era}`;
    await agent.call("changing__set_tool", { name, description: "from far" });
    await until("the notification", () =>
      agent.notified.some(({ method }) => method === "notifications/tools/list_changed"),
    );
    await agent.waitFor(`changing__${name}`);
    expect(await agent.text(`changing__${name}`)).toBe(`${name}: from far`);
    await listening.close();
  });

  it("hears of the resource there that it subscribed to, from the answer on, and of no other [eras-meet]", async () => {
    const agent = await connect(era, beside.gateway);
    const updates = () =>
      agent.notified.filter(({ method }) => method === "notifications/resources/updated").map((it) => it.params["uri"]);
    // Each era has its own, or the other's subscription would do for both.
    const [mine, other] = era === "legacy" ? ["fixture://one", "fixture://two"] : ["fixture://two", "fixture://one"];
    const subscription = await agent.listen({ uris: [mine] });
    await agent.call("resources__touch", { uri: other });
    // One update, right after the answer: the server has the subscription by then. It comes after what came before it.
    await agent.call("resources__touch", { uri: mine, value: era });
    await until("the update", () => updates().includes(mine));
    expect(updates()).not.toContain(other);
    const { contents } = await agent.client.readResource({ uri: mine });
    expect(contents[0]).toMatchObject({ uri: mine, text: era });
    await subscription.close();
  });
});
