// A machine shares its tools through a balancer before two gateways. The one that it is connected to is drained, under calls at
// both: the machine goes to the other, and each call has its effect once.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { makeEngineKey } from "../../src/gateway/engine/keys.js";
import { CLOSING } from "../../src/protocol/errors.js";
import { cli, type Gateway, isAlive, root, startGateway, stdioFixture } from "../e2e/harness.js";
import { callTool, hasTool, toolway } from "../e2e/operator.js";
import { temporaryFolder } from "../fixtures/folders.js";
import { effectsIn } from "../fixtures/ledger.js";
import { NO_NATS, natsPrograms, startNats } from "../fixtures/nats.js";
import { until } from "../fixtures/wait.js";

const title = natsPrograms.length === 0 ? `toolway drain, ${NO_NATS}` : "toolway drain";

interface Dialled {
  readonly origin: string;
  /** How many of the gateways lived then. */
  readonly living: number;
}

/** Each connection goes to the first that says it is ready; `dialled` is where they went. */
async function balance(gateways: readonly Gateway[]): Promise<{ server: Server; url: string; dialled: Dialled[] }> {
  const dialled: Dialled[] = [];
  const server = createServer((socket) => void pass(socket));
  async function pass(socket: Socket): Promise<void> {
    socket.on("error", () => {});
    for (const { origin } of gateways) {
      const isReady = await fetch(`${origin}/readyz`).then(
        ({ ok }) => ok,
        () => false,
      );
      if (!isReady) continue;
      dialled.push({ origin, living: gateways.filter(({ pid }) => isAlive(pid)).length });
      const far = connect(Number(new URL(origin).port), "127.0.0.1");
      far.on("error", () => {});
      far.on("close", () => socket.destroy());
      socket.on("close", () => far.destroy());
      socket.pipe(far).pipe(socket);
      return;
    }
    socket.destroy();
  }
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { server, url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}`, dialled };
}

describe.skipIf(natsPrograms.length === 0)(title, () => {
  let sharer: ChildProcess | undefined;
  let balancer: Server | undefined;
  afterAll(async () => {
    sharer?.kill();
    if (sharer !== undefined && sharer.exitCode === null && sharer.signalCode === null) await once(sharer, "exit");
    balancer?.close();
  });

  it("sends a machine that shares its tools to another gateway, and calls go on: none is lost and none made twice [engine-drain] [mail-anywhere] [no-double-effect]", async () => {
    const nats = await startNats();
    const folder = temporaryFolder("toolway-drain-");
    const [path, ledger] = [join(folder, "mcp.json"), join(folder, "ledger.jsonl")];
    const engine = { nats: nats.urls, key: { env: "ENGINE_KEY" }, replicas: 1 };
    const config = { engine, mailboxes: {}, mcpServers: { studio: { mailbox: "studio" } } };
    const env = { ...process.env, ENGINE_KEY: makeEngineKey() };
    const leaving = await startGateway(config as never, { env });
    const staying = await startGateway(config as never, { env });
    const before = await balance([leaving, staying]);
    balancer = before.server;
    writeFileSync(path, JSON.stringify({ mcpServers: { tracker: stdioFixture("tracker", ["--ledger", ledger]) } }));
    const words = ["share", path, "--broker", before.url, "--as", "studio", "--state", join(folder, "state")];
    sharer = spawn(process.execPath, [cli, ...words], { cwd: root, stdio: "ignore" });
    const tool = "add_comment";
    for (const { url } of [leaving, staying]) await until("its tools", () => hasTool(url, tool));
    expect(before.dialled.map(({ origin }) => origin)).toEqual([leaving.origin]);

    // A tool that knows no key: what is made twice has two effects.
    let isOver = false;
    const made: string[] = [];
    const refused: string[] = [];
    const callAt = async (gateway: Gateway, name: string) => {
      for (let n = 0; !isOver; n++) {
        const comment = `${name}-${n}`;
        const answer = await callTool(gateway.url, tool, { project: "p", title: comment }).catch(() => undefined);
        // It takes no more calls, or has gone.
        if (gateway === leaving && (answer === undefined || answer.error?.code === CLOSING)) return;
        if (answer?.error === undefined && answer?.result?.["isError"] !== true) made.push(comment);
        else refused.push(JSON.stringify(answer));
      }
    };
    const calls = [1, 2, 3, 4].flatMap((n) => [callAt(leaving, `l${n}`), callAt(staying, `s${n}`)]);
    await until("calls at both", () => made.length > 16);
    expect(await toolway(leaving, "drain", "this")).toMatchObject({ code: 0, err: "" });
    await leaving.exited;
    // It was sent there, and did not only find its own gateway gone.
    expect(before.dialled[1]).toEqual({ origin: staying.origin, living: 2 });
    const soFar = made.length;
    await until("calls after it", () => made.length > soFar + 16);
    isOver = true;
    await Promise.all(calls);
    expect(refused).toEqual([]);
    const effects = effectsIn(ledger).map(({ title: comment }) => comment);
    expect(effects.length).toBe(new Set(effects).size);
    expect(made.filter((comment) => !effects.includes(comment))).toEqual([]);
  }, 300_000);
});
