// `toolway doctor` with servers that really fail, each in its own way: what it says of each, and what to fix.

import { chmod, mkdir, writeFile } from "node:fs/promises";
import { createServer, type ServerResponse } from "node:http";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { closeHttp, listenOnLoopback } from "../fixtures/loopback.js";
import { connected, startExecutor } from "./executor-process.js";
import { startGateway, startHttpFixture, stdioFixture, temporaryDirectory } from "./harness.js";
import { runCli, toolway } from "./operator.js";

interface Finding {
  readonly name: string;
  readonly ok: boolean;
  readonly error?: { readonly code: string; readonly reason?: string; readonly message: string };
  readonly advice: readonly string[];
}

/** What npx writes of a package that does not exist. */
const NPX = `#!/bin/sh
cat >&2 <<'END'
npm error code E404
npm error 404 Not Found - GET https://registry.npmjs.org/@nobody%2fno-server - Not found
npm error 404
npm error 404  '@nobody/no-server@*' is not in this registry.
npm error 404
npm error 404 Note that you can also install from a
npm error 404 tarball, folder, http url, or git folder.
npm error A complete log of this run can be found in: /root/.npm/_logs/2026-debug-0.log
END
exit 1
`;

/** Takes the handshake, and nothing else. */
const FAILS_ITS_LIST = `
require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const capabilities = { tools: {} };
  const answer = method === "initialize"
    ? { result: { protocolVersion: params.protocolVersion, capabilities, serverInfo: { name: "x", version: "1" } } }
    : { error: { code: -32603, message: "database is locked" } };
  console.log(JSON.stringify({ jsonrpc: "2.0", id, ...answer }));
});`;

/** Refuses in the way that its path names. Nothing of the path may count for what is advised. */
function refuse(path: string, response: ServerResponse): void {
  if (path === "/plain") response.writeHead(401).end();
  else if (path === "/oauth") {
    const metadata = "http://127.0.0.1/.well-known/oauth-protected-resource";
    response.writeHead(401, { "www-authenticate": `Bearer resource_metadata="${metadata}"` }).end();
  } else if (path === "/500/401") response.writeHead(500).end("boom");
  else response.writeHead(404).end("Cannot POST");
}

const found = new Map<string, Finding>();

beforeAll(async () => {
  const dir = await temporaryDirectory();
  const at = (name: string) => join(dir, name);
  await mkdir(at("bin"));
  await writeFile(at("bin/npx"), NPX);
  await chmod(at("bin/npx"), 0o755);
  await writeFile(at("plain.js"), "#!/usr/bin/env node\n");
  await writeFile(at("lists.cjs"), FAILS_ITS_LIST);
  await writeFile(at("throws.mjs"), 'throw new Error("GITHUB_TOKEN is required")');
  const refusing = createServer((request, response) => {
    request.resume().on("end", () => refuse(request.url ?? "", response));
  });
  // What answers a dial with 401, as an executor does that has another token.
  refusing.on("upgrade", (_request, socket) => socket.end("HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n"));
  const port = await listenOnLoopback(refusing);
  const { entry, kill } = await startHttpFixture("stateful");
  const node = process.execPath;
  const mcpServers = {
    line: { command: "npx -y @a/b" },
    path: { command: at("no/such/program") },
    cwd: { command: node, cwd: at("gone") },
    unexecutable: { command: at("plain.js") },
    npm: { command: at("bin/npx"), args: ["-y", "@nobody/no-server"] },
    throws: { command: node, args: [at("throws.mjs")] },
    lists: { command: node, args: [at("lists.cjs")] },
    plain: { url: `http://127.0.0.1:${port}/plain` },
    refused: { url: `http://127.0.0.1:${port}/plain`, headers: { Authorization: "Bearer key-of-the-tests-1" } },
    unwritten: { url: `http://127.0.0.1:${port}/plain`, auth: { bearer: { file: at("no-token") } } },
    oauth: { url: `http://127.0.0.1:${port}/oauth` },
    failing: { url: `http://127.0.0.1:${port}/500/401` },
    nowhere: { url: `http://127.0.0.1:${port}/401` },
    sse: { ...entry, type: "sse" },
    modern: { ...entry, era: "modern" },
    via: { ...entry, via: "office" },
    good: stdioFixture("stateful"),
  };
  const executors = { office: { url: `ws://127.0.0.1:${port}`, token: "a-wrong-token-0123456789" } };
  await writeFile(at("toolway.json"), JSON.stringify({ mcpServers, executors }));
  const { code, out } = await runCli("doctor", at("toolway.json"), "--json");
  expect(code).toBe(1);
  for (const one of JSON.parse(out) as Finding[]) found.set(one.name, one);
  await Promise.all([closeHttp(refusing), kill()]);
});

