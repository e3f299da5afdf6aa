// Every act of the page, by the mouse and by the keyboard alone, and seen done by the command line: a table of what a person
// presses and what `toolway` says afterwards. Questions about calls have their own test (page-watch.test.ts).

import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Locator, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { figure } from "../faults/length.js";
import { type Authority, startAuthority } from "../fixtures/authority.js";
import { chromium, NO_BROWSER } from "../fixtures/browser.js";
import { BareClient, closeBareClients } from "../fixtures/mailbox/bare-client.js";
import { BROWSER_MS, barriersOf, PageBrowser } from "../fixtures/page.js";
import { type Gateway, startGateway, stdioFixture, temporaryDirectory, until } from "./harness.js";
import { callTool, createToken, emptyOutbox, freshId, hasTool, statusOf, statusOfAll, toolway } from "./operator.js";

type How = "mouse" | "keyboard";

/** By the mouse in the full run: the short one has most of it in dashboard.test.ts and page-watch.test.ts. */
const HOWS = figure<readonly How[]>(["keyboard"], ["mouse", "keyboard"]);

/** More than any view has to step over. */
const MAX_TABS = 150;
/** More than the page is sent of the audit log at once. */
const LINES = 210;
/** So long a write takes at its server: it is killed meanwhile. */
const WRITE_MS = 4_000;

