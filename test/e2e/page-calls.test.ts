// The rows of calls while more come: what is there stays as it is, and nothing moves under a pointer; in a real browser.

import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { chromium, NO_BROWSER } from "../fixtures/browser.js";
import { BROWSER_MS, barriersOf, PageBrowser } from "../fixtures/page.js";
import { send } from "./eras.js";
import { type Gateway, startGateway, stdioFixture, until } from "./harness.js";
import { callTool, freshId, hasTool, toolway } from "./operator.js";

const NO_TOOL = { method: "tools/call", params: { name: "no_such_tool", arguments: {} } } as const;
/** What the style shows behind the time of the first row. */
const AFTER_TIME = "getComputedStyle(document.querySelector('main tbody time'), '::after').content";
/** Calls are looked for once a second. */
const TWO_LOOKS_MS = 2_200;
const DONE = Promise.resolve();

/** `1.20 s`, `53.0 ms`. */
function msOf(text: string): number {
  const [figure = "", unit] = text.split(" ");
  return Number(figure) * (unit === "s" ? 1_000 : 1);
}

/** Pictures of which a part is beyond their own edge: it runs in the browser. */
const CUT_OFF = `[...document.querySelectorAll("tbody tr svg")].flatMap((svg) => {
  const ends = [...svg.querySelectorAll("rect")].map(({ x, width }) => x.baseVal.value + width.baseVal.value);
  return Math.max(...ends) > svg.viewBox.baseVal.width * 1.001 ? [svg.getAttribute("aria-label")] : [];
})`;

/** What the pictures of all but the longest are as wide as, in milliseconds. */
const SCALE = `Math.min(...[...document.querySelectorAll("tbody tr svg")].map((svg) => svg.viewBox.baseVal.width))`;

const WIDE = { width: 1280, height: 720 };
const NARROW = { width: 400, height: 800 };

