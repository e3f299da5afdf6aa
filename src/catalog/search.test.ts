import { describe, expect, it } from "vitest";
import { exposedName } from "../contracts/names.js";
import { Fault } from "../protocol/errors.js";
import type { JsonObject } from "../protocol/jsonrpc.js";
import { parseMessage, type RequestMessage } from "../protocol/message.js";
import { renderReply } from "../protocol/reply.js";
import { Catalog } from "./catalog.js";
import { findResult, parseFindArguments, unwrapCall } from "./search.js";
import type { View } from "./view.js";

const everything: View = { scope: undefined, era: "legacy", common: true, key: "all", allows: () => true };

function catalogOf(servers: Record<string, Record<string, string>>): Catalog {
  const catalog = new Catalog({ names: "prefixed", menu: "search", seal: (text) => text, unseal: (text) => text });
  catalog.setServers(Object.keys(servers).map((name) => ({ name })));
  for (const [server, tools] of Object.entries(servers)) {
    const items = Object.entries(tools).map(([name, description]) => {
      const value = { name, description, inputSchema: { type: "object", properties: { [`${name}Id`]: {} } } };
      return { json: JSON.stringify(value), value };
    });
    catalog.setList(server, "tools", items);
  }
  return catalog;
}

const catalog = catalogOf({
  github: {
    create_issue: "Opens a new issue in a repository.",
    merge_pull_request: "Merges a pull request into its base branch.",
    deleteRepository: "Deletes a repository for good.",
  },
  mail: { send: "Sends a message to one or more people.", search: "Looks for messages by words and dates." },
  weather: { forecast: "Tells the weather of the next days for a city." },
});
const names = async (query: string, view: View = everything, limit = 5) =>
  (await catalog.find(query, limit, view)).map(({ name }) => name);

