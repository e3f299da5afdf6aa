// Where the time of a call goes: the gateway under a load of small calls or of lists, its CPU profile summed up by stage.
// It owns the load and the server of the profile alone; what is compared with what is run.mjs's.

import { execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { Agent, createServer, request } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { equipment, startCollector } from "./equipment.mjs";
import { sumUp } from "./profile-groups.mjs";
import { definition, toolNames } from "./servers/answers.mjs";
import { stdioEntry } from "./servers/index.mjs";
import { startNats } from "./servers/nats.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const { values } = parseArgs({
  options: {
    by: { type: "string", default: "part" },
    calls: { type: "string", default: "20000" },
    "in-flight": { type: "string", default: "32" },
    server: { type: "string", default: "http" },
    ask: { type: "string", default: "call" },
    equipped: { type: "boolean", default: false },
    audit: { type: "boolean", default: false },
    top: { type: "string", default: "40" },
    keep: { type: "string" },
    read: { type: "string" },
    help: { type: "boolean", default: false },
  },
});

/** As many as the workload `list` has. */
const LIST_SERVERS = 20;
const LIST_TOOLS = 25;

const HELP = `node bench/profile.mjs [options]

  --by part|file|function   what a line of the table is (part)
  --calls N                 measured calls (20000)
  --in-flight N             calls in flight (32)
  --server http|stdio       how the server is reached (http)
  --ask call|list|outbox|kept   what agents ask for: a small call, the merged list of ${LIST_SERVERS} servers, or a call that is kept
                            on this disk or in a nats-server (call)
  --equipped                with roles, budgets, the cache and telemetry, as the workload \`equipped\` has them
  --audit                   with an audit log that has HMACs of the arguments
  --top N                   lines of the table (40)
  --keep FILE               keeps the profile; Chrome's DevTools open it (.cpuprofile)
  --read FILE               sums up a kept profile, starting nothing
`;

/** Until then the JIT compiles; that is not a call's time. */
const WARM_UP_CALLS = 5_000;
/** The start takes a second or so, also on a busy machine; a gateway that does not come must not hang the script. */
const READY_MS = 30_000;
/** As `toolway engine key` makes them. */
const KEY = `twk_${randomBytes(32).toString("base64url")}`;
const TOKEN = "bench-profile-token-0123456789abcdef";

const calls = Number(values.calls);
if (values.help) process.stdout.write(HELP);
else if (values.read !== undefined) print(JSON.parse(readFileSync(values.read, "utf8")));
else print(await profileGateway());

