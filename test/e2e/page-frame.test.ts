// The frame of the page and what it says where there is nothing to show: several gateways on one engine, a broker by itself, a
// gateway that has no servers yet, one that stops, and one that does not answer; in a real browser.

import { type ChildProcess, spawn } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { makeEngineKey } from "../../src/gateway/engine/keys.js";
import { chromium, NO_BROWSER } from "../fixtures/browser.js";
import { NO_NATS, natsPrograms, startNats } from "../fixtures/nats.js";
import { BROWSER_MS, PageBrowser, pressEnter } from "../fixtures/page.js";
import { cli, startGateway, stdioFixture, temporaryDirectory, until } from "./harness.js";
import { callTool, hasTool, runCli, statusOf, statusOfAll, toolway } from "./operator.js";

/** Longer than a stream may be silent. */
const SILENT_MS = 26_000;

const NOTHING_THERE = chromium === undefined ? ` (${NO_BROWSER})` : natsPrograms.length === 0 ? ` (${NO_NATS})` : "";

describe.skipIf(NOTHING_THERE !== "")(`the frame of the page${NOTHING_THERE}`, () => {
  let browser: PageBrowser;
  const children: ChildProcess[] = [];

  beforeAll(async () => {
    browser = await PageBrowser.launch();
  }, BROWSER_MS);

  afterEach(() => browser?.closePages());
  afterAll(async () => {
    for (const child of children) child.kill();
    await browser?.close();
  });

  const views = (page: Page) => page.getByRole("navigation", { name: "Views" }).getByRole("link").allInnerTexts();
  const at = async (page: Page, path: string) => {
    await page.goto(new URL(path, page.url()).href);
    await page.getByText("● live").waitFor();
  };

  it("has all gateways of an engine with version, config and partitions, and says which config is another [engine-same-config]", {
    timeout: BROWSER_MS,
  }, async () => {
    const nats = await startNats();
    const env = { ENGINE_KEY: makeEngineKey() };
    const config = {
      engine: { nats: nats.urls, key: { env: "ENGINE_KEY" }, replicas: 1 },
      mcpServers: { slow: stdioFixture("slow") },
    };
    const [one, other] = await Promise.all([startGateway(config, { env }), startGateway(config, { env })]);
    const seen = async () => (await statusOfAll(one)).engine?.gateways ?? [];
    await until(
      "both to have their share",
      async () =>
        (await seen()).every(({ partitions, config: hash }) => partitions > 0 && hash !== undefined) &&
        (await seen()).length === 2,
    );
    const page = await browser.open(one);
    // Both configs are called toolway.json: tab and head say of which one a page is.
    const theirs = await browser.open(other);
    const named = (one: Page) => one.locator("header .name").textContent();
    expect(await named(theirs)).not.toBe(await named(page));
    for (const one of [page, theirs]) {
      const name = await named(one);
      await expect.poll(() => one.title()).toMatch(/ :\d+$|^(\(\d+\) )?[\w-]+\/toolway\.json$/);
      await expect.poll(() => one.title()).toContain(name ?? "nothing");
    }
    await theirs.close();
    await page.getByText("One other gateway is on this engine").click();
    const rows = page.locator(".gateways tbody tr");
    await rows.nth(1).waitFor();
    expect(await rows.count()).toBe(2);
    const [own, their] = await seen();
    await rows.nth(0).filter({ hasText: "this one" }).waitFor();
    for (const [n, gateway] of [own, their].entries()) {
      const { gateway: name, version, config: hash, place } = gateway ?? {};
      for (const part of [name, version, hash, place?.host, place?.address]) {
        await expect.poll(() => rows.nth(n).textContent()).toContain(part);
      }
    }
    const shares = async () =>
      (await rows.locator("td.number").allInnerTexts()).reduce((sum, text) => sum + Number(text), 0);
    await expect.poll(shares).toBe(64);
    // The command line says the same.
    const { out } = await toolway(one, "drain");
    for (const part of [own?.gateway, their?.gateway, their?.config]) expect(out).toContain(part);
    // Calls are this gateway's alone.
    await until("the tool", () => hasTool(other.url, "sleep"));
    await callTool(other.url, "sleep", { ms: 1 });
    await at(page, "/calls");
    await page.getByText("No calls yet.").waitFor();
    await other.writeConfig({ ...config, mcpServers: { ...config.mcpServers, more: stdioFixture("slow") } });
    await page.getByText("One other gateway is on this engine").click();
    await rows.filter({ hasText: "another config" }).waitFor();
    await at(page, "/");
    await page.locator(".need").filter({ hasText: "Another gateway goes by another config" }).waitFor();
    await Promise.all([one.stop(), other.stop()]);
  });

  it("has of a broker what a broker has", { timeout: BROWSER_MS }, async () => {
    const stateDir = join(await temporaryDirectory(), "broker");
    const broker = spawn(process.execPath, [cli, "broker", "--listen", "127.0.0.1:0", "--state", stateDir, "--json"], {
      stdio: ["ignore", "pipe", "ignore"],
    });
    children.push(broker);
    await new Promise((done) => broker.stdout.once("data", done));
    const { out } = await runCli("dashboard", "--print", "--state", stateDir);
    const context = await browser.browser.newContext({ locale: "en-GB" });
    const page = await browser.openIn(context, out.trim());
    expect(await views(page)).toEqual(["Overview", "Waiting", "Access"]);
    await page.getByText("No mailbox is in use. Nothing needs you.").waitFor();
    await page.getByText("Nobody is here yet.").waitFor();
    expect(await page.title()).toMatch(/^broker( :\d+)?$/);
    await at(page, "/waiting");
    await page.getByRole("heading", { name: "Mailboxes" }).waitFor();
    expect(await page.getByText("Writes").count()).toBe(0);
    await at(page, "/access");
    await page.getByRole("textbox", { name: "Id" }).fill("studio");
    await pressEnter(page.getByRole("button", { name: "Create token" }));
    await page.locator(".secret code").waitFor();
    expect((await runCli("token", "list", "--state", stateDir)).out).toContain("studio");
    expect((await runCli("dashboard", "--close", "--state", stateDir)).out).toContain("The door is closed.");
  });

  it("teaches where there is nothing: no servers, no calls, no trouble, no changed tool, no audit log, no answer", {
    timeout: BROWSER_MS,
  }, async () => {
    const gateway = await startGateway({ mcpServers: {} });
    const page = await browser.open(gateway);
    const main = page.locator("main");
    for (const path of ["/tools", "/servers", "/"]) {
      await at(page, path);
      await main.getByText("No servers yet.").waitFor();
      await page.getByText("toolway import --write", { exact: true }).waitFor();
      await page.getByText("toolway add NAME COMMAND…").waitFor();
    }
    // What needs a person is seen there, too.
    await writeFile(gateway.configPath, "{");
    await toolway(gateway, "reload");
    await page.getByText("No servers yet; one thing needs you.").waitFor();
    await page.locator(".need").filter({ hasText: "The last edit of the config is not applied" }).waitFor();
    await gateway.writeConfig({
      mcpServers: { slow: { ...stdioFixture("slow"), tools: { sleep: { readOnly: true } } } },
    });
    await page.getByText("Nothing needs you.", { exact: true }).waitFor();
    await page.getByText("No calls yet.").waitFor();
    await page.getByText("toolway run claude").waitFor();
    await at(page, "/calls");
    await page.getByText("No calls yet.").waitFor();
    await until("the tools", () => hasTool(gateway.url, "sleep"));
    await at(page, "/pins");
    await page.getByText("Every tool is as you accepted it: 3 pinned.").waitFor();
    await at(page, "/audit");
    await page.getByText("Audit is off:").waitFor();
    process.kill((await statusOf(gateway, "slow")).pid ?? 0, "SIGKILL");
    await callTool(gateway.url, "sleep", { ms: 1 });
    await at(page, "/");
    await page.getByText("Last trouble:").waitFor();
    await page.getByText(/was started again once, \d+ (s|min) ago/).waitFor();
    // It stops while three wait for their answer.
    const waits = [1, 2, 3].map(() => callTool(gateway.url, "sleep", { ms: 5_000 }));
    await until("three calls", async () => (await statusOf(gateway, "slow")).inFlight === 3);
    gateway.signal("SIGTERM");
    await page.getByText("Stopping: 3 calls under way").waitFor();
    expect((await Promise.all(waits)).every(({ error }) => error === undefined)).toBe(true);
    await gateway.exited;
    await page
      .getByText(/Toolway does not answer since \d\d:\d\d; next try in \d+ s\. This is how it was then\./)
      .waitFor();
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    const again = await gateway.again();
    await page.getByText("● live").waitFor();
    await toolway(again, "dashboard", "--close");
    await toolway(again, "dashboard", "--print");
    await page.getByText("This session has ended: `toolway dashboard` gives a new link.").waitFor();
  });

  it("says of a gateway that hangs since when nothing was heard of it, tries again, and goes on when it answers; of an executor, whether it can be reached [status-true]", {
    timeout: BROWSER_MS,
  }, async () => {
    const gateway = await startGateway({ mcpServers: {}, executors: { office: {} } } as never);
    const { out } = await toolway(gateway, "dashboard", "--print");
    const context = await browser.browser.newContext({ locale: "en-GB" });
    // A stream that is silent for 25 s is dead: nobody has to wait for that.
    await context.clock.install();
    const page = await browser.openIn(context, out.trim());
    await page.getByText("● live").waitFor();
    const stoppedMs = await page.evaluate<number>("Date.now()");
    gateway.signal("SIGSTOP");
    onTestFinished(() => gateway.signal("SIGCONT"));
    await context.clock.fastForward(SILENT_MS);
    const lost = page.getByRole("status").filter({ hasText: "Toolway does not answer since" });
    const sinceMs = Date.parse((await lost.locator("time").first().getAttribute("datetime")) ?? "");
    expect(sinceMs - stoppedMs).toBeLessThan(SILENT_MS / 2);
    await lost.getByText("trying again").waitFor();
    await context.clock.fastForward(SILENT_MS);
    await lost.getByText(/next try in \d+ s/).waitFor();
    gateway.signal("SIGCONT");
    await page.getByText("● live").waitFor();
    // Of an executor it says whether it can be reached.
    await at(page, "/access");
    await page.locator("main li").filter({ hasText: "office ▲ out of reach: " }).waitFor();
  });
});
