import { describe, expect, it } from "vitest";
import { exposedName, ownToolName } from "../contracts/names.js";
import type { Listed, ListKind } from "../contracts/upstream.js";
import { Fault } from "../protocol/errors.js";
import type { JsonObject } from "../protocol/jsonrpc.js";
import { renderReply } from "../protocol/reply.js";
import { Catalog, type CatalogOptions, type CatalogServer } from "./catalog.js";
import type { View } from "./view.js";

const listed = (...texts: string[]): Listed[] => texts.map((json) => ({ json, value: JSON.parse(json) as JsonObject }));
const tools = (...names: string[]): Listed[] =>
  listed(
    ...names.map((name) => JSON.stringify({ name, description: `does ${name}`, inputSchema: { type: "object" } })),
  );
const uris = (...all: string[]): Listed[] => listed(...all.map((uri) => JSON.stringify({ uri, name: uri })));
const templates = (...all: string[]): Listed[] =>
  listed(...all.map((uriTemplate) => JSON.stringify({ uriTemplate, name: uriTemplate })));

function catalogOf(options: Partial<CatalogOptions> = {}, ...servers: Parameters<Catalog["setServers"]>[0]): Catalog {
  const catalog = new Catalog({
    names: "prefixed",
    menu: "full",
    seal: (text) => Buffer.from(text).toString("base64url"),
    unseal: (token) => Buffer.from(token, "base64url").toString(),
    ...options,
  });
  catalog.setServers(servers);
  return catalog;
}

const everything: View = { scope: undefined, era: "legacy", common: true, key: "all", allows: () => true };
const intro = (capabilities: JsonObject, instructions?: string) => ({
  version: "2025-11-25",
  capabilities,
  serverInfo: { name: "x", version: "1" },
  instructions,
});

function textOf(catalog: Catalog, kind: ListKind, view: View = everything, cursor?: string): string {
  return renderReply(catalog.page(kind, view, cursor), "1").toString();
}

function pageOf(catalog: Catalog, kind: ListKind, view: View = everything, cursor?: string) {
  const { result } = JSON.parse(textOf(catalog, kind, view, cursor)) as { result: JsonObject };
  return { items: result[kind] as JsonObject[], next: result["nextCursor"] as string | undefined };
}

const namesOf = (catalog: Catalog, kind: ListKind = "tools", view: View = everything) =>
  pageOf(catalog, kind, view).items.map((item) => item["name"]);

