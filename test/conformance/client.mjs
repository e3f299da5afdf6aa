// The `--command` of the suite's client side: a gateway in front of the suite's server, and an agent that uses whatever
// that server offers. What the suite sees, and judges, is the gateway's upstream side.
// `node client.mjs --agent legacy|modern --era legacy|modern URL`, `--era` being that of the requirements; the suite names
// the scenario in MCP_CONFORMANCE_*.

import { fileURLToPath, pathToFileURL } from "node:url";
import { Client as ModernClient, StreamableHTTPClientTransport as ModernHttp } from "@modelcontextprotocol/client";
import { Client as LegacyClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as LegacyHttp } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { authFor, Person } from "./logins.mjs";

/** `TOOLWAY_CLI`: another build than the one in dist/. */
const built = process.env.TOOLWAY_CLI ?? fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));
const { createGateway } = await import(new URL("../index.js", pathToFileURL(built)).href);

/** The suite's servers answer at once; one that refuses everything must not use up the scenario's 30 s. */
const READY_MS = 10_000;

const note = (line) => void process.stderr.write(`${line}\n`);
const url = process.argv.at(-1);
const agentEra = process.argv[process.argv.indexOf("--agent") + 1];
const era = process.argv[process.argv.indexOf("--era") + 1];
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? "{}");

/** What an agent's user would answer: the defaults of the form, and else anything of the right type. */
function elicited({ params }) {
  const properties = Object.entries(params.requestedSchema?.properties ?? {});
  return { action: "accept", content: Object.fromEntries(properties.map(([key, schema]) => [key, valueFor(schema)])) };
}

function sampled() {
  return { role: "assistant", model: "none", content: { type: "text", text: "An answer" }, stopReason: "endTurn" };
}

const listRoots = () => ({ roots: [{ uri: "file:///srv", name: "srv" }] });

function valueFor(schema) {
  if (schema.default !== undefined) return schema.default;
  if (schema.enum !== undefined) return schema.enum[0];
  switch (schema.type) {
    case "number":
    case "integer":
      return 5;
    case "boolean":
      return true;
    case "array":
      return [];
    case "object":
      return {};
    default:
      return "text";
  }
}

const info = { name: "conformance-agent", version: "1.0.0" };
const capabilities = { elicitation: { form: {} }, sampling: {}, roots: {} };

async function legacyAgent(gatewayUrl) {
  const client = new LegacyClient(info, { capabilities });
  client.setRequestHandler(ElicitRequestSchema, elicited);
  client.setRequestHandler(CreateMessageRequestSchema, sampled);
  client.setRequestHandler(ListRootsRequestSchema, listRoots);
  await client.connect(new LegacyHttp(new URL(gatewayUrl)));
  return client;
}

async function modernAgent(gatewayUrl) {
  const client = new ModernClient(info, { capabilities, versionNegotiation: { mode: { pin: "2026-07-28" } } });
  client.setRequestHandler("elicitation/create", elicited);
  client.setRequestHandler("sampling/createMessage", sampled);
  client.setRequestHandler("roots/list", listRoots);
  await client.connect(new ModernHttp(new URL(gatewayUrl)));
  return client;
}

async function ready(gateway) {
  const deadline = Date.now() + READY_MS;
  while (Date.now() < deadline) {
    const [server] = gateway.status().servers;
    if (server?.state === "ready" && !server.listsFromBefore) return true;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`The suite's server is not ready: ${JSON.stringify(gateway.status().servers)}`);
}

/** Uses everything that is listed, as the scenario says or with made-up arguments; errors are the server's business. */
async function useAll(client, person) {
  const listed = async (method, list) => {
    try {
      return (await client[method]())[list];
    } catch (error) {
      note(`${method}: ${error.message}`);
      return [];
    }
  };
  const tools = await listed("listTools", "tools");
  const prompts = await listed("listPrompts", "prompts");
  const resources = await listed("listResources", "resources");
  const made = ({ name, inputSchema }) => ({
    name,
    arguments: Object.fromEntries(
      Object.entries(inputSchema.properties ?? {}).map(([key, schema]) => [key, valueFor(schema)]),
    ),
  });
  const calls = context.toolCalls ?? tools.map(made);
  const uses = [
    ...calls.map((call) => ["callTool", call]),
    ...prompts.map(({ name }) => ["getPrompt", { name }]),
    ...resources.map(({ uri }) => ["readResource", { uri }]),
  ];
  // At once: what belongs to one call must not turn up in another.
  const use = async ([method, params]) => {
    try {
      note(`${method} ${JSON.stringify(params)}: ${JSON.stringify(await client[method](params))}`);
    } catch (error) {
      note(`${method} ${JSON.stringify(params)}: ${error.message}`);
      if (await person?.mended(error)) await use([method, params]);
    }
  };
  await Promise.all(uses.map(use));
}

const wantsLogin = process.env.MCP_CONFORMANCE_SCENARIO?.startsWith("auth/") ?? false;
const entry = {
  type: "http",
  url,
  ...(era === "modern" ? { era } : {}),
  ...(wantsLogin ? { auth: authFor(context) } : {}),
};
const gateway = await createGateway(
  { mcpServers: { suite: entry } },
  { noAuth: true, names: "plain", log: { debug: note, info: note, warn: note, error: note } },
);
try {
  const { url: gatewayUrl } = await gateway.listen({ host: "127.0.0.1", port: 0 });
  const person = wantsLogin ? new Person(gateway, "suite", note) : undefined;
  // Some scenarios are passed by a login that is not made: what the suite saw of it is all that counts.
  const isReady = person === undefined ? await ready(gateway) : await person.untilReady();
  if (isReady) {
    const client = await (agentEra === "modern" ? modernAgent : legacyAgent)(gatewayUrl);
    await useAll(client, person);
    await client.close();
  }
} finally {
  await gateway.close({ drainMs: 0 });
}