describe("what doctor says of a server that does not come up [told-why]", () => {
  it.each([
    ["line", /is a whole line\.$/, 'Write "command": "npx"'],
    ["path", /does not exist\.$/, 'Correct "command".'],
    ["cwd", /^The working directory ".*gone" does not exist\.$/, 'correct "cwd"'],
    ["unexecutable", /may not be executed\.$/, "chmod +x"],
    ["npm", /^The server exited with code 1: npm error 404 Not Found - GET/, "package does not exist"],
    ["throws", /^The server exited with code 1: Error: GITHUB_TOKEN is required\.$/, "environment variable"],
    ["lists", /^Its tools could not be read: database is locked\.$/, "fails when it is asked for its tools"],
    ["plain", /wants credentials \(HTTP 401\)\.$/, "Add them to the entry"],
    ["refused", /refuses our credentials \(HTTP 401\)\.$/, 'The entry sends "Authorization"'],
    ["unwritten", /wants credentials \(HTTP 401\), and the file .*no-token has none\.$/, "Write the token into it"],
    ["oauth", /wants a login by OAuth \(HTTP 401/, "`toolway login oauth`"],
    // A start is no call: nobody asks whether it took effect.
    ["failing", /failed \(HTTP 500\)\. It said: boom\.$/, "Its own log"],
    ["nowhere", /does not exist \(HTTP 404\)/, "Check the path"],
    ["sse", /refused the request \(HTTP 400\)/, '"type": "sse"'],
    ["modern", /does not answer server\/discover/, 'Remove "era": "modern"'],
    ["via", /^No executor "office" is connected\. .*401/, "url or token under `executors`"],
  ])("%s", (name, message, advice) => {
    const { ok, error, advice: advised } = found.get(name) as Finding;
    expect(ok).toBe(false);
    expect(error?.message).toMatch(message);
    expect(advised.join("\n")).toContain(advice);
    expect(advised).toHaveLength(1);
  });

  it("and one that works stays out of it", () => {
    expect(found.get("good")).toMatchObject({ ok: true, advice: [] });
  });
});

describe("a server behind an executor that dials in", () => {
  it("is tried through the gateway that runs: ok is said while it is reached, and never from before [told-why]", async () => {
    const { entry } = await startHttpFixture("stateful");
    const config = { mcpServers: { wiki: { ...entry, via: "lab" } }, executors: { lab: { noAuth: true } } };
    const gateway = await startGateway(config);
    const connect = ["--connect", `ws://127.0.0.1:${gateway.port}/executors/lab`];
    const doctor = async () => {
      const { code, out } = await toolway(gateway, "doctor", "--json");
      return { code, finding: (JSON.parse(out) as Finding[])[0] };
    };
    const first = startExecutor(connect);
    await connected(gateway, "lab");
    expect(await doctor()).toMatchObject({ code: 0, finding: { ok: true, era: "legacy", version: "2025-11-25" } });
    await first.stop();
    // The next of its name may reach something else.
    startExecutor(connect, undefined, "wiki.example");
    await connected(gateway, "lab");
    const refused = await doctor();
    expect(refused).toMatchObject({ code: 1, finding: { ok: false, error: { reason: "executor-refuses" } } });
    expect(refused.finding?.advice.join()).toContain("--dry-run URL");
  });
});