describe("lists", () => {
  it("are merged in the order of the config, then the server's, whatever came first", () => {
    const catalog = catalogOf({}, { name: "b" }, { name: "a" });
    catalog.setList("a", "tools", tools("z", "y"));
    catalog.setList("b", "tools", tools("2", "1"));
    expect(namesOf(catalog)).toEqual(["b__2", "b__1", "a__z", "a__y"]);
    expect(namesOf(catalog, "tools", { ...everything, scope: "a" })).toEqual(["z", "y"]);
    expect(namesOf(catalog, "tools", { ...everything, scope: "nobody" })).toEqual([]);
    expect(namesOf(catalog, "prompts")).toEqual([]);
  });

  it("keep the server's bytes: odd orders, unknown fields, numbers that JSON.parse would change", () => {
    const catalog = catalogOf({}, { name: "s" });
    const odd =
      '{ "x-new" : [1.0, 1e400, 12345678901234567890], "na\\u006de":"t", "inputSchema":{"name":"inner","type":"object"},"__proto__":{"a":1}}';
    catalog.setList("s", "tools", listed(odd));
    expect(textOf(catalog, "tools")).toBe(
      '{"jsonrpc":"2.0","id":1,"result":{"tools":[{ "x-new" : [1.0, 1e400, 12345678901234567890], "na\\u006de":"s__t", ' +
        '"inputSchema":{"name":"inner","type":"object"},"__proto__":{"a":1}}]}}',
    );
    expect(textOf(catalog, "tools", { ...everything, scope: "s" })).toContain(odd);
  });

  it("name the server that an entry is of, whatever it claims itself", () => {
    const catalog = catalogOf({ names: "plain" }, { name: "liar" });
    const claim =
      '"_mcp_s\\u0065rver":"bank","_meta":{"_mcp_server" : {"a":1},"b":1.0},"inputSchema":{"type":"object"}';
    catalog.setList("liar", "tools", listed(`{"name":"t",${claim}}`));
    catalog.setList("liar", "resources", listed('{"uri":"a:b","name":"r","_mcp_server":"bank"}'));
    expect(textOf(catalog, "tools")).toContain(
      '{"name":"t","_mcp_s\\u0065rver":"liar","_meta":{"_mcp_server" : "liar","b":1.0},"inputSchema":{"type":"object"}}',
    );
    expect(pageOf(catalog, "resources").items).toMatchObject([{ _mcp_server: "liar" }]);
    expect(textOf(catalog, "tools", { ...everything, scope: "liar" })).not.toContain("bank");
  });

  it("have no line breaks, which would end a message on stdio", () => {
    const catalog = catalogOf({}, { name: "s" });
    catalog.setList(
      "s",
      "tools",
      listed('{\r\n  "name": "t",\n  "description": "a\\nb",\n"inputSchema": {"type":\n"object"}}'),
    );
    expect(textOf(catalog, "tools")).not.toMatch(/[\r\n]/);
    expect(pageOf(catalog, "tools").items).toEqual([
      { name: "s__t", description: "a\nb", inputSchema: { type: "object" } },
    ]);
  });

  it("replace a name that stands twice in both places", () => {
    const catalog = catalogOf({}, { name: "s" });
    catalog.setList("s", "tools", listed('{"name":"evil","name":"t","inputSchema":{"type":"object"}}'));
    expect(textOf(catalog, "tools")).toContain('[{"name":"s__t","name":"s__t",');
  });

  it("leave out what has no name, take the first of two, and say so", () => {
    const catalog = catalogOf({}, { name: "s" });
    catalog.setList("s", "tools", [
      ...tools("a", "b"),
      ...listed('{"name":7}', "{}", '{"name":""}', '{"name":"a","x":2}'),
    ]);
    expect(namesOf(catalog)).toEqual(["s__a", "s__b"]);
    expect(catalog.notes().join("\n")).toMatch(/3 of the tools of server "s" left out.*\n.*"a" stands twice/);
  });

  it("follow the overrides of the config, in scopes too", () => {
    const overrides = {
      a: { name: "alpha" },
      b: { description: 'say "hi"' },
      c: { hide: true },
      d: { description: "new" },
    };
    const catalog = catalogOf({}, { name: "s", tools: overrides, prompts: { p: { hide: true } } });
    catalog.setList("s", "tools", [...tools("a", "b", "c"), ...listed('{"inputSchema":{},"name":"d"}')]);
    catalog.setList("s", "prompts", tools("p", "c"));
    for (const scope of [undefined, "s"]) {
      const items = pageOf(catalog, "tools", { ...everything, scope }).items;
      const own = (name: string) => (scope === undefined ? `s__${name}` : name);
      expect(items.map((item) => [item["name"], item["description"]])).toEqual([
        ["alpha", "does a"],
        [own("b"), 'say "hi"'],
        [own("d"), "new"],
      ]);
      expect(catalog.resolveTool(exposedName("alpha"), scope)).toEqual({ kind: "found", server: "s", own: "a" });
      expect(catalog.resolveTool(exposedName(own("a")), scope)).toEqual({ kind: "unknown", server: undefined });
      expect(catalog.resolveTool(exposedName(own("c")), scope)).toEqual({ kind: "unknown", server: undefined });
      expect(catalog.resolvePrompt(exposedName(own("c")), scope)).toEqual({ kind: "found", server: "s", own: "c" });
    }
    expect(catalog.counts("s")).toEqual({ tools: 3, prompts: 1, resources: 0, resourceTemplates: 0 });
  });

  it("are built once for each view and list", () => {
    const catalog = catalogOf({}, { name: "s" });
    catalog.setList("s", "tools", tools("a", "b"));
    const first = catalog.page("tools", everything);
    expect(catalog.page("tools", { ...everything })).toBe(first);
    catalog.setList("s", "prompts", tools("p"));
    catalog.setList("s", "tools", tools("a", "b"));
    expect(catalog.page("tools", everything)).toBe(first);
    const some: View = {
      scope: undefined,
      era: "legacy",
      common: true,
      key: "some",
      allows: (_, tool) => tool !== ownToolName("a"),
    };
    expect(namesOf(catalog, "tools", some)).toEqual(["s__b"]);
    catalog.clearPages();
    expect(catalog.page("tools", everything)).not.toBe(first);
  });

  it("are of the view, of the era and of the moment, whoever asked before [menu-current]", () => {
    const catalog = catalogOf({}, { name: "s" });
    catalog.setList("s", "tools", tools("a"));
    const modern: View = { ...everything, era: "modern" };
    const nothing: View = { ...everything, key: "none", allows: () => false };
    const views = [everything, everything, modern, { ...everything, scope: "s" }, nothing, everything];
    const seen = () => views.map((view) => namesOf(catalog, "tools", view));
    expect(seen()).toEqual([["s__a"], ["s__a"], ["s__a"], ["a"], [], ["s__a"]]);
    expect(textOf(catalog, "tools", modern)).toContain('"resultType":"complete"');
    expect(textOf(catalog, "tools")).not.toContain("resultType");
    catalog.setList("s", "tools", tools("b"));
    expect(seen()).toEqual([["s__b"], ["s__b"], ["s__b"], ["b"], [], ["s__b"]]);
    catalog.clearPages();
    expect(namesOf(catalog, "tools", { ...everything, allows: () => false })).toEqual([]);
    expect(namesOf(catalog, "tools", { ...everything, changing: true })).toEqual(["s__b"]);
  });

  it("keep pages for a bounded number of views [bounded]", () => {
    const catalog = catalogOf({}, { name: "s" });
    catalog.setList("s", "tools", tools("a"));
    const first = catalog.page("tools", everything);
    for (let i = 0; i < 200; i++) catalog.page("tools", { ...everything, key: `role ${i}` });
    expect(catalog.page("tools", everything)).not.toBe(first);
  });
});

