// Pages of other ports and names against the operator's page, in a real browser; and secrets that come by every way that there
// is, looked for in all that is kept, counted, sent, logged or shown.

import { readdir, readFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { chromium, NO_BROWSER } from "../fixtures/browser.js";
import { closeHttp, listenOnLoopback } from "../fixtures/loopback.js";
import { type MetricCollector, startCollector } from "../fixtures/metric-collector.js";
import { BROWSER_MS, PageBrowser, secretOf } from "../fixtures/page.js";
import { type ScriptedServer, startScripted } from "../fixtures/scripted-mcp.js";
import { type Gateway, startGateway, stdioFixture, until } from "./harness.js";
import { callTool, createToken, listed, toolway } from "./operator.js";
import { INITIALIZED, initialize, post } from "./wire.js";

/** Each comes by another way, and none may be seen again. */
const CANARIES = {
  argument: "canary-argument-5d1f",
  env: "canary-env-77ab20c4",
  header: "canary-header-9e20",
  path: "cAnArYpAtH8Zr2mK4vX7tB1nC",
  query: "canary-query-1c55",
  tried: "canary-tried-0b42",
};

const VIEWS = [
  "/",
  "/calls",
  "/servers",
  "/servers/ledger",
  "/servers/remote",
  "/tools",
  "/pins",
  "/access",
  "/config",
  "/audit",
];

/** Whatever of it were not shown as text would be seen: by the browser, by the document, or by its own sign. */
const MARKUP = `<img src=x onerror="document.title='pwned'"><script>document.title='pwned'</script>`;
const HIDDEN = "\u202e\u200b\u001b[31m";
const HOSTILE = `${MARKUP}${HIDDEN}`;
/** Names of servers have no controls; of everything else they may be made. */
const HOSTILE_SERVER = `hostile ${MARKUP}\u202e`;
const HOSTILE_TOOL = `odd ${HOSTILE}`;

/** A picture of one point, and a tenth of a second of silence. */
const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const SAMPLES = 800;
const WAV = Buffer.concat([
  Buffer.from("RIFF\u0044\u0003\u0000\u0000WAVEfmt \u0010\u0000\u0000\u0000\u0001\u0000\u0001\u0000", "latin1"),
  Buffer.from("401f0000401f000001000800", "hex"),
  Buffer.from("data\u0020\u0003\u0000\u0000", "latin1"),
  Buffer.alloc(SAMPLES, 0x80),
]).toString("base64");
/** More than the page shows of a result. */
const LONG = "long ".repeat(60_000);
const RICH = {
  content: [
    { type: "image", data: PNG, mimeType: "image/png" },
    { type: "audio", data: WAV, mimeType: "audio/wav" },
    { type: "resource_link", uri: "https://docs.example/read?on=1", name: "Read on" },
    { type: "resource", resource: { uri: "file:///notes.txt", text: "what the notes say" } },
  ],
  structuredContent: { answer: { figure: 4711 } },
};

/** A server that writes what it likes wherever it may. */
function startHostile(): Promise<ScriptedServer> {
  const link = { type: "resource_link", uri: "javascript:document.title='pwned'", name: `click ${HOSTILE}` };
  const picture = { type: "image", data: btoa("<svg onload=alert(1)>"), mimeType: `image/svg+xml${HIDDEN}` };
  const inputSchema = {
    type: "object",
    properties: {
      [`pick${HIDDEN}`]: { enum: [`one${HOSTILE}`, "two"], description: HOSTILE },
      fixed: { const: `fixed${HOSTILE}` },
      either: {
        oneOf: [
          { title: `first${HOSTILE}`, type: "string" },
          { title: "second", type: "null" },
        ],
      },
    },
    required: [`pick${HIDDEN}`, "fixed", "either"],
  };
  return startScripted(
    [
      { name: "good", description: `Good. ${HOSTILE}`, inputSchema },
      { name: "bad", description: "Fails." },
      { name: "late", description: "Fails when it is sent at last." },
      { name: HOSTILE_TOOL },
      { name: "rich", annotations: { readOnlyHint: true } },
      { name: "long", annotations: { readOnlyHint: true } },
    ],
    (tool) => {
      if (tool === "bad" || tool === "late") return { error: { code: -32000, message: `failed ${HOSTILE}` } };
      if (tool === "rich") return { result: RICH };
      const text = tool === "long" ? LONG : `said ${HOSTILE}`;
      return { result: { content: [{ type: "text", text }, link, picture] } };
    },
  );
}

describe.skipIf(chromium === undefined)(`attacks${chromium === undefined ? ` (${NO_BROWSER})` : ""}`, () => {
  let browser: PageBrowser;
  let gateway: Gateway;
  let collector: MetricCollector;
  let token: string;
  let hostile: ScriptedServer;
  const servers: Server[] = [];
  /** The page of somebody else, on another port of this machine, and what it was asked. */
  let evil: { readonly port: number; readonly heard: string[] };

  beforeAll(async () => {
    const remote = createServer((request, response) => {
      request.resume();
      const said = `cold: ${request.url} ${JSON.stringify(request.headers)}`;
      response.writeHead(500, { "content-type": "text/plain" }).end(said);
    });
    const heard: string[] = [];
    const other = createServer((request, response) => {
      heard.push(`${request.method} ${request.url} ${JSON.stringify(request.headers)}`);
      response.setHeader("content-type", "text/html").end("<!doctype html><title>evil</title>");
    });
    servers.push(remote, other);
    evil = { port: await listenOnLoopback(other), heard };
    collector = await startCollector();
    hostile = await startHostile();
    const url = `http://127.0.0.1:${await listenOnLoopback(remote)}/hooks/${CANARIES.path}/mcp?token=${CANARIES.query}`;
    [browser, gateway] = await Promise.all([
      PageBrowser.launch(),
      startGateway(
        {
          audit: {},
          telemetry: { otlp: collector.url },
          roles: { default: {}, [`role ${MARKUP}\u202e`]: { deny: [`none ${MARKUP}\u202e`] } },
          mcpServers: {
            ledger: stdioFixture("ledger", [], { env: { LEDGER: "/dev/null", API_TOKEN: CANARIES.env } }),
            [HOSTILE_SERVER]: {
              ...hostile.entry,
              tools: { bad: { description: `Fails. ${HOSTILE}` }, late: { outbox: { lane: "arguments.lane" } } },
            },
            noisy: {
              command: process.execPath,
              args: ["-e", `console.error(${JSON.stringify(HOSTILE)}); process.exit(1)`],
            },
            remote: { url, headers: { "X-Api-Key": CANARIES.header } },
          },
        } as never,
        { auth: true, env: { OTEL_METRIC_EXPORT_INTERVAL: "500" } },
      ),
    ]);
    token = await createToken(gateway, "ann", "default");
    await until("a call that is answered", async () => {
      const { error } = await callTool(gateway.url, "echo", { text: CANARIES.argument }, token);
      return error === undefined;
    });
  }, BROWSER_MS);

  afterEach(() => browser?.closePages());
  afterAll(async () => {
    collector?.close();
    hostile?.close();
    await Promise.all(servers.map(closeHttp));
    await browser?.close();
  });

  /** What operators did by the page, as the audit log has it. */
  const acts = async () => {
    const { out } = await toolway(gateway, "audit", "--operator", "--json", "-n", "1000");
    return out.split("\n").filter((line) => line.includes('"by":"page"'));
  };

  /** In a session: a request without one has the name of its tool in a header, which takes no such name. */
  const callInSession = async (name: string) => {
    const headers = { authorization: `Bearer ${token}`, "mcp-protocol-version": "2025-11-25" };
    const first = initialize("0").replace('"wire"', JSON.stringify(`agent ${HOSTILE}`));
    const opened = await post(gateway.url, first, headers);
    const session = { ...headers, "mcp-session-id": opened.headers.get("mcp-session-id") ?? "" };
    await post(gateway.url, INITIALIZED, session);
    const params = { name, arguments: {} };
    const { messages } = await post(
      gateway.url,
      JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params }),
      session,
    );
    expect(messages.join()).toContain('"result"');
  };

  it.each(["127.0.0.1", "localhost"])(
    "a page of another port, by the name %s, gets nothing and does nothing, though it knows the secret [control-apart]",
    { timeout: BROWSER_MS },
    async (name) => {
      const page = await browser.open(gateway);
      const door = new URL(page.url()).origin;
      const secret = await secretOf(page);
      const before = await acts();
      // In the same browser, beside the page: whatever a browser sends by itself, it sends here.
      const foreign = await page.context().newPage();
      await foreign.goto(`http://${name}:${evil.port}/`);
      const got = await inPage(foreign, TRY_ALL, { door, secret });
      expect(got).toEqual({
        "fetch the page": "refused",
        "fetch data with the secret": "refused",
        "fetch data without a preflight": "refused",
        "post as a form does": "refused",
        "post JSON with the secret": "refused",
        "another tab's secret": "none",
        script: "refused",
        picture: "refused",
        "event stream": "refused",
      });
      // What a person is led to by a form: the answer says no, and nothing was done.
      await inPage(foreign, SUBMIT_FORM, `${door}/api/reload`);
      await foreign.waitForURL(`${door}/api/reload`);
      expect(await foreign.locator("body").textContent()).toContain("Pages of other sites get nothing here");
      expect(await acts()).toEqual(before);
    },
  );

  it("a script that would write markup, ask somebody else or throws is heard of, in whatever tab it runs", {
    timeout: BROWSER_MS,
  }, async () => {
    const page = await browser.open(gateway);
    const tab = await page.context().newPage();
    await tab.goto(page.url());
    await tab.getByRole("heading", { name: "Overview" }).waitFor();
    const before = browser.complaints.length;
    // They are meant: at the end there is to be no other.
    onTestFinished(() => void browser.complaints.splice(before));
    for (const act of ["document.body.innerHTML = '<b></b>'", "fetch('http://127.0.0.1:9/')", "thrown.by.a.script()"]) {
      await tab.evaluate(`setTimeout(() => { ${act} })`);
    }
    const heard = () => browser.complaints.slice(before).join("\n");
    for (const what of ["TrustedHTML", "connect-src", "thrown is not defined"])
      await expect.poll(heard).toContain(what);
  });

  it("takes no body with a command, arguments, variables, an address or a path, from an operator either [control-apart]", async () => {
    const made = await toolway(gateway, "token", "create", "--id", `op-${Date.now()}`, "--admin", "operator");
    const { out } = await toolway(gateway, "dashboard", "--print");
    const headers = {
      authorization: `Bearer ${made.out.trim().split("\n").at(-1)}`,
      "content-type": "application/json",
    };
    const act = (path: string, body: object) =>
      fetch(new URL(`/api${path}`, out.trim()), { method: "POST", headers, body: JSON.stringify(body) });
    const before = await acts();
    for (const name of ["command", "args", "env", "url", "path"]) {
      for (const path of ["/reload", "/servers/ledger/stop", "/record"]) {
        const answer = await act(path, { server: "ledger", [name]: "/bin/sh" });
        expect([answer.status, await answer.text()]).toEqual([400, expect.stringContaining(name)]);
      }
    }
    expect(await acts()).toEqual(before);
    // What a person tries a tool with is the tool's business.
    const tried = await act("/try", { server: "ledger", tool: "echo", arguments: { text: "x", path: "/" } });
    expect(tried.status).toBe(200);
    await tried.text();
  });

  it("stands in no frame of another page [control-apart]", { timeout: BROWSER_MS }, async () => {
    const page = await browser.open(gateway);
    const door = new URL(page.url()).origin;
    for (const origin of [`http://127.0.0.1:${evil.port}`, `http://localhost:${evil.port}`]) {
      const foreign = await page.context().newPage();
      await foreign.goto(origin);
      await inPage(foreign, ADD_FRAME, door);
      await until("the frame to be refused", () => foreign.frames()[1]?.url().startsWith("chrome-error:") === true);
      await foreign.close();
    }
  });

  it("by another name of this machine is a page without a session, and gets none from a tab beside it", {
    timeout: BROWSER_MS,
  }, async () => {
    const page = await browser.open(gateway);
    const { port } = new URL(page.url());
    const other = await page.context().newPage();
    await other.goto(`http://localhost:${port}/`);
    await other.getByText("Open this page by `toolway dashboard`").waitFor();
    expect(await other.evaluate("sessionStorage.length + localStorage.length")).toBe(0);
    expect(await inPage(other, ASK, `http://127.0.0.1:${port}/api/status`)).toBe("refused");
  });

  it("shows what a hostile server or agent wrote as text, with what is hidden in it, and runs none of it [terminal-inert]", {
    timeout: BROWSER_MS,
  }, async () => {
    const client = { "io.modelcontextprotocol/clientInfo": { name: `agent ${HOSTILE}`, version: "1" } };
    await until("the hostile server", async () => {
      const { error } = await callTool(gateway.url, "good", {}, token, client);
      return error === undefined;
    });
    await callTool(gateway.url, "bad", {}, token, client);
    const odd = (await listed(gateway.url, token)).find((name) => name.startsWith("odd")) ?? "";
    await callInSession(odd);
    const page = await browser.open(gateway);
    /** Looks at what is there: nothing of it is an element, a link that runs, or out of sight. */
    const isInert = async (...shown: string[]) => {
      const main = page.locator("main");
      for (const text of shown) await main.getByText(text).filter({ visible: true }).first().waitFor();
      // Options, and what is said to a screen reader, have no chips: what is hidden is written out in them.
      expect(await page.evaluate(HIDDEN_IN_MAIN)).toEqual([]);
      expect(await main.locator("img, script, iframe, [onerror], [href^='javascript:']").count()).toBe(0);
      // It has the number of what needs a person before it, which may be another one at any time.
      await expect.poll(() => page.title()).toMatch(/^(\(\d+\) )?[\w-]+\/toolway\.json( :\d+)?$/);
    };
    const at = async (path: string) => {
      await page.goto(new URL(path, page.url()).href);
      await page.locator("main h1").waitFor();
    };
    const own = `/servers/${encodeURIComponent(HOSTILE_SERVER)}`;
    const [aServer, aTool] = ["hostile <img src=x", "odd <img src=x"];
    await at("/");
    await isInert(aServer);
    await at("/servers");
    await isInert(aServer);
    await at(own);
    await page.locator("h1").filter({ hasText: aServer }).waitFor();
    await isInert(aServer);
    await at("/calls");
    await isInert(aServer, aTool);
    await toolway(gateway, "outbox", "hold", HOSTILE_SERVER);
    await callTool(gateway.url, "late", { lane: `lane ${HOSTILE}` }, token, client);
    await at("/waiting");
    await isInert(aServer, "lane <img");
    await page.locator(".lanes tbody tr").last().getByRole("link").click();
    await isInert(aServer, "lane <img");
    await toolway(gateway, "outbox", "release", HOSTILE_SERVER);
    await page.getByRole("heading", { name: "Error" }).waitFor();
    await isInert("failed <img");
    await at("/audit");
    await page.getByRole("row").filter({ hasText: aTool }).filter({ hasText: aServer }).first().waitFor();
    await isInert(aTool);
    await at("/config");
    await page.locator(".source li").filter({ hasText: "role <img src=x" }).first().waitFor();
    await isInert(aServer, "Fails. <img", "none <img");
    await at("/calls?tool=good");
    await page.locator("tbody tr").first().waitFor();
    await isInert("agent <img");
    await page.locator("tbody tr").first().getByRole("link").click();
    await isInert("agent <img");
    await at("/access");
    await isInert("agent <img", "role <img");
    await at("/servers/noisy");
    await isInert("<img src=x");
    await at("/tools");
    await isInert("Good. <img", aServer, aTool);
    await at(`/tools/${encodeURIComponent(odd)}`);
    await isInert(aServer);
    await at("/tools/good");
    await isInert("Good. <img", "fixed<img");
    // What was chosen of several kinds is not called the arguments, which it is a part of.
    await page.getByRole("textbox", { name: "Value", exact: true }).waitFor();
    const options = await page.locator("option").allTextContents();
    for (const name of ["one", "first"]) expect(options).toContain(`${name}${MARKUP}\\u{202E}\\u{200B}\\u{001B}[31m`);
    const tried = async () => {
      await page.getByRole("button", { name: "Try", exact: true }).click();
      await page.getByRole("button", { name: "Call it" }).click();
    };
    await tried();
    await isInert("said <img", "click <img", "A picture or sound that is not shown: image/svg+xml");
    await at("/tools/bad");
    await tried();
    await isInert("failed <img");
  });

  it("shows of a result its pictures, sound, text, structure and where a link leads, and gives what is too long as a file", {
    timeout: BROWSER_MS,
  }, async () => {
    const page = await browser.open(gateway);
    const tried = async (tool: string) => {
      await page.goto(new URL(`/tools/${tool}`, page.url()).href);
      await page.getByRole("button", { name: "Try", exact: true }).click();
      await page.getByRole("heading", { name: "Result" }).waitFor();
    };
    await tried("rich");
    const of = (what: string) => () => page.evaluate<number>(`document.querySelector("main ${what}`);
    await expect.poll(of('img.result").naturalWidth')).toBe(1);
    await expect.poll(of('audio[controls]").duration')).toBeCloseTo(0.1);
    const link = page.getByRole("link", { name: "Read on" });
    expect(await link.getAttribute("href")).toBe("https://docs.example/read?on=1");
    expect(await link.getAttribute("target")).toBe("_blank");
    expect(await link.getAttribute("rel")).toContain("noopener");
    await page.locator("p").filter({ hasText: "Read on at docs.example" }).waitFor();
    await page.getByText("what the notes say", { exact: true }).waitFor();
    const structure = page.getByRole("heading", { name: "Structured" }).locator("+ pre");
    expect(JSON.parse((await structure.textContent()) ?? "")).toEqual(RICH.structuredContent);
    await tried("long");
    await page.getByText(/^\d+ KiB are too much to show\./).waitFor();
    expect(await page.locator("main").textContent()).not.toContain("long long");
    const saved = page.waitForEvent("download");
    await page.getByRole("button", { name: "Save it as a file" }).click();
    const download = await saved;
    expect(download.suggestedFilename()).toBe("long.json");
    expect(JSON.parse(await readFile(await download.path(), "utf8")).content[0]).toEqual({ type: "text", text: LONG });
  });

  it("shows, keeps, counts and sends no secret of a call, an entry, a token or an address [secrets-unseen]", {
    timeout: BROWSER_MS,
  }, async () => {
    expect(
      (await fetch(gateway.url, { method: "POST", headers: { authorization: "Bearer tw_canary-stolen-55" } })).status,
    ).toBe(401);
    await until("the failure of the server", () => gateway.log().includes("HTTP 500"));
    const page = await browser.open(gateway);
    const secret = await secretOf(page);
    const seen: string[] = [];
    const asked: string[] = [];
    page.on("request", (request) => asked.push(request.url()));
    for (const view of VIEWS) {
      await page.goto(new URL(view, page.url()).href);
      await page.locator("main h1").waitFor();
      await page.getByText("● live").waitFor();
      seen.push(await page.content(), page.url());
    }
    await page.goto(new URL("/calls?tool=echo", page.url()).href);
    await page.locator("tbody tr").first().getByRole("link").click();
    await page.getByRole("heading", { name: "ledger/echo" }).waitFor();
    seen.push(await page.content());
    // What a person tries is on the page where they try it, and nowhere else.
    await page.goto(new URL("/tools/echo", page.url()).href);
    const json = page.getByRole("textbox", { name: "The arguments as JSON" });
    await json.fill(JSON.stringify({ text: CANARIES.tried }));
    await page.getByRole("button", { name: "Try", exact: true }).click();
    await page.getByRole("button", { name: "Call it" }).click();
    await page.getByRole("heading", { name: "Result" }).waitFor();
    expect(await page.content()).toContain(CANARIES.tried);
    await page.goto(new URL("/calls", page.url()).href);
    await page.locator("tbody tr").first().waitFor();
    seen.push(await page.content());
    const stored = await page.evaluate<string>(
      "JSON.stringify({ ...sessionStorage, ...localStorage, c: document.cookie })",
    );
    const exports = collector.exports();
    await until("the metrics and spans to be sent", () => collector.exports() > exports + 1);
    const metrics = (await toolway(gateway, "metrics")).out;
    const audit = join(gateway.stateDir, "audit");
    const lines = (await Promise.all((await readdir(audit)).map((name) => readFile(join(audit, name), "utf8")))).join(
      "",
    );
    const places = {
      metrics,
      "spans and metrics": collector.text(),
      audit: lines,
      log: gateway.log(),
      addresses: asked.join("\n"),
      storage: stored,
      pages: seen.join("\n"),
    };
    // They hold what they should.
    expect(metrics).toContain("toolway_requests_total");
    expect(places["spans and metrics"]).toContain("tools/call");
    expect(lines).toContain('"tool":"echo"');
    expect(stored).toContain(secret);
    const found = Object.entries(places).flatMap(([place, text]) => {
      const all = { ...CANARIES, stolen: "canary-stolen-55", token, ...(place === "storage" ? {} : { secret }) };
      return Object.entries(all).flatMap(([what, value]) => (text.includes(value) ? [`${what} in the ${place}`] : []));
    });
    expect(found).toEqual([]);
  });
});