async function profileGateway() {
  const workDir = mkdtempSync(join(tmpdir(), "toolway-profile-"));
  const upstream = await startServer();
  const file = join(workDir, "call.cpuprofile");
  const config = join(workDir, "config.json");
  const names = Array.from({ length: values.ask === "list" ? LIST_SERVERS : 1 }, (_, i) => `tiny${i}`);
  const nats = values.ask === "kept" ? await startNats(workDir) : undefined;
  const isKept = values.ask === "kept" || values.ask === "outbox";
  const kept = isKept && { tools: { echo: { outbox: { lane: false } } } };
  const collector = values.equipped ? await startCollector() : undefined;
  const { entry, settings } = collector === undefined ? {} : equipment(names, collector.url);
  const mcpServers = Object.fromEntries(names.map((name) => [name, { ...upstream.entry, ...kept, ...entry }]));
  const engine = nats && { nats: [`nats://${nats.address}`], key: { env: "TOOLWAY_ENGINE_KEY" }, replicas: 1 };
  const audit = values.audit && { audit: { arguments: "hmac" } };
  writeFileSync(config, JSON.stringify({ mcpServers, ...(engine && { engine }), ...settings, ...audit }));
  const cli = process.env.TOOLWAY_CLI ?? plainBuild();
  const hook = join(here, "profile-hook.mjs");
  const gateway = spawn(
    process.execPath,
    ["--import", hook, cli, "serve", config, "--state", join(workDir, "state"), "--listen", "127.0.0.1:0", "--json"],
    {
      env: { ...process.env, TOOLWAY_TOKEN: TOKEN, TOOLWAY_PROFILE: file, TOOLWAY_ENGINE_KEY: KEY },
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  try {
    const post = agent(await firstLine(gateway));
    const name = await openSession(post);
    await load(post, name, WARM_UP_CALLS);
    gateway.kill("SIGUSR2");
    await load(post, name, calls);
    gateway.kill("SIGUSR2");
    await until(() => existsSync(file));
    const profile = { ...JSON.parse(readFileSync(file, "utf8")), calls };
    if (values.keep !== undefined) writeFileSync(values.keep, JSON.stringify(profile));
    return profile;
  } finally {
    const gone = new Promise((resolve) => gateway.once("exit", resolve));
    if (gateway.exitCode === null) {
      gateway.kill("SIGTERM");
      await gone;
    }
    upstream.close();
    collector?.stop();
    await nats?.stop();
    rmSync(workDir, { recursive: true, force: true });
  }
}

/** The program as modules: in the bundle of dist/ nobody could say whose a function is. It runs the same code. */
function plainBuild() {
  const out = join(here, "out/profile/dist");
  execFileSync(process.execPath, [join(here, "../scripts/build.mjs"), "--plain", "--out", out], { stdio: "inherit" });
  // The program reads its version there.
  copyFileSync(join(here, "../package.json"), join(out, "../package.json"));
  return join(out, "cli/main.js");
}

/** `--json` prints where the gateway listens, once it does. */
function firstLine(child) {
  return new Promise((resolve, reject) => {
    let text = "";
    child.stdout.on("data", (chunk) => {
      text += chunk;
      if (text.includes("\n")) resolve(JSON.parse(text.slice(0, text.indexOf("\n"))).endpoint);
    });
    child.once("exit", (code) => reject(new Error(`The gateway ended with ${code}.`)));
    setTimeout(() => reject(new Error("The gateway did not start.")), READY_MS).unref();
  });
}

/** What the config says of the server, and its end. */
async function startServer() {
  if (values.server === "http") {
    const { url, close } = await startUpstream();
    return { entry: { url }, close };
  }
  const { name: _, ...entry } = stdioEntry("tiny", { era: "legacy" });
  return { entry, close: () => {} };
}

/** A legacy server in a few lines: it answers at once. */
async function startUpstream() {
  const tools = toolNames(values.ask === "list" ? LIST_TOOLS : 1).map(definition);
  const answers = {
    initialize: (params) => ({
      protocolVersion: params.protocolVersion,
      capabilities: { tools: {} },
      serverInfo: { name: "tiny", version: "1.0.0" },
    }),
    "tools/list": () => ({ tools }),
    "tools/call": (params) => ({ content: [{ type: "text", text: params.arguments.text }] }),
  };
  const server = createServer((req, res) => {
    const chunks = [];
    req.on("data", (chunk) => chunks.push(chunk));
    req.on("end", () => {
      if (req.method !== "POST") return void res.writeHead(405).end();
      const { id, method, params } = JSON.parse(Buffer.concat(chunks).toString());
      if (id === undefined) return void res.writeHead(202).end();
      const answer = answers[method];
      const body =
        answer === undefined
          ? { jsonrpc: "2.0", id, error: { code: -32601, message: "Method not found" } }
          : { jsonrpc: "2.0", id, result: answer(params) };
      const bytes = Buffer.from(JSON.stringify(body));
      res.writeHead(200, { "content-type": "application/json", "content-length": bytes.length }).end(bytes);
    });
  });
  server.keepAliveTimeout = 0;
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${server.address().port}/mcp`, close };
}

/** A function that posts one message and resolves with the reply and its headers. */
function agent(url) {
  const pool = new Agent({ keepAlive: true, maxSockets: Number(values["in-flight"]) });
  const headers = {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    authorization: `Bearer ${TOKEN}`,
  };
  const post = (message) =>
    new Promise((resolve, reject) => {
      const body = JSON.stringify({ jsonrpc: "2.0", ...message });
      const length = { "content-length": Buffer.byteLength(body) };
      const req = request(url, { method: "POST", agent: pool, headers: { ...headers, ...length } }, (res) => {
        let text = "";
        res.setEncoding("utf8");
        res.on("data", (chunk) => {
          text += chunk;
        });
        res.on("end", () => resolve({ headers: res.headers, text }));
      });
      req.on("error", reject);
      req.end(body);
    });
  return Object.assign(post, { headers });
}

async function openSession(post) {
  const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "profile", version: "1" } };
  const opened = await post({ id: 0, method: "initialize", params });
  post.headers["mcp-session-id"] = opened.headers["mcp-session-id"];
  post.headers["mcp-protocol-version"] = "2025-11-25";
  await post({ method: "notifications/initialized" });
  let name;
  await until(async () => {
    const { text } = await post({ id: 1, method: "tools/list" });
    name = JSON.parse(text).result?.tools.find((tool) => /echo$/.test(tool.name))?.name;
    return name !== undefined;
  });
  return name;
}

/** Every answer is checked: a profile of errors would be of something else. */
async function load(post, name, count) {
  let next = 0;
  const lane = async () => {
    for (let id = ++next; id <= count; id = ++next) {
      if (values.ask === "list") {
        const { text } = await post({ id, method: "tools/list" });
        if (!text.includes(name)) throw new Error(`Wrong answer: ${text}`);
        continue;
      }
      const { text } = await post({ id, method: "tools/call", params: { name, arguments: { text: `call ${id}` } } });
      const reply = JSON.parse(text);
      if (reply.id !== id || reply.result?.content[0].text !== `call ${id}`) throw new Error(`Wrong answer: ${text}`);
    }
  };
  await Promise.all(Array.from({ length: Number(values["in-flight"]) }, lane));
}

async function until(done) {
  for (const end = Date.now() + READY_MS; !(await done()); ) {
    if (Date.now() > end) throw new Error("Waited in vain.");
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

function print(profile) {
  const { busyUs, rows } = sumUp(profile, values.by);
  // The samples give the shares, the thread's CPU clock the sum.
  const perCall = profile.cpu.mainUs / profile.calls / Math.max(1, busyUs);
  const figure = (us) =>
    `${(us * perCall).toFixed(2).padStart(9)}${((100 * us) / Math.max(1, busyUs)).toFixed(1).padStart(7)} %`;
  const lines = [
    `${(profile.cpu.mainUs / profile.calls).toFixed(1)} µs of CPU a call on the main thread, ` +
      `${(profile.cpu.otherUs / profile.calls).toFixed(1)} on others (the profiler's among them), ${profile.calls} calls`,
    "",
    "     self    share  + callees    share",
    ...rows.slice(0, Number(values.top)).map((row) => `${figure(row.selfUs)}  ${figure(row.chargedUs)}   ${row.name}`),
    "",
    "µs a call. + callees: with what it calls of node, packages and native code, up to the next function of ours;",
    "what nobody of ours called stays with itself.",
  ];
  process.stdout.write(`${lines.join("\n")}\n`);
}