describe("pages", () => {
  const catalog = catalogOf({ pageSize: 4 }, { name: "s" });
  catalog.setList("s", "tools", tools(..."abcdefghij"));

  it("follow one another without a gap", () => {
    const names: unknown[] = [];
    let cursor: string | undefined;
    do {
      const page = pageOf(catalog, "tools", everything, cursor);
      names.push(...page.items.map((item) => item["name"]));
      cursor = page.next;
    } while (cursor !== undefined);
    expect(names).toEqual([..."abcdefghij"].map((name) => `s__${name}`));
  });

  it("refuse cursors of other lists and views, and made up ones", () => {
    const { next } = pageOf(catalog, "tools");
    const refused: [ListKind, View, string][] = [
      ["prompts", everything, next ?? ""],
      ["tools", { ...everything, scope: "s" }, next ?? ""],
      ["tools", { ...everything, key: "other" }, next ?? ""],
      ["tools", everything, "nonsense"],
      ["tools", everything, ""],
    ];
    for (const [kind, view, cursor] of refused) {
      expect(() => catalog.page(kind, view, cursor)).toThrow(
        new Fault("invalid", "Unknown cursor; list again from the start."),
      );
    }
  });

  it("end where the list has become shorter", () => {
    const shrinking = catalogOf({ pageSize: 2 }, { name: "s" });
    shrinking.setList("s", "tools", tools("a", "b", "c"));
    const { next } = pageOf(shrinking, "tools");
    shrinking.setList("s", "tools", tools("a"));
    expect(pageOf(shrinking, "tools", everything, next)).toEqual({ items: [], next: undefined });
  });
});

