// HTTPS for agents by the command line, and executors over wss:// in both directions: with a certificate that is right,
// for another name, expired, or not trusted.

import { X509Certificate } from "node:crypto";
import { copyFileSync, readFileSync, renameSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { connect as connectTlsSocket, createServer } from "node:tls";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { Agent, fetch as undiciFetch } from "undici";
import { describe, expect, it, onTestFinished } from "vitest";
import { type Certificate, makeCertificate } from "../fixtures/certificates.js";
import { listenOnLoopback } from "../fixtures/loopback.js";
import { type Started, start } from "../fixtures/processes.js";
import { callJson, connectV1, track, waitForTools } from "./clients.js";
import {
  cli,
  freePort,
  type GatewayConfig,
  startGateway,
  startHttpFixture,
  stdioFixture,
  temporaryDirectory,
  until,
} from "./harness.js";
import { runCli } from "./operator.js";

const TOKEN = "a-token-of-the-tests-0123456789";

/** `toolway serve` with this certificate, once it listens; what it is given in the environment besides. */
async function serveTls(certificate: Certificate, config: GatewayConfig) {
  const dir = await temporaryDirectory();
  const configPath = join(dir, "toolway.json");
  const stateDir = join(dir, "state");
  await writeFile(configPath, JSON.stringify({ names: "plain", ...config }));
  const port = await freePort();
  const tls = ["--tls-cert", certificate.cert, "--tls-key", certificate.key];
  const args = [cli, "serve", configPath, "--state", stateDir, "--listen", `127.0.0.1:${port}`, ...tls];
  const one = started(start("gateway", process.execPath, args));
  await until("the gateway", () => one.log().includes("endpoint"));
  expect(one.log()).toContain(`https://127.0.0.1:${port}/mcp`);
  const place = ["--config", configPath, "--state", stateDir];
  return { port, place, url: `https://127.0.0.1:${port}/mcp`, log: one.log };
}

function started(one: Started): Started {
  onTestFinished(() => one.stop("SIGKILL"));
  return one;
}

/** An SDK client that trusts these authorities. */
async function connectTls(url: string, token: string, ca: readonly string[]): Promise<Client> {
  const dispatcher = new Agent({ connect: { ca: ca.map((file) => readFileSync(file)) } });
  onTestFinished(() => dispatcher.destroy());
  const trusting = (at: unknown, init: object) => undiciFetch(at as string, { ...init, dispatcher });
  const client = track(new Client({ name: "over TLS", version: "1" }, { capabilities: {} }));
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    fetch: trusting as unknown as typeof fetch,
    requestInit: { headers: { authorization: `Bearer ${token}` } },
  });
  // The SDK's own types disagree with exactOptionalPropertyTypes.
  await client.connect(transport as Transport);
  return client;
}

const shownToken = async (place: readonly string[]) => (await runCli("token", "show", ...place)).out.trim();

/** Why a certificate is refused, by what is wrong with it. */
const REFUSALS = {
  "for another name":
    "its certificate is for elsewhere.example, and not for this name (ERR_TLS_CERT_ALTNAME_INVALID). Use a name that it is for.",
  expired: "its certificate has expired (CERT_HAS_EXPIRED). It must be renewed there.",
  untrusted:
    "its certificate is not trusted (DEPTH_ZERO_SELF_SIGNED_CERT). For a private authority set NODE_EXTRA_CA_CERTS to its file.",
} as const;
const WRONG = Object.keys(REFUSALS) as (keyof typeof REFUSALS)[];

/** The certificate of that kind, and what the other end is given to trust it. */
function certificateOf(kind: keyof typeof REFUSALS | "good"): Certificate & { readonly env: Record<string, string> } {
  const certificate = makeCertificate(kind === "untrusted" ? "good" : kind);
  return { ...certificate, env: kind === "untrusted" ? {} : { NODE_EXTRA_CA_CERTS: certificate.cert } };
}

