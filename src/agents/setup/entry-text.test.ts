// Entries in clients' texts: put in, changed and taken out, with every other byte as it was.

import { parse } from "jsonc-parser";
import { describe, expect, it } from "vitest";
import { histories } from "../../../test/faults/length.js";
import { parseToml } from "../import/toml.js";
import { type ClientEntry, type ClientEntryPlace, textWithout } from "./entry-text.js";
import { jsonEntry } from "./json-entry.js";
import { tomlEntry } from "./toml-entry.js";

const json: ClientEntryPlace = { file: "c.json", group: "mcpServers", name: "toolway" };
const toml: ClientEntryPlace = { file: "c.toml", group: "mcp_servers", name: "toolway" };
const helper = { url: "http://127.0.0.1:7420/mcp", helper: "'/a b/node' token \"x\"" };
const program = { command: "/usr/bin/node", args: ["stdio", "--as", "setup-x"] };
const owned = ["url", "helper", "command", "args"];

/** The same numbers in every run. */
function numbers(seed: number): (below: number) => number {
  let state = seed * 2_654_435_761 + 1;
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((state / 2_147_483_648) * below);
  };
}

function randomJson(seed: number): string {
  const below = numbers(seed);
  const eol = below(3) === 0 ? "\r\n" : "\n";
  const comma = below(2) === 0 ? "," : "";
  const comment = () => (below(2) === 0 ? ` // a "comment", ${below(99)}` : "");
  const servers = Array.from(
    { length: below(3) },
    (_, at) => `    "s${at}": { "command": "x{", /* } */ "env": { "KEY": "sekret, ${below(99)}" } }`,
  );
  const group =
    servers.length > 0 || below(2) === 0
      ? [`  "mcpServers": {${comment()}`, servers.map((one) => one + comment()).join(`,${eol}`), `  }`].filter(Boolean)
      : undefined;
  // A comma behind a comment would be part of it.
  const tidy = group?.join(eol).replace(/(\/\/[^\r\n]*),(\r?\n)/g, ",$1$2");
  const others = [`  "theme": "dark"`, ...(tidy === undefined ? [] : [tidy]), `  "n": [1, 2,\t3]`];
  return `${below(4) === 0 ? "\uFEFF" : ""}{${comment()}${eol}${others.join(`,${eol}`)}${comma}${comment()}${eol}}${eol}`;
}

function randomToml(seed: number): string {
  const below = numbers(seed);
  const lines = ["# top", `model = "x" # ${below(99)}`];
  if (below(2) === 0) lines.push('text = """', "[mcp_servers.toolway]", 'url = "no"', '"""');
  if (below(2) === 0) lines.push("", "[mcp_servers.other]", `command = 'y'`, "args = [", '  "a", # ]', "]");
  if (below(2) === 0) lines.push("", "# of the profile", "[profiles.p]", "a.b = { c = 1 }");
  return `${lines.join(below(3) === 0 ? "\r\n" : "\n")}${below(4) === 0 ? "" : "\n"}`;
}

