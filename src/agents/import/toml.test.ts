import { describe, expect, it } from "vitest";
import { parseToml, TomlError } from "./toml.js";

const plain = (text: string): unknown => JSON.parse(JSON.stringify(parseToml(text)));

describe("parseToml", () => {
  it("reads what Codex's file has", () => {
    const text = `# a comment
model = "gpt-5" # trailing
approval_policy = 'on-request'
notify = ["python3", "/x/notify.py",]
retries = 1_000
ratio = 0.5
big = 0xff
since = 2026-01-02 03:04:05Z

[mcp_servers.docs]
command = "npx"
args = [
  "-y", # the first
  "docs-mcp",
]
env = { "API_KEY" = "a\\"b\\u00e9", PLAIN = 'C:\\x', nested.deep = true }

[mcp_servers."my server".env]
KEY = """
two
lines \\
   joined"""
RAW = '''
'quoted' \\n'''

[[profiles]]
name = "a"
[[profiles]]
name = "b"
[profiles.inner]
x = 1
[projects."/home/me/x"]
trust_level = "trusted"
`;
    expect(plain(text)).toEqual({
      model: "gpt-5",
      approval_policy: "on-request",
      notify: ["python3", "/x/notify.py"],
      retries: 1000,
      ratio: 0.5,
      big: 255,
      since: "2026-01-02 03:04:05Z",
      mcp_servers: {
        docs: {
          command: "npx",
          args: ["-y", "docs-mcp"],
          env: { API_KEY: 'a"bé', PLAIN: "C:\\x", nested: { deep: true } },
        },
        "my server": { env: { KEY: "two\nlines joined", RAW: "'quoted' \\n" } },
      },
      profiles: [{ name: "a" }, { name: "b", inner: { x: 1 } }],
      projects: { "/home/me/x": { trust_level: "trusted" } },
    });
    expect(plain(text.replaceAll("\n", "\r\n"))).toEqual(plain(text));
    expect(plain("")).toEqual({});
  });

  it.each([
    ['a = "x', 1],
    ["a = [1, 2", 1],
    ["\n\na b = 1", 3],
    ["a = 1\na = 2", 2],
    ["a = 1 b = 2", 1],
    ["[a\n", 1],
    ["a = what", 1],
    ["a = '''x", 1],
    ["a = 1\n[a]", 2],
    [`a = ${"[".repeat(10_000)}`, 1],
  ])("refuses %j with its line", (text, line) => {
    expect(() => parseToml(text)).toThrow(TomlError);
    try {
      parseToml(text);
    } catch (error) {
      expect((error as TomlError).line).toBe(line);
    }
  });

  it("keeps odd keys inert", () => {
    const table = parseToml("[__proto__]\npolluted = true\n[constructor]\nx = 1\n");
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
    expect(Object.keys(table)).toEqual(["__proto__", "constructor"]);
  });
});