describe.skipIf(chromium === undefined)(`rows of calls${chromium === undefined ? ` (${NO_BROWSER})` : ""}`, () => {
  let browser: PageBrowser;
  let gateway: Gateway;
  let page: Page;

  /** All rows are there that were on their way. */
  async function noMoreRows(): Promise<void> {
    const rows = page.locator("main tbody tr");
    await until("no more rows", async () => {
      const seen = await rows.count();
      await new Promise((done) => setTimeout(done, TWO_LOOKS_MS));
      return seen === (await rows.count());
    });
  }
  /** How often the tool of this name was called. */
  let started = 0;

  beforeAll(async () => {
    const ledger = stdioFixture("ledger", [], { env: { LEDGER: "/dev/null" }, tools: { note: { outbox: true } } });
    [browser, gateway] = await Promise.all([
      PageBrowser.launch(),
      startGateway({ mcpServers: { slow: stdioFixture("slow"), ledger } }),
    ]);
    for (const tool of ["sleep", "note"]) await until(tool, () => hasTool(gateway.url, tool));
    for (let n = 0; n < 6; n++) await callTool(gateway.url, "sleep", { ms: 1 });
    page = await browser.open(gateway);
  }, BROWSER_MS);

  afterAll(async () => {
    await browser?.close();
  });

  it("another scale of their bars is one attribute of each, and draws none of them anew", {
    timeout: BROWSER_MS,
  }, async () => {
    await page.goto(new URL("/calls", page.url()).href);
    await page.locator("tbody tr").nth(5).waitFor();
    // Rows under the pointer are held still; and all have to be there, for the middle one to be another by what follows.
    await page.mouse.move(1, 1);
    await noMoreRows();
    // Of a call that is longer than the scale all is shown, too: not its beginning alone.
    expect(await page.evaluate(CUT_OFF)).toEqual([]);
    const scale = () => page.evaluate<number>(SCALE);
    const before = await scale();
    await page.evaluate(
      `globalThis.changed = [];
      new MutationObserver((all) => all.forEach(({ target, attributeName }) => changed.push([target.tagName, attributeName].join(" "))))
        .observe(document.querySelector("tbody"), { attributes: true, subtree: true }); 0`,
    );
    // A scale goes by the longest call and by the middle one: so many that the middle one is another.
    const ms = 50 + Math.ceil(4 * before);
    // Of those that come faster than anybody reads some are not shown: it takes as many as are.
    await until("another scale", async () => {
      await Promise.all(Array.from({ length: 20 }, () => callTool(gateway.url, "sleep", { ms })));
      return (await scale()) !== before;
    });
    expect(new Set(await page.evaluate<string[]>("changed"))).toEqual(new Set(["svg viewBox"]));
  });

  it("none moves while the pointer is on them: how many are new is said above, and they come when it leaves", {
    timeout: BROWSER_MS,
  }, async () => {
    // Of a tool that no other test calls: rows of theirs may still come.
    for (let n = 0; n < 2; n++) {
      started++;
      await callTool(gateway.url, "started");
    }
    await page.goto(new URL("/calls?tool=started", page.url()).href);
    const rows = page.locator("tbody tr");
    const before = started;
    await until("all rows", async () => (await rows.count()) === before);
    await rows.first().hover();
    await page.getByText("Held still while you point at it").waitFor();
    for (let n = 0; n < 3; n++) {
      started++;
      await callTool(gateway.url, "started");
    }
    await page.getByText("3 new. Held still").waitFor();
    expect(await rows.count()).toBe(before);
    await page.mouse.move(1, 1);
    await rows.nth(before + 2).waitFor();
    expect(await rows.count()).toBe(before + 3);
  });

  it("what is not over for a while is said above them, with what it waits for, until it is [calls-recorded]", {
    timeout: BROWSER_MS,
  }, async () => {
    await page.goto(new URL("/calls?tool=sleep", page.url()).href);
    await page.mouse.move(1, 1);
    const long = callTool(gateway.url, "sleep", { ms: 5_000 });
    const row = page.locator("main .rows li").filter({ hasText: "slow/sleep" });
    await row
      .filter({ hasText: /[1-9][\d.]* s/ })
      .filter({ hasText: /for local\b.*: at its server/ })
      .waitFor();
    await long;
    await row.waitFor({ state: "detached" });
  });

  it("are found by their keys, filters, groups and ids, and stand still while the view is paused [calls-recorded]", {
    timeout: BROWSER_MS,
  }, async () => {
    const rows = page.locator("main tbody tr");
    const press = (...keys: string[]) =>
      keys.reduce((before, key) => before.then(() => page.keyboard.press(key)), DONE);
    const filter = (name: string, value: string) =>
      page.locator(`label:has-text("${name}") select`).selectOption(value);
    await toolway(gateway, "outbox", "hold", "ledger");
    await page.setViewportSize(WIDE);
    await page.goto(new URL("/calls", page.url()).href);
    const kept = await callTool(gateway.url, "note", { text: "later" });
    const receipt = (kept.result?.["structuredContent"] as { receipt?: string } | undefined)?.receipt ?? "";
    expect(receipt).not.toBe("");
    await callTool(gateway.url, "sleep", { ms: 700 });
    const ownId = freshId("own-id");
    for (const id of [freshId("other-id"), ownId]) await send(gateway.url, { ...NO_TOOL, id });
    await rows.filter({ hasText: "not-found" }).first().waitFor();

    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByText("Paused.").waitFor();
    // An answer that was on its way may still come.
    await noMoreRows();
    const before = await rows.count();
    const paused = await rows.first().getByRole("link").getAttribute("href");
    await callTool(gateway.url, "sleep", { ms: 1 });
    await page.mouse.move(1, 1);
    await new Promise((done) => setTimeout(done, TWO_LOOKS_MS));
    expect(await rows.count()).toBe(before);
    await page.getByRole("button", { name: "Go on" }).click();
    await until("the new row", async () => (await rows.first().getByRole("link").getAttribute("href")) !== paused);

    await filter("Outcome", "not-found");
    const [fitting, found] = [rows.filter({ hasText: "not-found" }), async () => rows.count()];
    await until("the filter", async () => (await found()) >= 2 && (await fitting.count()) === (await found()));
    expect(page.url()).toContain("outcome=not-found");
    await page.getByText("toolway calls -f --outcome not-found").waitFor();
    await filter("In groups", "reason");
    await rows.filter({ hasText: "not-found at no server" }).filter({ hasText: /[2-9]/ }).waitFor();
    await filter("Outcome", "");
    await filter("In groups", "slowest");
    await page.getByText("toolway calls --slowest", { exact: true }).waitFor();
    await until("the slowest of all, in their order", async () => {
      const times = (await rows.locator("td.number:nth-of-type(5)").allInnerTexts()).map(msOf);
      return times.length > 5 && times.every((ms, n) => n === 0 || ms <= (times[n - 1] ?? 0));
    });

    // Exact on focus of its row, by `t` everywhere, and the keys by `?`.
    const time = rows.first().locator("time");
    await rows.first().getByRole("link").focus();
    await press("Shift+Tab", "Tab");
    const exact = await time.getAttribute("title");
    expect(await page.evaluate(AFTER_TIME)).toBe(JSON.stringify(exact));
    await press("t");
    await until("exact times", async () => (await time.textContent()) === exact);
    await press("t", "?");
    await page.getByRole("dialog").getByText("Exact times").waitFor();
    await press("Escape", "Control+k");
    await page.keyboard.type(ownId);
    await page
      .locator(".search li")
      .filter({ hasText: `call ${ownId}` })
      .waitFor();
    await press("Enter");
    await page.getByText(ownId, { exact: true }).waitFor();
    await page.getByText("There is no such tool for this agent.").waitFor();
    expect(await barriersOf(page)).toEqual([]);
    await press("/");
    // Who calls where nobody is asked for a token has none, and is found by the calls.
    await page.keyboard.type("local");
    await page.locator(".search li").filter({ hasText: "agent local" }).waitFor();
    await page.locator("#search").fill(receipt);
    await page
      .locator(".search li")
      .filter({ hasText: `write ${receipt}` })
      .getByRole("link")
      .click();
    await page.waitForURL(`**/waiting/${receipt}`);
    await page.goBack();
  });

  it("a receipt is found by its whole id where the list of writes, which has the newest alone, does not have it", {
    timeout: BROWSER_MS,
  }, async () => {
    await toolway(gateway, "outbox", "hold", "ledger");
    const kept = await callTool(gateway.url, "note", { text: "long ago" });
    const { receipt = "" } = (kept.result?.["structuredContent"] ?? {}) as { receipt?: string };
    await page.route("**/api/outbox", (route) => route.fulfill({ json: { writes: [] } }));
    onTestFinished(() => page.unrouteAll({ behavior: "ignoreErrors" }));
    await page.goto(new URL("/servers", page.url()).href);
    await page.getByRole("heading", { name: "Servers" }).waitFor();
    await page.locator("#search").fill(receipt);
    const hit = page.locator(".search li").filter({ hasText: `write ${receipt}` });
    await hit.getByRole("link").click();
    await page.waitForURL(`**/waiting/${receipt}`);
    await page.getByRole("heading", { name: "ledger/note" }).waitFor();
  });

  it("a table that is wider than a narrow window has a shade where more of it is", {
    timeout: BROWSER_MS,
  }, async () => {
    await page.goto(new URL("/calls", page.url()).href);
    await page.locator("tbody tr").first().waitFor();
    await page.setViewportSize(NARROW);
    const table = page.locator(".wide").first();
    // Whose call it was stands in a line or two there: not a word a line, which makes each row as high as five.
    expect((await page.locator("tbody td:nth-child(4)").first().boundingBox())?.width).toBeGreaterThanOrEqual(150);
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
  });
});