describe("changes", () => {
  it("are those that agents see", () => {
    const catalog = catalogOf({}, { name: "s", tools: { hidden: { hide: true }, told: { description: "mine" } } });
    const set = (...texts: string[]) => catalog.setList("s", "tools", listed(...texts));
    expect(catalog.setList("s", "tools", [])).toBe(false);
    expect(set('{"name":"a","x":{"p":1,"q":[1,2]}}')).toBe(true);
    expect(set('{"name":"a","x":{"p":1,"q":[1,2]}}')).toBe(false);
    expect(set('{ "x":{"q":[1,2],"p":1},"name":"a"}')).toBe(false);
    expect(set('{"name":"a","x":{"p":1,"q":[2,1]}}')).toBe(true);
    expect(set('{"name":"a","x":{"p":1,"q":[2,1]}}', '{"name":"hidden"}')).toBe(false);
    expect(set('{"name":"a","x":{"p":1,"q":[2,1]}}', '{"name":"told","description":"1"}')).toBe(true);
    expect(set('{"name":"a","x":{"p":1,"q":[2,1]}}', '{"name":"told","description":"2"}')).toBe(false);
    // Another order is none, and is what the next list has.
    expect(set('{"name":"told","description":"2"}', '{"name":"a","x":{"p":1,"q":[2,1]}}')).toBe(false);
    expect(namesOf(catalog)).toEqual(["s__told", "s__a"]);
    expect(set('{"name":"told"}', '{"name":"b"}')).toBe(true);
    expect(set('{"name":"told"}')).toBe(true);
    expect(catalog.setList("stranger", "tools", tools("a"))).toBe(false);
  });

  it("of the config tell the lists that differ", () => {
    const catalog = catalogOf({}, { name: "a" }, { name: "b" });
    catalog.setList("a", "tools", tools("x"));
    catalog.setList("b", "tools", tools("y"));
    catalog.setList("b", "resources", uris("u:1"));
    expect(catalog.setServers([{ name: "a" }, { name: "b" }])).toEqual([]);
    expect(catalog.setServers([{ name: "b" }, { name: "a" }])).toEqual(["tools"]);
    expect(catalog.setServers([{ name: "b" }, { name: "a", tools: { x: { description: "d" } } }])).toEqual(["tools"]);
    expect(catalog.setModes("plain", "full")).toEqual(["tools"]);
    expect(catalog.setModes("plain", "full")).toEqual([]);
    expect(catalog.setServers([{ name: "a" }])).toEqual(["tools", "resources"]);
    expect(catalog.remove("a")).toEqual(["tools"]);
    expect(catalog.remove("b")).toEqual([]);
  });

  it("do not rename what stays", () => {
    const catalog = catalogOf({}, { name: "my_server" });
    catalog.setList("my_server", "tools", tools("a-b"));
    expect(namesOf(catalog)).toEqual(["my_server__a_b"]);
    catalog.setServers([{ name: "my-server" }, { name: "my_server" }]);
    catalog.setList("my-server", "tools", tools("a_b"));
    catalog.setList("my_server", "tools", tools("a_b", "a-b"));
    expect(catalog.resolveTool(exposedName("my_server__a_b"), undefined)).toEqual({
      kind: "found",
      server: "my_server",
      own: "a-b",
    });
  });
});

