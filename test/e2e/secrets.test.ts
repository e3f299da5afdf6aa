// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are variables of the config

// Secrets of an entry that its server prints, in its args, its environment and its address: what an agent is told, what
// `status`, `doctor` and the log show.

import { writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server } from "node:http";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { listenOnLoopback } from "../fixtures/loopback.js";
import { type Gateway, type ServerEntry, startGateway, stdioFixture, temporaryDirectory, until } from "./harness.js";
import { refusal, runCli, toolway } from "./operator.js";

const VARIABLE = "canary by variable";
const FROM_FILE = "canary+from/file";
/** Every value that nobody may see, as it was given. */
const SECRETS = {
  afterOption: "canary-after-option",
  inOption: "canary-in-option",
  withoutName: "cAnArY-9f8E7d6C5b4A32",
  plainName: "cAnArYq8Zr2mK4vX7tB1nC",
  variable: VARIABLE,
  fromFile: FROM_FILE,
  inUrl: "canary%21pass",
  inPair: "canary-pair",
  // Spelt like hosts and paths: their names say what they are.
  dottedOption: "canary.dotted",
  dottedName: "correct.canary",
  slashed: "/canary/slashed",
};

const OTHERS = ["--mode", "strict", "--root", "/srv/data"];

async function leaky(die: string): Promise<{ entry: ServerEntry; env: Record<string, string> }> {
  const envFile = join(await temporaryDirectory(), "server.env");
  await writeFile(envFile, `FROM_FILE=${FROM_FILE}\n`);
  const args = [
    "--die",
    die,
    ...OTHERS,
    "--api-key",
    SECRETS.afterOption,
    `--token=${SECRETS.inOption}`,
    SECRETS.withoutName,
    "--password",
    SECRETS.dottedOption,
  ];
  const env = {
    SETTING: SECRETS.plainName,
    VARIABLE: "${LEAKY_VARIABLE}",
    DATABASE: `postgres://me:${SECRETS.inUrl}@db.example/app`,
    PAIR: `Server=db;Password=${SECRETS.inPair}`,
    DB_PASSWORD: SECRETS.dottedName,
    DB_SECRET: SECRETS.slashed,
    DB_PASSWORD_FILE: "/run/secrets/db",
  };
  const more = {
    env,
    envFile,
    backoff: { baseMs: 20, maxMs: 20 },
    breaker: { failures: 1_000 },
    restarts: { max: 1_000 },
  };
  return { entry: stdioFixture("leaky", args, more), env: { LEAKY_VARIABLE: VARIABLE } };
}

