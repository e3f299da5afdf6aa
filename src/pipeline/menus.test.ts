// Menus that follow the context, through the whole pipeline: what is listed, what may be called, who is told.

import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { histories } from "../../test/faults/length.js";
import { Agent } from "../../test/fixtures/agent.js";
import { names, StandInServer, setUpPipeline, tools, twoServers } from "../../test/fixtures/pipeline.js";
import type { MenuRule } from "../contracts/settings.js";
import { compileMenus } from "../policy/menus.js";
import type { JsonObject } from "../protocol/jsonrpc.js";

const REVIEW: MenuRule[] = [{ when: { phase: "review" }, show: ["files/read", "mail"] }];
const TOOLS_CHANGED = "notifications/tools/list_changed";

describe("a change of context", () => {
  it("narrows the list and the calls of that principal, and says which rule does [menu-narrows]", async () => {
    const { pipeline, files } = twoServers();
    pipeline.setMenus(compileMenus(REVIEW));
    const [ada, bob] = [new Agent({ pipeline }, "ada"), new Agent({ pipeline }, "bob")];
    expect(await names(ada)).toHaveLength(4);
    pipeline.changeContext("ada", { phase: "review" });
    expect(await names(ada)).toEqual(["files__read", "mail__read", "mail__send"]);
    expect(await names(bob)).toHaveLength(4);
    const { error } = await ada.call("files__write").answer();
    expect(error).toMatchObject({
      code: -31007,
      message: expect.stringContaining('menus[0] (phase is "review") shows other tools only'),
    });
    expect(files.called).toEqual([]);
    expect(await bob.call("files__write").json()).toMatchObject({ name: "write" });
  });

  it("is told to that principal's sessions, once, and to nobody where nothing is another [menu-narrows]", async () => {
    const { pipeline } = twoServers({ reader: { allow: ["files/read", "mail"] } });
    pipeline.setMenus(compileMenus(REVIEW));
    const ada = new Agent({ pipeline }, "ada");
    const bob = new Agent({ pipeline }, "bob");
    // Its role leaves it no more than the menu does.
    const eve = new Agent({ pipeline }, "eve", "reader");
    for (const agent of [ada, bob, eve]) agent.heard.length = 0;
    pipeline.changeContext("ada", { phase: "review", client: "x" });
    pipeline.changeContext("eve", { phase: "review" });
    pipeline.changeContext("ada", { client: "y" });
    expect([ada, bob, eve].map((agent) => agent.heardMethods())).toEqual([[TOOLS_CHANGED], [], []]);
    pipeline.changeContext("ada", { phase: null });
    expect(ada.heardMethods()).toEqual([TOOLS_CHANGED, TOOLS_CHANGED]);
  });

  it("reaches everybody though one of them cannot be told", () => {
    const { pipeline } = twoServers();
    pipeline.setMenus(compileMenus(REVIEW));
    const dead = Object.assign(new Agent({ pipeline }, "ada-1"), { principal: { id: "ada", role: "default" } });
    const alive = Object.assign(new Agent({ pipeline }, "ada-2"), { principal: { id: "ada", role: "default" } });
    dead.notify = () => {
      throw new Error("its socket is gone");
    };
    pipeline.changeContext("ada", { phase: "review" });
    expect(alive.heardMethods()).toContain(TOOLS_CHANGED);
  });

  it("touches no call that is under way [under-way]", () => {
    const { pipeline } = twoServers();
    pipeline.setMenus(compileMenus(REVIEW));
    const ada = new Agent({ pipeline }, "ada");
    const call = ada.call("files__write");
    pipeline.changeContext("ada", { phase: "review" });
    expect(pipeline.refusal(call)).toBeUndefined();
  });

  it("takes a server's prompts and resources with its last tool, and gives them back with the next [menu-narrows]", async () => {
    const { pipeline, ada, listed } = withMore();
    const all = [["files__ask"], ["files:///notes"], ["files:///{path}"]];
    expect(await listed()).toEqual(all);
    pipeline.changeContext("ada", { phase: "review" });
    expect(await listed()).toEqual([[], [], []]);
    ada.heard.length = 0;
    pipeline.fromServers.onList("files", "tools", tools("write", "read"));
    expect(ada.heardMethods()).toContain("notifications/prompts/list_changed");
    expect(ada.heardMethods()).toContain("notifications/resources/list_changed");
    expect(await listed()).toEqual(all);
  });

  it.each([
    ["prompts/get", { name: "files__ask" }],
    ["resources/read", { uri: "files:///notes" }],
    ["resources/read", { uri: "files:///of/a/template" }],
    ["resources/subscribe", { uri: "files:///notes" }],
    ["completion/complete", { ref: { type: "ref/prompt", name: "files__ask" }, argument: { name: "a", value: "" } }],
    [
      "completion/complete",
      { ref: { type: "ref/resource", uri: "files:///{path}" }, argument: { name: "path", value: "" } },
    ],
  ])("refuses what a hidden server has, by the rule that hides it: %s %j [menu-narrows]", async (method, params) => {
    const { pipeline, ada, files } = withMore();
    expect((await ada.send(method, params).answer())["error"]).toBeUndefined();
    expect(files.received).toHaveLength(1);
    pipeline.changeContext("ada", { phase: "review" });
    expect((await ada.send(method, params).answer())["error"]).toMatchObject({
      code: -31007,
      message: 'You may not use server "files": menus[0] (phase is "review") hides "files/write".',
    });
    expect(files.received).toHaveLength(1);
  });
});

