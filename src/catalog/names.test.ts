import { deepStrictEqual, strictEqual } from "node:assert";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { histories } from "../../test/faults/length.js";
import { CHARACTER } from "../../test/fixtures/characters.js";
import { exposedName, ownName } from "../contracts/names.js";
import type { Override } from "../contracts/settings.js";
import { type Assignment, assignNames, assignPrefixes, type NameSource } from "./names.js";
import { fold, MAX_NAME } from "./short-names.js";

/** Thousands of runs on a busy machine. */
const TIMEOUT = 60_000;

type Servers = Record<string, readonly string[]>;

function sourcesOf(servers: Servers, overrides: Record<string, Record<string, Override>> = {}): NameSource[] {
  return Object.entries(servers).map(([server, own]) => ({
    server,
    own: own.map(ownName),
    overrides: new Map(Object.entries(overrides[server] ?? {}).map(([tool, one]) => [ownName(tool), one])),
  }));
}

function prefixed(sources: readonly NameSource[], before?: Assignment & { prefixes: Map<string, string> }) {
  const prefixes = assignPrefixes(
    sources.map(({ server }) => server),
    before?.prefixes,
  );
  const assignment = assignNames(sources, { mode: "prefixed", noun: "tool", prefixes, previous: before?.kept });
  return Object.assign(assignment, { prefixes });
}

const hostile = fc.oneof(
  fc.string({ unit: CHARACTER, maxLength: 40 }),
  fc.string({ unit: "grapheme", maxLength: 320 }),
  fc.string({ unit: fc.constantFrom("a", "A", "b", "_", "-", "."), maxLength: 6 }),
  fc.string({ unit: fc.constantFrom("a", "b"), minLength: 30, maxLength: 300 }),
  fc.constantFrom(
    "",
    "__proto__",
    "constructor",
    "toString",
    "🛠️",
    "🛠",
    "a__b",
    "a",
    "_",
    "搜索",
    "\ud800",
    "find_tools",
  ),
);
const listOf = (maxLength: number) => fc.uniqueArray(hostile.map(ownName), { maxLength });
const serversOf = (maxServers: number, maxTools: number) =>
  fc
    .uniqueArray(fc.tuple(hostile, listOf(maxTools)), { maxLength: maxServers, selector: ([name]) => name })
    .map((pairs): NameSource[] => pairs.map(([server, own]) => ({ server, own, overrides: new Map() })));

/** What every client needs of a set of names. */
function expectUsable(names: readonly string[]): void {
  // node:assert, because so many expect()s would take most of the time.
  deepStrictEqual(
    names.filter((name) => !/^[A-Za-z0-9_]{1,48}$/.test(name)),
    [],
  );
  strictEqual(new Set(names.map(fold)).size, names.length);
  for (const client of ["", "mcp__toolway__", "x".repeat(15)]) {
    const ends = names.map((name) => [(client + name).slice(0, 30), (client + name).slice(-30)].join(" "));
    strictEqual(new Set(ends).size, names.length);
  }
}

