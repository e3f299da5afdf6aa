import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, request } from "node:http";
import { connect, type Socket as TcpSocket } from "node:net";
import { afterEach, describe, expect, it, vi } from "vitest";
import { WebSocket } from "ws";
import { BASE, PRINCIPALS, type Rig, startRig, stopRigs } from "../../../test/fixtures/endpoint/http.js";
import { listenOnLoopback } from "../../../test/fixtures/loopback.js";
import { MIB } from "../../runtime/sizes.js";
import { MAX_CONNECTIONS, MAX_HALF_READ_BYTES } from "../../sockets/limits.js";
import { NO_EVENTS, type Socket } from "../../sockets/socket.js";
import type { EndpointEvent } from "../session/endpoint-event.js";
import { HostCheck } from "./checks.js";
import type { ExecutorRegistry } from "./executor-door.js";
import { type Door, OWN_PLACES, refused, type Upgrade, UpgradeDoors } from "./upgrade-door.js";

/** Above what anything here takes on a busy machine; only reached where a test fails. */
const SOON = { timeout: 30_000, interval: 10 };

class Registry implements ExecutorRegistry {
  readonly came: {
    name: string;
    socket: Socket;
    sessionId: string | undefined;
    address: string;
    principal: { id: string };
  }[] = [];

  has(name: string): boolean {
    return name === "office" || name === "a b" || name === "open";
  }

  isOpen(name: string): boolean {
    return name === "open";
  }

  adopt(
    name: string,
    socket: Socket,
    visitor: { sessionId: string | undefined; address: string; machine: string | undefined; principal: { id: string } },
  ) {
    this.came.push({ name, socket, ...visitor });
  }
}

const open: (WebSocket | TcpSocket)[] = [];
afterEach(async () => {
  for (const one of open.splice(0)) {
    if (one instanceof WebSocket) one.terminate();
    else one.destroy();
  }
  await stopRigs();
});

const TOKENS = {
  ...PRINCIPALS,
  "token-x": { id: "office", role: "executor" },
  "token-two": { id: "site", role: "executor", names: ["office", "a b"] },
  "token-other": { id: "lab", role: "executor" },
};

async function start(
  options: Parameters<typeof startRig>[0] = {},
): Promise<Rig & { registry: Registry; events: EndpointEvent[] }> {
  const events: EndpointEvent[] = [];
  const rig = await startRig({
    authenticate: (token) => TOKENS[token as keyof typeof TOKENS],
    log: (event) => events.push(event),
    ...options,
  });
  const registry = new Registry();
  rig.endpoint.admitExecutors(registry);
  return { ...rig, registry, events };
}

const GOOD = { authorization: "Bearer token-x" };

function dial(port: number, path = "/executors/office", headers: Record<string, string> = GOOD): WebSocket {
  const ws = new WebSocket(`ws://127.0.0.1:${port}${path}`, { headers });
  open.push(ws);
  ws.on("error", () => {});
  return ws;
}

/** What is answered in place of a WebSocket. */
async function refusal(ws: WebSocket): Promise<{ status: number; text: string }> {
  const [, response] = (await once(ws, "unexpected-response")) as [
    unknown,
    AsyncIterable<Buffer> & { statusCode: number },
  ];
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk);
  return { status: response.statusCode, text: Buffer.concat(chunks).toString() };
}

