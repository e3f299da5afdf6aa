// A gateway none of whose servers can be had: it answers all the same, from what is known, and says what is wrong.

import { writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { closeHttp, listenOnLoopback } from "../fixtures/loopback.js";
import { connectV1, toolNames, waitForTools } from "./clients.js";
import { modernRequest, send } from "./eras.js";
import { freePort, type Gateway, startGateway, stdioFixture, temporaryDirectory, until } from "./harness.js";
import { INITIALIZED, initialize, post } from "./wire.js";

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

/** Of a version whose streams begin with no event. */
async function legacySession(): Promise<string> {
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  const opened = await fetch(gateway.url, { method: "POST", headers, body: initialize("1", "2025-06-18") });
  await opened.text();
  return opened.headers.get("mcp-session-id") ?? "";
}