describe("only [only-is-all]", () => {
  const catalogOnly = (only: readonly string[], more: Partial<Parameters<typeof catalogOf>[0]> = {}) => {
    const catalog = catalogOf(more, {
      name: "s",
      only,
      tools: { write_b: { name: "safe" }, read_b: { name: "good" } },
    });
    catalog.setList("s", "tools", tools("read_a", "read_b", "write_a", "write_b"));
    return catalog;
  };
  const shownBy = (catalog: Catalog) => catalog.tools().map(({ item }) => item.own);

  it("is all that is listed, found and counted, in every mode and at /mcp/<server>", () => {
    for (const names of ["prefixed", "plain"] as const) {
      const catalog = catalogOnly(["read_*"], { names });
      expect(shownBy(catalog)).toEqual(["read_a", "read_b"]);
      expect(catalog.counts("s").tools).toBe(2);
      const prefix = names === "plain" ? "" : "s__";
      expect(catalog.resolveTool(exposedName(`${prefix}read_a`), undefined).kind).toBe("found");
      for (const [name, scope] of [
        [`${prefix}write_a`, undefined],
        ["safe", undefined],
        ["write_a", "s"],
        ["safe", "s"],
      ] as const) {
        expect(catalog.resolveTool(exposedName(name), scope).kind, name).toBe("unknown");
      }
      expect(catalog.resolveTool(exposedName("good"), "s").kind).toBe("found");
    }
  });

  it("decides of one tool as it does of the list", () => {
    const catalog = catalogOnly(["read_*"]);
    expect(catalog.shownTools("s")).toEqual(["read_a", "read_b"]);
    for (const [name, isShown] of Object.entries({ read_a: true, read_b: true, write_a: false, read_z: false })) {
      expect(catalog.showsTool("s", ownToolName(name)), name).toBe(isShown);
    }
    expect(catalog.showsTool("nobody", ownToolName("read_a"))).toBe(false);
    catalog.setList("s", "tools", tools("read_z"));
    expect([ownToolName("read_a"), ownToolName("read_z")].map((name) => catalog.showsTool("s", name))).toEqual([
      false,
      true,
    ]);
  });

  it("that is empty shows nothing; a tool that comes later is hidden, unless it fits", () => {
    expect(shownBy(catalogOnly([]))).toEqual([]);
    const catalog = catalogOnly(["read_a"]);
    catalog.setList("s", "tools", tools("read_a", "delete_all"));
    expect(shownBy(catalog)).toEqual(["read_a"]);
  });

  it("changes what agents see when it changes", () => {
    const catalog = catalogOnly(["read_a"]);
    expect(catalog.setServers([{ name: "s", only: ["read_*", "raed_*"] }])).toEqual(["tools"]);
    expect(shownBy(catalog)).toEqual(["read_a", "read_b"]);
  });

  it("says nothing of prompts", () => {
    const catalog = catalogOf({}, { name: "s", only: [] });
    catalog.setList("s", "prompts", listed('{"name":"p"}'));
    expect(catalog.counts("s").prompts).toBe(1);
  });
});

describe("names lead back", () => {
  it("to the server that will have them, while its list is not known", () => {
    const catalog = catalogOf({}, { name: "git" }, { name: "git_hub", tools: { x: { name: "ex" } } }, { name: "c" });
    catalog.setList("c", "tools", tools("a"));
    const guess = (name: string, scope?: string) => catalog.resolveTool(exposedName(name), scope);
    expect(guess("git__a")).toEqual({ kind: "unknown", server: "git" });
    expect(guess("git_hub__a")).toEqual({ kind: "unknown", server: "git_hub" });
    expect(guess("ex")).toEqual({ kind: "unknown", server: "git_hub" });
    expect(guess("c__b")).toEqual({ kind: "unknown", server: undefined });
    expect(guess("git_x__a")).toEqual({ kind: "unknown", server: undefined });
    expect(guess("anything", "git")).toEqual({ kind: "unknown", server: "git" });
    expect(guess("constructor")).toEqual({ kind: "unknown", server: undefined });
    expect(guess("a", "c")).toEqual({ kind: "found", server: "c", own: "a" });
    catalog.setModes("plain", "full");
    expect(guess("a")).toEqual({ kind: "found", server: "c", own: "a" });
    expect(guess("b")).toEqual({ kind: "unknown", server: undefined });
    expect(catalogOf({ names: "plain" }, { name: "s" }).resolveTool(exposedName("x"), undefined)).toEqual({
      kind: "unknown",
      server: "s",
    });
  });

  it("from URIs: listed, then by template, then to the only one", () => {
    const catalog = catalogOf({}, { name: "a" }, { name: "b" }, { name: "c" });
    catalog.setList("a", "resourceTemplates", templates("f:///{+path}"));
    catalog.setList("b", "resources", uris("f:///one", "g:1"));
    catalog.setList("c", "resources", uris("g:1"));
    expect(catalog.resolveResource("f:///one", undefined)).toBe("b");
    expect(catalog.resolveResource("f:///two", undefined)).toBe("a");
    expect(catalog.resolveResource("g:1", undefined)).toBe("b");
    expect(catalog.resolveResource("g:1", "c")).toBe("c");
    expect(catalog.resolveResource("h:1", undefined)).toBeUndefined();
    catalog.setIntro("c", intro({ resources: {} }));
    expect(catalog.resolveResource("h:1", undefined)).toBe("c");
    catalog.setIntro("b", intro({ resources: {} }));
    expect(catalog.resolveResource("h:1", undefined)).toBeUndefined();
    expect(catalog.resolveTemplate("f:///{+path}", undefined)).toBe("a");
    expect(catalog.resolveTemplate("f:///one", undefined)).toBe("b");
    expect(pageOf(catalog, "resources").items.map((item) => item["uri"])).toEqual(["f:///one", "g:1"]);
    expect(catalog.conflicts()).toEqual([
      'Resource "g:1" is claimed by servers "b" and "c": it goes to the first in the config, "b".',
    ]);
  });
});