describe("an executor that dials in [exec-8]", () => {
  it("comes with a token of its role, under the name of its path", async () => {
    const { port, registry } = await start();
    await once(dial(port, "/executors/office", { ...GOOD, "toolway-session": "s-1" }), "open");
    await once(dial(port, "/executors/a%20b", { authorization: "Bearer token-two" }), "open");
    await vi.waitFor(() => expect(registry.came).toHaveLength(2), SOON);
    expect(registry.came[0]).toMatchObject({ name: "office", sessionId: "s-1", principal: { id: "office" } });
    expect(registry.came[0]?.address).toMatch(/^127\.0\.0\.1:\d+$/);
    expect(registry.came[1]).toMatchObject({ name: "a b", sessionId: undefined });
  });

  it.each([
    ["without a token", "/executors/office", {}, 401, /A token is needed.*--role executor/],
    ["with a token that nobody has", "/executors/office", { authorization: "Bearer x" }, 401, /unknown, expired/],
    [
      "with an agent's token",
      "/executors/office",
      { authorization: "Bearer token-a" },
      403,
      /its role is \\"default\\".*toolway token create --id office --role executor/,
    ],
    [
      "with the token of another name, whose servers' headers it would see",
      "/executors/office",
      { authorization: "Bearer token-other" },
      403,
      /good for \\"lab\\", and not for \\"office\\".*--id office --role executor/,
    ],
    ["with its own token under another name", "/executors/a%20b", GOOD, 403, /good for \\"office\\"/],
    ["with a token in the URL", "/executors/office?token=token-x", {}, 401, /not accepted in URLs/],
    ["from a web page", "/executors/office", { ...GOOD, origin: "http://127.0.0.1" }, 403, /Origin/],
    ["for a name that is not there", "/executors/offfice", GOOD, 404, /no executor/],
    ["elsewhere", "/mcp", GOOD, 404, /\/executors\/<name>/],
    ["with a path that cannot be read", "/executors/%E0%A4%A", GOOD, 404, /\/executors\/<name>/],
    ["as somebody else's name", "/executors/office", { ...GOOD, host: "evil.example" }, 403, /allowedHosts/],
  ])("is refused %s", async (_, path, headers, status, text) => {
    const { port, registry, events } = await start();
    const found = await refusal(dial(port, path, headers as Record<string, string>));
    expect(found.status).toBe(status);
    expect(found.text).toMatch(text);
    expect(JSON.stringify(events)).not.toContain("token-x");
    // A stranger's wrong path is no news; a name that is missing in the config is.
    expect(events).toHaveLength(status < 404 || path === "/executors/offfice" ? 1 : 0);
    expect(registry.came).toEqual([]);
  });

  it("is not let in where nobody is asked for a token, unless the config says so", async () => {
    const { port, registry } = await start({ noAuth: true });
    const { status, text } = await refusal(dial(port, "/executors/office", {}));
    expect(status).toBe(403);
    expect(text).toContain('\\"noAuth\\": true');
    await once(dial(port, "/executors/open", {}), "open");
    await vi.waitFor(() => expect(registry.came).toMatchObject([{ principal: { id: "local" } }]), SOON);
  });

  it("is refused while as many as may come are connected, and comes in when one has left [bounded]", async () => {
    const { port, registry } = await start();
    const first = dial(port);
    await once(first, "open");
    const own = Math.ceil(MAX_CONNECTIONS * OWN_PLACES);
    await Promise.all(Array.from({ length: own - 1 }, () => once(dial(port), "open")));
    // One token never has all places.
    expect(await refusal(dial(port))).toMatchObject({ status: 503, text: expect.stringContaining("This token has") });
    const other = () => dial(port, "/executors/office", { authorization: "Bearer token-two" });
    await Promise.all(Array.from({ length: MAX_CONNECTIONS - own }, () => once(other(), "open")));
    expect(await refusal(other())).toMatchObject({ status: 503, text: expect.stringContaining("already") });
    await vi.waitFor(() => expect(registry.came).toHaveLength(MAX_CONNECTIONS), SOON);
    first.terminate();
    await vi.waitFor(async () => {
      const next = dial(port);
      await Promise.race([once(next, "open"), refusal(next).then(() => Promise.reject(new Error("full")))]);
    }, SOON);
  });

  it("holds no more with all its connections together than two of the largest messages, and others are heard [bounded]", async () => {
    const { port, registry, events } = await start();
    const begun = Buffer.alloc(8 * MIB, "x");
    const sockets = await Promise.all(
      Array.from({ length: 16 }, async () => {
        const ws = dial(port);
        await once(ws, "open");
        return ws;
      }),
    );
    await vi.waitFor(() => expect(registry.came).toHaveLength(16), SOON);
    for (const { socket } of registry.came) socket.attach(NO_EVENTS);
    // None of these messages ever ends.
    for (const ws of sockets) ws.send(begun, { fin: false });
    const cut = () => sockets.filter(({ readyState }) => readyState === WebSocket.CLOSED).length;
    const least = 16 - Math.floor(MAX_HALF_READ_BYTES / (8 * MIB));
    await vi.waitFor(() => expect(cut()).toBeGreaterThanOrEqual(least), SOON);
    expect(cut()).toBeLessThan(16);
    const said = events.filter((event) => event.kind === "refused").map(({ why }) => why);
    expect(new Set(said)).toEqual(new Set([expect.stringContaining("messages that have not ended")]));
    const other = dial(port, "/executors/office", { authorization: "Bearer token-two" });
    await once(other, "open");
    await vi.waitFor(() => expect(registry.came).toHaveLength(17), SOON);
    const heard = new Promise<string>((resolve) => {
      registry.came[16]?.socket.attach({ ...NO_EVENTS, onMessage: (bytes) => resolve(`${bytes.length}`) });
    });
    other.send(begun);
    expect(await heard).toBe(`${begun.length}`);
  });

  it("comes by TLS as well", async () => {
    const pem = (name: string) =>
      readFileSync(new URL(`../../../test/fixtures/executor/self-signed.${name}.pem`, import.meta.url));
    const { port, registry } = await start({ tls: { cert: pem("cert"), key: pem("key") } });
    const ws = new WebSocket(`wss://127.0.0.1:${port}/executors/office`, { headers: GOOD, rejectUnauthorized: false });
    open.push(ws);
    await once(ws, "open");
    await vi.waitFor(() => expect(registry.came).toHaveLength(1), SOON);
  });

  it("stays while the endpoint drains, and does not hold it up", async () => {
    const { port, registry, endpoint } = await start();
    const ws = dial(port);
    await once(ws, "open");
    await vi.waitFor(() => expect(registry.came).toHaveLength(1), SOON);
    await endpoint.close({ drainMs: 60_000 });
    registry.came[0]?.socket.attach({
      onMessage: (bytes) => registry.came[0]?.socket.send(bytes),
      onDrain() {},
      onClose() {},
    });
    ws.send("still here");
    expect(String((await once(ws, "message"))[0])).toBe("still here");
  });
});