describe("prefixed names", () => {
  it("are server__tool where that is possible", () => {
    const { exposed } = prefixed(sourcesOf({ github: ["create_issue", "list-repos"], "my files": ["read.file"] }));
    expect(exposed.get("github")?.get(ownName("create_issue"))).toBe("github__create_issue");
    expect(exposed.get("github")?.get(ownName("list-repos"))).toBe("github__list_repos");
    expect(exposed.get("my files")?.get(ownName("read.file"))).toBe("my_files__read_file");
  });

  it("are shortened with beginning, hash and end, always at the same place", () => {
    const long = "list_all_of_the_open_pull_requests_that_wait_for_a_review";
    const { exposed } = prefixed(sourcesOf({ github: [long, `${long}_2`], fs: [long] }));
    const names = [
      exposed.get("github")?.get(ownName(long)),
      exposed.get("github")?.get(ownName(`${long}_2`)),
      exposed.get("fs")?.get(ownName(long)),
    ];
    expect(names[0]).toMatch(/^github__list_all_of_the_open_p_[0-9a-z]{6}_r_a_review$/);
    for (const name of names) {
      expect(name).toHaveLength(MAX_NAME);
      expect(name?.slice(30, 38)).toMatch(/^_[0-9a-z]{6}_$/);
    }
  });

  it(
    "hold what every client needs, whatever servers call themselves and their tools",
    () => {
      fc.assert(
        fc.property(serversOf(6, 12), (sources) => {
          const { exposed, owners } = prefixed(sources);
          const names = sources.flatMap(({ server, own }) =>
            own.map((tool) => {
              const name = exposed.get(server)?.get(tool) ?? exposedName("");
              deepStrictEqual(owners.get(name), { server, own: tool });
              return name;
            }),
          );
          expectUsable(names);
        }),
        { numRuns: histories(1_000, 3_000) },
      );
    },
    TIMEOUT,
  );

  it(
    "stay while the tool stays, whatever else comes and goes",
    () => {
      fc.assert(
        fc.property(serversOf(4, 8), serversOf(4, 8), fc.infiniteStream(fc.boolean()), (first, second, coin) => {
          const before = prefixed(first);
          const keep = () => coin.next().value === true;
          const survivors = first.filter(keep).map((source) => ({ ...source, own: source.own.filter(keep).reverse() }));
          const fresh = second.filter(({ server }) => !survivors.some((source) => source.server === server));
          // New servers come first in the config, and new tools first in the lists: the worst place for old ones.
          const mixed = survivors.map((source) => {
            const more = (second[0]?.own ?? []).filter((tool) => !source.own.includes(tool));
            return { ...source, own: [...more, ...source.own] };
          });
          const after = prefixed([...fresh, ...mixed], before);
          for (const { server, own } of survivors) {
            for (const tool of own)
              strictEqual(after.exposed.get(server)?.get(tool), before.exposed.get(server)?.get(tool));
          }
          expectUsable([...after.owners.keys()]);
        }),
        { numRuns: histories(700, 2_000) },
      );
    },
    TIMEOUT,
  );

  it(
    "do not depend on the order of a server's list",
    () => {
      fc.assert(
        fc.property(listOf(15), (own) => {
          const forth = prefixed([{ server: "s", own, overrides: new Map() }]).exposed.get("s");
          const back = prefixed([{ server: "s", own: [...own].reverse(), overrides: new Map() }]).exposed.get("s");
          for (const tool of own) strictEqual(back?.get(tool), forth?.get(tool));
        }),
        { numRuns: histories(1000) },
      );
    },
    TIMEOUT,
  );

  it("give the plain name to the tool that is spelled so", () => {
    const { exposed } = prefixed(sourcesOf({ s: ["a-b", "a.b", "a_b"] }));
    expect(exposed.get("s")?.get(ownName("a_b"))).toBe("s__a_b");
    expect(exposed.get("s")?.get(ownName("a-b"))).toMatch(/^s__a_b_[0-9a-z]{6}$/);
  });

  it("tell servers apart whose names look the same", () => {
    const prefixes = assignPrefixes(["my-server", "my_server", "My Server", "🛠", "", "x".repeat(60)]);
    expect(prefixes.get("my-server")).toBe("my_server");
    expect(new Set([...prefixes.values()].map(fold)).size).toBe(6);
    for (const prefix of prefixes.values()) expect(prefix).toMatch(/^[A-Za-z0-9_]{1,20}$/);
    // The first has gone: the second keeps what it had.
    expect(assignPrefixes(["my_server"], prefixes).get("my_server")).toBe(prefixes.get("my_server"));
  });

  it("ignore names from before that are unusable", () => {
    const previous = new Map([
      [
        "s",
        new Map(
          Object.entries({ a: "other__a", b: "s__x y", c: "s__gone", d: "s__gone" }).map(([own, exposed]) => [
            ownName(own),
            exposedName(exposed),
          ]),
        ),
      ],
    ]);
    const prefixes = assignPrefixes(["s"]);
    const sources = sourcesOf({ s: ["a", "b", "c", "d"] });
    const { exposed } = assignNames(sources, { mode: "prefixed", noun: "tool", prefixes, previous });
    const names = ["a", "b", "c", "d"].map((tool) => exposed.get("s")?.get(ownName(tool)));
    expect(names).toEqual(["s__a", "s__b", "s__gone", "s__d"]);
  });

  it("rename as the config says, before all automatic names, also of servers that are not there yet", () => {
    const overrides = { b: { x: { name: "a__find" } }, c: { y: { name: "lookup" }, z: { hide: true } } };
    const early = prefixed(sourcesOf({ a: ["find"], b: [], c: ["y", "z"] }, overrides));
    expect(early.exposed.get("a")?.get(ownName("find"))).toMatch(/^a__find_[0-9a-z]{6}$/);
    expect(early.exposed.get("c")?.get(ownName("y"))).toBe("lookup");
    expect(early.exposed.get("c")?.has(ownName("z"))).toBe(false);
    const late = prefixed(sourcesOf({ a: ["find"], b: ["x"], c: ["y", "z"] }, overrides), early);
    expect(late.exposed.get("b")?.get(ownName("x"))).toBe("a__find");
    expect(late.exposed.get("a")?.get(ownName("find"))).toBe(early.exposed.get("a")?.get(ownName("find")));
    // The rename is taken out of the config: the automatic name is back.
    const without = prefixed(sourcesOf({ a: ["find"], b: ["x"], c: ["y"] }), late);
    expect(without.exposed.get("b")?.get(ownName("x"))).toBe("b__x");
  });

  it("say so where a rename cannot be done, and keep the tool", () => {
    const overrides = { a: { x: { name: "same" } }, b: { y: { name: "SAME_" }, z: { name: "with-dash" } } };
    const { exposed, conflicts } = prefixed(sourcesOf({ a: ["x"], b: ["y", "z"] }, overrides));
    expect(exposed.get("a")?.get(ownName("x"))).toBe("same");
    expect(exposed.get("b")?.get(ownName("y"))).toBe("b__y");
    expect(exposed.get("b")?.get(ownName("z"))).toBe("b__z");
    expect(conflicts).toHaveLength(2);
    expect(conflicts.join("\n")).toContain('renames tool "y" of server "b" to "SAME_"');
  });

  it("leave the gateway's own names alone", () => {
    const sources = sourcesOf({ find: ["tools"] });
    const prefixes = assignPrefixes(["find"]);
    const options = { mode: "prefixed", noun: "tool", prefixes, reserved: ["find_tools"] } as const;
    expect(assignNames(sources, options).exposed.get("find")?.get(ownName("tools"))).toMatch(
      /^find__tools_[0-9a-z]{6}$/,
    );
  });
});