describe("introductions", () => {
  it("have no feature that is no object, for which clients refuse the whole handshake [one-bad-server]", () => {
    const catalog = catalogOf({}, { name: "a" });
    catalog.setIntro(
      "a",
      intro({ logging: true, experimental: { x: 1, flag: true, list: [], none: null, z: { v: 1 } } }),
    );
    expect(catalog.capabilities("a")).toEqual({ experimental: { flag: {}, z: { v: 1 } } });
    catalog.setIntro("a", intro({ experimental: { x: 1 }, extensions: "e", tasks: [] }));
    expect(catalog.capabilities("a")).toEqual({});
  });

  it("are the union, with list_changed always", () => {
    const catalog = catalogOf({}, { name: "a" }, { name: "b" });
    const all = { listChanged: true };
    expect(catalog.capabilities(undefined)).toEqual({
      tools: all,
      prompts: all,
      resources: { ...all, subscribe: true },
      logging: {},
      completions: {},
    });
    catalog.setIntro("a", intro({ tools: {}, experimental: { x: { v: 1 } }, future: {} }));
    catalog.setIntro(
      "b",
      intro({ resources: { subscribe: false }, experimental: { x: { v: 2 }, y: {} }, extensions: { e: {} } }),
    );
    expect(catalog.capabilities(undefined)).toEqual({
      tools: all,
      resources: all,
      experimental: { x: { v: 1 }, y: {} },
      extensions: { e: {} },
    });
    expect(catalog.capabilities("a")).toEqual({ tools: all, experimental: { x: { v: 1 } }, future: {} });
    expect(catalog.capabilities(undefined, (server) => server !== "b")).not.toHaveProperty("resources");
  });

  it("have each server's instructions under its name, bounded [bounded]", () => {
    const catalog = catalogOf({}, ...Array.from({ length: 30 }, (_, i) => ({ name: `s${i}` })));
    expect(catalog.instructions(undefined)).toBeUndefined();
    catalog.setIntro("s0", intro({}, "  Be quick.\n"));
    catalog.setIntro("s1", intro({}, "Be kind."));
    expect(catalog.instructions(undefined)).toBe("## s0\n\nBe quick.\n\n## s1\n\nBe kind.");
    expect(catalog.instructions("s0")).toBe("Be quick.");
    expect(catalog.instructions(undefined, (server) => server !== "s0")).toBe("## s1\n\nBe kind.");
    for (let i = 2; i < 30; i++) catalog.setIntro(`s${i}`, intro({}, "🛠".repeat(50_000)));
    const text = catalog.instructions(undefined) ?? "";
    expect(text.length).toBeLessThanOrEqual(16_000);
    expect(Buffer.from(text).toString()).toBe(text);
  });
});