describe("an endpoint that executors dial in to", () => {
  it("refuses an executor's token to an agent", async () => {
    const { port } = await start();
    for (const path of ["/mcp", "/sse", "/mcp/x", "/messages?sessionId=1"]) {
      const method = path.startsWith("/sse") ? "GET" : "POST";
      const response = await fetch(`http://127.0.0.1:${port}${path}`, {
        method,
        headers: { ...(BASE as Record<string, string>), ...GOOD },
        ...(method === "POST" ? { body: "{}" } : {}),
      });
      expect(response.status).toBe(403);
      expect(await response.text()).toContain("is for an executor");
    }
  });

  it.each([
    ["h2c", { upgrade: "h2c", connection: "Upgrade, HTTP2-Settings", "http2-settings": "AAMAAABkAAQAoAAAAAIAAAAA" }],
    ["something unknown", { upgrade: "foo/2", connection: "keep-alive, upgrade" }],
  ])("an offer of another protocol (%s) is passed over, body, next requests and all", async (_, offer) => {
    const { port } = await start();
    const initialize = {
      jsonrpc: "2.0",
      id: 1,
      method: "initialize",
      params: {
        protocolVersion: "2025-11-25",
        capabilities: {},
        clientInfo: { name: "x".repeat(200_000), version: "1" },
      },
    };
    const ask = () =>
      new Promise<{ status: number; text: string }>((resolve, reject) => {
        const req = request(
          { port, host: "127.0.0.1", path: "/mcp", method: "POST", headers: { ...BASE, ...offer } },
          (res) => {
            const chunks: Buffer[] = [];
            res.on("data", (chunk: Buffer) => chunks.push(chunk));
            res.on("end", () => resolve({ status: res.statusCode ?? 0, text: Buffer.concat(chunks).toString() }));
          },
        );
        req.on("error", reject);
        req.end(JSON.stringify(initialize));
      });
    expect(await ask()).toMatchObject({ status: 200, text: expect.stringContaining('"result"') });

    // Two on one connection: the second finds it as it should be.
    const tcp = connect(port, "127.0.0.1");
    open.push(tcp);
    const lines = (extra: string) => `GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n${extra}\r\n`;
    let text = "";
    tcp.on("data", (chunk: Buffer) => {
      text += chunk.toString();
    });
    tcp.write(lines(`Upgrade: ${offer.upgrade}\r\nConnection: upgrade\r\n`));
    await vi.waitFor(() => expect(text.match(/"alive"/g)).toHaveLength(1), SOON);
    tcp.write(lines(""));
    await vi.waitFor(() => expect(text.match(/"alive"/g)).toHaveLength(2), SOON);
  });

  it("serves an upgrade as a plain request while it admits no executors", async () => {
    const { port, endpoint } = await start();
    endpoint.admitExecutors(undefined);
    expect(await refusal(dial(port))).toMatchObject({ status: 404 });
  });
});

