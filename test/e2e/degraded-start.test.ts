// A gateway none of whose servers can be had: it answers all the same, from what is known, and says what is wrong.

import { writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { closeHttp, listenOnLoopback } from "../fixtures/loopback.js";
import { connectV1, toolNames, waitForTools } from "./clients.js";
import { modernRequest, send } from "./eras.js";
import { freePort, type Gateway, startGateway, stdioFixture, temporaryDirectory, until } from "./harness.js";
import { untilKept } from "./operator.js";
import { INITIALIZED, initialize, lastOf, post } from "./wire.js";

let gateway: Gateway;
let folder: string;
/** A server that lets nobody in without a token. */
const locked = createServer((_, response) => response.writeHead(401).end());
afterAll(() => closeHttp(locked));

beforeAll(async () => {
  folder = await temporaryDirectory();
  const closed = `http://127.0.0.1:${await freePort()}/mcp`;
  gateway = await startGateway({
    names: "prefixed",
    mcpServers: {
      absent: { command: join(folder, "server"), backoff: { baseMs: 100, maxMs: 200 }, restarts: { max: 1_000 } },
      refused: { url: closed },
      keyless: {
        url: `http://127.0.0.1:${await listenOnLoopback(locked)}/mcp`,
        auth: { bearer: { env: "TOOLWAY_TEST_NO_SUCH_KEY" } },
      },
    },
  });
});

describe("with every server down and every credential missing", () => {
  it("initialize and discover are answered, with listChanged of tools, at /mcp and at /mcp/<server> [one-bad-server]", async () => {
    for (const url of [gateway.url, `${gateway.url}/absent`]) {
      const client = await connectV1(url);
      expect(client.getServerCapabilities(), url).toMatchObject({ tools: { listChanged: true } });
      const { reply } = await send(url, { method: "server/discover" });
      expect(reply.result?.["capabilities"], url).toMatchObject({ tools: { listChanged: true } });
    }
  });

  it("lists are empty, and no error [one-bad-server]", async () => {
    for (const method of ["tools/list", "prompts/list", "resources/list", "resources/templates/list"]) {
      const { reply } = await send(gateway.url, { method });
      expect(reply.error, method).toBeUndefined();
      expect(Object.values(reply.result ?? {}).filter(Array.isArray), method).toEqual([[]]);
    }
  });

  it("a request to a server that is down is told so, and why; a notification is accepted [one-bad-server]", async () => {
    for (const [server, why] of [
      ["absent", 'Command not found: "[^"]+" does not exist'],
      ["refused", "http://[^ ]+ cannot be reached: nothing listens there"],
      ["keyless", "The server wants credentials .* and the variable TOOLWAY_TEST_NO_SUCH_KEY has none"],
    ] as const) {
      const params = { name: `${server}__x`, arguments: {} };
      const { reply } = await send(gateway.url, { method: "tools/call", params });
      expect(reply.error?.message).toMatch(new RegExp(`Server "${server}" is not available: ${why}`));
    }
    const { status } = await post(gateway.url, INITIALIZED, { "mcp-session-id": await legacySession() });
    expect(status).toBe(202);
  });

  it("a listening stream has its first comment at once, in both eras [one-bad-server]", async () => {
    const legacy = { accept: "text/event-stream", "mcp-session-id": await legacySession() };
    const listen = { method: "subscriptions/listen", params: { notifications: { toolsListChanged: true } } };
    const { text, headers } = modernRequest(listen);
    const all = { "content-type": "application/json", accept: "application/json, text/event-stream", ...headers };
    for (const init of [{ headers: legacy }, { method: "POST", headers: all, body: text }]) {
      const reader = (await fetch(gateway.url, init)).body?.getReader();
      const { value } = (await reader?.read()) ?? {};
      expect(new TextDecoder().decode(value)).toMatch(/^: /);
      await reader?.cancel();
    }
  });

  it("list_changed follows when a server is there at last, and its tools are listed [menu-current]", async () => {
    const client = await connectV1(gateway.url);
    expect(await toolNames(client)).toEqual([]);
    let heard = 0;
    client.fallbackNotificationHandler = async ({ method }) => {
      if (method === "notifications/tools/list_changed") heard++;
    };
    const { args = [] } = stdioFixture("stateful");
    const script = `#!/bin/sh\nexec '${process.execPath}' '${args[0]}'\n`;
    await writeFile(join(folder, "server"), script, { mode: 0o755 });
    await waitForTools(client, "absent__whoami");
    await until("list_changed", () => heard > 0);
  });
});

describe("after a restart with every server away or its credential refused", () => {
  it("initialize has every field that the server gave, and its tools are listed [menu-survives]", async () => {
    const initialized = {
      protocolVersion: "2025-11-25",
      capabilities: { tools: {}, experimental: { "x/odd": { depth: 3 } }, "x-vendor": { since: "1999" } },
      serverInfo: { name: "odd", version: "7", title: "Odd", websiteUrl: "https://odd.example", "x-more": [1] },
      instructions: "Ask twice.",
      _meta: { "odd.example/kept": true },
    };
    const tools = [{ name: "look", inputSchema: { type: "object" }, "x-kept": { a: 1 } }];
    let isRefusing = false;
    const odd = createServer((request, response) => {
      if (isRefusing) return void response.writeHead(401).end();
      let text = "";
      request.on("data", (part) => {
        text += part;
      });
      request.on("end", () => {
        const { id, method } = JSON.parse(text || "{}") as { id?: number; method?: string };
        const result = method === "initialize" ? initialized : method === "tools/list" ? { tools } : undefined;
        if (request.method !== "POST") return void response.writeHead(405).end();
        if (id === undefined) return void response.writeHead(202).end();
        const error = { code: -32601, message: "There is no such method." };
        response.writeHead(200, { "content-type": "application/json" });
        response.end(JSON.stringify({ jsonrpc: "2.0", id, ...(result === undefined ? { error } : { result }) }));
      });
    });
    afterAll(() => closeHttp(odd));
    const url = `http://127.0.0.1:${await listenOnLoopback(odd)}/mcp`;
    const auth = { bearer: { env: "TOOLWAY_TEST_KEY" } };
    const first = await startGateway(
      { mcpServers: { odd: { url, auth }, file: stdioFixture("stateful") } },
      { env: { TOOLWAY_TEST_KEY: "a-key-that-was-good" } },
    );
    const client = await connectV1(first.url);
    await waitForTools(client, "look", "whoami");
    const initializeAt = async (path: string) => {
      const answer = await post(`${first.url}${path}`, initialize("1"));
      return JSON.parse(lastOf(answer)).result as Record<string, unknown>;
    };
    const before = await initializeAt("/odd");
    expect(before).toMatchObject({ ...initialized, capabilities: { ...initialized.capabilities, tools: {} } });
    await untilKept(first, "look");
    await first.stop("SIGKILL");
    isRefusing = true;
    await first.again();
    expect(await initializeAt("/odd")).toEqual(before);
    expect(before["capabilities"]).toMatchObject({ tools: { listChanged: true } });
    const { reply } = await send(`${first.url}/odd`, { method: "tools/list" });
    expect(reply.result?.["tools"]).toEqual(tools);
    const called = await send(first.url, { method: "tools/call", params: { name: "look", arguments: {} } });
    expect(called.reply.error?.message).toMatch(/"odd".*TOOLWAY_TEST_KEY/);
  });
});

/** Of a version whose streams begin with no event. */
async function legacySession(): Promise<string> {
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  const opened = await fetch(gateway.url, { method: "POST", headers, body: initialize("1", "2025-06-18") });
  await opened.text();
  return opened.headers.get("mcp-session-id") ?? "";
}