describe("snapshots", () => {
  const servers = [{ name: "a" }, { name: "a_" }];

  it("bring lists, names and introductions back [menu-survives]", () => {
    const before = catalogOf({}, ...servers);
    before.setIntro("a_", intro({ tools: {} }, "Hello."));
    // The second server was faster: it has the names that the first would have taken.
    before.setList("a_", "tools", tools("x-y", "z"));
    before.setList("a_", "resources", uris("u:1"));
    const menu = namesOf(before);
    before.setList("a", "tools", tools("x"));
    const saved = JSON.parse(JSON.stringify(before.snapshot("a_"))) as unknown;

    const after = catalogOf({}, { name: "a__" }, ...servers);
    expect(after.snapshot("a")).toBeUndefined();
    expect(after.restore("a_", saved)).toBe(true);
    expect(namesOf(after)).toEqual(menu);
    expect(after.resolveResource("u:1", undefined)).toBe("a_");
    expect(after.instructions("a_")).toBe("Hello.");
    expect(after.setList("a_", "tools", tools("x-y", "z"))).toBe(false);
    expect(after.restore("stranger", saved)).toBe(false);
  });

  it("do not replace what the server itself has said", () => {
    const catalog = catalogOf({}, ...servers);
    catalog.setList("a", "tools", tools("old"));
    const saved = catalog.snapshot("a");
    catalog.setList("a", "tools", tools("new"));
    catalog.restore("a", saved);
    expect(namesOf(catalog)).toEqual(["a__new"]);
  });

  it("are ignored where they make no sense", () => {
    const lists = { tools: ["{", 7, "[]", '{"name":"ok"}'], prompts: "x", resources: null, more: [] };
    const names = { tools: [["ok", "other__ok"], 7, [1, 2]], prompts: {} };
    for (const nonsense of [undefined, null, 7, "x", [], {}, { format: 99, lists }]) {
      expect(catalogOf({}, ...servers).restore("a", nonsense)).toBe(false);
    }
    const catalog = catalogOf({}, ...servers);
    catalog.restore("a", { format: 1, prefix: "no good", intro: { version: 1 }, lists, names });
    expect(namesOf(catalog)).toEqual(["a__ok"]);
  });
});

describe("the room for lists", () => {
  it("is taken by each list that is known, from disk too, and given back with it [bounded]", () => {
    const catalog = catalogOf({}, { name: "a" }, { name: "b" });
    const bytes = (...names: string[]) => tools(...names).reduce((sum, { json }) => sum + json.length, 0);
    catalog.setList("a", "tools", tools("x", "y"));
    expect(catalog.room.used).toBe(bytes("x", "y"));
    catalog.setList("a", "tools", tools("x"));
    catalog.setList("b", "tools", tools("x", "y", "z"));
    catalog.setList("stranger", "tools", tools("x"));
    expect(catalog.room.used).toBe(bytes("x") + bytes("x", "y", "z"));
    const saved = JSON.parse(JSON.stringify(catalog.snapshot("b"))) as unknown;
    catalog.remove("b");
    expect(catalog.room.used).toBe(bytes("x"));
    catalog.restore("b", saved);
    catalog.restore("b", saved);
    expect(catalog.room.used).toBe(bytes("x") + bytes("x", "y", "z"));
    catalog.setServers([{ name: "b" }]);
    expect(catalog.room.used).toBe(bytes("x", "y", "z"));
  });
});

