// Tokens that end while they hold something open. The gateway's clock is set by a module that is loaded before it.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import { figure } from "../faults/length.js";
import { BareClient, closeBareClients } from "../fixtures/mailbox/bare-client.js";
import { connected, executorOf, startExecutor } from "./executor-process.js";
import { type Gateway, sleep, startGateway, startHttpFixture, temporaryDirectory, until } from "./harness.js";
import { hasTool, toolway } from "./operator.js";
import { initialize, post } from "./wire.js";

const HOUR = 3_600_000;
/** What is promised; among all other tests a machine that is busy with them gets as much again. */
const ENDED_MS = figure(10_000, 5_000);
const FIRST = "the first time";
/** Longer than two looks of the gateway. */
const LOOKS_MS = 5_000;

/** A gateway whose wall clock is this one's, moved by as much as was set last. */
async function gatewayWithClock(config: Parameters<typeof startGateway>[0]) {
  const dir = await temporaryDirectory();
  const [module, offset] = [join(dir, "clock.mjs"), join(dir, "offset")];
  writeFileSync(offset, "0");
  const read = `Number(readFileSync(${JSON.stringify(offset)}, "utf8"))`;
  writeFileSync(
    module,
    `import { readFileSync } from "node:fs";\nconst now = Date.now;\nDate.now = () => now() + ${read};\n`,
  );
  const env = { NODE_OPTIONS: `--import ${pathToFileURL(module).href}` };
  const gateway = await startGateway(config, { auth: true, env });
  return { gateway, setClock: (ms: number) => writeFileSync(offset, String(ms)) };
}

async function create(gateway: Gateway, id: string, role: string, expires?: string): Promise<string> {
  const until = expires === undefined ? [] : ["--expires", expires];
  const { out } = await toolway(gateway, "token", "create", "--id", id, "--role", role, ...until);
  return out.trim().split("\n").at(-1) ?? "";
}

interface Held {
  readonly what: string;
  readonly state: { ended: "cleanly" | "broken" | undefined };
}

/** Something that stays open until the other side ends it. */
async function hold(what: string, url: string, init: RequestInit): Promise<Held> {
  const response = await fetch(url, init);
  expect([what, response.status]).toEqual([what, 200]);
  const state: Held["state"] = { ended: undefined };
  void response.text().then(
    () => {
      state.ended = "cleanly";
    },
    () => {
      state.ended = "broken";
    },
  );
  return { what, state };
}

/** A GET stream, an old SSE stream and a subscription of one token. */
async function holdAll(gateway: Gateway, token: string): Promise<Held[]> {
  const authorization = `Bearer ${token}`;
  const session = (await post(gateway.url, initialize("0"), { authorization })).headers.get("mcp-session-id") ?? "";
  const events = { authorization, accept: "text/event-stream" };
  const listen = {
    jsonrpc: "2.0",
    id: 1,
    method: "subscriptions/listen",
    params: {
      notifications: { toolsListChanged: true },
      _meta: {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { name: "held", version: "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
      },
    },
  };
  const headers = {
    authorization,
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": "subscriptions/listen",
  };
  return [
    await hold("GET", gateway.url, { headers: { ...events, "mcp-session-id": session } }),
    await hold("SSE", `${gateway.origin}/sse`, { headers: events }),
    await hold("listen", gateway.url, { method: "POST", headers, body: JSON.stringify(listen) }),
  ];
}

const states = (held: readonly Held[]) => held.map(({ what, state }) => [what, state.ended]);

describe("a token that expires", () => {
  it("ends what it holds open within 5 s, as often as the clock says so, and nobody else's [token-ends]", async () => {
    const { entry } = await startHttpFixture("slow");
    const servers = { wiki: { ...entry, via: "office" } };
    const { gateway, setClock } = await gatewayWithClock({
      mcpServers: servers,
      executors: { office: {} },
      mailboxes: {},
    });
    const everlasting = readFileSync(join(gateway.stateDir, "token"), "utf8").trim();
    const brief = await create(gateway, "brief", "default", "60m");
    const office = await create(gateway, "office", "executor", "60m");
    const studio = await create(gateway, "studio", "sharer", "60m");
    const mailboxes = `${gateway.origin.replace("http", "ws")}/mailboxes`;
    onTestFinished(closeBareClients);
    // One that was refused waits up to a minute before it asks again: each time has a new one.
    const dial = () => startExecutor(["--connect", `ws://127.0.0.1:${gateway.port}/executors/office`], office);
    let executor = dial();
    await connected(gateway, "office");
    await until("the tools", () => hasTool(gateway.url, "sleep", brief));
    const others = await holdAll(gateway, everlasting);

    for (const when of [FIRST, "once more, after the clock was set back"]) {
      const held = await holdAll(gateway, brief);
      const box = await BareClient.connect(mailboxes, "studio", studio);
      await connected(gateway, "office");
      // Of what has not ended nothing is ended, though the gateway has looked; least of all where it has ended before.
      if (when !== FIRST) await sleep(LOOKS_MS);
      expect([when, states(held)]).toEqual([when, held.map(({ what }) => [what, undefined])]);
      expect(box.closed).toBeUndefined();
      setClock(2 * HOUR);
      const set = performance.now();
      await until("the end of what was open", () => held.every(({ state }) => state.ended !== undefined));
      await until("the executor's end", async () => (await executorOf(gateway, "office")).members.length === 0);
      await until("the end of the mailbox's socket", () => box.closed !== undefined);
      expect(performance.now() - set).toBeLessThan(ENDED_MS);
      expect(box.closed?.reason).toContain("the token has ended");
      expect(states(held)).toEqual(held.map(({ what }) => [what, "cleanly"]));
      expect((await post(gateway.url, initialize("0"), { authorization: `Bearer ${brief}` })).status).toBe(401);
      // The clock was wrong: what it ended may come again.
      setClock(0);
      await executor.kill();
      executor = dial();
    }
    await connected(gateway, "office");
    expect(states(others)).toEqual(others.map(({ what }) => [what, undefined]));
  });
});
