// Lists: merged, in a fixed order, paged, and list_changed exactly when a definition changed.

import { ToolListChangedNotificationSchema } from "@modelcontextprotocol/sdk/types.js";
import { describe, expect, it } from "vitest";
import { type ClientV1, callText, connectStdioV1, connectV1, connectV2, toolNames, waitForTools } from "./clients.js";
import { fixtureOver, sleep, startGateway, stdioFixture, until } from "./harness.js";

/** Long enough that a notification which must not come would have come. */
const QUIET_MS = 700;

function countChanges(client: ClientV1): { count: number } {
  const changes = { count: 0 };
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => {
    changes.count += 1;
  });
  return changes;
}

describe.concurrent.each(["stdio", "http"] as const)("list_changed of a server over %s", (kind) => {
  it("follows a real change, and only that [agent-10]", async () => {
    const entry = await fixtureOver(kind, "changing");
    // Of a server that is not trusted, a changed definition would be quarantined.
    const gateway = await startGateway({ mcpServers: { changing: { ...entry, trust: "always" } } });
    await waitForTools(await connectV1(gateway.url), "announce");
    // Sessions that begin when the list is there: of the start they have nothing to hear.
    const client = await connectV1(gateway.url);
    const other = await connectStdioV1(gateway);
    const [seen, seenByOther] = [countChanges(client), countChanges(other)];

    await callText(client, "announce");
    await sleep(QUIET_MS);
    expect([seen.count, seenByOther.count], "announced, nothing changed").toEqual([0, 0]);

    await callText(client, "set_tool", { name: "new_tool", description: "first" });
    await until("list_changed at both", () => seen.count >= 1 && seenByOther.count >= 1);
    expect(await toolNames(client)).toContain("new_tool");
    expect(await callText(other, "new_tool")).toBe("new_tool: first");

    const before = seen.count;
    await callText(client, "set_tool", { name: "new_tool", description: "second" });
    await until("list_changed for a description", () => seen.count > before);
    const { tools } = await client.listTools();
    expect(tools.find(({ name }) => name === "new_tool")?.description).toBe("second");

    await callText(client, "remove_tool", { name: "new_tool" });
    await until("it is gone", async () => !(await toolNames(client)).includes("new_tool"));
    await expect(client.callTool({ name: "new_tool", arguments: {} })).rejects.toMatchObject({ code: -32602 });
  });
});

it.concurrent("a server that comes up late announces itself to agents that are already there", async () => {
  const gateway = await startGateway({ mcpServers: { stateful: stdioFixture("stateful") } });
  const client = await connectV1(gateway.url);
  const seen = countChanges(client);
  await waitForTools(client, "count");
  const before = seen.count;
  await gateway.writeConfig({ mcpServers: { stateful: stdioFixture("stateful"), slow: stdioFixture("slow") } });
  await until("list_changed", () => seen.count > before);
  await waitForTools(client, "sleep");
});

describe.concurrent("pages", () => {
  it("of a server are read to the end, and handed out in pages of ours [agent-10]", async () => {
    const gateway = await startGateway({
      pageSize: 100,
      mcpServers: { paged: stdioFixture("paged"), stateful: stdioFixture("stateful") },
    });
    const client = await connectV1(gateway.url);
    const all = async () => {
      const names: string[] = [];
      const sizes: number[] = [];
      let cursor: string | undefined;
      do {
        const page = await client.listTools(cursor === undefined ? {} : { cursor });
        names.push(...page.tools.map(({ name }) => name));
        sizes.push(page.tools.length);
        cursor = page.nextCursor;
      } while (cursor !== undefined);
      return { names, sizes };
    };
    const { names, sizes } = await until("all 252 tools", async () => {
      const listed = await all();
      return listed.names.length === 252 ? listed : undefined;
    });
    expect(sizes).toEqual([100, 100, 52]);
    expect(new Set(names).size).toBe(252);
    // In the order of the config, and of the server.
    expect(names.slice(0, 250)).toEqual(Array.from({ length: 250 }, (_, n) => `tool_${String(n).padStart(3, "0")}`));
    expect((await all()).names).toEqual(names);
    expect(await callText(client, "tool_249")).toBe("tool_249");
  });

  it("of prompts, resources and templates are read to the end too", async () => {
    const gateway = await startGateway({ mcpServers: { paged: stdioFixture("paged") } });
    const client = await connectV2(gateway.url);
    await until("all prompts", async () => (await client.listPrompts()).prompts.length === 250);
    await until("all resources", async () => (await client.listResources()).resources.length === 250);
    await until("all templates", async () => {
      const { resourceTemplates } = await client.listResourceTemplates();
      return resourceTemplates.length === 250;
    });
    expect((await client.readResource({ uri: "paged://item/249" })).contents[0]).toMatchObject({
      uri: "paged://item/249",
    });
  });

  it("a cursor that is not ours is refused", async () => {
    const gateway = await startGateway({ mcpServers: { stateful: stdioFixture("stateful") } });
    const client = await connectV1(gateway.url);
    await waitForTools(client, "count");
    await expect(client.listTools({ cursor: "made-up" })).rejects.toMatchObject({ code: -32602 });
  });
});