describe("a door whose tokens come later", () => {
  it("counts a connection among those of its token once that has come: no token has all places [bounded]", async () => {
    const everyone = (id: string) => ({ id, role: "sharer" });
    const doors = new UpgradeDoors({
      hosts: new HostCheck([], []),
      authenticate: everyone,
      everybody: undefined,
    });
    const came: Upgrade[] = [];
    doors.open({
      path: "mailboxes",
      role: "sharer",
      hasNames: false,
      takesTokenLater: true,
      maxConnections: 4,
      judge: () => undefined,
      howToGetIn: () => "",
      adopt: (_name, _socket, upgrade) => void came.push(upgrade),
    });
    const server = createServer().on("upgrade", (...upgrade) => doors.upgrade(...upgrade));
    const port = await listenOnLoopback(server);
    const dialled: WebSocket[] = [];
    for (let n = 1; n <= 4; n++) {
      const ws = dial(port, "/mailboxes", {});
      dialled.push(ws);
      await once(ws, "open");
      await vi.waitFor(() => expect(came).toHaveLength(n), SOON);
    }
    const claim = (n: number, id: string) => came[n]?.claim(everyone(id));
    expect([0, 1, 2].map((n) => claim(n, "studio"))).toEqual([undefined, undefined, undefined]);
    expect(claim(3, "studio")).toContain("This token has 3 connections here already");
    expect(claim(3, "attic")).toBeUndefined();
    // Saying it twice counts once, and what has closed counts no more.
    expect(claim(0, "studio")).toBeUndefined();
    dialled[0]?.terminate();
    await vi.waitFor(() => expect(doors.connections).toBe(3), SOON);
    expect(claim(0, "attic")).toBeUndefined();
    const again = dial(port, "/mailboxes", { authorization: "Bearer studio" });
    await once(again, "open");
    expect(doors.connections).toBe(4);
    server.close();
  });
});

describe("doors of two kinds", () => {
  it("each take in their own role at their own path, and count their own connections", async () => {
    const tokens: Record<string, string> = { "token-x": "executor", "token-m": "mailbox" };
    const doors = new UpgradeDoors({
      hosts: new HostCheck([], []),
      authenticate: (token) =>
        tokens[token] === undefined
          ? undefined
          : { id: "office", role: tokens[token], names: ["office", "inbox", "other"] },
      everybody: undefined,
    });
    const adopted: string[] = [];
    const door = (path: string, role: string, hasNames: boolean): Door => ({
      path,
      role,
      hasNames,
      takesTokenLater: !hasNames,
      maxConnections: 1,
      judge: ({ principal, isFor }) =>
        principal.role === role ? undefined : refused(403, -1, `This is for ${isFor} (try --role ${role})`),
      howToGetIn: () => "",
      adopt: (name, _socket, { principal }) => adopted.push(`${role} ${name} of ${principal?.id}`),
    });
    doors.open(door("executors", "executor", true));
    doors.open(door("mailboxes", "mailbox", false));
    const server = createServer().on("upgrade", (...upgrade) => doors.upgrade(...upgrade));
    const port = await listenOnLoopback(server);
    const mail = { authorization: "Bearer token-m" };

    await once(dial(port), "open");
    const inbox = dial(port, "/mailboxes", {});
    await once(inbox, "open");
    // Its token comes later.
    await vi.waitFor(() => expect(adopted).toEqual(["executor office of office", "mailbox  of undefined"]), SOON);
    expect(doors.connections).toBe(2);

    expect(await refusal(dial(port, "/mailboxes"))).toMatchObject({
      status: 403,
      text: expect.stringMatching(/for executors .*--role mailbox/),
    });
    expect(await refusal(dial(port, "/mailboxes", mail))).toMatchObject({
      status: 503,
      text: expect.stringContaining("There are 1 mailboxes here already."),
    });
    const nowhere = await refusal(dial(port, "/elsewhere"));
    expect(nowhere.text).toContain("Executors dial in at /executors/<name>. Mailboxes dial in at /mailboxes.");

    doors.close("mailboxes");
    expect(await refusal(dial(port, "/mailboxes", mail))).toMatchObject({ status: 404 });
    server.close();
  });
});
