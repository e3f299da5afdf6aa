// What outlives a run, and what does not: receipts and budgets of a principal that is named, an agent that is started again
// inside one run, and the gateway that was started for runs.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { start } from "../fixtures/processes.js";
import { connect } from "./eras.js";
import {
  cli,
  type Gateway,
  startGateway,
  startHttpFixture,
  stdioFixture,
  temporaryDirectory,
  until,
} from "./harness.js";
import { createToken } from "./operator.js";

/** An agent that calls the tools that its line names, with their arguments, and prints what came of each. */
const AGENT = `
const { TOOLWAY_URL: url, TOOLWAY_SESSION_TOKEN: secret } = process.env;
const meta = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": { name: "agent", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": {},
};
const call = async (name, args) => {
  const answer = await fetch(url, {
    method: "POST",
    headers: {
      authorization: "Bearer " + secret,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": "tools/call",
      "mcp-name": name,
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args, _meta: meta } }),
  });
  const text = await answer.text();
  const message = JSON.parse(text.startsWith("{") ? text : text.split("data: ").at(-1));
  console.log("SAID " + JSON.stringify({ status: answer.status, url, secret, ...message }));
};
for (let i = 2; i < process.argv.length; i += 2) await call(process.argv[i], JSON.parse(process.argv[i + 1]));
`;

interface Said {
  readonly status: number;
  readonly url: string;
  readonly secret: string;
  readonly result?: { readonly isError?: boolean; readonly structuredContent?: { receipt: string; state: string } };
  readonly error?: { readonly message: string };
}

let agentPath: string;
beforeAll(async () => {
  agentPath = join(await temporaryDirectory(), "agent.mjs");
  writeFileSync(agentPath, AGENT);
});

/** `toolway run`, to its end: what its agent was answered, and what the run itself said. */
async function run(line: readonly string[], command: readonly string[]): Promise<{ said: Said[]; log: string }> {
  const env = { PATH: process.env["PATH"], HOME: await temporaryDirectory() };
  const one = start("run", process.execPath, [cli, "run", ...line, "--", ...command], env);
  onTestFinished(() => one.stop("SIGKILL"));
  await one.closed;
  const log = one.log();
  const said = [...log.matchAll(/^SAID (.*)$/gm)].map(([, text = ""]) => JSON.parse(text) as Said);
  return { said, log };
}

const agent = (...calls: readonly (readonly [name: string, args: object])[]) => [
  process.execPath,
  agentPath,
  ...calls.flatMap(([name, args]) => [name, JSON.stringify(args)]),
];

describe("a principal that is named", () => {
  it("has the receipts and the budget of its run before, which another has not; the last line counts what was kept and refused [run-own] [ack-is-durable]", async () => {
    const ledger = join(await temporaryDirectory(), "ledger.jsonl");
    const fixture = await startHttpFixture("tracker", ["--ledger", ledger]);
    const tools = { create_issue: { outbox: { key: "arguments.request_id" } } };
    const tracker = { ...fixture.entry, tools, restarts: { max: 1_000 }, breaker: { failures: 1_000 } };
    const roles = { dev: { budget: { calls: 2, windowMs: 3_600_000 } } };
    const gateway: Gateway = await startGateway({ mcpServers: { tracker }, roles }, { auth: true });
    const token = await createToken(gateway, "first", "dev");
    await (await connect("legacy", gateway, { token })).waitFor("create_issue");
    await fixture.kill();
    const at = (id: string) => [
      "--config",
      gateway.configPath,
      "--state",
      gateway.stateDir,
      "--as",
      id,
      "--role",
      "dev",
    ];
    const write = (title: string) => ["create_issue", { project: "p", title }] as const;

    const first = await run(at("me"), agent(write("one")));
    const receipt = first.said[0]?.result?.structuredContent?.receipt ?? "";
    expect(receipt).not.toBe("");
    expect(first.log).toMatch(/^toolway: me: 1 call, none refused, 1 write queued$/m);

    const ask = ["toolway__receipt", { id: receipt }] as const;
    const later = await run(at("me"), agent(ask, write("two"), write("three")));
    // It waits, or is just being tried.
    const waiting = expect.stringMatching(/^(queued|sending)$/);
    expect(later.said[0]?.result?.structuredContent).toMatchObject({ receipt, state: waiting });
    expect(later.said[1]?.result?.structuredContent?.receipt).toEqual(expect.any(String));
    expect(later.said[2]?.error?.message).toMatch(/budget/);
    expect(later.log).toMatch(/^toolway: me: .*, 1 refused \(.*budget.*\), 1 write queued$/m);

    const other = await run(at("other"), agent(ask, write("four")));
    expect(other.said[0]?.result).toMatchObject({ isError: true });
    expect(other.said[1]?.result?.structuredContent?.receipt).toEqual(expect.any(String));
  });
});

it("the endpoint of a run listens when its agent starts, also one that is started again inside it; the gateway for runs ends 10 s after the last one [run-own]", async () => {
  const state = join(await temporaryDirectory(), "state");
  const config = join(await temporaryDirectory(), "toolway.json");
  writeFileSync(config, JSON.stringify({ names: "plain", mcpServers: { stateful: stdioFixture("stateful") } }));
  const once = [...agent(["whoami", {}])].map((word) => `'${word}'`).join(" ");
  const { said, log } = await run(["--config", config, "--state", state], ["sh", "-c", `${once}; ${once}`]);
  expect(said.map(({ status, result }) => [status, result?.isError ?? false])).toEqual([
    [200, false],
    [200, false],
  ]);
  expect([said[1]?.url, said[1]?.secret]).toEqual([said[0]?.url, said[0]?.secret]);
  expect(log).toMatch(/: 2 calls, none refused$/m);
  const endedMs = performance.now();
  const pid = Number(readFileSync(join(state, "pid"), "utf8"));
  await until("the gateway to end by itself", () => !existsSync(`/proc/${pid}`), 60_000);
  // From the end of the run, which was seen a moment before.
  expect(performance.now() - endedMs).toBeGreaterThan(9_000);
  expect(readFileSync(join(state, "gateway.log"), "utf8")).toContain("no run for 10 s");
});

it("a server of which nothing is known and that says nothing keeps no agent from its start, and Ctrl-C ends the wait for it [run-own]", async () => {
  const state = join(await temporaryDirectory(), "state");
  const config = join(await temporaryDirectory(), "toolway.json");
  const mute = { command: process.execPath, args: ["-e", "setInterval(() => {}, 1_000)"] };
  writeFileSync(config, JSON.stringify({ names: "plain", mcpServers: { mute, stateful: stdioFixture("stateful") } }));
  const at = ["--config", config, "--state", state];
  const env = { PATH: process.env["PATH"], HOME: await temporaryDirectory() };
  const unwanted = start("unwanted", process.execPath, [cli, "run", ...at, "--", ...agent(["whoami", {}])], env);
  onTestFinished(() => unwanted.stop("SIGKILL"));
  await until("its gateway", () => existsSync(join(state, "pid")) && existsSync(join(state, "control.sock")));
  await unwanted.stop("SIGINT");
  expect(await unwanted.closed).toBe(130);
  expect(unwanted.log()).not.toContain("SAID");

  // The gateway that was started for it is there, and ends 10 s after the last run.
  const { said, log } = await run(at, agent(["whoami", {}]));
  expect(said.map(({ status, result }) => [status, result?.isError ?? false])).toEqual([[200, false]]);
  expect(log).toMatch(/: 1 call, none refused$/m);
});
