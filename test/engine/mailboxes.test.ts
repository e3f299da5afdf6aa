// Mailboxes of several brokers on one engine, as processes: a machine shares its tools at one of them, and agents use them at any.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeEngineKey } from "../../src/gateway/engine/keys.js";
import { connect, ERAS } from "../e2e/eras.js";
import {
  cli,
  type Gateway,
  npmServer,
  root,
  startGateway,
  stdioFixture,
  temporaryDirectory,
  until,
} from "../e2e/harness.js";
import { hasTool } from "../e2e/operator.js";
import { NO_NATS, natsPrograms, startNats } from "../fixtures/nats.js";

const title = natsPrograms.length === 0 ? `mailboxes in NATS, ${NO_NATS}` : "mailboxes in NATS";

describe.skipIf(natsPrograms.length === 0)(title, () => {
  const gateways: Gateway[] = [];
  let sharer: ChildProcess;

  beforeAll(async () => {
    const nats = await startNats();
    const engine = { nats: nats.urls, key: { env: "ENGINE_KEY" }, replicas: 1 };
    const config = { engine, mailboxes: {}, mcpServers: { studio: { mailbox: "studio" } } };
    const env = { ...process.env, ENGINE_KEY: makeEngineKey() };
    for (let n = 0; n < 2; n++) gateways.push(await startGateway(config as never, { env }));
    const folder = await temporaryDirectory();
    const path = join(folder, "mcp.json");
    const mcpServers = { everything: npmServer("everything", ["stdio"]), fidelity: stdioFixture("fidelity") };
    await writeFile(path, JSON.stringify({ mcpServers }));
    const broker = gateways[0]?.origin.replace("http", "ws") ?? "";
    const line = ["share", path, "--broker", broker, "--as", "studio", "--state", join(folder, "state"), "--json"];
    sharer = spawn(process.execPath, [cli, ...line], { cwd: root, stdio: "ignore" });
    for (const { url } of gateways) {
      for (const tool of ["everything__echo", "fidelity__big"]) await until(tool, () => hasTool(url, tool));
    }
  });
  afterAll(async () => {
    sharer.kill();
    if (sharer.exitCode === null && sharer.signalCode === null) await once(sharer, "exit");
  });

  describe.each(ERAS)("an agent of the %s era", (era) => {
    it.each([0, 1])(
      "calls at broker %i what is shared at the first, hears of its progress, and takes a call back [mail-anywhere]",
      async (n) => {
        const agent = await connect(era, gateways[n] as Gateway);
        expect(await agent.text("everything__echo", { message: "hi" })).toBe("Echo: hi");
        const heard: number[] = [];
        const onprogress = ({ progress }: { progress: number }) => void heard.push(progress);
        await agent.text("everything__trigger_long_running_operation", { duration: 0.3, steps: 3 }, { onprogress });
        expect(heard.length).toBeGreaterThan(0);
        const stop = new AbortController();
        const call = agent.call(
          "everything__trigger_long_running_operation",
          { duration: 600, steps: 6_000 },
          { signal: stop.signal, onprogress: () => stop.abort() },
        );
        await expect(call).rejects.toThrow();
        expect(await agent.text("everything__echo", { message: "after" })).toBe("Echo: after");
      },
    );

    it.each([0, 1])("is given 8 MiB at broker %i, every byte", async (n) => {
      const agent = await connect(era, gateways[n] as Gateway);
      const bytes = 8 * 1024 * 1024;
      // As the fixture makes it; a diff of such texts would say nothing.
      const unit = 'a"\\\u2028é😀';
      const wanted = unit.repeat(Math.ceil(bytes / Buffer.byteLength(unit)));
      expect((await agent.text("fidelity__big", { bytes })) === wanted).toBe(true);
    });
  });
});