/** How the secrets would look, had they not been found. */
function spellings(): string[] {
  return Object.values(SECRETS).flatMap((value) => [
    value,
    decodeURIComponent(value),
    encodeURIComponent(value),
    JSON.stringify(value).slice(1, -1),
    Buffer.from(`somebody:${value}`).toString("base64"),
    Buffer.from(value).toString("base64"),
    Buffer.from(value).toString("hex"),
    // Wrapped over two lines, or with every character escaped, no half of it is left.
    value.slice(-6),
    [...value].map((one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`).join(""),
  ]);
}

function expectNoSecret(text: string): void {
  for (const spelling of spellings()) expect(text).not.toContain(spelling);
  expect(text.toLowerCase()).not.toContain("canary");
}

async function shownToOperator(gateway: Gateway): Promise<string> {
  const shown = [await toolway(gateway, "status"), await toolway(gateway, "status", "--json")];
  return shown.map(({ out, err }) => out + err).join("\n");
}

it("a server that prints its args and environment as it dies at its start shows no secret [secrets-unseen]", async () => {
  const { entry, env } = await leaky("start");
  const gateway = await startGateway({ mcpServers: { leaky: entry } }, { env });
  await until("its failure", () => gateway.log().includes("exited with code 1"));
  const told = await refusal(`${gateway.origin}/mcp/leaky`, "die");
  expectNoSecret(JSON.stringify(told));
  expect(told.message).not.toContain("[redacted]");
  // What it said besides is still told.
  expect(told.message).toContain("Error: the engine is cold");

  const status = await shownToOperator(gateway);
  expectNoSecret(status);
  expect(status).toContain(
    "Error: cannot log in with --die start --mode strict --root /srv/data --api-key [redacted] --token=[redacted]",
  );
  expectNoSecret(gateway.log());
  expect(gateway.log()).toContain("cannot log in with --die start --mode strict");
  // Where a secret lies is none, and is what somebody looks for who reads the log.
  expect(gateway.log()).toContain(" /run/secrets/db.");

  process.env["LEAKY_VARIABLE"] = VARIABLE;
  const doctor = [await runCli("doctor", gateway.configPath), await runCli("doctor", gateway.configPath, "--json")];
  delete process.env["LEAKY_VARIABLE"];
  for (const { code, out, err } of doctor) {
    expect(code).toBe(1);
    expectNoSecret(out + err);
    expect(out).toContain("--api-key [redacted]");
  }
});

it("a server that prints them as it dies in a call shows no secret [secrets-unseen]", async () => {
  const { entry, env } = await leaky("call");
  const gateway = await startGateway({ mcpServers: { leaky: entry, twin: entry } }, { env });
  const told = await refusal(gateway.url, "die");
  expectNoSecret(JSON.stringify(told));
  expect(told.message).toContain("went away before it answered");
  expect(told.message).toContain("Error: the engine is cold");
  // Two servers have a tool that is named like a secret, and it is called: a conflict, and a line of the log.
  await refusal(gateway.url, SECRETS.afterOption);
  await until("the call in the log", () => gateway.log().includes('call leaky/"[redacted]"'));
  const status = await shownToOperator(gateway);
  expectNoSecret(status + gateway.log());
  expect(status).toContain("--mode strict");
  expect(status).toMatch(/conflict: .*"twin" are left out.*\[redacted\]/);
  // Two of its tools are named like secrets, one of them is mended, and it gives all of them as its title.
  expect(gateway.log()).toContain("pinned at first sight");
  await until("what is kept", async () => (await toolway(gateway, "state", "dump")).out.includes('"map":"known"'));
  const { out } = await toolway(gateway, "state", "dump");
  expectNoSecret(out);
  expect(out).toContain("[redacted]");
});

it("a server that names them in the error of its handshake shows no secret [secrets-unseen]", async () => {
  const { entry, env } = await leaky("refuse");
  const gateway = await startGateway({ mcpServers: { leaky: entry } }, { env });
  await until("its failure", () => gateway.log().includes("no licence"));
  const told = await refusal(`${gateway.origin}/mcp/leaky`, "die");
  expectNoSecret(JSON.stringify(told));
  expect(told.message).toContain("[left out: it names a secret; `toolway status` shows the rest]");
  const status = await shownToOperator(gateway);
  expectNoSecret(status + gateway.log());
  expect(status).toContain("It refused initialize: no licence for --die refuse --mode strict");
});

const servers: Server[] = [];
afterAll(() => {
  for (const server of servers) server.close();
});

/** Answers every request with its headers and its address, which is what frameworks do in their error pages. */
async function echoing(status: number): Promise<string> {
  const page = ({ url, headers }: IncomingMessage) =>
    `the engine is cold\nheaders ${JSON.stringify(headers)}\nfetch http://somebody:hush@inner.example${url} failed\n`;
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(status, { "content-type": "text/plain" }).end(page(request));
  });
  servers.push(server);
  return `http://127.0.0.1:${await listenOnLoopback(server)}`;
}

it.each([400, 500, 503])(
  "a server over HTTP that answers %d with all that we sent shows no secret [secrets-unseen]",
  async (status) => {
    const path = `/hooks/${SECRETS.plainName}/mcp?token=${SECRETS.inOption}`;
    const headers = {
      Authorization: `Basic ${Buffer.from(`me:${SECRETS.inPair}`).toString("base64")}`,
      "X-Tenant": "${LEAKY_VARIABLE}",
    };
    const entry = { url: (await echoing(status)) + path, headers };
    const gateway = await startGateway({ mcpServers: { leaky: entry } }, { env: { LEAKY_VARIABLE: VARIABLE } });
    await until("its failure", () => gateway.log().includes(`HTTP ${status}`));
    const told = await refusal(`${gateway.origin}/mcp/leaky`, "x");
    expectNoSecret(JSON.stringify(told));
    expect(told.message).toContain("It said: the engine is cold");
    expect(told.message).not.toContain("headers");
    expect(told.message).not.toContain("hush");
    const shown = (await shownToOperator(gateway)) + gateway.log();
    expectNoSecret(shown);
    expect(shown).not.toContain("hush");
    expect(shown).toContain("/hooks/[redacted]/mcp");
    expect(shown).toMatch(/It said: the engine is cold headers .*\[redacted\]/);
  },
);
