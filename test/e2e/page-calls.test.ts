// The rows of calls while more come: what is there stays as it is, and nothing moves under a pointer; in a real browser.

import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { chromium, NO_BROWSER } from "../fixtures/browser.js";
import { BROWSER_MS, PageBrowser } from "../fixtures/page.js";
import { type Gateway, startGateway, stdioFixture, until } from "./harness.js";
import { callTool, hasTool } from "./operator.js";

const NARROW = { width: 400, height: 800 };

describe.skipIf(chromium === undefined)(`rows of calls${chromium === undefined ? ` (${NO_BROWSER})` : ""}`, () => {
  let browser: PageBrowser;
  let gateway: Gateway;
  let page: Page;

  beforeAll(async () => {
    [browser, gateway] = await Promise.all([
      PageBrowser.launch(),
      startGateway({ mcpServers: { slow: stdioFixture("slow") } }),
    ]);
    await until("its tools", () => hasTool(gateway.url, "sleep"));
    for (let n = 0; n < 6; n++) await callTool(gateway.url, "sleep", { ms: 1 });
    page = await browser.open(gateway);
    await page.goto(new URL("/calls", page.url()).href);
    await page.locator("tbody tr").nth(5).waitFor();
  }, BROWSER_MS);

  afterAll(async () => {
    await browser?.close();
  });

  it("another scale of their bars is one attribute of each, and draws none of them anew", {
    timeout: BROWSER_MS,
  }, async () => {
    const scale = () => page.locator("tbody tr svg").last().getAttribute("viewBox");
    const before = await scale();
    await page.evaluate(
      `globalThis.changed = [];
      new MutationObserver((all) => all.forEach(({ target, attributeName }) => changed.push([target.tagName, attributeName].join(" "))))
        .observe(document.querySelector("tbody"), { attributes: true, subtree: true }); 0`,
    );
    // A scale goes by the longest call and by the middle one: so many that the middle one is another.
    const ms = 50 + Math.ceil(4 * Number(before?.split(" ")[2]));
    const calls = 2 + (await page.locator("tbody tr").count());
    await Promise.all(Array.from({ length: calls }, () => callTool(gateway.url, "sleep", { ms })));
    await until("another scale", async () => (await scale()) !== before);
    expect(new Set(await page.evaluate<string[]>("changed"))).toEqual(new Set(["svg viewBox"]));
  });

  it("none moves while the pointer is on them: how many are new is said above, and they come when it leaves", {
    timeout: BROWSER_MS,
  }, async () => {
    const rows = page.locator("tbody tr");
    const before = await rows.count();
    await rows.first().hover();
    await page.getByText("Held still while you point at it").waitFor();
    for (let n = 0; n < 3; n++) await callTool(gateway.url, "sleep", { ms: 1 });
    await page.getByText("3 new. Held still").waitFor();
    expect(await rows.count()).toBe(before);
    await page.mouse.move(1, 1);
    await rows.nth(before + 2).waitFor();
    expect(await rows.count()).toBe(before + 3);
  });

  it("a table that is wider than a narrow window has a shade where more of it is", {
    timeout: BROWSER_MS,
  }, async () => {
    await page.setViewportSize(NARROW);
    const table = page.locator(".wide").first();
    const ofTable = <T>(what: string) => page.evaluate<T>(`((one) => ${what})(document.querySelector(".wide"))`);
    expect(await ofTable("one.scrollWidth > one.clientWidth")).toBe(true);
    /** How dark the right edge of the table's head is, against its middle. */
    const shadeOf = async () => {
      const box = await table.boundingBox();
      const clip = { x: (box?.x ?? 0) + (box?.width ?? 0) - 2, y: (box?.y ?? 0) + 2, width: 1, height: 1 };
      return (await page.screenshot({ clip })).toString("base64");
    };
    const more = await shadeOf();
    await ofTable("one.scrollTo(one.scrollWidth, 0)");
    await until("the shade to go", async () => (await shadeOf()) !== more);
    expect(browser.complaints).toEqual([]);
  });
});