describe("toolway serve with a certificate", () => {
  it("speaks MCP over HTTPS, and asks for its token there", async () => {
    const certificate = makeCertificate();
    const gateway = await serveTls(certificate, { mcpServers: { stateful: stdioFixture("stateful") } });
    const token = await shownToken(gateway.place);
    const client = await connectTls(gateway.url, token, [certificate.cert]);
    await waitForTools(client, "count");
    expect(await callJson(client, "count")).toMatchObject({ count: 1 });
    await expect(connectTls(gateway.url, "wrong", [certificate.cert])).rejects.toMatchObject({ code: 401 });
    await expect(connectTls(gateway.url, token, [])).rejects.toThrow();
    // The verbs find it by its state, whatever its certificate is.
    expect((await runCli("status", ...gateway.place)).out).toMatch(/^stateful +ready/m);
  });
});

describe("toolway broker with a certificate", () => {
  it("is reached by wss:// alone, by a machine that shares and by one that joins", async () => {
    const { cert, key, env } = certificateOf("good");
    const dir = await temporaryDirectory();
    const state = join(dir, "broker");
    const tls = ["--tls-cert", cert, "--tls-key", key];
    const place = ["--listen", "127.0.0.1:0", "--state", state];
    const one = started(start("broker", process.execPath, [cli, "broker", ...place, ...tls]));
    await until("the broker", () => /wss:\/\/127\.0\.0\.1:\d+/.test(one.log()));
    const [broker = ""] = /wss:\/\/127\.0\.0\.1:\d+/.exec(one.log()) ?? [];
    const token = async (id: string, ...more: string[]) =>
      (await runCli("token", "create", "--id", id, "--state", state, ...more)).out.trim();
    const [studio, worker] = [
      await token("studio", "--role", "sharer"),
      await token("worker-1", "--role", "dev", "--may-send-to", "studio"),
    ];
    const config = join(dir, "mcp.json");
    await writeFile(config, JSON.stringify({ mcpServers: { stateful: stdioFixture("stateful") } }));
    const share = [cli, "share", config, "--broker", broker, "--as", "studio", "--state", join(dir, "share")];
    started(start("share", process.execPath, share, { ...process.env, ...env, TOOLWAY_TOKEN: studio }));
    const studioEntry = { mailbox: "studio", broker, token: worker };
    const gateway = await startGateway({ names: "plain", mcpServers: { studio: studioEntry } } as never, { env });
    const client = await connectV1(gateway.url);
    await waitForTools(client, "count");
    expect(await callJson(client, "count")).toMatchObject({ count: 1 });
    await expect(fetch(`${broker.replace("wss", "http")}/healthz`)).rejects.toThrow();
  });
});

describe("toolway executor --connect wss://", () => {
  /** An executor that dials a gateway with a certificate of that kind. */
  async function dialling(kind: keyof typeof REFUSALS | "good") {
    const { entry } = await startHttpFixture("stateful");
    const certificate = certificateOf(kind);
    const gateway = await serveTls(certificate, {
      mcpServers: { wiki: { ...entry, via: "office" } },
      executors: { office: {} },
    });
    const made = await runCli("token", "create", "--id", "office", "--role", "executor", ...gateway.place);
    const env = { ...process.env, TOOLWAY_TOKEN: made.out.trim().split("\n").at(-1), ...certificate.env };
    const where = `wss://127.0.0.1:${gateway.port}/executors/office`;
    const args = [cli, "executor", "--connect", where, "--allow", "127.0.0.1"];
    return { certificate, gateway, executor: started(start("executor", process.execPath, args, env)) };
  }

  it("serves a gateway whose certificate is right", async () => {
    const { certificate, gateway } = await dialling("good");
    const client = await connectTls(gateway.url, await shownToken(gateway.place), [certificate.cert]);
    await waitForTools(client, "count");
    expect(await callJson(client, "count")).toMatchObject({ count: 1 });
  });

  it.each(WRONG)("shows no token to a gateway whose certificate is %s, and says why", async (kind) => {
    const { gateway, executor } = await dialling(kind);
    await until("its word", () => executor.log().includes(REFUSALS[kind]));
    expect(gateway.log()).not.toContain("connected");
  });
});

