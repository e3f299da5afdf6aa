// One definition that clients refuse costs nobody the list: it is mended or left out, and said. And the structured output
// of the modern era reaches agents of the legacy one.

import { beforeAll, describe, expect, it } from "vitest";
import { type ClientV1, type ClientV2, connectV1, connectV2, toolNames } from "./clients.js";
import { fourServers, REVISION, SERVERS } from "./eras.js";
import { type Gateway, startGateway, stdioFixture, until } from "./harness.js";
import { runCli, toolway } from "./operator.js";

const CLIENTS = {
  "SDK v1": (url: string): Promise<ClientV1 | ClientV2> => connectV1(url),
  "SDK v2 in the legacy era": (url: string) => connectV2(url),
  "SDK v2 in the modern era": (url: string) =>
    connectV2(url, { capabilities: {}, versionNegotiation: { mode: { pin: REVISION } } }),
};
const USABLE = [
  ...["good", "rows", "either", "untold", "no_input", "null_input", "typeless", "text_input", "boolean_properties"],
  ...["required_flag", "null_description", "title_number", "icons_text", "icon_sizes", "hints_text"],
  ...[
    "annotations_list",
    "meta_list",
    "output_true",
    "output_null",
    "output_nowhere",
    "output_pattern",
    "task_support",
  ],
];

let gateway: Gateway;

beforeAll(async () => {
  const healthy = stdioFixture("featured");
  const mcpServers = { healthy, ...(await fourServers("spoilt")) };
  gateway = await startGateway({ names: "prefixed", mcpServers });
  await until("every server is listed", async () => {
    const names = await toolNames(await connectV1(gateway.url));
    return ["healthy__count", ...SERVERS.map((server) => `${server}__good`)].every((name) => names.includes(name));
  });
});

describe.each(Object.entries(CLIENTS))("%s before a server with spoilt definitions", (name, connect) => {
  it("lists the tools: all that have a name, and those of the other servers [one-bad-server]", async () => {
    const { tools } = await (await connect(gateway.url)).listTools();
    const names = tools.map((tool) => tool.name);
    expect(names).toContain("healthy__count");
    for (const server of SERVERS) {
      expect(names.filter((one) => one.startsWith(`${server}__`))).toEqual(USABLE.map((one) => `${server}__${one}`));
    }
  });

  it("lists prompts, resources and templates [one-bad-server]", async () => {
    const client = await connect(gateway.url);
    const { prompts } = await client.listPrompts();
    expect(prompts.filter((one) => one.name.startsWith("modern_http__"))).toHaveLength(3);
    const { resources } = await client.listResources();
    expect(resources.map(({ uri, name: own }) => [uri, own])).toEqual([
      ["spoilt://good", "good"],
      ["spoilt://nameless", "spoilt://nameless"],
      ["spoilt://notes", "n"],
      ["spoilt://size", "n"],
    ]);
    const { resourceTemplates } = await client.listResourceTemplates();
    expect(resourceTemplates.map((one) => one.name)).toEqual(["good", "spoilt://n/{a}"]);
  });

  it.each(SERVERS)(
    "calls what gives a list, a value of either kind, and what it was not told of, of %s",
    async (server) => {
      const client = await connect(gateway.url);
      // The clients check outputs against the schemas that they were given.
      const { tools } = await client.listTools();
      const schema = tools.find((tool) => tool.name === `${server}__rows`)?.outputSchema;
      const isModern = name.endsWith("modern era");
      expect(schema).toMatchObject(isModern ? { type: "array" } : { type: "object", required: ["result"] });
      const call = async (tool: string) =>
        (await client.callTool({ name: `${server}__${tool}`, arguments: {} })) as Output;
      const rows = await call("rows");
      expect(rows.structuredContent).toEqual(isModern ? [1, 2, 3] : { result: [1, 2, 3] });
      if (!isModern) expect(rows.content).toEqual([{ type: "text", text: "[1,2,3]" }]);
      const either = await call("either");
      expect(either.structuredContent).toEqual(isModern ? { a: 1 } : { result: { a: 1 } });
      if (server.startsWith("legacy")) return;
      const list = ["a", { structuredContent: 1 }];
      expect((await call("untold")).structuredContent).toEqual(isModern ? list : { result: list });
    },
  );

  it("is told the experimental features of all servers, the first one's where two have the same [one-bad-server]", async () => {
    const client = await connect(gateway.url);
    expect(client.getServerCapabilities()?.experimental).toEqual({
      "first/feature": { v: 1 },
      "shared/feature": { of: "first" },
      "spoilt/flag": {},
    });
    const alone = await connect(`${gateway.url}/modern_http`);
    expect(alone.getServerCapabilities()?.experimental).toEqual({
      "spoilt/flag": {},
      "shared/feature": { of: "spoilt" },
    });
  });
});

interface Output {
  readonly structuredContent?: unknown;
  readonly content?: unknown;
}

it("what was mended or left out is said by status, doctor and the log", async () => {
  const { out } = await toolway(gateway, "status");
  expect(out).toContain('modern_http: Tool "no_input": "inputSchema" is mended');
  expect(out).toContain('2 of the tools of server "modern_http" left out');
  expect(out).toContain('3 of the resources of server "modern_http" left out');
  expect(gateway.log()).toContain("is mended: it was no schema of an object");
  const found = await runCli("doctor", gateway.configPath, "--server", "modern_stdio");
  expect(found.code).toBe(0);
  expect(found.out).toContain('Tool "no_input": "inputSchema" is mended');
});
