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
import { hasTool } from "./operator.js";

let gateway: Gateway;
let sharer: ChildProcess;
/** What server-everything fetches: in base64 it is more than 8 MiB. */
let file: { readonly url: string; readonly bytes: Buffer; readonly server: Server };

beforeAll(async () => {
  const bytes = randomBytes(6_500_000);
  const server = createServer((_request, response) => void response.end(bytes)).listen(0, "127.0.0.1");
  await once(server, "listening");
  file = { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, bytes, server };
  gateway = await startGateway({ mailboxes: {}, mcpServers: { studio: { mailbox: "studio" } } } as never);
  const folder = await temporaryDirectory();
  const config = join(folder, "mcp.json");
  const mcpServers = {
    asker: stdioFixture("asker"),
    fidelity: stdioFixture("fidelity"),
    everything: npmServer("everything", ["stdio"]),
    slow: stdioFixture("slow"),
    changing: stdioFixture("changing"),
    resources: stdioFixture("resources"),
  };
  await writeFile(config, JSON.stringify({ mcpServers }));
  const broker = gateway.origin.replace("http", "ws");
  const line = ["share", config, "--broker", broker, "--as", "studio", "--state", join(folder, "state"), "--json"];
  const env = { ...process.env };
  delete env["TOOLWAY_TOKEN"];
  sharer = spawn(process.execPath, [cli, ...line], { cwd: root, env, stdio: "ignore" });
  const last = [
    "asker__roots",
    "everything__trigger_sampling_request",
    "everything__trigger_elicitation_request",
    "fidelity__big",
    "slow__sleep",
    "changing__set_tool",
    "resources__touch",
  ];
  for (const tool of last) await until(tool, () => hasTool(gateway.url, tool));
});
afterAll(async () => {
  file.server.close();
  file.server.closeAllConnections();
  sharer.kill();
  if (sharer.exitCode === null && sharer.signalCode === null) await once(sharer, "exit");
});

// Before calls are taken back there: such a server goes on with them, and whom it asks for is not known then.
describe.each(ERAS)("an agent of the %s era, and the server of others on that machine", (era) => {
  it("is asked by it, and its answers arrive [eras-meet]", async () => {
    const agent = await connect(era, gateway, { name: `theirs-${era}` });
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
    const agent = await connect(era, gateway);
    const heard: number[] = [];
    const onprogress = ({ progress }: { progress: number }) => void heard.push(progress);
    const steps = { duration: 0.3, steps: 3 };
    const said = await agent.text("everything__trigger_long_running_operation", steps, { onprogress });
    expect(said).toContain("Long running operation completed");
    // A step may be passed over on a slow machine; what is heard is in order.
    expect(heard.length).toBeGreaterThan(0);
    expect(heard).toEqual([...heard].sort((a, b) => a - b));
  });

  it("takes a call back that it has begun, and goes on with it", async () => {
    const agent = await connect(era, gateway);
    const stop = new AbortController();
    const onprogress = () => stop.abort();
    const minutes = { duration: 600, steps: 6_000 };
    const call = agent.call("everything__trigger_long_running_operation", minutes, { signal: stop.signal, onprogress });
    await expect(call).rejects.toThrow();
    expect(stop.signal.aborted).toBe(true);
    expect(await agent.text("everything__echo", { message: "after" })).toBe("Echo: after");
  });

  it("gets more than 8 MiB from it, every byte", async () => {
    const agent = await connect(era, gateway);
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
    const agent = await connect(era, gateway);
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

describe.each(ERAS)("an agent of the %s era, and a machine behind a mailbox", (era) => {
  it("calls a server of others there", async () => {
    const agent = await connect(era, gateway);
    expect(await agent.text("everything__echo", { message: "hi" })).toBe("Echo: hi");
  });

  it("is asked what that server asks within a call, and its answer arrives there", async () => {
    const agent = await connect(era, gateway, { name: `far-${era}` });
    expect(await agent.text("asker__roots")).toContain(`file:///far-${era}`);
    expect(await agent.text("asker__sample")).toContain(`far-${era} samples`);
    expect(await agent.text("asker__elicit")).toContain(`far-${era}: `);
    const asked = agent.asked.map(({ method }) => method);
    expect(asked).toEqual(["roots/list", "sampling/createMessage", "elicitation/create"]);
  });

  it("gets a result of 1 MiB of what is hard to carry, which is drawn in pieces", async () => {
    const agent = await connect(era, gateway);
    const bytes = 1024 * 1024;
    // As the fixture makes it; a diff of such texts would say nothing.
    const unit = 'a"\\\u2028é😀';
    const wanted = unit.repeat(Math.ceil(bytes / Buffer.byteLength(unit)));
    expect((await agent.text("fidelity__big", { bytes })) === wanted).toBe(true);
  });

  it("hears of progress", async () => {
    const agent = await connect(era, gateway);
    const heard: number[] = [];
    const onprogress = ({ progress }: { progress: number }) => void heard.push(progress);
    await agent.call("slow__sleep", { ms: 600, everyMs: 100, label: "p" }, { onprogress });
    expect(heard.length).toBeGreaterThan(0);
  });

  it("takes a call back, and the server is told", async () => {
    const agent = await connect(era, gateway);
    const label = `back-${era}`;
    const stop = new AbortController();
    const call = agent.call("slow__sleep", { ms: 60_000, label }, { signal: stop.signal }).catch(() => "taken back");
    await until("its start", async () => (await agent.text("slow__started")).includes(label));
    stop.abort();
    expect(await call).toBe("taken back");
    await until("its end", async () => (await agent.text("slow__cancelled")).includes(label));
  });

  it("hears that the tools there have changed, and finds them changed [menu-current]", async () => {
    const agent = await connect(era, gateway);
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
    const agent = await connect(era, gateway);
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