describe("executors.url with wss://", () => {
  /** A gateway that dials an executor behind somebody who ends TLS for it, as a reverse proxy does. */
  async function dialled(kind: keyof typeof REFUSALS | "good") {
    const { entry } = await startHttpFixture("stateful");
    const certificate = certificateOf(kind);
    const port = await freePort();
    const args = [cli, "executor", "--listen", `ws://127.0.0.1:${port}`, "--allow", "127.0.0.1"];
    const executor = started(start("executor", process.execPath, args, { ...process.env, TOOLWAY_TOKEN: TOKEN }));
    await until("the executor", () => executor.log().includes(String(port)));
    const options = { cert: readFileSync(certificate.cert), key: readFileSync(certificate.key) };
    const proxy = createServer(options, (socket) => {
      const onward = connect(port, "127.0.0.1");
      for (const end of [socket, onward]) end.on("error", () => {});
      socket.pipe(onward).pipe(socket);
    });
    const url = `wss://127.0.0.1:${await listenOnLoopback(proxy)}`;
    onTestFinished(() => void proxy.close());
    const config = {
      mcpServers: { wiki: { ...entry, via: "office" } },
      executors: { office: { url, token: TOKEN } },
    };
    return { executor, gateway: await startGateway(config, { env: certificate.env }) };
  }

  it("reaches an executor whose certificate is right", async () => {
    const { gateway } = await dialled("good");
    const client = track(new Client({ name: "plain", version: "1" }, { capabilities: {} }));
    await client.connect(new StreamableHTTPClientTransport(new URL(gateway.url)) as Transport);
    await waitForTools(client, "count");
    expect(await callJson(client, "count")).toMatchObject({ count: 1 });
  });

  it.each(WRONG)(
    "shows no token to an executor whose certificate is %s, and says why at once [told-why]",
    async (kind) => {
      const { gateway, executor } = await dialled(kind);
      await until("its word", () => gateway.log().includes(REFUSALS[kind]));
      // The server's start goes on: what is told here need not wait until it is given up.
      expect(gateway.log()).not.toContain('server "wiki"');
      expect(executor.log()).not.toContain("connected");
    },
  );
});

/** The fingerprint of the certificate that a new connection is shown. */
function shown(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connectTlsSocket({ host: "127.0.0.1", port, rejectUnauthorized: false }, () => {
      resolve(socket.getPeerX509Certificate()?.fingerprint256 ?? "");
      socket.end();
    });
    socket.on("error", reject);
  });
}

const fingerprint = ({ cert }: Certificate) => new X509Certificate(readFileSync(cert)).fingerprint256;

describe("a certificate that is renewed", () => {
  it("is shown to new connections, while those that are there go on; a broken one is not taken, and that is said [restart-unseen]", async () => {
    const [first, second, third] = [makeCertificate(), makeCertificate(), makeCertificate()];
    const used = { ...first };
    const gateway = await serveTls(used, { mcpServers: { stateful: stdioFixture("stateful") } });
    const client = await connectTls(gateway.url, await shownToken(gateway.place), [first.cert]);
    await waitForTools(client, "count");
    expect(await shown(gateway.port)).toBe(fingerprint(first));
    const wanted = fingerprint(second);

    // The key does not fit for a while, as a tool that renews leaves it.
    copyFileSync(second.cert, used.cert);
    await until("what the log says", () => gateway.log().includes("the one before goes on"));
    const { certificate } = JSON.parse((await runCli("status", "--json", ...gateway.place)).out) as {
      certificate: { file: string; error: string };
    };
    expect(certificate).toEqual({ file: used.cert, error: expect.stringContaining("that fit") });
    expect((await runCli("status", ...gateway.place)).out).toContain("The new TLS certificate is not used");
    expect(await shown(gateway.port)).not.toBe(wanted);
    expect(await callJson(client, "count")).toMatchObject({ count: expect.any(Number) });

    copyFileSync(second.key, used.key);
    await until("the new certificate", async () => (await shown(gateway.port)) === wanted);
    // The connection that was there before goes on.
    expect(await callJson(client, "count")).toMatchObject({ count: expect.any(Number) });

    // By rename, as most do it.
    const next = fingerprint(third);
    renameSync(third.key, used.key);
    renameSync(third.cert, used.cert);
    await until("the third", async () => (await shown(gateway.port)) === next);
    expect((await runCli("status", ...gateway.place)).out).not.toContain("not used");
  });
});
