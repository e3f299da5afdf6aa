// Views of the operator's page in a real browser, against a real gateway: a login at a server, what waits for a server that
// is away, and what each of them says to whoever may only look.

import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type Authority, startAuthority } from "../fixtures/authority.js";
import { chromium, NO_BROWSER } from "../fixtures/browser.js";
import { BROWSER_MS, barriersOf, PageBrowser, pressEnter, pressSure, secretOf } from "../fixtures/page.js";
import { type ScriptedServer, startScripted } from "../fixtures/scripted-mcp.js";
import { type Gateway, startGateway, startHttpFixture, stdioFixture, temporaryDirectory, until } from "./harness.js";
import { callTool, createToken, emptyOutbox, freshId, refusal, statusOf, toolway } from "./operator.js";

/** It is in the entry of a server, and in no page. */
const CANARY = "canary-93c1e07ab4";

/** What it is called with is one of two, and nothing of either is needed. */
const EITHER = {
  type: "object",
  oneOf: [
    { title: "by name", properties: { name: { type: "string" } } },
    { title: "by number", properties: { number: { type: "integer" } } },
  ],
};

/** Of the rows of tables: what has buttons is higher than its text. */
const TWO_LINES = 66;

type Boxed = { getBoundingClientRect(): { readonly height: number } };

/** How high the highest row of a table with buttons is on a narrow screen, where tables go on out of sight. */
async function highestNarrow(page: Page): Promise<number> {
  const before = page.viewportSize();
  await page.setViewportSize({ width: 400, height: 800 });
  const heights = await page
    .locator("tbody tr:has(.acts)")
    .evaluateAll((rows: Boxed[]) => rows.map((row) => row.getBoundingClientRect().height));
  if (before !== null) await page.setViewportSize(before);
  expect(heights.length).toBeGreaterThan(0);
  return Math.max(...heights);
}