describe("plain names", () => {
  const plain = (sources: NameSource[], reserved: string[] = []) =>
    assignNames(sources, { mode: "plain", noun: "tool", reserved });

  it(
    "are the servers' own, unchanged",
    () => {
      fc.assert(
        fc.property(listOf(20), (own) => {
          const { exposed } = plain([{ server: "s", own, overrides: new Map() }]);
          for (const tool of own) strictEqual(exposed.get("s")?.get(tool), tool.length === 0 ? undefined : tool);
        }),
        { numRuns: histories(1000) },
      );
    },
    TIMEOUT,
  );

  it("refuse what an earlier server has, naming both and the way out", () => {
    const { exposed, owners, conflicts } = plain(sourcesOf({ a: ["search"], b: ["search", "read"] }));
    expect(owners.get(exposedName("search"))).toEqual({ server: "a", own: "search" });
    expect(exposed.get("b")?.has(ownName("search"))).toBe(false);
    expect(exposed.get("b")?.get(ownName("read"))).toBe("read");
    expect(conflicts).toEqual([
      'The tool "search" of server "b" is left out: server "a", earlier in the config, has a tool of that name. ' +
        'Rename one of them under "tools" in the config, or use prefixed names.',
    ]);
  });

  it("are told once for each pair of servers that claim them, and not with each name [status-true]", () => {
    const many = ["a", "b", "c", "d", "e", "f", "g"];
    const { conflicts } = plain(sourcesOf({ one: many, two: many, three: ["a"] }));
    expect(conflicts).toEqual([
      '7 tools of server "two" are left out: server "one", earlier in the config, has tools of those names: ' +
        '"a", "b", "c", "d", "e" and 2 more. Rename them under "tools" in the config, or use prefixed names.',
      expect.stringMatching(/^The tool "a" of server "three" is left out: server "one", earlier/),
    ]);
  });

  it("rename, swap and hide", () => {
    const swapped = { a: { x: { name: "y" }, y: { name: "x" }, z: { hide: true } } };
    const { owners, conflicts } = plain(sourcesOf({ a: ["x", "y", "z"], b: ["z"] }, swapped));
    expect(owners.get(exposedName("y"))).toEqual({ server: "a", own: "x" });
    expect(owners.get(exposedName("x"))).toEqual({ server: "a", own: "y" });
    expect(owners.get(exposedName("z"))).toEqual({ server: "b", own: "z" });
    expect(conflicts).toEqual([]);
    const shadowed = plain(sourcesOf({ a: ["y", "x"] }, { a: { x: { name: "y" } } }));
    expect(shadowed.owners.get(exposedName("y"))).toEqual({ server: "a", own: "x" });
    expect(shadowed.conflicts).toHaveLength(1);
  });

  it("warn of names that some clients take for one, and refuse the gateway's own", () => {
    const { owners, conflicts } = plain(sourcesOf({ a: ["get_item"], b: ["getItem", "call_tool"] }), ["call_tool"]);
    expect([...owners.keys()]).toEqual(["get_item", "getItem"]);
    expect(conflicts).toHaveLength(2);
  });
});