describe("the search menu", () => {
  it("shows two tools in place of the list; a scope shows its own", () => {
    const listOf = (view: View) => {
      const { result } = JSON.parse(renderReply(catalog.page("tools", view), "1").toString()) as { result: JsonObject };
      return result["tools"] as JsonObject[];
    };
    expect(listOf(everything).map(({ name }) => name)).toEqual(["find_tools", "call_tool"]);
    expect(listOf(everything)[0]?.["description"]).toContain("github (3), mail (2), weather (1)");
    expect(listOf({ ...everything, scope: "mail" }).map(({ name }) => name)).toEqual(["send", "search"]);
    const noMail: View = { ...everything, key: "no mail", allows: (server) => server !== "mail" };
    expect(listOf(noMail)[0]?.["description"]).not.toContain("mail");
  });

  it("resolves its own two, and all others as ever", () => {
    expect(catalog.resolveTool(exposedName("find_tools"), undefined)).toEqual({ kind: "menu", tool: "find_tools" });
    expect(catalog.resolveTool(exposedName("call_tool"), undefined)).toEqual({ kind: "menu", tool: "call_tool" });
    expect(catalog.resolveTool(exposedName("call_tool"), "mail")).toEqual({ kind: "unknown", server: undefined });
    expect(catalog.resolveTool(exposedName("mail__send"), undefined)).toEqual({
      kind: "found",
      server: "mail",
      own: "send",
    });
  });

  it("finds by words of names, descriptions and parameters, with other endings and a typo", async () => {
    expect((await names("merge a pull request"))[0]).toBe("github__merge_pull_request");
    expect((await names("delete repository"))[0]).toBe("github__deleteRepository");
    expect((await names("sending messages"))[0]).toBe("mail__send");
    expect((await names("wheather"))[0]).toBe("weather__forecast");
    expect(await names("xylophone")).toEqual([]);
    expect(await names("a repository", everything, 1)).toHaveLength(1);
    expect((await names("message", everything, 1e9)).length).toBeLessThanOrEqual(20);
    const [found] = await catalog.find("forecast", 1, everything);
    expect(found).toEqual({
      name: "weather__forecast",
      description: "Tells the weather of the next days for a city.",
      inputSchema: { type: "object", properties: { forecastId: {} } },
    });
  });

  it("never finds what the view hides", async () => {
    const careful: View = { ...everything, key: "careful", allows: (_, own) => own !== "deleteRepository" };
    expect(await names("delete repository", careful)).not.toContain("github__deleteRepository");
    expect(await names("delete repository")).toContain("github__deleteRepository");
  });

  it("finds what has come since", async () => {
    const growing = catalogOf({ s: { first: "One." } });
    expect(await growing.find("second", 5, everything)).toEqual([]);
    const value = { name: "second", inputSchema: {} };
    growing.setList("s", "tools", [{ json: JSON.stringify(value), value }]);
    expect((await growing.find("second", 5, everything)).map(({ name }) => name)).toEqual(["s__second"]);
  });

  it("is indexed turn by turn, and each search has a turn of its own [bounded]", async () => {
    const turnsOf = async (act: () => Promise<unknown>) => {
      let turns = 0;
      let next = setImmediate(function tick() {
        turns++;
        next = setImmediate(tick);
      });
      await act();
      clearImmediate(next);
      return turns;
    };
    const tools = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, n) => [`tool_${n}`, "Does it."]));
    await names("what loads the index");
    const [few, many] = [catalogOf({ s: tools(5) }), catalogOf({ s: tools(500) })];
    expect(await turnsOf(() => few.find("tool", 5, everything))).toBeLessThan(10);
    expect(await turnsOf(() => many.find("tool", 5, everything))).toBeGreaterThanOrEqual(20);
    const at = Array.from({ length: 8 });
    expect(await turnsOf(() => Promise.all(at.map(() => few.find("tool", 5, everything))))).toBeGreaterThanOrEqual(7);
  });

  it("looks at so many words of a tool, and of a server, and at those of the others all the same [bounded] [one-bad-server]", async () => {
    const own = (n: number) => Array.from({ length: 140 }, (_, k) => `w${n * 140 + k}x`).join(" ");
    const crowded = catalogOf({
      wordy: {
        ...Object.fromEntries(Array.from({ length: 160 }, (_, n) => [`tool_${n}`, own(n)])),
        last: "Waters gardens.",
      },
      long: { tool: `${"So. ".repeat(400)} Plants trees.` },
      honest: { first: "Mows lawns." },
    });
    const found = async (query: string) => (await crowded.find(query, 5, everything)).map(({ name }) => name);
    expect(await found("w7x")).toEqual(["wordy__tool_0"]);
    expect(await found("gardens")).toEqual([]);
    expect(await found("last")).toEqual(["wordy__last"]);
    expect(await found("trees")).toEqual([]);
    expect(await found("lawns")).toEqual(["honest__first"]);
  });

  it("answers hostile queries soon", async () => {
    await names("warm up");
    for (const query of [
      "a".repeat(100_000),
      "a ".repeat(50_000),
      "*".repeat(1000),
      "\ud800",
      "__proto__ constructor",
    ]) {
      // The work, not the time: others may have the machine meanwhile.
      const before = process.cpuUsage();
      await names(query);
      const { user, system } = process.cpuUsage(before);
      expect((user + system) / 1000).toBeLessThan(200);
    }
  });

  it("tells an agent what it did wrong", () => {
    expect(parseFindArguments({ query: "x" })).toEqual({ query: "x", limit: 5 });
    for (const bad of [undefined, null, 7, [], {}, { query: 7 }, { query: " " }, { query: "x", limit: "y" }]) {
      expect(typeof parseFindArguments(bad)).toBe("string");
    }
    expect(findResult("no")).toMatchObject({ isError: true });
    expect(findResult([])).not.toHaveProperty("isError");
  });

  it("turns call_tool into the call that it stands for, its arguments untouched", () => {
    const call = (params: string): RequestMessage => {
      const message = parseMessage(`{"jsonrpc":"2.0","id":"x","method":"tools/call","params":${params}}`);
      if (message.kind !== "request") throw new Error("no request");
      return message;
    };
    const wrapped = call(
      '{"_meta":{"progressToken":1},"arguments":{"arguments":{"n":1.0,"b":"é"},"name":"mail__send"},"name":"call_tool"}',
    );
    expect(unwrapCall(wrapped).text).toBe(
      '{"jsonrpc":"2.0","id":"x","method":"tools/call","params":' +
        '{"_meta":{"progressToken":1},"arguments":{"n":1.0,"b":"é"},"name":"mail__send"}}',
    );
    expect(unwrapCall(call('{"name":"call_tool","arguments":{"name":"a"}}')).params).toEqual({
      name: "a",
      arguments: {},
    });
    // Its parts stand where they would be found if it were read once more, which it is not: it may be as long as a body.
    for (const one of [wrapped, call('{ "name" : "call_tool", "arguments" : { "name":"a" }, "_meta":{} }')]) {
      const unwrapped = unwrapCall(one);
      expect(unwrapped).toEqual(parseMessage(unwrapped.text));
    }
    for (const bad of [
      '{"name":"call_tool"}',
      '{"name":"call_tool","arguments":{"name":7}}',
      '{"name":"call_tool","arguments":{"name":"a","arguments":[]}}',
      '{"name":"call_tool","arguments":{"name":"a","name":"b"}}',
      '{"name":"call_tool","arguments":{"name":"call_tool","arguments":{}}}',
    ]) {
      expect(() => unwrapCall(call(bad))).toThrow(Fault);
    }
  });
});
