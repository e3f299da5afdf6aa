// What an operator keeps and decides by the page and by the command line alike: recordings of arguments and results, the audit
// log, and calls that wait for a person's word; in a real browser, against a real gateway and a real broker.

import { type ChildProcess, spawn } from "node:child_process";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { chromium, NO_BROWSER } from "../fixtures/browser.js";
import { BareClient, closeBareClients } from "../fixtures/mailbox/bare-client.js";
import { BROWSER_MS, barriersOf, PageBrowser, pressEnter, secretOf } from "../fixtures/page.js";
import { cli, type Gateway, startGateway, stdioFixture, temporaryDirectory, until } from "./harness.js";
import { callTool, createToken, freshId, statusOfAll, toolway } from "./operator.js";

/** It is in the entry of the server, and in what is sent to it. */
const CANARY = "canary-7f3a9c51d2";
const GIVEN = "what-was-given-81723";

describe.skipIf(chromium === undefined)(`what is watched${chromium === undefined ? ` (${NO_BROWSER})` : ""}`, () => {
  let browser: PageBrowser;
  let gateway: Gateway;
  let broker: Gateway;
  let sharer: ChildProcess;
  let worker: BareClient;

  beforeAll(async () => {
    const folder = await temporaryDirectory();
    const ledger = join(folder, "ledger.txt");
    await writeFile(ledger, "");
    [browser, gateway, broker] = await Promise.all([
      PageBrowser.launch(),
      startGateway({
        audit: {},
        mcpServers: {
          ledger: {
            ...stdioFixture("ledger", [], { env: { LEDGER: ledger, API_TOKEN: CANARY } }),
            tools: { note: { ask: true } },
          },
        },
      } as never),
      startGateway({ mcpServers: {}, mailboxes: {} } as never, { auth: true }),
    ]);
    const url = `${broker.origin.replace("http", "ws")}/mailboxes`;
    const token = await createToken(broker, "studio", "sharer");
    const made = await toolway(broker, "token", "create", "--id", "w", "--role", "dev", "--may-send-to", "studio");
    // It has no terminal, and shares the tools of the gateway that runs.
    sharer = spawn(
      process.execPath,
      [cli, "share", gateway.configPath, "--state", gateway.stateDir, "--broker", url, "--as", "studio", "--json"],
      { env: { ...process.env, TOOLWAY_TOKEN: token }, stdio: "ignore" },
    );
    await until("the tools to be shared", async () => (await statusOfAll(gateway)).shares[0]?.state === "connected");
    worker = await BareClient.connect(url, "w", made.out.trim().split("\n").at(-1) ?? "");
    worker.send({ kind: "subscribe" });
  }, BROWSER_MS);

  afterEach(() => browser?.closePages());
  afterAll(async () => {
    closeBareClients();
    sharer?.kill();
    await browser?.close();
  });

  const at = (page: Page, path: string) => page.goto(new URL(path, page.url()).href);

  it("records for a while what a call was given and gave, says so on every page, and shows it to operators alone [bodies-unkept] [secrets-unseen]", {
    timeout: BROWSER_MS,
  }, async () => {
    if ((await statusOfAll(gateway)).recordings.length > 0) await toolway(gateway, "record", "ledger/echo", "--stop");
    const [page, viewer] = await Promise.all([browser.open(gateway), browser.open(gateway, { view: true })]);
    await callTool(gateway.url, "echo", { text: `${GIVEN} before` });
    expect((await toolway(gateway, "record", "ledger/echo", "--for", "10m")).out).toContain("is recorded until");
    await callTool(gateway.url, "echo", { text: `${GIVEN} ${CANARY}` });
    const note = "Arguments and results of ledger/echo are recorded";
    for (const path of ["/", "/calls", "/servers", "/tools", "/access", "/config", "/audit"]) {
      await at(page, path);
      await page.getByText(note).waitFor();
    }
    await viewer.getByText(note).waitFor();
    await at(page, "/calls?tool=echo");
    // The newest is the one that was recorded.
    await page.locator("tbody tr").first().getByRole("link").click();
    await page.getByRole("heading", { name: "Arguments" }).waitFor();
    const text = (await page.locator("main").textContent()) ?? "";
    expect(text).toContain(GIVEN);
    expect(text).not.toContain(`${GIVEN} before`);
    expect(text).not.toContain(CANARY);
    expect(await barriersOf(page)).toEqual([]);
    const { pathname } = new URL(page.url());
    // By the page of a viewer, and by hand.
    await at(viewer, pathname);
    await viewer.getByRole("heading", { name: "ledger/echo" }).waitFor();
    expect(await viewer.content()).not.toContain(GIVEN);
    const headers = { authorization: `Bearer ${await secretOf(viewer)}` };
    const bodies = new URL(`/api${pathname}/bodies`, viewer.url());
    expect((await fetch(bodies, { headers })).status).toBe(404);
    // Back to the form, with what was given, which is in no address.
    await page.getByRole("button", { name: "Try again" }).click();
    const json = page.getByRole("textbox", { name: "The arguments as JSON" });
    await expect.poll(() => json.inputValue()).toContain(GIVEN);
    expect(page.url()).not.toContain(GIVEN);
    await page.getByRole("button", { name: "Stop recording" }).click();
    await page.getByText(note).waitFor({ state: "detached" });
    expect((await toolway(gateway, "record")).err).toContain("Nothing is recorded.");
    const seq = pathname.split("/").at(-1) ?? "";
    expect((await toolway(gateway, "record", "--call", seq)).err).toContain("the recording is over");
    await at(page, pathname);
    await page.getByRole("button", { name: "Try again" }).waitFor();
    expect(await page.content()).not.toContain(GIVEN);
  });

  it("asks where nobody is at a terminal, with what it would be called with, and runs what is allowed", {
    timeout: BROWSER_MS,
  }, async () => {
    for (const { id } of (await statusOfAll(gateway)).asks) await toolway(gateway, "asks", "answer", String(id), "no");
    const page = await browser.open(gateway);
    const [byMouse, byKeyboard, byLine] = [freshId("by-mouse"), freshId("by-keyboard"), freshId("by-line")];
    const wanted = async (id: string) => {
      worker.deliver("studio", id, { op: "call", tool: "note", arguments: { text: id } });
      await until("the question", async () => (await statusOfAll(gateway)).asks.length === 1);
    };
    const reply = async (id: string) => {
      for (;;) {
        const message = await worker.message();
        worker.send({ kind: "ack", id: message.id });
        if (message["correlation_id"] === id) return JSON.stringify(message["body"]);
      }
    };
    await wanted(byMouse);
    const row = page.locator(".need").filter({ hasText: "w wants to call ledger/note" });
    await row.getByText(`{"text":"${byMouse}"}`).waitFor();
    await row.getByText(/\d+ s left/).waitFor();
    await row.getByRole("button", { name: "Let it run" }).click();
    expect(await reply(byMouse)).toContain('"success":true');
    // It has its place for as long as the pointer is there.
    await row.getByText("This is over.").waitFor();
    await page.mouse.move(1, 1);
    await row.waitFor({ state: "detached" });
    await wanted(byKeyboard);
    await row.getByText(`{"text":"${byKeyboard}"}`).waitFor();
    await pressEnter(row.getByRole("button", { name: "Refuse" }));
    expect(await reply(byKeyboard)).toContain("said no");
    // A row that has the focus stays while it has it.
    await page.evaluate("document.activeElement?.blur()");
    await row.waitFor({ state: "detached" });
    await wanted(byLine);
    const { out } = await toolway(gateway, "asks");
    expect(out).toContain(byLine);
    const id = /^(\d+) /m.exec(out)?.[1] ?? "";
    expect((await toolway(gateway, "asks", "answer", id, "yes")).out).toContain("It runs.");
    expect(await reply(byLine)).toContain('"success":true');
    expect((await toolway(gateway, "asks", "answer", id, "yes")).err).toContain("Nobody waits");
    await row.waitFor({ state: "detached" });
  });

  it("a worker that is let in for good is asked about once", { timeout: BROWSER_MS }, async () => {
    for (const { id } of (await statusOfAll(gateway)).asks) await toolway(gateway, "asks", "answer", String(id), "no");
    // Another at each try: whoever was let in once stays so.
    const id = freshId("trusted");
    const url = `${broker.origin.replace("http", "ws")}/mailboxes`;
    const trusted = await BareClient.connect(url, id, await createToken(broker, id, "dev", "studio"));
    trusted.send({ kind: "subscribe" });
    trusted.send({ kind: "credit", messages: 100 });
    const done = async (call: string) => {
      for (;;) {
        const message = await trusted.message();
        trusted.send({ kind: "ack", id: message.id });
        if (message["correlation_id"] === call) return JSON.stringify(message["body"]);
      }
    };
    const page = await browser.open(gateway);
    const [first, second] = [freshId("first"), freshId("second")];
    const wants = (call: string) =>
      trusted.deliver("studio", call, { op: "call", tool: "note", arguments: { text: call } });
    wants(first);
    const row = page.locator(".need").filter({ hasText: `${id} wants to call ledger/note` });
    await row.getByText(`{"text":"${first}"}`).waitFor();
    await pressEnter(row.getByRole("button", { name: "Always", exact: true }));
    await row.getByText(`${id} may call note without a question until the gateway ends.`).waitFor();
    await pressEnter(row.getByRole("alertdialog").getByRole("button", { name: "Always", exact: true }));
    expect(await done(first)).toContain('"success":true');
    wants(second);
    expect(await done(second)).toContain('"success":true');
    await row.waitFor({ state: "detached" });
    expect((await toolway(gateway, "asks")).out).not.toContain(id);
  });

  it("finds lines of the audit log with the acts before it, checks its chain, names a changed line, and saves a file [audit-tells]", {
    timeout: BROWSER_MS,
  }, async () => {
    const page = await browser.open(gateway);
    await page.keyboard.press("g");
    await page.keyboard.press("u");
    await page.getByRole("heading", { name: "Audit" }).waitFor();
    await page.getByLabel("acts of operators").check();
    await page.getByRole("row").filter({ hasText: "POST /asks/:id" }).first().waitFor();
    await page.getByRole("row").filter({ hasText: "POST /record/stop" }).first().waitFor();
    expect(await page.getByRole("row").filter({ hasText: "ledger/echo" }).count()).toBe(0);
    await page.getByLabel("acts of operators").uncheck();
    await page.getByLabel("Tool", { exact: true }).fill("echo");
    await page.getByLabel("Tool", { exact: true }).press("Enter");
    await page.getByRole("row").filter({ hasText: "ledger/echo" }).first().waitFor();
    await page.getByText("toolway audit --tool echo --csv").waitFor();
    const saved = page.waitForEvent("download");
    await page.getByRole("button", { name: "Save as CSV" }).click();
    const csv = await readFile(await (await saved).path(), "utf8");
    expect(csv.split("\n")[0]).toMatch(/^seq,time,kind,principal/);
    expect(csv).toContain(",ledger,echo,ok");
    expect(csv).not.toContain(GIVEN);
    await page.getByRole("button", { name: "Check it" }).click();
    await page.getByText("● as it was written").waitFor();
    const folder = join(gateway.stateDir, "audit");
    const [file = ""] = await readdir(folder);
    const text = await readFile(join(folder, file), "utf8");
    await writeFile(join(folder, file), text.replace('"tool":"echo"', '"tool":"ecco"'));
    onTestFinished(() => writeFile(join(folder, file), text));
    await page.getByRole("button", { name: "Check it" }).click();
    await page.locator(".trouble").filter({ hasText: file }).waitFor();
    expect(await barriersOf(page)).toEqual([]);
    const { code } = await toolway(gateway, "audit", "verify");
    expect(code).toBe(1);
  });
});
