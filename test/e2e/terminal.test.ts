// What a terminal gets of servers that try to steer it: every verb that prints a server's text, on a pseudo-terminal;
// and that a pipe gets the text as it is.

import { afterAll, describe, expect, it } from "vitest";
import { hasTerminals, startOnTerminal } from "../fixtures/terminal.js";
import { cli, freePort, type Gateway, startGateway, stdioFixture, temporaryDirectory, until } from "./harness.js";
import { hasTool, toolway } from "./operator.js";

/** The colours that we paint with ourselves, and the end of lines as a terminal has it. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: colour codes start with ESC
const OURS = /\u001b\[(?:0|1|2|31|32|33)m|\r\n/g;
const HIDDEN = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u;

const running = new Set<{ stop(signal?: NodeJS.Signals): Promise<void> }>();
afterAll(() => Promise.all([...running].map((one) => one.stop("SIGKILL"))));

async function onTerminal(...words: string[]): Promise<string> {
  const one = startOnTerminal(words[0] ?? "", [process.execPath, cli, ...words]);
  await one.exited;
  return one.log();
}

function expectInert(printed: string): void {
  const rest = printed.replace(OURS, "\n").replaceAll("\n", "").replaceAll("\t", "");
  expect(rest).not.toMatch(HIDDEN);
  expect(printed).toMatch(/painted/);
  expect(printed).toMatch(/\\u\{(202E|001B)\}/);
}

let gateway: Gateway;
const entries = () => ({ painter: stdioFixture("painter"), dead: stdioFixture("painter", ["--die"]) });
const at = () => ["--config", gateway.configPath, "--state", gateway.stateDir];

describe.skipIf(!hasTerminals)("on a terminal, a server's text is made visible [terminal-inert]", () => {
  it("by status, tools, doctor, reload and state dump", async () => {
    gateway = await startGateway({ mcpServers: entries() });
    await until("the tools", () => hasTool(gateway.url, "paint"));
    await until("the end of the other", () => gateway.log().includes('server "dead"'));
    expectInert(await onTerminal("status", ...at()));
    expectInert(await onTerminal("tools", ...at()));
    expectInert(await onTerminal("doctor", gateway.configPath));
    expectInert(await onTerminal("reload", "dead", ...at()));
    // The store writes lists a moment after they were read.
    await until("the stored lists", async () => (await toolway(gateway, "state", "dump")).out.includes("painted"));
    const dump = await onTerminal("state", "dump", ...at());
    expect(dump.replace(/\r?\n/g, "")).not.toMatch(HIDDEN);
  });

  it.each(["paint", "picture", "fail", "refuse"])("by call %s", async (tool) => {
    const printed = await onTerminal("call", tool, ...at());
    expectInert(printed);
    if (tool === "paint") expect(printed).toContain("\r\nsecond line\r\n");
  });

  it("by the log of serve", async () => {
    const port = await freePort();
    const words = [
      "serve",
      gateway.configPath,
      "--listen",
      `127.0.0.1:${port}`,
      "--state",
      await temporaryDirectory(),
      "--no-auth",
    ];
    const one = startOnTerminal("serve", [process.execPath, cli, ...words]);
    running.add(one);
    await until(
      "both servers",
      () => one.log().includes('server "dead"') && one.log().includes('server "painter": ready'),
    );
    expectInert(one.log());
  });
});

it("a pipe gets a tool's text as it is", async () => {
  const { out } = await toolway(gateway, "call", "paint");
  expect(out).toContain("\u001b[35mpainted\u009b8mgone\u202etxet");
  const status = await toolway(gateway, "status", "--json");
  expect(JSON.parse(status.out).servers[0].serverInfo.name).toContain("\u202e");
});
