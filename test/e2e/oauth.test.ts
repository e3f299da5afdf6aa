// Logins by OAuth against a real authorization server (oidc-provider), in a real browser: login, consent, renewal, step-up,
// logout. What needs no browser is tried in any case, by somebody who follows the pages by hand.

import { execFile, spawn } from "node:child_process";
import { chmod, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { chromium, NO_BROWSER } from "../fixtures/browser.js";
import { authorityOfTest, follow, logInByHand } from "./authority.js";
import { connect, ERAS } from "./eras.js";
import { connected, startExecutor } from "./executor-process.js";
import { cli, freePort, type Gateway, startGateway, temporaryDirectory, until } from "./harness.js";
import { type Ran, statusOf, toolway } from "./operator.js";

/** Half a core has been seen to take half a minute for the start of a browser, and here it starts twice. */
const BROWSER_MS = 180_000;

/** `toolway login`, with `xdg-open` as a machine with a browser has it. */
async function logInByBrowser({ configPath, stateDir }: Gateway, server: string): Promise<Ran> {
  const bin = await temporaryDirectory();
  const profile = await temporaryDirectory();
  const flags = `--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --user-data-dir=${profile}`;
  const opener = join(bin, "xdg-open");
  await writeFile(opener, `#!/bin/sh\necho $$ > ${bin}/pid\nTMPDIR=${profile} exec ${chromium} ${flags} "$1"\n`);
  await chmod(opener, 0o755);
  const env = { ...process.env, PATH: `${bin}:${process.env["PATH"]}` };
  const line = [cli, "login", server, "--config", configPath, "--state", stateDir];
  try {
    return await new Promise((done) => {
      execFile(process.execPath, line, { env, timeout: BROWSER_MS / 2 }, (error, out, err) =>
        done({ code: error === null ? 0 : Number(error.code ?? -1), out, err }),
      );
    });
  } finally {
    // It was started in a group of its own, with all of its processes. Nobody opened it where the login was refused.
    const pid = Number(await readFile(join(bin, "pid"), "utf8").catch(() => "0"));
    if (pid > 1) process.kill(-pid, "SIGKILL");
  }
}

const needs = async (gateway: Gateway) => (await statusOf(gateway, "linear")).credential?.needsLogin;

describe("a login in a browser", () => {
  it(
    "brings the tools, is renewed once for a hundred calls, asks for more where a call needs it, outlives a kill, and ends with a logout [token-unseen]",
    async (context) => {
      if (chromium === undefined) {
        return context.skip(NO_BROWSER);
      }
      const authority = await authorityOfTest();
      const gateway = await startGateway({
        mcpServers: { linear: { url: authority.url, auth: "oauth", trust: "always" } },
      });
      await until("it to be known that a login is needed", async () => (await needs(gateway)) === true);
      expect((await toolway(gateway, "status")).out).toMatch(/^linear: needs login: `.*toolway login linear/m);
      // One that cannot send its user to a page.
      const agent = await connect("legacy", gateway, { capabilities: { elicitation: { form: {} } } });
      expect(await agent.names()).toEqual([]);
      const login = await logInByBrowser(gateway, "linear");
      expect([login.code, login.out]).toEqual([
        0,
        expect.stringMatching(/^Logged in at linear; its token is good until/),
      ]);
      await agent.waitFor("read");

      await authority.tell("expire");
      const all = await Promise.all(Array.from({ length: 100 }, (_, n) => agent.text("read", { n })));
      expect(all).toEqual(Array.from({ length: 100 }, (_, n) => `read ${n}`));
      const { grants, calls } = await authority.tell("look");
      expect([grants, calls]).toEqual([["authorization_code", "refresh_token"], 100]);

      await expect(agent.call("write")).rejects.toThrow("needs login, for more rights (write): toolway login linear");
      expect((await logInByBrowser(gateway, "linear")).code).toBe(0);
      expect(await agent.text("write", { n: 1 })).toBe("write 1");

      await gateway.stop("SIGKILL");
      const next = await gateway.again();
      const later = await connect("legacy", next);
      await later.waitFor("read");
      expect(await later.text("write", { n: 2 })).toBe("write 2");

      expect((await authority.tell("look")).isLive).toBe(true);
      expect((await toolway(next, "logout", "linear")).out).toBe("Logged out at linear.\n");
      expect((await authority.tell("look")).isLive).toBe(false);
      await until("its tools to be gone", async () => (await later.names()).length === 0);
      expect(await needs(next)).toBe(true);
    },
    BROWSER_MS,
  );
});

describe("a login in the middle of a call", () => {
  it("is asked of an agent that takes pages, in both eras, once for all of its calls, and they go on when the browser is done [token-unseen]", async () => {
    const authority = await authorityOfTest();
    const entry = { url: authority.url, auth: "oauth" };
    const servers = { legacy: entry, modern: entry };
    const gateway = await startGateway({ names: "prefixed", audit: {}, mcpServers: servers } as never);
    for (const era of ERAS) {
      await logInByHand(gateway, era);
      const agent = await connect(era, gateway);
      await agent.waitFor(`${era}__write`);
      // Its token lacks a scope, for which a person has to be asked.
      const calls = [1, 2, 3].map((n) => agent.text(`${era}__write`, { n }));
      const asked = await until("the question", () => agent.asked[0]);
      expect(asked).toMatchObject({ method: "elicitation/create", params: { mode: "url" } });
      const { url, message } = asked.params as { url: string; message: string };
      expect(message).toContain(`"${era}" needs a login`);
      expect(new URL(url).searchParams.get("scope")).toContain("write");
      const page = await fetch(await follow(url));
      expect(await page.text()).toContain("You can close this page");
      expect(await Promise.all(calls)).toEqual(["write 1", "write 2", "write 3"]);
      expect(agent.asked).toHaveLength(1);
      // The legacy era is told that the page has served its purpose.
      if (era === "legacy") {
        const told = await until("the end of the page", () =>
          agent.notified.find(({ method }) => method === "notifications/elicitation/complete"),
        );
        expect(told.params["elicitationId"]).toBe(asked.params["elicitationId"]);
      }
    }
    // Each is one line, by whom it was.
    const { out } = await toolway(gateway, "audit", "--json");
    const lines = out.split("\n").filter((line) => line.includes('"kind":"login"'));
    expect(lines.map((line) => JSON.parse(line) as object).reverse()).toMatchObject(
      ERAS.flatMap((server) => [
        { server, by: "operator", outcome: "ok" },
        { server, by: "call", principal: "local", outcome: "ok" },
      ]),
    );
  });
});

describe("a login at a server behind an executor", () => {
  it("goes through the executor, its documents too, by the executor's rules [token-unseen]", async () => {
    const authority = await authorityOfTest();
    const port = await freePort();
    const token = "a-token-of-the-tests-0123456789";
    const executors = { office: { url: `ws://127.0.0.1:${port}`, token } };
    const linear = { url: authority.url, auth: "oauth", via: "office" };
    // It may reach the server, and not who gives tokens for it.
    const strict = startExecutor(["--listen", `ws://127.0.0.1:${port}`], token, new URL(authority.url).host);
    const gateway = await startGateway({ mcpServers: { linear }, executors });
    await connected(gateway, "office");
    await expect(logInByHand(gateway, "linear")).rejects.toThrow(/executor|allow/);
    await strict.kill();
    startExecutor(["--listen", `ws://127.0.0.1:${port}`], token);
    await until("the other executor", () => logInByHand(gateway, "linear").then(() => true));
    const agent = await connect("modern", gateway);
    await agent.waitFor("read");
    await authority.tell("expire");
    expect(await agent.text("read", { n: 1 })).toBe("read 1");
    const { grants, isLive } = await authority.tell("look");
    expect([grants, isLive]).toEqual([["authorization_code", "refresh_token"], true]);
    // A logout revokes what was given, there too.
    expect((await toolway(gateway, "logout", "linear")).out).toBe("Logged out at linear.\n");
    expect((await authority.tell("look")).isLive).toBe(false);
    // What only somebody who was logged in could see is shown to nobody.
    await until("its tools to be gone", async () => (await agent.names()).length === 0);
  });
});

describe("a token that ends in the middle of a hundred calls", () => {
  it("is renewed once, and every call is made once, within the time that they take and a second of that [token-unseen]", async () => {
    const authority = await authorityOfTest();
    const gateway = await startGateway({
      mcpServers: { linear: { url: authority.url, auth: "oauth", trust: "always" } },
    });
    await logInByHand(gateway, "linear");
    const agent = await connect("modern", gateway);
    await agent.waitFor("read");
    const calls = (from: number, to: number) =>
      Array.from({ length: to - from }, (_, n) => agent.text("read", { n: from + n }));
    // As long as this machine takes for as many with a token that is good.
    const beginMs = Date.now();
    await Promise.all(calls(0, 100));
    const usualMs = Date.now() - beginMs;
    const first = calls(100, 150);
    await authority.tell("expire");
    const all = await Promise.all([...first, ...calls(150, 200)]);
    const endMs = Date.now();
    expect(all).toEqual(Array.from({ length: 100 }, (_, n) => `read ${100 + n}`));
    const seen = await authority.tell("look");
    expect([seen.grants, seen.calls]).toEqual([["authorization_code", "refresh_token"], 200]);
    expect(endMs - seen.grantedMs).toBeLessThan(usualMs + 1_000);
  });
});

describe("logins without a browser", () => {
  it("by a pasted address and without a gateway that runs are there when one starts; a client with a secret needs none", async () => {
    const authority = await authorityOfTest();
    const ci = { clientCredentials: { clientId: "ci", clientSecret: { env: "CI_SECRET" } } };
    const config = {
      mcpServers: { linear: { url: authority.url, auth: "oauth" }, ci: { url: authority.url, auth: ci } },
    };
    const [configPath, stateDir] = [join(await temporaryDirectory(), "toolway.json"), await temporaryDirectory()];
    await writeFile(configPath, JSON.stringify(config));
    const line = [cli, "login", "linear", "--no-browser", "--config", configPath, "--state", stateDir];
    const child = spawn(process.execPath, line);
    onTestFinished(() => void child.kill("SIGKILL"));
    let said = "";
    child.stderr.on("data", (text) => {
      said += text;
    });
    const address = await until("the address", () => /^http\S+\/auth\?\S+$/m.exec(said)?.[0]);
    child.stdin.write(`${await follow(address)}\n`);
    await until("the login to be done", () => child.exitCode !== null);
    expect([child.exitCode, said]).toEqual([0, expect.not.stringContaining("rror")]);

    const gateway = await startGateway(config, { stateDir, configPath, env: { CI_SECRET: "secret-of-the-client" } });
    await until("both to be up", async () => {
      const states = await Promise.all(["linear", "ci"].map((name) => statusOf(gateway, name)));
      return states.every(({ state }) => state === "ready");
    });
    expect(await needs(gateway)).toBe(false);
    const { grants } = await authority.tell("look");
    expect(new Set(grants)).toEqual(new Set(["authorization_code", "client_credentials"]));
  });
});
