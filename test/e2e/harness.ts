// Starts a real gateway from dist/ for the e2e tests, with a config, a port and a state directory of its own, and
// fixtures behind it. Everything started here is killed when the test file ends; logs are shown for a failed test.

import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll } from "vitest";
import { freePort } from "../fixtures/free-port.js";
import { isAlive, type Started, start } from "../fixtures/processes.js";
import { Gone, sleep, until } from "../fixtures/wait.js";

export { freePort, isAlive, sleep, until };

export const root = fileURLToPath(new URL("../..", import.meta.url));
/** `TOOLWAY_CLI`: another build than the one in dist/. */
export const cli = process.env["TOOLWAY_CLI"] ?? join(root, "dist/cli/main.js");

export interface ServerEntry {
  readonly command?: string;
  readonly args?: readonly string[];
  readonly url?: string;
  readonly [key: string]: unknown;
}

export interface GatewayConfig {
  readonly mcpServers: Readonly<Record<string, ServerEntry>>;
  readonly [key: string]: unknown;
}

/** The entry of a fixture that the gateway starts itself. */
export function stdioFixture(name: string, args: readonly string[] = [], more: object = {}): ServerEntry {
  return { command: process.execPath, args: [join(root, "test/fixtures/servers", `${name}.mjs`), ...args], ...more };
}

/** The entry of one of the reference servers from npm. */
export function npmServer(name: "everything" | "filesystem" | "memory", args: readonly string[] = []): ServerEntry {
  const file = join(root, "node_modules/@modelcontextprotocol", `server-${name}`, "dist/index.js");
  return { command: process.execPath, args: [file, ...args] };
}

const started = new Set<Started>();
const directories: string[] = [];

beforeAll(() => {
  if (!existsSync(cli)) throw new Error("The e2e tests run what is in dist/: run `npm run build` first.");
});

afterEach(({ task }) => {
  if (task.result?.state !== "fail") return;
  for (const { what, log } of started) {
    process.stderr.write(`--- ${what}: end of its log, for "${task.name}"\n${log().slice(-4000)}\n`);
  }
});

afterAll(async () => {
  await Promise.all([...started].map((one) => one.stop()));
  // One that something still writes into must not keep the others.
  await Promise.allSettled(directories.map((dir) => rm(dir, { recursive: true, force: true, maxRetries: 10 })));
});

export async function temporaryDirectory(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "toolway-e2e-"));
  directories.push(dir);
  return dir;
}

function launch(what: string, command: string, args: readonly string[], env: Record<string, string> = {}): Started {
  const one = start(what, command, args, { ...process.env, ...env });
  started.add(one);
  void one.exited.then(() => started.delete(one));
  return one;
}

/** A fixture that runs by itself and is reached over HTTP. */
export async function startHttpFixture(
  name: string,
  args: readonly string[] = [],
  samePort?: number,
): Promise<{ entry: ServerEntry; url: string; port: number; kill(): Promise<void> }> {
  const port = samePort ?? (await freePort());
  const file = join(root, "test/fixtures/servers", `${name}.mjs`);
  const one = launch(`fixture ${name}`, process.execPath, [file, "--http", String(port), "--with-parent", ...args]);
  await until(`fixture ${name}`, () => one.log().includes("http://"));
  const url = `http://127.0.0.1:${port}/mcp`;
  return { entry: { type: "http", url }, url, port, kill: () => one.stop("SIGKILL") };
}

/** The entry of a fixture that the gateway starts itself, or reaches over HTTP. */
export async function fixtureOver(
  kind: "stdio" | "http",
  name: string,
  args: readonly string[] = [],
): Promise<ServerEntry> {
  return kind === "stdio" ? stdioFixture(name, args) : (await startHttpFixture(name, args)).entry;
}

export interface Gateway {
  readonly url: string;
  readonly origin: string;
  readonly port: number;
  readonly pid: number;
  readonly configPath: string;
  readonly stateDir: string;
  readonly exited: Promise<void>;
  log(): string;
  writeConfig(config: GatewayConfig | string): Promise<void>;
  signal(signal: NodeJS.Signals): void;
  /** Ends it, SIGTERM unless told otherwise, and waits until it is gone. */
  stop(signal?: NodeJS.Signals): Promise<void>;
  /** Starts it again: same port, same state, same config. */
  again(): Promise<Gateway>;
}

export interface GatewayOptions {
  readonly port?: number;
  readonly stateDir?: string;
  readonly configPath?: string;
  readonly env?: Record<string, string>;
  readonly args?: readonly string[];
  /** Asks agents for a token. */
  readonly auth?: boolean;
  /** What it is started under: a command that runs the one that follows it, in the same process. */
  readonly under?: readonly string[];
  /** Another build than the one in dist/. */
  readonly program?: string;
}

/** Set by vitest.config.ts, for the project "split": each gateway here is three behind a balancer. */
export const isSplit = process.env["TOOLWAY_SPLIT"] === "1";
const split = isSplit ? await import("./split.js") : undefined;

/** With plain names and without tokens: what the tests are about is neither. `names` in the config overrides it. */
export function startGateway(config: GatewayConfig, options: GatewayOptions = {}): Promise<Gateway> {
  return split === undefined ? startOne(config, options) : split.startSplit(config, options, startOne);
}

async function startOne(config: GatewayConfig, options: GatewayOptions): Promise<Gateway> {
  const port = options.port ?? (await freePort());
  const stateDir = options.stateDir ?? join(await temporaryDirectory(), "state");
  const configPath = options.configPath ?? join(await temporaryDirectory(), "toolway.json");
  const writeConfig = async (next: GatewayConfig | string) => {
    const text = typeof next === "string" ? next : JSON.stringify({ names: "plain", ...next }, null, 2);
    await writeFile(configPath, text);
  };
  await writeConfig(config);
  const listen = `127.0.0.1:${port}`;
  const args = [
    options.program ?? cli,
    "serve",
    configPath,
    "--listen",
    listen,
    "--state",
    stateDir,
    ...(options.auth ? [] : ["--no-auth"]),
    ...(options.args ?? []),
  ];
  const [command = process.execPath, ...line] = [...(options.under ?? []), process.execPath, ...args];
  const one = launch("gateway", command, line, options.env);
  const origin = `http://${listen}`;
  // And not /readyz: many a test is about servers that are not up yet.
  await until("the gateway's /healthz", async () => {
    if (one.child.exitCode !== null) throw new Gone(`The gateway ended:\n${one.log()}`);
    return (await fetch(`${origin}/healthz`)).status === 200;
  });
  return {
    url: `${origin}/mcp`,
    origin,
    port,
    pid: one.child.pid ?? 0,
    configPath,
    stateDir,
    exited: one.exited,
    log: one.log,
    writeConfig,
    signal: (signal) => void one.child.kill(signal),
    stop: one.stop,
    again: () => startOne(config, { ...options, port, stateDir, configPath }),
  };
}
