// The operator's page in a real browser, against a real gateway: what is wrong is seen and put right there, and it stays
// so when the gateway is killed, when servers write markup, and when another program takes the port.

import { writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { chromium, NO_BROWSER } from "../fixtures/browser.js";
import { closeHttp } from "../fixtures/loopback.js";
import { BROWSER_MS, barriersOf, PageBrowser, pressEnter, pressSure, secretOf } from "../fixtures/page.js";
import { type Gateway, startGateway, stdioFixture, temporaryDirectory, until } from "./harness.js";
import { freshId, statusOf, toolway } from "./operator.js";

const MARKUP = '<img src=x onerror="document.title=`taken`">';
const EVIL = `Adds two numbers. \u202e${MARKUP}`;

const VIEWS = [
  ...["/", "/calls", "/servers", "/servers/crash", "/tools", "/tools/elicit", "/pins", "/waiting", "/access"],
  ...["/config", "/audit"],
];

/** The buttons of a view, and whether a line to type stands beside each: it runs in the browser. Quiet ones copy, or are a form's. */
const BUTTONS = `[...document.querySelectorAll("main :is(button, a.button):not(.quiet, .add)")].map((button) => {
  const beside = button.closest(".act, .acts, .filters, p, td")?.querySelectorAll(".line code, button[title^='Copy toolway']");
  return [button.textContent, [...(beside ?? [])].some((one) => one.title || one.textContent.includes("toolway "))];
})`;

describe.skipIf(chromium === undefined)(`the page${chromium === undefined ? ` (${NO_BROWSER})` : ""}`, () => {
  let browser: PageBrowser;
  let gateway: Gateway;
  let description: string;

  beforeAll(async () => {
    browser = await PageBrowser.launch();
    description = join(await temporaryDirectory(), "description");
    await writeFile(description, "Adds two numbers.");
    const crash = {
      command: process.execPath,
      args: ["-e", `console.error('no database ' + 'x'.repeat(500)); process.exit(1)`],
    };
    const first = await startGateway({
      mcpServers: {
        rug: stdioFixture("rug", ["--description", description]),
        crash,
        // A shared server is told that somebody can be asked: the page can.
        asker: { ...stdioFixture("asker"), declare: ["elicitation"] },
        unset: { url: "http://127.0.0.1:1/mcp", headers: { Authorization: "Bearer $" + "{NOT_SET_ANYWHERE}" } },
      },
    });
    await until("the tools to be pinned", async () => (await toolway(first, "pins")).out.includes("add"));
    await first.stop();
    await writeFile(description, EVIL);
    gateway = await first.again();
    await until("the change to be seen", async () => (await statusOf(gateway, "rug")).quarantined > 0);
  }, BROWSER_MS);

  afterEach(() => browser?.closePages());
  afterAll(() => browser?.close());

  /** A try before this one may have stopped it. */
  const startRug = async () => {
    if ((await statusOf(gateway, "rug")).state === "stopped") await toolway(gateway, "start", "rug");
  };

  const open = (options: { view?: boolean } = {}) => browser.open(gateway, options);

  it("says what is wrong and what to type, in one look [told-why]", { timeout: BROWSER_MS }, async () => {
    const page = await open();
    const needs = page.locator(".need");
    await needs.filter({ hasText: "unset is misconfigured" }).waitFor();
    await needs.filter({ hasText: "rug changed its tools" }).waitFor();
    await needs.filter({ hasText: "toolway pins diff rug" }).waitFor();
    await expect.poll(() => page.title()).toMatch(/^\(\d\)/);
    // A reload would not bring the variable in: what to type is a start with it, also on the page of the server.
    const line = page.getByText(/^NOT_SET_ANYWHERE=… toolway serve --config /);
    await line.waitFor();
    await page.goto(new URL("/servers/unset", page.url()).href);
    await line.waitFor();
    await page.getByText("It was not started: nothing was written.").waitFor();
    expect(await page.getByRole("button", { name: "Stop", exact: true }).count()).toBe(0);
    // One that answers says all the same that a tool of it is held back.
    await page.goto(new URL("/servers/rug", page.url()).href);
    await page.getByText("One tool is not what you accepted").waitFor();
    await page.getByText("toolway pins diff rug", { exact: true }).waitFor();
    // The code of the link is in no address any more, and no secret is.
    expect(page.url()).not.toContain("code");
  });

  it("shows what changed with what is hidden in it, and accepts it, as the command line then sees [host-12]", {
    timeout: BROWSER_MS,
  }, async () => {
    // A try before this one may have decided about it: it is as in the beginning again.
    if ((await statusOf(gateway, "rug")).quarantined === 0) {
      await startRug();
      for (const [text, isAccepted] of [[freshId("Adds"), true] as const, [EVIL, false] as const]) {
        await writeFile(description, text);
        await toolway(gateway, "reload", "rug");
        await until("the change", async () => (await statusOf(gateway, "rug")).quarantined > 0);
        if (isAccepted) await toolway(gateway, "pins", "accept", "rug", "--yes");
      }
    }
    const page = await open();
    await page.goto(`${new URL(page.url()).origin}/pins/rug`);
    await page.getByText("U+202E").first().waitFor();
    expect(await page.locator("ins").allInnerTexts()).toContainEqual(expect.stringContaining("<img"));
    expect(await page.locator("main img").count()).toBe(0);
    expect(await barriersOf(page)).toEqual([]);
    await page.getByRole("button", { name: "Reject", exact: true }).click();
    await page.getByText(", rejected").waitFor();
    expect((await toolway(gateway, "pins")).out).toMatch(/rug +add +rejected/);
    expect((await statusOf(gateway, "rug")).quarantined).toBe(0);
    await page.getByRole("button", { name: "Accept", exact: true }).click();
    await page.getByText("Agents see the tool as it is now").waitFor();
    await page.getByRole("button", { name: "Accept", exact: true }).click();
    await page.getByText("Every tool is as you accepted it.").waitFor();
    expect((await toolway(gateway, "pins")).out).toMatch(/rug +add +pinned/);
  });

  it("is as narrow as its window, however long a word of a server's is", { timeout: BROWSER_MS }, async () => {
    const page = await open();
    await page.setViewportSize({ width: 400, height: 800 });
    await page.getByText("xxxxxxxx").first().waitFor();
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(400);
    await page.goto(new URL("/servers", page.url()).href);
    // Why a server is down is in sight: what is wider than the window begins behind it.
    const reason = await page.locator(".reason").first().boundingBox();
    expect((reason?.x ?? 400) + (reason?.width ?? 400)).toBeLessThanOrEqual(400);
    await page.goto(new URL("/servers/crash", page.url()).href);
    await page.getByText("xxxxxxxx").first().waitFor();
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(400);
  });

  it("stops and starts a server by keyboard alone", { timeout: BROWSER_MS }, async () => {
    await startRug();
    const page = await open();
    await page.keyboard.press("g");
    await page.keyboard.press("s");
    await page.getByRole("link", { name: "rug" }).press("Enter");
    await pressSure(page, "Stop");
    await page.getByText("It was stopped by a person").waitFor();
    expect((await statusOf(gateway, "rug")).state).toBe("stopped");
    await pressEnter(page.getByRole("button", { name: "Start", exact: true }));
    await page.getByText("It answers.").waitFor();
  });

  it("finds a tool by `/`, tries it by a form that is in step with its JSON, and shows the call [calls-recorded]", {
    timeout: BROWSER_MS,
  }, async () => {
    // A call that was taken back goes on in it: of its next question nobody would know which call it belongs to.
    onTestFinished(() => toolway(gateway, "reload", "asker").then(() => {}));
    const page = await open();
    await page.keyboard.press("/");
    await page.keyboard.type("elicit");
    await page.locator(".search a").first().waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "elicit", exact: true }).waitFor();
    const json = page.getByRole("textbox", { name: "The arguments as JSON" });
    await page.getByRole("button", { name: "+ what" }).click();
    await page.getByRole("textbox", { name: "what", exact: true }).fill("Your colour?");
    await expect.poll(async () => JSON.parse(await json.inputValue())).toEqual({ what: "Your colour?" });
    await json.fill('{ "what": "Your\\u202e <img src=x>?" }');
    await page.getByRole("button", { name: "Try", exact: true }).click();
    await page.getByText("Nothing says that this tool only reads").waitFor();
    await page.getByRole("button", { name: "Call it" }).click();
    await page.getByText("The server asks").waitFor();
    expect(await barriersOf(page)).toEqual([]);
    await page.getByRole("textbox", { name: "answer *" }).fill("green");
    await page.getByRole("button", { name: "Answer" }).click();
    await page.getByRole("heading", { name: "Result" }).waitFor();
    await page.getByText("green").first().waitFor();
    // A call that nobody waits for any more is taken back at its server.
    await json.fill('{ "delayMs": 60000 }');
    await page.getByRole("button", { name: "Try", exact: true }).click();
    await page.getByRole("button", { name: "Call it" }).click();
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.getByText("You took it back.").waitFor();
    await page.keyboard.press("Escape");
    await page.goto(new URL("/calls?server=asker", page.url()).href);
    await page.locator("tbody").getByText("cancelled").first().waitFor();
    await page.locator("tbody tr").filter({ hasText: "ok" }).first().getByRole("link").click();
    await page.getByText("asker took").waitFor();
    await page.getByRole("heading", { name: "asker/elicit" }).waitFor();
    expect(await page.locator("main img").count()).toBe(0);
    expect(await barriersOf(page)).toEqual([]);
  });

  it("shows a new token once, and it is a token", { timeout: BROWSER_MS }, async () => {
    await toolway(gateway, "token", "create", "--id", "grafana", "--admin", "metrics");
    const page = await open();
    await page.goto(`${new URL(page.url()).origin}/access`);
    await page.getByText("this door: metrics").waitFor();
    const id = freshId("laptop");
    await page.getByRole("textbox", { name: "Id" }).fill(id);
    await page.getByRole("button", { name: "Create token" }).click();
    const shown = await page.locator(".secret code").textContent();
    expect((await toolway(gateway, "token", "list")).out).toContain(id);
    expect(shown).toMatch(/^[\w-]{20,}$/);
    await page.reload();
    await page.getByRole("heading", { name: "Tokens" }).waitFor();
    expect(await page.content()).not.toContain(shown);
  });

  it("by a viewer's link has nothing that acts, and a second tab has the session too", {
    timeout: BROWSER_MS,
  }, async () => {
    const page = await open({ view: true });
    await page.getByText("view only").waitFor();
    expect(await page.getByRole("button", { name: "Reload", exact: true }).count()).toBe(0);
    const headers = { authorization: `Bearer ${await secretOf(page)}`, "content-type": "application/json" };
    expect(
      (await fetch(`${new URL(page.url()).origin}/api/reload`, { method: "POST", headers, body: "{}" })).status,
    ).toBe(403);
    const tab = await page.context().newPage();
    await tab.goto(`${new URL(page.url()).origin}/servers`);
    await tab.getByRole("heading", { name: "Servers" }).waitFor();
  });

  it("works in a tab beside six that nobody looks at, which are live when somebody does [bounded]", {
    timeout: BROWSER_MS,
  }, async () => {
    await startRug();
    const page = await open();
    const servers = `${new URL(page.url()).origin}/servers`;
    const tabs: Page[] = [];
    // A browser has six connections to one host, for all of its tabs.
    for (let n = 0; n < 6; n++) {
      const tab = await page.context().newPage();
      await tab.addInitScript("Object.defineProperty(document, 'hidden', { get: () => true, configurable: true })");
      await tab.goto(servers);
      await tab.getByRole("heading", { name: "Servers" }).waitFor();
      tabs.push(tab);
    }
    await page.goto(`${servers}/rug`);
    await page.getByRole("button", { name: "Reload", exact: true }).click();
    await page.getByText("ready").first().waitFor();
    const shown = tabs[0];
    await shown?.evaluate(
      "Object.defineProperty(document, 'hidden', { get: () => false }); document.dispatchEvent(new Event('visibilitychange'))",
    );
    await toolway(gateway, "stop", "rug");
    await shown?.getByText("stopped").waitFor();
    await toolway(gateway, "start", "rug");
  });

  it("has in each view nothing that keeps somebody out who sees or types otherwise, in either theme, and beside each button its command", {
    timeout: BROWSER_MS,
  }, async () => {
    const page = await open();
    const barriers: string[] = [];
    const without: string[] = [];
    let buttons = 0;
    for (const view of VIEWS) {
      await page.goto(new URL(view, page.url()).href);
      await page.locator("main h1").waitFor();
      if (view === "/tools/elicit") await page.getByRole("button", { name: "Try", exact: true }).waitFor();
      barriers.push(...(await barriersOf(page)));
      const found = await page.evaluate<readonly (readonly [label: string, hasLine: boolean])[]>(BUTTONS);
      buttons += found.length;
      // A text for the config ends in the clipboard, and no command copies it there.
      const told = found.filter(([label, hasLine]) => !hasLine && label !== "Copy the lines");
      without.push(...told.map(([label]) => `${view}: ${label}`));
    }
    expect(barriers).toEqual([]);
    expect(without).toEqual([]);
    expect(buttons).toBeGreaterThan(5);
  });

  it("goes on when the gateway was killed and is back, and gives its secret to nobody else meanwhile [secrets-unseen]", {
    timeout: BROWSER_MS,
  }, async () => {
    const page = await open();
    const { port } = new URL(page.url());
    const secret = await secretOf(page);
    expect(secret).toHaveLength(43);
    const sent: string[] = [];
    page.on("request", (request) => sent.push(JSON.stringify(request.headers())));
    await page.reload();
    await page.getByText("● live").waitFor();
    const keys = () => new Set([...sent.join("\n").matchAll(/Bearer ([\w-]+)/g)].map(([, key]) => key));
    await until("the page to ask for something", () => keys().size > 0);
    const keysOfBefore = keys();
    const heard: string[] = [];
    const stranger = createServer((request, response) => {
      let body = "";
      request.on("data", (piece) => {
        body += piece;
      });
      request.on("end", () => {
        heard.push(`${request.method} ${request.url} ${JSON.stringify(request.headers)} ${body}`);
        response.setHeader("content-type", "application/json").end('{"proof":"made up"}');
      });
    });
    await gateway.stop("SIGKILL");
    try {
      await until("the port to be free", () => listens(stranger, Number(port)));
      await page.getByText("Another program listens where the gateway did since").waitFor();
      await until("the page to try again", () => heard.length > 1);
      expect(heard.join("\n")).not.toContain(secret);
    } finally {
      // Another try needs one that runs.
      await closeHttp(stranger);
      gateway = await gateway.again();
    }
    await page.getByText("● live").waitFor();
    // A browser sends a request again that its gateway died over, to whoever listens then: nothing that is sent opens anything.
    expect(sent.join("\n")).not.toContain(secret);
    for (const key of keysOfBefore) {
      const answer = await fetch(new URL("/api/status", page.url()), { headers: { authorization: `Bearer ${key}` } });
      expect(answer.status).toBe(401);
    }
  });

  it("says so when its session has ended, and what gives a new one", { timeout: BROWSER_MS }, async () => {
    const page = await open();
    expect((await toolway(gateway, "dashboard", "--close")).out).toContain("The door is closed.");
    await page.getByText("Toolway does not answer since").waitFor();
    await toolway(gateway, "dashboard", "--print");
    await page.getByText("This session has ended").waitFor();
    // It does not try any more, and shows nothing of before.
    expect(await page.getByText("next try").count()).toBe(0);
    expect(await page.getByRole("navigation").count()).toBe(0);
  });
});

function listens(server: ReturnType<typeof createServer>, port: number): Promise<boolean> {
  return new Promise((done) => {
    server.once("error", () => done(false));
    server.listen(port, "127.0.0.1", () => done(true));
  });
}
