// The proxies of examples/operate before a gateway, for real: what they must let through. Where they are installed.

import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { request } from "node:http";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { start } from "../fixtures/processes.js";
import { connectV1 } from "./clients.js";
import { connected, startExecutor } from "./executor-process.js";
import { freePort, type Gateway, root, startGateway, temporaryDirectory, until } from "./harness.js";
import { statusOfAll } from "./operator.js";

const example = (name: string) => readFileSync(join(root, "examples/operate", name), "utf8");
const NAME = "tools.example.com";

/** The example, at a port of this test, without TLS; and the line that runs it. */
interface Proxy {
  readonly program: string;
  /** Asks for its version: whether it is here, and starts. */
  readonly version: string;
  line(folder: string, port: number, gateway: number): Promise<string[]>;
}

const PROXIES: Readonly<Record<string, Proxy>> = {
  nginx: {
    program: "nginx",
    version: "-v",
    async line(folder, port, gateway) {
      const server = example("nginx.conf")
        .replace("listen 443 ssl;", `listen 127.0.0.1:${port};`)
        .replace(/^ *ssl_.*\n/gm, "")
        .replace("127.0.0.1:7420", `127.0.0.1:${gateway}`);
      const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
        (kind) => `${kind}_temp_path ${folder}/${kind};`,
      );
      const http = `http {\naccess_log off;\n${temporary.join("\n")}\n${server}\n}`;
      // In the foreground and as whoever runs the tests.
      const around = `daemon off;\nmaster_process off;\npid ${folder}/pid;\nerror_log stderr;\nevents {}\n`;
      await writeFile(join(folder, "nginx.conf"), around + http);
      return ["-e", "stderr", "-p", folder, "-c", join(folder, "nginx.conf")];
    },
  },
  Caddy: {
    program: "caddy",
    version: "version",
    async line(folder, port, gateway) {
      const site = example("Caddyfile")
        // Any name: which one is let in is the gateway's to say.
        .replace(`${NAME} {`, `http://:${port} {\n\tbind 127.0.0.1`)
        .replace("127.0.0.1:7420", `127.0.0.1:${gateway}`);
      await writeFile(join(folder, "Caddyfile"), `{\n\tadmin off\n\tauto_https off\n}\n${site}`);
      return ["run", "--adapter", "caddyfile", "--config", join(folder, "Caddyfile")];
    },
  },
};

/** The status of a POST with that name for a host, and so many bytes. */
function post(port: number, host: string, bytes: number): Promise<number | undefined> {
  const headers = { host, "content-type": "application/json", accept: "application/json, text/event-stream" };
  return new Promise((done, fail) => {
    const sent = request(
      { port, host: "127.0.0.1", method: "POST", path: "/mcp", headers, agent: false },
      (response) => {
        response.resume();
        done(response.statusCode);
      },
    );
    sent.on("error", fail);
    const message = { jsonrpc: "2.0", id: 1, method: "ping", params: { _meta: { pad: "x".repeat(bytes) } } };
    sent.end(JSON.stringify(message));
  });
}

describe.each(Object.entries(PROXIES))("behind %s", (_, { program, version, line }) => {
  const missing = spawnSync(program, [version]).status !== 0;
  let gateway: Gateway;
  let port: number;

  beforeAll(async () => {
    if (missing) return;
    const server = { command: process.execPath, args: [join(root, "dist/demo/server.js")] };
    const executors = { office: { noAuth: true } };
    gateway = await startGateway({ mcpServers: { demo: server }, executors, allowedHosts: [NAME] });
    port = await freePort();
    const folder = await temporaryDirectory();
    const proxy = start(program, program, await line(folder, port, gateway.port), { ...process.env, HOME: folder });
    await until(program, async () => (await fetch(`http://127.0.0.1:${port}/healthz`)).ok);
    return () => proxy.stop("SIGKILL");
  });

  it.skipIf(missing)(
    "progress arrives while the call goes on, and a call that is taken back ends [documents-true]",
    async () => {
      const agent = await connectV1(`http://127.0.0.1:${port}/mcp`);
      const leave = new AbortController();
      // It would take ten minutes: what arrives before is not held back, and the end is that of the agent.
      const call = agent.callTool({ name: "wait", arguments: { seconds: 600 } }, undefined, {
        signal: leave.signal,
        onprogress: () => leave.abort(),
      });
      await expect(call).rejects.toThrow();
      await until("the end of the call at the server", async () =>
        (await statusOfAll(gateway)).servers.every(({ inFlight }) => inFlight === 0),
      );
    },
  );

  it.skipIf(missing)(
    "its name is let in, another is not, and bodies are bounded as the gateway bounds them",
    async () => {
      // No session: the gateway has read it, and says so.
      expect(await post(port, NAME, 12 * 1024 * 1024)).toBe(400);
      expect(await post(port, "elsewhere.example", 0)).toBe(403);
      expect(await post(port, NAME, 17 * 1024 * 1024).catch(() => 413)).toBe(413);
    },
  );

  it.skipIf(missing)("an executor dials in", async () => {
    startExecutor(["--connect", `ws://127.0.0.1:${port}/executors/office`]);
    await connected(gateway, "office");
  });
});