describe("tools whose calls may be kept", () => {
  const kept = (key?: { in: "argument"; path: string[] }) => new Map([[ownToolName("create"), { key }]]);
  const outputSchema = { type: "object", properties: { n: { type: "number" } }, additionalProperties: false };
  const create = (more: JsonObject = {}): Listed[] =>
    listed(JSON.stringify({ name: "create", inputSchema: { type: "object" }, ...more }));

  it("are listed with an output schema that admits a receipt, and the others as they were", () => {
    const catalog = catalogOf({}, { name: "s", outbox: kept() }, { name: "t" });
    catalog.setList("s", "tools", [...create({ outputSchema }), ...tools("plain")]);
    catalog.setList("t", "tools", create({ outputSchema }));
    const [first, second, other, receipt] = pageOf(catalog, "tools").items;
    expect(first?.["outputSchema"]).toMatchObject({
      type: "object",
      anyOf: [outputSchema, { required: ["queued", "receipt", "state", "tool", "idempotencyKey", "note"] }],
    });
    expect(second).not.toHaveProperty("outputSchema");
    expect(other?.["outputSchema"]).toEqual(outputSchema);
    expect(receipt).toMatchObject({
      name: "toolway__receipt",
      annotations: { readOnlyHint: true, openWorldHint: false },
    });
    // What is compared and pinned is what the server said.
    expect(catalog.listedTools("s")?.[0]?.value["outputSchema"]).toEqual(outputSchema);
  });

  it("give a legacy agent a wrapped value or a receipt, where the own schema is of no object", () => {
    const catalog = catalogOf({}, { name: "s", outbox: kept() });
    catalog.setList("s", "tools", create({ outputSchema: { type: "array" } }));
    expect(pageOf(catalog, "tools").items[0]?.["outputSchema"]).toMatchObject({
      type: "object",
      anyOf: [{ properties: { result: { type: "array" } } }, { type: "object" }],
    });
    const modern = pageOf(catalog, "tools", { ...everything, era: "modern" }).items[0];
    expect(modern?.["outputSchema"]).toMatchObject({ anyOf: [{ type: "array" }, { type: "object" }] });
    expect(modern?.["outputSchema"]).not.toHaveProperty("type");
  });

  it("change the lists when the config names them, and take the name of our own tool", () => {
    const catalog = catalogOf({ names: "plain" }, { name: "s" });
    catalog.setList("s", "tools", [...create(), ...tools("toolway__receipt")]);
    expect(namesOf(catalog)).toEqual(["create", "toolway__receipt"]);
    expect(catalog.setServers([{ name: "s", outbox: kept() }])).toContain("tools");
    expect(namesOf(catalog)).toEqual(["create", "toolway__receipt"]);
    expect(catalog.conflicts().join()).toContain("the gateway uses that name itself");
    expect(namesOf(catalog, "tools", { ...everything, key: "less", allows: (_, tool) => tool !== "create" })).toEqual(
      [],
    );
    expect(catalog.capabilities(undefined)).toMatchObject({ resources: { subscribe: true } });
    expect(JSON.stringify(catalog.capabilities(undefined))).not.toContain("io.modelcontextprotocol/tasks");
    expect(JSON.stringify(catalog.capabilities(undefined, () => true, "modern"))).toContain(
      "io.modelcontextprotocol/tasks",
    );
  });

  it.each([
    [{ type: "object", properties: { a: {} }, additionalProperties: false }, "which its schema forbids"],
    [{ type: "object", properties: { request_id: { type: "integer" } } }, "which its schema wants to be no text"],
    [
      { type: "object", properties: { request_id: { type: ["string", "null"] } }, additionalProperties: false },
      undefined,
    ],
    [{ type: "object" }, undefined],
  ])("are told of where the key goes into an argument that %j does not take", (inputSchema, said) => {
    const catalog = catalogOf({}, { name: "s", outbox: kept({ in: "argument", path: ["request_id"] }) });
    catalog.setList("s", "tools", create({ inputSchema }));
    if (said === undefined) expect(catalog.notes()).toEqual([]);
    else expect(catalog.notes().join()).toContain(`in the argument "request_id", ${said}`);
  });

  it("are told of where the tool that is to confirm them is missing, or the server says that it does not only read", () => {
    const find = (isReadOnly: boolean) =>
      listed(`{"name":"find","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":${isReadOnly}}}`);
    const notesOf = (more: Partial<CatalogServer>, has: ReturnType<typeof listed>) => {
      const confirm = { key: undefined, confirm: { tool: ownToolName("find") } };
      const catalog = catalogOf({}, { name: "s", outbox: new Map([[ownToolName("create"), confirm]]), ...more });
      catalog.setList("s", "tools", [...create(), ...has]);
      return catalog.notes().join();
    };
    expect(notesOf({}, [])).toContain('by the tool "find", which the server does not have');
    // Who names it says that it reads: nobody is told of what is right.
    for (const has of [tools("find"), find(true)]) expect(notesOf({}, has)).toBe("");
    expect(notesOf({}, find(false))).toContain("of which the server says that it does not only read");
    expect(notesOf({ tools: { find: { readOnly: true } } }, find(false))).toBe("");
  });
});
