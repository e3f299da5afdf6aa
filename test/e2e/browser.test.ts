// A web page talks to the gateway, in a real browser: only that knows what CORS lets through.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { build } from "esbuild";
import { describe, expect, it, onTestFinished } from "vitest";
import { chromium, NO_BROWSER } from "../fixtures/browser.js";
import { closeHttp, listenOnLoopback } from "../fixtures/loopback.js";
import { type Gateway, root, startGateway, stdioFixture, temporaryDirectory } from "./harness.js";

/** Half a core has been seen to take half a minute for the start of a browser. */
const BROWSER_MS = 120_000;

/** What runs in the page. It tells what came of each step; a step that the browser forbids throws there. */
const PAGE = `
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
const { url, token } = JSON.parse(document.querySelector("script[type='application/json']").textContent);
const authorization = "Bearer " + token;
const json = { "content-type": "application/json", accept: "application/json, text/event-stream" };
const init = { jsonrpc: "2.0", id: 0, method: "initialize", params: {
  protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "page", version: "1" } } };
const steps = {
  async refusal() {
    const answer = await fetch(url, { method: "POST", headers: json, body: JSON.stringify(init) });
    return [answer.status, answer.headers.get("www-authenticate")];
  },
  async session() {
    const headers = { ...json, authorization };
    const begun = await fetch(url, { method: "POST", headers, body: JSON.stringify(init) });
    const id = begun.headers.get("mcp-session-id");
    const session = { authorization, "mcp-session-id": id, "mcp-protocol-version": "2025-11-25" };
    const stream = await fetch(url, { headers: { ...session, accept: "text/event-stream", "last-event-id": "" } });
    const first = await stream.body.getReader().read();
    const ended = await fetch(url, { method: "DELETE", headers: session });
    return [id !== null, stream.status, first.done, ended.status];
  },
  async sdk() {
    const client = new Client({ name: "page", version: "1" });
    const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { authorization } } });
    await client.connect(transport);
    const names = (await client.listTools()).tools.map((tool) => tool.name);
    const result = await client.callTool({ name: "whoami", arguments: {} });
    await transport.terminateSession();
    await client.close();
    return [names.includes("whoami"), result.content[0].type];
  },
};
const report = {};
for (const [name, step] of Object.entries(steps)) report[name] = await step().catch((error) => error.name);
await fetch("/report", { method: "POST", body: JSON.stringify(report) });
`;

type Report = Readonly<Record<"refusal" | "session" | "sdk", unknown>>;

/** A site whose only page runs PAGE. */
async function startSite(): Promise<{ origin: string; visit(gateway: Gateway, token: string): Promise<Report> }> {
  const bundled = await build({
    stdin: { contents: PAGE, resolveDir: root, loader: "js" },
    bundle: true,
    format: "esm",
    platform: "browser",
    write: false,
  });
  const script = bundled.outputFiles[0]?.text ?? "";
  let facts = "";
  let reported: (report: Report) => void = () => {};
  const site = createServer((req, res) => {
    if (req.method === "POST") {
      let body = "";
      req.on("data", (chunk: Buffer) => {
        body += chunk;
      });
      req.on("end", () => {
        res.end();
        reported(JSON.parse(body) as Report);
      });
    } else if (req.url === "/page.js") res.writeHead(200, { "content-type": "text/javascript" }).end(script);
    else {
      const html = `<script type="application/json">${facts}</script><script type="module" src="/page.js"></script>`;
      res.writeHead(200, { "content-type": "text/html" }).end(`<!doctype html><title>page</title>${html}`);
    }
  });
  const port = await listenOnLoopback(site);
  onTestFinished(() => closeHttp(site));
  const origin = `http://localhost:${port}`;
  const visit = async (gateway: Gateway, token: string): Promise<Report> => {
    facts = JSON.stringify({ url: gateway.url, token });
    const profile = await temporaryDirectory();
    const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"];
    const line = [...flags, `--user-data-dir=${profile}`, `${origin}/`];
    // What it leaves behind is in its profile too, and goes with it.
    const env = { ...process.env, TMPDIR: profile };
    const browser = spawn(chromium ?? "", line, { stdio: "ignore", detached: true, env });
    const gone = once(browser, "exit");
    onTestFinished(async () => {
      // Its own processes too.
      if (browser.pid !== undefined && browser.exitCode === null) process.kill(-browser.pid, "SIGKILL");
      await gone;
    });
    return new Promise((resolve) => {
      reported = resolve;
    });
  };
  return { origin, visit };
}

describe("a page in a browser", () => {
  it(
    "uses the gateway where its origin is allowed, and nothing where it is not [pages]",
    async (context) => {
      if (chromium === undefined) {
        return context.skip(NO_BROWSER);
      }
      const [ours, foreign] = [await startSite(), await startSite()];
      const servers = { stateful: stdioFixture("stateful") };
      const gateway = await startGateway({ mcpServers: servers, allowedOrigins: [ours.origin] }, { auth: true });
      const token = readFileSync(join(gateway.stateDir, "token"), "utf8").trim();
      expect(await ours.visit(gateway, token)).toEqual({
        refusal: [401, 'Bearer realm="toolway"'],
        session: [true, 200, false, 200],
        sdk: [true, "text"],
      });
      // It is of this machine, as the gateway is, so that its requests are served; but it may read no answer.
      expect(await foreign.visit(gateway, token)).toEqual({
        refusal: "TypeError",
        session: "TypeError",
        sdk: "TypeError",
      });
    },
    BROWSER_MS,
  );
});