describe("an entry in JSON", () => {
  it("comes and goes, and all else stays byte for byte, for hundreds of texts [setup-keeps]", () => {
    for (let seed = 0; seed < histories(300); seed++) {
      const before = randomJson(seed);
      const hadGroup = before.includes("mcpServers");
      const first = jsonEntry.put(before, json, helper, owned);
      expect(jsonEntry.read(first, json), `${seed}`).toEqual(helper);
      expect(jsonEntry.put(first, json, helper, owned), `${seed}: twice is once`).toBe(first);
      const other = jsonEntry.put(first, json, program, owned);
      expect(jsonEntry.read(other, json), `${seed}`).toEqual(program);
      for (const comment of before.match(/\/\/[^\r\n]*|\/\*.*?\*\//g) ?? []) expect(other).toContain(comment);
      const after = jsonEntry.take(other, json);
      expect(jsonEntry.read(after, json)).toBeUndefined();
      // An object that was empty is laid out anew; all others are as they were.
      if (hadGroup && /"s0"/.test(before)) expect(after, `${seed}`).toBe(before);
      const rest = (text: string) => ({ ...parse(text.replace("\uFEFF", "")), mcpServers: undefined });
      expect(rest(after)).toEqual(rest(before));
    }
  });

  it("comes and goes beside numbers that are not written as they were read [setup-keeps]", () => {
    const before = '{ "a": 1e400, "b": -0, "c": 1.0, "d": 123456789012345678901234567890 }\n';
    const put = jsonEntry.put(before, json, helper, owned);
    expect(put).toContain(before.slice(0, before.indexOf(" }")));
    expect(textWithout(jsonEntry, put, json, before)).toBe(before);
  });

  it("keeps the keys and comments that somebody put into it [setup-keeps]", () => {
    const text = `{ "mcpServers": {\n  "toolway": {\n    "url": "old", // mine\n    "trust": true\n  }\n} }\n`;
    const after = jsonEntry.put(text, json, helper, owned);
    expect(after).toContain("// mine");
    expect(jsonEntry.read(after, json)).toEqual({ ...helper, trust: true });
  });

  it("makes a file where there is none, or an empty one", () => {
    for (const before of [undefined, "", " \n"]) {
      expect(JSON.parse(jsonEntry.put(before, json, helper, owned))).toEqual({ mcpServers: { toolway: helper } });
    }
  });

  it("is refused where the text is broken, with its place [setup-keeps]", () => {
    expect(() => jsonEntry.put('{\n  "a": 1\n  "b": 2\n}', json, helper, owned)).toThrow(
      /^c\.json:3:3: not valid JSON/,
    );
    expect(() => jsonEntry.put('{ "mcpServers": [] }', json, helper, owned)).toThrow(
      /c\.json:1:17: mcpServers: expected/,
    );
    expect(() => jsonEntry.read('{ "mcpServers": {}, "mcpServers": {} }', json)).toThrow(/already there/);
    expect(() => jsonEntry.read("[]", json)).toThrow(/expected an object/);
  });
});

describe("an entry in TOML", () => {
  it("comes and goes, and all else stays byte for byte, for hundreds of texts [setup-keeps]", () => {
    for (let seed = 0; seed < histories(300); seed++) {
      const before = randomToml(seed);
      const first = tomlEntry.put(before, toml, helper, owned);
      expect(first.startsWith(before), `${seed}`).toBe(true);
      expect(tomlEntry.read(first, toml)).toEqual(helper);
      expect(tomlEntry.put(first, toml, helper, owned), `${seed}: twice is once`).toBe(first);
      const other = tomlEntry.put(`${first}\n[after]\nx = 1\n`, toml, program, owned);
      expect(tomlEntry.read(other, toml)).toEqual(program);
      const after = tomlEntry.take(other, toml);
      const eol = before.includes("\r\n") ? "\r\n" : "\n";
      const ended = before.endsWith("\n") ? before : before + eol;
      expect(after.replace("\n[after]\nx = 1\n", ""), `${seed}`).toBe(ended);
    }
  });

  it("keeps the keys, comments and tables that somebody put into it [setup-keeps]", () => {
    const before = `[mcp_servers.toolway]\n# slow\ntool_timeout_sec = 600\nurl = "old"\n\n# of b\n[mcp_servers.b]\ncommand = "y"\n`;
    const after = tomlEntry.put(before, toml, helper, owned);
    expect(after).toContain("# slow\ntool_timeout_sec = 600\n");
    expect(after).toContain("\n\n# of b\n[mcp_servers.b]");
    expect(tomlEntry.read(after, toml)).toEqual({ ...helper, tool_timeout_sec: 600 });
    expect(tomlEntry.take(after, toml)).toBe(`\n# of b\n[mcp_servers.b]\ncommand = "y"\n`);
  });

  it("is taken out with the tables below it", () => {
    const text = `a = 1\n\n[mcp_servers.toolway]\nurl = "x"\n\n[mcp_servers.toolway.tools.t]\nm = "p"\n\n[z]\nb = 2\n`;
    expect(parseToml(tomlEntry.take(text, toml))).toEqual(parseToml("a = 1\n[z]\nb = 2\n"));
  });

  it("is refused where it is written in a form that takes no edit, or the text is broken, with its place", () => {
    const put =
      (text: string, entry: ClientEntry = helper) =>
      () =>
        tomlEntry.put(text, toml, entry, owned);
    expect(put('a = 1\nb = "\n')).toThrow(/^c\.toml:2: not valid TOML/);
    expect(put('x = 1\nmcp_servers = { b = { command = "y" } }\n')).toThrow(
      /^c\.toml:2: mcp_servers is written in one/,
    );
    expect(put('[mcp_servers]\ntoolway = { url = "old" }\n')).toThrow(/^c\.toml:2: expected toolway as a table/);
    expect(put('\nmcp_servers.toolway.url = "old"\n')).toThrow(/^c\.toml:2: expected toolway as a table/);
  });
});