/** Two servers, one of them with one tool, which a review hides, and with prompts and resources beside it. */
function withMore() {
  const files = new StandInServer("files");
  files.intro = {
    ...files.intro,
    capabilities: { tools: {}, prompts: {}, resources: { subscribe: true }, completions: {} },
  };
  const mail = new StandInServer("mail");
  const { pipeline } = setUpPipeline([files, mail]);
  const item = (value: JsonObject) => [{ json: JSON.stringify(value), value }];
  for (const server of [files, mail]) pipeline.fromServers.onIntro(server.name, server.intro, server, undefined);
  pipeline.fromServers.onList("mail", "tools", tools("send"));
  pipeline.fromServers.onList("files", "tools", tools("write"));
  pipeline.fromServers.onList("files", "prompts", item({ name: "ask" }));
  pipeline.fromServers.onList("files", "resources", item({ uri: "files:///notes", name: "notes" }));
  pipeline.fromServers.onList("files", "resourceTemplates", item({ uriTemplate: "files:///{path}", name: "any" }));
  pipeline.setMenus(compileMenus([{ when: { phase: "review" }, hide: ["files/write"] }]));
  const ada = new Agent({ pipeline }, "ada");
  const list = async (method: string, of: string, by: string) => {
    const { result } = await ada.send(method).answer();
    return (result as Record<string, Record<string, unknown>[]>)[of]?.map((one) => one[by]);
  };
  const listed = () =>
    Promise.all([
      list("prompts/list", "prompts", "name"),
      list("resources/list", "resources", "uri"),
      list("resources/templates/list", "resourceTemplates", "uriTemplate"),
    ]);
  return { pipeline, files, ada, listed };
}

it("pages are kept by the set of rules that match, and not by principal [bounded]", async () => {
  const { pipeline, catalog } = twoServers({ reader: { allow: ["files/read", "mail"] } });
  pipeline.setMenus(compileMenus([...REVIEW, { when: { repo: "public/*" }, hide: ["mail"] }]));
  const page = vi.spyOn(catalog, "page");
  /** The reply that this agent's list is, which is built once or found. */
  const pageOf = async (id: string, role?: string) => {
    await names(new Agent({ pipeline }, id, role));
    return page.mock.results.at(-1)?.value as unknown;
  };
  const contexts: Record<string, Record<string, string>> = {
    ada: { phase: "review" },
    bob: { phase: "review", repo: "secret/site", client: "x" },
    cid: { phase: "review", repo: "public/one" },
    dan: { phase: "review", repo: "public/two" },
  };
  for (const [id, context] of Object.entries(contexts)) pipeline.changeContext(id, context);
  const [ada, bob, cid, dan] = [await pageOf("ada"), await pageOf("bob"), await pageOf("cid"), await pageOf("dan")];
  expect([bob === ada, dan === cid, cid === ada]).toEqual([true, true, false]);
  // Without a rule that matches it is the role's own page; another role's is another, by the same rules too.
  expect(await pageOf("eve")).toBe(await pageOf("fay"));
  pipeline.changeContext("gus", { phase: "review" });
  expect(await pageOf("gus", "reader")).not.toBe(ada);
  // More principals of one menu than pages are kept push nobody's out.
  for (let i = 0; i < 100; i++) {
    pipeline.changeContext(`run-${i}`, { phase: "review", cwd: `/work/${i}` });
    expect(await pageOf(`run-${i}`)).toBe(ada);
  }
});

describe("for whatever rules and contexts, a menu is a part of the role's list, and the list is what may be called", () => {
  const name = fc.constantFrom("read", "write", "send", "*", "r*");
  const pattern = fc
    .tuple(fc.constantFrom("files", "mail", "*"), fc.option(name))
    .map((parts) => (parts[1] === null ? parts[0] : `${parts[0]}/${parts[1]}`));
  const rule = fc.record({
    when: fc.dictionary(fc.constantFrom("phase", "repo"), fc.constantFrom("x", "*", null), { maxKeys: 2 }),
    show: fc.option(fc.array(pattern, { minLength: 1, maxLength: 3 }), { nil: undefined }),
    hide: fc.array(pattern, { maxLength: 2 }),
  });
  const facts = fc.dictionary(fc.constantFrom("phase", "repo"), fc.constantFrom("x", "y"));
  const role = fc.record({ deny: fc.array(pattern, { maxLength: 2 }) });

  /** All that find_tools gives: what it searches for is in the name of every tool. */
  async function found(agent: Agent): Promise<string[]> {
    const { result } = await agent.call("find_tools", { query: "files mail", limit: 20 }).answer();
    const text = (result as { content: { text: string }[] }).content[0]?.text ?? "";
    return text
      .split("\n")
      .flatMap((line) => (line.startsWith("{") ? (JSON.parse(line) as { name: string }).name : []));
  }

  const byName = (agent: Agent, tool: string) => agent.call(tool);

  it.each([
    ["full", names, [byName]],
    ["search", found, [byName, (agent: Agent, tool: string) => agent.call("call_tool", { name: tool })]],
  ] as const)("in the form %s [menu-narrows]", async (form, listOf, ways) => {
    await fc.assert(
      fc.asyncProperty(fc.array(rule, { maxLength: 3 }), facts, role, async (rules, context, reader) => {
        const { pipeline } = twoServers({ reader }, form);
        const agent = new Agent({ pipeline }, "ada", "reader");
        const whole = await listOf(agent);
        pipeline.setMenus(compileMenus(rules));
        pipeline.changeContext("ada", context);
        const menu = await listOf(agent);
        if (!menu.every((tool) => whole.includes(tool))) throw new Error("the menu has more than the role's list");
        for (const tool of ["files__read", "files__write", "mail__read", "mail__send"]) {
          for (const call of ways) {
            const { error } = await call(agent, tool).answer();
            if ((error === undefined) !== menu.includes(tool)) throw new Error(`${tool}: list and call do not agree`);
          }
        }
      }),
      { numRuns: histories(500) },
    );
  });
});