describe.skipIf(chromium === undefined)(`views${chromium === undefined ? ` (${NO_BROWSER})` : ""}`, () => {
  let browser: PageBrowser;
  let gateway: Gateway;
  let authority: Authority;
  let shapes: ScriptedServer;
  let killTracker: () => Promise<void>;
  let trackerBack: () => Promise<void>;
  let token: string;
  let config: string;

  beforeAll(async () => {
    const ledger = join(await temporaryDirectory(), "ledger.jsonl");
    const tracker = await startHttpFixture("tracker", ["--ledger", ledger]);
    killTracker = tracker.kill;
    trackerBack = async () => {
      killTracker = (await startHttpFixture("tracker", ["--ledger", ledger], tracker.port)).kill;
    };
    shapes = await startScripted([{ name: "look_up", inputSchema: EITHER }], () => ({ result: { content: [] } }));
    [browser, authority] = await Promise.all([PageBrowser.launch(), startAuthority()]);
    const keyed = { outbox: { key: "arguments.request_id", lane: "arguments.project" } };
    gateway = await startGateway(
      {
        mcpServers: {
          linear: { url: authority.url, auth: "oauth", trust: "always" },
          tracker: {
            ...tracker.entry,
            headers: { "X-Key": CANARY },
            tools: { create_issue: keyed },
            restarts: { max: 1_000 },
            breaker: { failures: 1_000 },
          },
          crash: {
            command: process.execPath,
            args: ["-e", "console.error('no database: ' + process.env.API_TOKEN); process.exit(1)"],
            env: { API_TOKEN: CANARY },
          },
          asker: stdioFixture("asker"),
          shapes: shapes.entry,
        },
        roles: { dev: {}, reader: { deny: ["tracker/create_issue"] } },
      } as never,
      { auth: true },
    );
    config = await readFile(gateway.configPath, "utf8");
    token = await createToken(gateway, "ann", "dev");
    await until("the tracker", async () => (await statusOf(gateway, "tracker")).state === "ready");
  }, BROWSER_MS);

  afterEach(() => browser?.closePages());
  afterAll(async () => {
    authority?.kill();
    shapes?.close();
    await browser?.close();
  });

  const at = async (page: Page, path: string) => {
    await page.goto(new URL(path, page.url()).href);
    await page.locator("main h1").waitFor();
  };

  it("logs in at a server by its button, which shows whose page it opens, and out again [token-unseen]", {
    timeout: BROWSER_MS,
  }, async () => {
    // A try before this one may have left it logged in.
    if ((await statusOf(gateway, "linear")).credential?.needsLogin === false) {
      await toolway(gateway, "logout", "linear");
    }
    const page = await browser.open(gateway);
    await page.locator(".need").filter({ hasText: "linear needs a login" }).waitFor();
    await at(page, "/servers/linear");
    await page.getByRole("button", { name: "Log in", exact: true }).click();
    const link = page.getByRole("link", { name: /^Go on at 127\.0\.0\.1:\d+/ });
    await link.waitFor();
    expect(await link.getAttribute("rel")).toContain("noopener");
    expect(await barriersOf(page)).toEqual([]);
    // It goes elsewhere by itself, in a tab of its own.
    const [tab] = await Promise.all([page.context().waitForEvent("page"), link.click()]);
    await tab.getByText("You can close this page.").waitFor();
    await tab.close();
    await page.getByText("● Logged in").waitFor();
    await page.getByText(/Its token is good for \d+ (s|min|h|d) more/).waitFor();
    // Times are relative, and exact by `t` and where the row has the focus.
    await page.keyboard.press("t");
    await page.getByText(/Its token is good until \d/).waitFor();
    await page.keyboard.press("t");
    await page
      .locator(".facts div")
      .filter({ hasText: "It ends" })
      .getByText(/^in\s\d+ (s|min|h|d)$/)
      .waitFor();
    expect((await statusOf(gateway, "linear")).credential?.needsLogin).toBe(false);
    await pressEnter(page.getByRole("button", { name: "Log out", exact: true }));
    await page.getByText("Its tools are gone until somebody logs in again.").waitFor();
    await pressEnter(page.getByRole("button", { name: "Log out", exact: true }));
    await page.getByRole("button", { name: "Log in", exact: true }).waitFor();
    expect((await statusOf(gateway, "linear")).credential?.needsLogin).toBe(true);
  });

  it("a form of several kinds goes by its JSON, also where another kind was chosen by hand before", {
    timeout: BROWSER_MS,
  }, async () => {
    const page = await browser.open(gateway);
    await at(page, "/tools/look_up");
    const json = page.getByRole("textbox", { name: "The arguments as JSON" });
    const kind = page.getByRole("combobox", { name: "One of" });
    const shown = () => kind.locator("option:checked").textContent();
    expect(await shown()).toBe("by name");
    await kind.selectOption({ label: "by number" });
    await page.getByRole("button", { name: "+ number" }).click();
    await page.getByRole("spinbutton", { name: "number" }).fill("7");
    await expect.poll(() => json.inputValue().then((text) => JSON.parse(text))).toEqual({ number: 7 });
    await json.fill('{ "name": "seven" }');
    await expect.poll(shown).toBe("by name");
    expect(await page.getByRole("textbox", { name: "name", exact: true }).inputValue()).toBe("seven");
    await kind.selectOption({ label: "by number" });
    await json.fill('{ "name": "eight" }');
    await expect.poll(shown).toBe("by name");
    // What is taken away by hand leaves the kind that was chosen by hand.
    await kind.selectOption({ label: "by number" });
    await page.getByRole("button", { name: "+ number" }).click();
    await page.getByRole("button", { name: "leave number out" }).click();
    await expect.poll(() => json.inputValue()).toBe("{}");
    expect(await shown()).toBe("by number");
  });

  it("shows of a server what Toolway says of it, its stderr, its hour, and a report without secrets [secrets-unseen]", {
    timeout: BROWSER_MS,
  }, async () => {
    const page = await browser.open(gateway);
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await at(page, "/servers/crash");
    await page.locator(".log li").first().waitFor();
    await page.locator("pre").filter({ hasText: "no database" }).waitFor();
    await page
      .locator("figcaption")
      .getByText(/In the last hour: 0 calls, 0 failed; started again/)
      .waitFor();
    expect(await page.locator(".hour .restart").count()).toBeGreaterThan(0);
    await page.getByRole("button", { name: "Copy for a bug report" }).click();
    const copied = () => page.evaluate<string>("navigator.clipboard.readText()");
    await expect.poll(copied).toMatch(/^server: crash$/m);
    const report = await copied();
    expect(report).toMatch(/^why: /m);
    expect(report).toContain("no database");
    expect(`${report}${await page.content()}`).not.toContain(CANARY);
    // One that runs elsewhere has no stderr here, and the gateway's lines all the same.
    await at(page, "/servers/tracker");
    await page.getByText("It runs elsewhere: what it writes is not seen from here.").waitFor();
    await page.locator(".log li").filter({ hasText: "ready after" }).waitFor();
  });

  it("shows what waits in its lanes, in order, holds and releases them, and a write's life from its taking to its end", {
    timeout: BROWSER_MS,
  }, async () => {
    const issue = (title: string) =>
      callTool(gateway.url, "create_issue", { project: "docs", title, request_id: title }, token);
    await killTracker();
    await emptyOutbox(gateway, "tracker");
    // Others each time: a key that is known is no new write.
    for (const title of ["one", "two"]) await issue(freshId(title));
    const page = await browser.open(gateway);
    await at(page, "/waiting");
    const rows = page.locator(".lanes tbody tr");
    await rows.nth(1).waitFor();
    expect(await rows.count()).toBe(2);
    await rows.nth(1).getByText("waits for the one before it").waitFor();
    expect(await barriersOf(page)).toEqual([]);
    expect(await highestNarrow(page)).toBeLessThan(TWO_LINES);
    await page.getByRole("button", { name: "Hold", exact: true }).click();
    await page.getByText("Nothing of it is delivered until somebody releases it.").waitFor();
    await page.getByRole("button", { name: "Hold", exact: true }).click();
    await page.getByRole("button", { name: "Release", exact: true }).waitFor();
    const held = JSON.parse((await toolway(gateway, "outbox", "list", "--lanes", "--json")).out);
    expect(held.lanes[0]).toMatchObject({ server: "tracker", depth: 2, heldFor: "an operator holds it" });
    await pressEnter(page.getByRole("button", { name: "Release", exact: true }));
    await page.getByRole("button", { name: "Hold", exact: true }).waitFor();
    // A server that is held as a whole is released as a whole; and answers that take longer than a look are shown.
    await toolway(gateway, "outbox", "hold", "tracker");
    await page.route("**/api/outbox", async (route) => {
      await new Promise((done) => setTimeout(done, 4_000));
      await route.continue();
    });
    await at(page, "/waiting");
    await rows.nth(1).waitFor();
    await page.unrouteAll({ behavior: "ignoreErrors" });
    await page.getByRole("button", { name: "Release", exact: true }).click();
    await page.getByRole("button", { name: "Hold", exact: true }).waitFor();
    // The second is dropped from its row; the first is delivered when its server is back.
    await rows.nth(1).getByRole("button", { name: "Drop", exact: true }).click();
    await page.getByText("It is never sent, and its agent is told so.").waitFor();
    await rows.nth(1).getByRole("button", { name: "Drop", exact: true }).click();
    await until("one of them to be left", async () => (await rows.count()) === 1);
    await rows.nth(0).getByRole("link").click();
    await page.getByRole("heading", { name: "tracker/create_issue" }).waitFor();
    const taken = page.locator(".life li").filter({ hasText: "taken from ann" });
    await taken.filter({ hasText: /\d+ (s|min) ago: taken/ }).waitFor();
    await page.keyboard.press("t");
    await taken.filter({ hasText: `${await taken.locator("time").getAttribute("title")}: taken` }).waitFor();
    await page.keyboard.press("t");
    await page.locator(".life li").filter({ hasText: "went back to its place" }).waitFor();
    await trackerBack();
    await page.locator(".life li").filter({ hasText: "done" }).waitFor();
    await page.getByRole("heading", { name: "Result" }).waitFor();
    expect(await barriersOf(page)).toEqual([]);
    const id = new URL(page.url()).pathname.split("/").at(-1) ?? "";
    expect((await toolway(gateway, "outbox", "show", id)).out).toMatch(/^then +queued.*\n(.*\n)*then +done/m);
    // Whoever may only look sees how it went, and not what the server answered.
    const viewer = await browser.open(gateway, { view: true });
    const answer = await fetch(new URL(`/api/outbox/writes/${id}`, viewer.url()), {
      headers: { authorization: `Bearer ${await secretOf(viewer)}` },
    });
    const shown = (await answer.json()) as Record<string, unknown>;
    expect([shown["state"], shown["result"], (shown["life"] as unknown[]).length > 0]).toEqual([
      "done",
      undefined,
      true,
    ]);
    await at(viewer, `/waiting/${id}`);
    await viewer.locator(".life li").filter({ hasText: "done" }).waitFor();
    expect(await viewer.getByRole("heading", { name: "Result" }).count()).toBe(0);
    await at(viewer, "/waiting");
    await viewer
      .getByText(/Nothing waits\. \d+ writes? w\w+ delivered in 24 h, the longest waited \d+ (s|min)\./)
      .waitFor();
    // One that is not known any more is not shown as if it were.
    await toolway(gateway, "outbox", "drop", id, "--yes");
    await page.getByText(/no receipt/).waitFor();
    expect(await page.locator(".life").count()).toBe(0);
  });

  it("shows of each tool how it is used, its pin and who may call it, and what hides it from whom [calls-recorded]", {
    timeout: BROWSER_MS,
  }, async () => {
    await callTool(gateway.url, "add_comment", { project: "docs", title: "hello" }, token);
    const id = freshId("rea");
    const reader = await createToken(gateway, id, "reader");
    const told = await refusal(gateway.url, "create_issue", { project: "docs", title: "no" }, reader);
    expect(told.message).toContain("create_issue");
    const page = await browser.open(gateway);
    await at(page, "/tools");
    const row = (name: string) =>
      page.locator("tbody tr").filter({ has: page.getByRole("link", { name, exact: true }) });
    await row("add_comment").getByText("pinned").waitFor();
    const cells = await row("add_comment").locator("td").allInnerTexts();
    const calls = (await toolway(gateway, "calls", "--tool", "add_comment", "--json")).out.trim().split("\n");
    // Server, calls in 24 h, failed, p95, size of the result, last use, tokens, pin, who.
    expect([cells[0], cells[1], cells[2], cells[8]]).toEqual(["tracker", String(calls.length), "", "everybody"]);
    expect(cells[4]).toMatch(/\d+ (B|bytes)|\d/);
    expect(Number(cells[6]?.replace(",", ""))).toBeGreaterThan(5);
    await row("create_issue").getByText("dev, all other roles").waitFor();
    await page.getByText(/tools?, about [\d,]+ tokens, not called since/).click();
    await page.locator("details pre").getByText('"close_issue"').waitFor();
    await page.getByRole("combobox", { name: "Seen as" }).selectOption(id);
    await row("create_issue").getByText('role "reader"').waitFor();
    expect(await row("add_comment").locator("td").nth(1).textContent()).toBe("");
    // One tool has what `toolway inspect` says of it.
    await at(page, "/tools/create_issue");
    await page.locator(".facts div").filter({ hasText: "Its server says" }).waitFor();
    await page
      .locator(".facts div")
      .filter({ hasText: /Pin● pinned for \d+ (s|min)/ })
      .waitFor();
    for (const who of ["dev: yes", "reader: no", "(any other role): yes"]) {
      await page.locator("main li").filter({ hasText: who }).waitFor();
    }
    // As a role sees them, with the line that lists the same.
    await at(page, "/tools?role=reader");
    await page.getByText("toolway tools --role reader", { exact: true }).waitFor();
    await page.locator("tr.away").filter({ hasText: "create_issue" }).waitFor();
    const seen = await page.locator("main tbody tr:not(.away) th a").allTextContents();
    const { out } = await toolway(gateway, "tools", "--role", "reader", "--json");
    expect(new Set((JSON.parse(out) as { name: string }[]).map(({ name }) => name))).toEqual(new Set(seen));
  });

  it("shows who is connected, what each role sees and what was refused, and a token's whole life [told-why]", {
    timeout: BROWSER_MS,
  }, async () => {
    const reader = await createToken(gateway, freshId("ron"), "reader");
    await callTool(gateway.url, "add_comment", { project: "docs", title: "here" }, token);
    await refusal(gateway.url, "create_issue", { project: "docs", title: "no" }, reader);
    const page = await browser.open(gateway);
    await at(page, "/access");
    const section = (name: string) => page.locator("section").filter({ has: page.getByRole("heading", { name }) });
    await section("Connected now").getByRole("link", { name: "ann" }).first().waitFor();
    await section("Refused since the start").getByText("the role may not call it").waitFor();
    await section("Roles").locator("tbody tr").first().waitFor();
    const roles = await section("Roles").locator("tbody tr").allInnerTexts();
    const seen = new Map(roles.map((text) => [/^\S+/.exec(text)?.[0], Number(/(\d+) of/.exec(text)?.[1])]));
    expect(seen.get("reader")).toBe((seen.get("dev") ?? 0) - 1);
    await page.getByRole("link", { name: "What reader sees" }).click();
    await page.getByText("1 other is hidden").waitFor();
    await at(page, "/access");
    const id = freshId("tmp");
    await page.getByRole("textbox", { name: "Id" }).fill(id);
    await page.getByRole("button", { name: "Create token" }).click();
    const first = await page.locator(".secret code").textContent();
    expect(await highestNarrow(page)).toBeLessThan(TWO_LINES);
    const tokenRow = page.getByRole("row").filter({ has: page.getByRole("rowheader", { name: id, exact: true }) });
    await tokenRow.getByRole("button", { name: "Rotate", exact: true }).click();
    await tokenRow.getByRole("button", { name: "Rotate", exact: true }).click();
    await until("another secret", async () => (await page.locator(".secret code").textContent()) !== first);
    await pressSure(tokenRow, "Revoke");
    await until("the token to be gone", async () => !(await toolway(gateway, "token", "list")).out.includes(id));
  });

  it("shows the config as it runs, without its secrets, what the last edit changed, and the line of a mistake [secrets-unseen]", {
    timeout: BROWSER_MS,
  }, async () => {
    if ((await readFile(gateway.configPath, "utf8")) !== config) {
      await writeFile(gateway.configPath, config);
      await toolway(gateway, "reload");
    }
    const page = await browser.open(gateway);
    await at(page, "/config");
    await page.locator(".source li").filter({ hasText: '"X-Key": "(hidden)"' }).waitFor();
    expect(await page.content()).not.toContain(CANARY);
    const read = JSON.parse(config) as { roles: Record<string, unknown> };
    const edited = JSON.stringify({ ...read, roles: { ...read.roles, guest: { allow: [] } } }, undefined, 2);
    await writeFile(gateway.configPath, edited);
    await page.getByRole("button", { name: "Read it again" }).click();
    await page.getByRole("heading", { name: /^The last edit, .* changed$/ }).waitFor();
    await page
      .locator("section li")
      .filter({ hasText: /^roles$/ })
      .waitFor();
    await page.locator(".source li").filter({ hasText: '"guest"' }).waitFor();
    await writeFile(gateway.configPath, edited.replace('"allow": []', '"allow": 7'));
    expect((await toolway(gateway, "reload")).err).toContain("roles.guest.allow");
    await page.getByRole("heading", { name: "The last edit is not applied" }).waitFor();
    const wrong = page.locator(".source .wrong");
    await wrong.getByText('"allow": 7').waitFor();
    await wrong.getByText("▲").waitFor();
    expect(await barriersOf(page)).toEqual([]);
    expect(await page.content()).not.toContain(CANARY);
    await writeFile(gateway.configPath, config);
    await toolway(gateway, "reload");
    await page.getByRole("heading", { name: "The last edit is not applied" }).waitFor({ state: "detached" });
    // Whoever may only look is not sent the text.
    const viewer = await browser.open(gateway, { view: true });
    const answer = await fetch(new URL("/api/config", viewer.url()), {
      headers: { authorization: `Bearer ${await secretOf(viewer)}` },
    });
    expect(answer.status).toBe(404);
    await at(viewer, "/config");
    await viewer.getByText("Its text is shown to who may act").waitFor();
  });
});