/** All that a page of somebody else can try, and what came of it: text, since it runs in the browser. */
const TRY_ALL = `async ({ door, secret }) => {
  const outcome = (asked) => asked.then(({ type }) => type, () => "refused");
  const authorization = "Bearer " + secret;
  const element = (name, src) => new Promise((done) => {
    const one = document.createElement(name);
    one.onload = () => done("loaded");
    one.onerror = () => done("refused");
    one.src = src;
    document.body.append(one);
  });
  const overheard = new Promise((done) => {
    const channel = new BroadcastChannel("toolway");
    channel.onmessage = () => done("heard");
    channel.postMessage({ wanted: true });
    setTimeout(() => done("none"), 500);
  });
  const stream = new Promise((done) => {
    const source = new EventSource(door + "/api/feed");
    source.onerror = () => done("refused");
    source.onmessage = () => done("heard");
  });
  const post = (headers, mode) => fetch(door + "/api/reload", { method: "POST", mode, headers, body: "{}" });
  return {
    "fetch the page": await outcome(fetch(door)),
    "fetch data with the secret": await outcome(fetch(door + "/api/status", { headers: { authorization } })),
    "fetch data without a preflight": await outcome(fetch(door + "/api/status", { mode: "no-cors" })),
    "post as a form does": await outcome(post({ "content-type": "text/plain" }, "no-cors")),
    "post JSON with the secret": await outcome(post({ authorization, "content-type": "application/json" }, "cors")),
    "another tab's secret": await overheard,
    script: await element("script", door + "/main.js"),
    picture: await element("img", door + "/icon.svg"),
    "event stream": await stream,
  };
}`;

const SUBMIT_FORM = `(action) => {
  const form = document.createElement("form");
  form.method = "post";
  form.enctype = "text/plain";
  form.action = action;
  document.body.append(form);
  form.submit();
}`;

const ADD_FRAME = `(src) => {
  const frame = document.createElement("iframe");
  frame.src = src;
  document.body.append(frame);
}`;

const ASK = `(url) => fetch(url, { mode: "no-cors" }).then(() => "answered", () => "refused")`;

/** Where in the view something is that nobody sees; an address has it percent-encoded, and a field holds what is sent. */
const HIDDEN_IN_MAIN = String.raw`[...document.querySelectorAll("main, main *")].flatMap((element) => [
  ...[...element.childNodes].filter(({ nodeType }) => nodeType === Node.TEXT_NODE).map(({ data }) => data),
  ...[...element.attributes].filter(({ name }) => name !== "value").map(({ name, value }) => name + ": " + value),
]).filter((text) => /[\u202e\u200b\u001b]/.test(text))`;

function inPage(page: Page, code: string, given: unknown): Promise<unknown> {
  return page.evaluate(`(${code})(${JSON.stringify(given)})`);
}