describe.skipIf(chromium === undefined)(
  `every act of the page${chromium === undefined ? ` (${NO_BROWSER})` : ""}`,
  () => {
    let browser: PageBrowser;
    let gateway: Gateway;
    let authority: Authority;
    let description: string;
    let descriptionOfTwo: string;
    let ledgerFile: string;
    let worker: BareClient;
    let studio: BareClient;
    let token: string;

    beforeAll(async () => {
      const folder = await temporaryDirectory();
      description = join(folder, "description");
      await writeFile(description, "Adds two numbers.");
      descriptionOfTwo = join(folder, "description-of-two");
      await writeFile(descriptionOfTwo, "Adds two numbers.");
      ledgerFile = join(folder, "ledger");
      await writeFile(ledgerFile, "");
      const ledger = stdioFixture("ledger", [], {
        env: { LEDGER: ledgerFile },
        tools: { note: { outbox: { lane: "arguments.text" } } },
        backoff: { baseMs: 20, maxMs: 20 },
      });
      authority = await startAuthority();
      const mcpServers = {
        ledger,
        rug: stdioFixture("rug", ["--description", description]),
        two: stdioFixture("rug", ["--two", "--description", descriptionOfTwo]),
        // A shared server is told that somebody can be asked: the page can.
        asker: { ...stdioFixture("asker"), declare: ["elicitation"] },
        linear: { url: authority.url, auth: "oauth", trust: "always" },
      };
      [browser, gateway] = await Promise.all([
        PageBrowser.launch(),
        startGateway({ mcpServers, mailboxes: {}, audit: {} } as never, { auth: true }),
      ]);
      token = await createToken(gateway, "ann", "default");
      const sharer = await createToken(gateway, "studio", "sharer");
      const made = await toolway(gateway, "token", "create", "--id", "w", "--role", "dev", "--may-send-to", "studio");
      const url = `${gateway.origin.replace("http", "ws")}/mailboxes`;
      worker = await BareClient.connect(url, "w", made.out.trim().split("\n").at(-1) ?? "", {
        version: 1,
      });
      studio = await BareClient.connect(url, "studio", sharer, { version: 1 });
      await until("the tools", () => hasTool(gateway.url, "echo", token));
      const pinned = async () => (await toolway(gateway, "pins")).out;
      await until("the tools to be pinned", async () => {
        const said = await pinned();
        return ["add", "sum"].every((tool) => said.includes(tool));
      });
    }, BROWSER_MS);

    afterEach(() => browser?.closePages());
    afterAll(async () => {
      closeBareClients();
      authority?.kill();
      await browser?.close();
    });

    const at = async (page: Page, path: string) => {
      await page.goto(new URL(path, page.url()).href);
      await page.getByText("● live").waitFor();
    };

    const isFocused = (one: Locator) =>
      one.evaluate((element) => (element as unknown as { matches(of: string): boolean }).matches(":focus"));

    /** By Tab alone, as somebody without a mouse gets there. */
    const tabTo = async (page: Page, one: Locator) => {
      await one.waitFor();
      for (let n = 0; n < MAX_TABS; n++) {
        if (await isFocused(one)) return;
        await page.keyboard.press("Tab");
      }
      throw new Error("No Tab leads there.");
    };

    /** Presses a button; where it asks first, reads `sure` and says yes. */
    const press = async (page: Page, how: How, scope: Locator, label: string, sure?: string) => {
      const button = scope.getByRole("button", { name: label, exact: true });
      const asked = scope.getByRole("alertdialog", { name: label });
      if (how === "mouse") {
        await button.click();
        if (sure === undefined) return;
        await asked.getByText(sure).waitFor();
        await asked.getByRole("button", { name: label, exact: true }).click();
        return;
      }
      // No Tab leads to one that is disabled.
      await until(`${label} to be enabled`, () => button.isEnabled());
      await tabTo(page, button);
      await page.keyboard.press("Enter");
      if (sure === undefined) return;
      await asked.getByText(sure).waitFor();
      // The question has the focus, so that a second Enter does nothing and the next Tab is at its first answer.
      await until("the question to have the focus", () => isFocused(asked));
      await page.keyboard.press("Tab");
      await page.keyboard.press("Enter");
    };

    /** Presses what is no button, or is to be written into. */
    const reach = async (page: Page, how: How, one: Locator) => {
      if (how === "mouse") return one.click();
      await tabTo(page, one);
      if ((await one.getAttribute("href")) !== null) await page.keyboard.press("Enter");
    };

    const says = async (pattern: RegExp, ...words: string[]) =>
      until(`${words.join(" ")} to say ${pattern}`, async () => pattern.test((await toolway(gateway, ...words)).out));

    /** A try before this one may have stopped it. */
    const start = async (server: string) => {
      if ((await statusOf(gateway, server)).state === "stopped") await toolway(gateway, "start", server);
    };

    it("gives a question the focus when it appears, leaves it there while the page changes, and takes it back to the button", {
      timeout: BROWSER_MS,
    }, async () => {
      const page = await browser.open(gateway);
      await at(page, "/servers/rug");
      const question = page.getByRole("alertdialog", { name: "Stop" });
      const button = page.getByRole("button", { name: "Stop", exact: true });
      await tabTo(page, button);
      // Seen as soon as it is in the document: where the focus came later, the next key would go elsewhere.
      await page.evaluate(`new MutationObserver((_, observer) => {
        const found = document.querySelector("[role=alertdialog]");
        if (found === null) return;
        observer.disconnect();
        document.body.dataset.focused = String(document.activeElement === found);
      }).observe(document.body, { childList: true, subtree: true })`);
      await page.keyboard.press("Enter");
      await question.waitFor();
      expect(await page.evaluate("document.body.dataset.focused")).toBe("true");
      const { pid } = await statusOf(gateway, "rug");
      await toolway(gateway, "reload", "rug");
      await until("another process", async () => ![pid, undefined].includes((await statusOf(gateway, "rug")).pid));
      await page.getByText(String((await statusOf(gateway, "rug")).pid), { exact: true }).waitFor();
      expect(await isFocused(question)).toBe(true);
      await question.getByRole("button", { name: "Keep it" }).press("Enter");
      await until("the button to have the focus", () => isFocused(button));
    });

    it("begins nothing about a row until what the last act changed is read again", {
      timeout: BROWSER_MS,
    }, async () => {
      const [one, two] = [freshId("one"), freshId("two")];
      await Promise.all([one, two].map((id) => createToken(gateway, id, "default")));
      const page = await browser.open(gateway);
      await at(page, "/access");
      const of = (id: string, label: string) =>
        page
          .getByRole("row")
          .filter({ has: page.getByRole("rowheader", { name: id, exact: true }) })
          .getByRole("button", { name: label, exact: true });
      await of(one, "Rotate").waitFor();
      let readAgain = () => {};
      const isHeld = new Promise<void>((held) => {
        void page.route("**/api/tokens", async (route) => {
          held();
          await new Promise<void>((go) => {
            readAgain = go;
          });
          await route.continue();
        });
      });
      await of(one, "Rotate").click();
      await of(one, "Rotate").click();
      await isHeld;
      expect(await of(one, "Rotate").getAttribute("aria-disabled")).toBe("true");
      expect(await isFocused(of(one, "Rotate"))).toBe(true);
      expect(await of(one, "Revoke").isDisabled()).toBe(true);
      expect(await of(two, "Revoke").isDisabled()).toBe(false);
      readAgain();
      await until("the next act to be possible", () => of(one, "Revoke").isEnabled());
      expect(await isFocused(of(one, "Rotate"))).toBe(true);
    });

    it.each(HOWS)(
      "by the %s: servers are stopped, started and reloaded",
      {
        timeout: BROWSER_MS,
      },
      async (how) => {
        await start("rug");
        const page = await browser.open(gateway);
        const main = page.locator("main");
        await at(page, "/servers/rug");
        await press(page, how, main, "Stop", "Agents get an error for its tools");
        await says(/rug +stopped/, "status");
        await press(page, how, main, "Start");
        await says(/rug +ready/, "status");
        const { pid } = await statusOf(gateway, "rug");
        await press(page, how, main, "Reload");
        await until("another process", async () => {
          const now = await statusOf(gateway, "rug");
          return now.state === "ready" && now.pid !== pid;
        });
      },
    );

    it.each(HOWS)(
      "by the %s: a changed tool is rejected, and accepted [host-12]",
      {
        timeout: BROWSER_MS,
      },
      async (how) => {
        await start("rug");
        await writeFile(description, `Adds two numbers, ${freshId(`by the ${how}`)}.`);
        await toolway(gateway, "reload", "rug");
        await until("the change to be seen", async () => (await statusOf(gateway, "rug")).quarantined > 0);
        const page = await browser.open(gateway);
        const main = page.locator("main");
        await at(page, "/pins/rug");
        await press(page, how, main, "Reject");
        await says(/rug +add +rejected/, "pins");
        await press(page, how, main, "Accept", "Agents see the tool as it is now");
        await says(/rug +add +pinned/, "pins");
      },
    );

    it.each(HOWS)(
      "by the %s: all changed tools of a server are accepted as they are shown, and rejected, at once [host-12]",
      {
        timeout: BROWSER_MS,
      },
      async (how) => {
        const changed = async () => {
          await writeFile(descriptionOfTwo, `Adds two numbers, ${freshId(`by the ${how}`)}.`);
          await toolway(gateway, "reload", "two");
        };
        const areAll = (state: string) =>
          Promise.all(["add", "sum"].map((tool) => says(new RegExp(`two +${tool} +${state}`), "pins")));
        await changed();
        await areAll("changed");
        const page = await browser.open(gateway);
        const main = page.locator("main");
        await at(page, "/pins/two");
        await main.getByRole("heading", { name: "sum" }).waitFor();
        // What nobody has seen is not accepted. The browser tells of each refusal, as is meant here.
        const told = browser.complaints.length;
        onTestFinished(() => void browser.complaints.splice(told));
        const shown = await main.locator("ins").first().textContent();
        await changed();
        await until(
          "another change",
          async () => !(await toolway(gateway, "pins", "diff", "two")).out.includes(shown ?? ""),
        );
        await press(page, how, main, "Accept all", "Agents see these 2 tools as they are shown here");
        await main.getByRole("alert").waitFor();
        await areAll("changed");
        await press(page, how, main, "Accept all", "Agents see these 2 tools as they are shown here");
        await areAll("pinned");
        await main.getByText("Every tool is as you accepted it.").waitFor();
        await changed();
        await areAll("changed");
        await page.reload();
        await press(page, how, main, "Reject all");
        await areAll("rejected");
        await page.getByText(", rejected").nth(1).waitFor();
      },
    );

    it.each(HOWS)(
      "by the %s: a person logs in at a server, and out [token-unseen]",
      {
        timeout: BROWSER_MS,
      },
      async (how) => {
        const needsLogin = async () => (await statusOf(gateway, "linear")).credential?.needsLogin;
        await until("what the server wants", async () => (await needsLogin()) !== undefined);
        if (!(await needsLogin())) await toolway(gateway, "logout", "linear");
        const page = await browser.open(gateway);
        const main = page.locator("main");
        await at(page, "/servers/linear");
        await press(page, how, main, "Log in");
        const opened = page.context().waitForEvent("page");
        await reach(page, how, page.getByRole("link", { name: /^Go on at 127\.0\.0\.1:\d+/ }));
        await (await opened).getByText("You can close this page.").waitFor();
        await until("the login", async () => (await needsLogin()) === false);
        await page.bringToFront();
        await press(page, how, main, "Log out", "Its tools are gone until somebody logs in again");
        await until("the end of the login", async () => (await needsLogin()) === true);
      },
    );

    it.each(HOWS)(
      "by the %s: a server's question is answered and declined, and a call taken back [calls-recorded]",
      {
        timeout: BROWSER_MS,
      },
      async (how) => {
        // A call that was taken back goes on in it: of its next question nobody would know which call it belongs to.
        onTestFinished(() => toolway(gateway, "reload", "asker").then(() => {}));
        const page = await browser.open(gateway);
        const main = page.locator("main");
        await at(page, "/tools/elicit");
        const result = page.getByRole("heading", { name: "Result" });
        for (const [label, given] of [
          ["Answer", /accept[\s\S]*green/],
          ["Decline", /decline/],
        ] as const) {
          await press(page, how, main, "Try");
          await press(page, how, main, "Call it");
          await reach(page, how, page.getByRole("textbox", { name: "answer *" }));
          await page.keyboard.type("green");
          await press(page, how, main, label);
          await result.waitFor();
          await main.locator("pre").filter({ hasText: given }).first().waitFor();
        }
        const json = page.getByRole("textbox", { name: "The arguments as JSON" });
        await reach(page, how, json);
        await page.keyboard.press("ControlOrMeta+a");
        await page.keyboard.insertText('{ "delayMs": 60000 }');
        await press(page, how, main, "Try");
        await press(page, how, main, "Call it");
        await press(page, how, main, "Cancel");
        await page.getByText("You took it back.").waitFor();
        await says(/asker\/elicit[^\n]*cancelled/, "calls");
      },
    );

    it.each(HOWS)(
      "by the %s: the audit log is checked, looked through and saved [audit-tells]",
      {
        timeout: BROWSER_MS,
      },
      async (how) => {
        // Of an agent that nobody else is: two looks have all of its lines.
        const reader = freshId(`reader-${how}`);
        const own = await createToken(gateway, reader, "default");
        await Promise.all(Array.from({ length: LINES }, () => callTool(gateway.url, "nowhere", {}, own)));
        const found = async () =>
          (await toolway(gateway, "audit", "--principal", reader, "--json", "-n", "5000")).out.trim().split("\n");
        await until("the lines", async () => (await found()).length >= LINES);
        const page = await browser.open(gateway);
        const main = page.locator("main");
        await at(page, `/audit?principal=${reader}`);
        const rows = page.locator("tbody tr");
        await rows.first().waitFor();
        const before = await rows.count();
        await press(page, how, main, "Search further back");
        await until("all lines", async () => (await rows.count()) === (await found()).length);
        expect(await rows.count()).toBeGreaterThan(before);
        await press(page, how, main, "Check it");
        await page.getByText("● as it was written").waitFor();
        expect((await toolway(gateway, "audit", "verify")).code).toBe(0);
        const saved = page.waitForEvent("download");
        await press(page, how, main, "Save as JSON lines");
        const lines = (await readFile(await (await saved).path(), "utf8")).trim().split("\n");
        const seqs = (all: readonly string[]) => new Set(all.map((line) => (JSON.parse(line) as { seq: number }).seq));
        expect(seqs(lines)).toEqual(seqs(await found()));
      },
    );

    it.each(HOWS)(
      "by the %s: a token is made, rotated and revoked [token-ends]",
      {
        timeout: BROWSER_MS,
      },
      async (how) => {
        const page = await browser.open(gateway);
        const main = page.locator("main");
        await at(page, "/access");
        const id = freshId(`of-${how}`);
        const field = page.getByRole("textbox", { name: "Id" });
        if (how === "mouse") await field.click();
        else await tabTo(page, field);
        await page.keyboard.type(id);
        await press(page, how, main, "Create token");
        const shown = page.locator(".secret code");
        await shown.waitFor();
        const secret = async () => (await shown.textContent()) ?? "";
        const first = await secret();
        await says(new RegExp(id), "token", "list");
        expect(await hasTool(gateway.url, "echo", first)).toBe(true);
        const row = page.getByRole("row").filter({ hasText: id });
        await press(page, how, row, "Rotate", "The old secret is good for");
        await until("another secret", async () => (await secret()) !== first);
        expect(await hasTool(gateway.url, "echo", await secret())).toBe(true);
        await press(page, how, row, "Revoke", "Whoever uses it is cut off");
        await until("it to be gone", async () => !(await toolway(gateway, "token", "list")).out.includes(id));
      },
    );

    it.each(HOWS)(
      "by the %s: kept writes are dropped, resolved, tried again and released [unknown-is-said]",
      {
        timeout: BROWSER_MS,
      },
      async (how) => {
        await emptyOutbox(gateway, "ledger");
        await start("ledger");
        const page = await browser.open(gateway);
        await until("the server", async () => (await statusOf(gateway, "ledger")).state === "ready");
        // Three whose server dies before it answers, and one that waits for it.
        const names = ["done", "failed", "again"].map((as) => freshId(`${as}-${how}`));
        const lost = names.map((text) => callTool(gateway.url, "note", { text, ms: WRITE_MS }, token));
        await until("the writes to be with the server", async () => {
          const noted = await readFile(ledgerFile, "utf8");
          return names.every((text) => noted.includes(text));
        });
        process.kill((await statusOf(gateway, "ledger")).pid ?? 0, "SIGKILL");
        await Promise.all(lost);
        await until("the outcomes to be unknown", async () => (await statusOfAll(gateway)).outbox?.unknown === 3);
        await page.locator(".need").filter({ hasText: "3 writes have an unknown outcome" }).locator("time").waitFor();
        await toolway(gateway, "stop", "ledger");
        await callTool(gateway.url, "note", { text: freshId(`waits-${how}`) }, token);
        const writes = await writesOf();
        await at(page, "/waiting");
        const row = (state: string) => page.getByRole("row").filter({ hasText: state }).first();
        await press(page, how, row("queued"), "Drop", "It is never sent");
        await until("it to be dropped", async () => (await writesOf()).some(({ state }) => state === "cancelled"));
        await press(page, how, row("unknown"), "It was done", "told that it was done");
        await until("one that was done", async () => (await statusOfAll(gateway)).outbox?.unknown === 2);
        await toolway(gateway, "start", "ledger");
        await press(page, how, row("unknown"), "Send it again", "it is done twice");
        await until("one that is sent again", async () => (await statusOfAll(gateway)).outbox?.unknown === 1);
        await press(page, how, row("unknown"), "It was not", "told that it failed");
        await until("none that is unknown", async () => (await statusOfAll(gateway)).outbox?.unknown === 0);
        await press(page, how, row("failed"), "Retry");
        await until("all to be settled", async () => {
          const states = (await writesOf())
            .filter(({ id }) => writes.some((one) => one.id === id))
            .map(({ state }) => state);
          return states.every((state) => state === "done" || state === "cancelled");
        });
        await toolway(gateway, "stop", "ledger");
        await callTool(gateway.url, "note", { text: freshId(`held-${how}`) }, token);
        await at(page, "/waiting");
        await press(page, how, page.locator(".lanes"), "Hold", "is delivered until somebody releases it");
        await until("a lane on hold", async () => (await statusOfAll(gateway)).outbox?.held.length === 1);
        await at(page, "/");
        const need = page.locator(".need").filter({ hasText: "for ledger" }).first();
        await press(page, how, need, "Release");
        await until("no lane on hold", async () => (await statusOfAll(gateway)).outbox?.held.length === 0);
        await toolway(gateway, "start", "ledger");
        await until("it to be delivered", async () => (await statusOfAll(gateway)).outbox?.waiting === 0);
      },
    );

    const writesOf = async () =>
      (
        JSON.parse((await toolway(gateway, "outbox", "list", "--json")).out) as {
          writes: { id: string; state: string }[];
        }
      ).writes;

    it.each(HOWS)(
      "by the %s: dead letters are sent again, and dropped",
      {
        timeout: BROWSER_MS,
      },
      async (how) => {
        const [again, gone] = [freshId(`again-${how}`), freshId(`drop-${how}`)];
        for (const id of [again, gone]) await die(id);
        const page = await browser.open(gateway);
        await page
          .locator(".need")
          .filter({ hasText: /dead letters/ })
          .locator("time")
          .waitFor();
        await at(page, "/waiting");
        const letter = (id: string) => page.locator("li").filter({ hasText: id });
        await letter(gone).waitFor();
        expect(await barriersOf(page)).toEqual([]);
        await press(page, how, letter(again), "Retry");
        await until("it to be sent again", async () => !(await dead()).includes(again));
        await press(page, how, letter(gone), "Drop", "It is gone for good");
        await until("it to be gone", async () => !(await dead()).includes(gone));
      },
    );

    const dead = async () => (await toolway(gateway, "mailbox", "dead", "studio")).out;

    /** A message that fails until nobody takes it any more. */
    async function die(id: string): Promise<void> {
      worker.deliver("studio", id, { op: "call" });
      await worker.next("delivered");
      studio.send({ kind: "subscribe" });
      studio.send({ kind: "credit", messages: 100 });
      await until(`${id} to be dead`, async () => {
        for (const frame of studio.left.filter(({ kind }) => kind === "message")) {
          const message = frame["message"] as { id: string };
          await studio.next("message");
          const isOurs = message.id === id;
          if (isOurs) studio.send({ kind: "release", id: message.id, from: "w", failed: true, reason: "no brush" });
          else studio.send({ kind: "ack", id: message.id, from: "w" });
        }
        return (await dead()).includes(id);
      });
    }

    it.each(HOWS)(
      "by the %s: a tool is tried, its calls are recorded, and that is stopped [calls-recorded]",
      {
        timeout: BROWSER_MS,
      },
      async (how) => {
        for (const { server, tool } of (await statusOfAll(gateway)).recordings) {
          await toolway(gateway, "record", `${server}/${tool ?? ""}`, "--stop");
        }
        await start("ledger");
        const page = await browser.open(gateway);
        const main = page.locator("main");
        await at(page, "/tools/echo");
        const json = page.getByRole("textbox", { name: "The arguments as JSON" });
        if (how === "mouse") await json.click();
        else await tabTo(page, json);
        await page.keyboard.press("ControlOrMeta+a");
        await page.keyboard.insertText(`{ "text": "tried-${how}" }`);
        await press(page, how, main, "Try");
        await press(page, how, main, "Call it");
        await page.getByRole("heading", { name: "Result" }).waitFor();
        await says(/ledger\/echo/, "calls");
        await at(page, "/calls?tool=echo");
        const link = page.locator("tbody tr").first().getByRole("link");
        if (how === "mouse") await link.click();
        else {
          await tabTo(page, link);
          await page.keyboard.press("Enter");
        }
        await press(page, how, main, "Record the next ones");
        await says(/ledger\/echo/, "record");
        await press(page, how, page.locator(".recording"), "Stop recording");
        await until("the end of it", async () => (await statusOfAll(gateway)).recordings.length === 0);
        await at(page, "/config");
        await press(page, how, main, "Read it again");
      },
    );
  },
);
