import { describe, expect, it } from "vitest";
import { mistakesOf } from "../../test/fixtures/config-mistakes.js";
import { ownToolName } from "../contracts/names.js";
import { parseConfig } from "./load.js";

const read = (text: string) => parseConfig(text, { path: "mcp.json", env: {}, home: "/home/me" });

/** A config with one server, whose tool `create_issue` has these keys. */
const withTool = (tool: string, entry = "", beside = "") =>
  `{ "mcpServers": { "tracker": { "url": "https://tracker.example.com/mcp"${entry},
  "tools": { "create_issue": { ${tool} }${beside} } } } }`;

const termsOf = (tool: string) => read(withTool(tool)).servers[0]?.outbox?.get(ownToolName("create_issue"));

describe("the outbox of a tool, in a config", () => {
  it("needs no key at a mailbox, where the id of the message is one, and takes the one that is named", () => {
    const at = (outbox: string) =>
      read(
        `{ "mailboxes": {}, "mcpServers": { "studio": { "mailbox": "studio", "tools": { "note": { "outbox": ${outbox} } } } } }`,
      ).servers[0]?.outbox?.get(ownToolName("note"))?.key;
    expect(at("true")).toEqual({ in: "message" });
    expect(at('{ "lane": false }')).toEqual({ in: "message" });
    expect(at('{ "key": "arguments.id" }')).toEqual({ in: "argument", path: ["id"] });
  });

  it("is true for the usual terms: no key, a lane for each principal, a day, and what is unknown holds nothing up", () => {
    expect(termsOf('"outbox": true')).toEqual({
      key: undefined,
      lane: { by: "principal" },
      maxAgeMs: 86_400_000,
      onUnknown: "skip",
      confirm: undefined,
      tells: true,
    });
  });

  it("says where the key goes, by which argument writes are in order, and which tool knows what was done", () => {
    const terms = termsOf(
      '"outbox": { "key": "arguments.request.id", "lane": "arguments.project", "maxAgeMs": 5000, "onUnknown": "hold", ' +
        '"tells": false, "confirm": { "tool": "find_issues", "arguments": { "query": ["{key}"] }, "found": "/issues/0" } }',
    );
    expect(terms).toEqual({
      key: { in: "argument", path: ["request", "id"] },
      lane: { by: "argument", path: ["project"] },
      maxAgeMs: 5000,
      onUnknown: "hold",
      confirm: { tool: "find_issues", arguments: '{"query":["{key}"]}', found: "/issues/0" },
      tells: false,
    });
  });

  it("may want the key in _meta, whose names have dots in them, and no order at all", () => {
    expect(termsOf('"outbox": { "key": "_meta.example.com/key", "lane": false }')).toMatchObject({
      key: { in: "meta", path: ["example.com/key"] },
      lane: { by: "none" },
    });
  });

  it("lets an address that is ejected be tried every few seconds, so that what waits for it does not wait a minute more", () => {
    const probeOf = (text: string) => read(text).servers[0]?.supervision.ejectedProbeMs;
    expect(probeOf(withTool('"outbox": true'))).toBe(5_000);
    expect(probeOf(withTool('"outbox": false'))).toBe(60_000);
    expect(probeOf(withTool('"outbox": true', ', "ejectedProbeMs": 7000'))).toBe(7_000);
    const program = '{ "mcpServers": { "a": { "command": "x", "tools": { "t": { "outbox": true } } } } }';
    expect(probeOf(program)).toBe(300_000);
  });

  it("is not there without the key, nor with false, so that such a server costs nothing", () => {
    expect(read(withTool('"outbox": false')).servers[0]?.outbox).toBeUndefined();
    expect(read(withTool('"name": "x"')).servers[0]?.outbox).toBeUndefined();
  });

  it("has bounds of all servers together, and names of tools that objects have by birth are names", () => {
    expect(read('{ "mcpServers": {}, "outbox": { "maxWrites": 10 } }').outbox).toEqual({
      maxWrites: 10,
      maxBytes: 268_435_456,
    });
    const text = withTool('"outbox": true').replace("create_issue", "constructor");
    expect([...(read(text).servers[0]?.outbox?.keys() ?? [])]).toEqual(["constructor"]);
  });

  it.each([
    ['"outbox": 1', "outbox: expected true, false or an object, found the number 1"],
    ['"outbox": { "kye": "x" }', 'outbox.kye: unknown key: expected "key", "lane"'],
    [
      '"outbox": { "key": "request_id" }',
      'outbox.key: expected "arguments.NAME" or "_meta.NAME", found "request_id" (did you mean "arguments.request_id"?)',
    ],
    ['"outbox": { "key": "arguments." }', 'outbox.key: expected "arguments.NAME" or "_meta.NAME", found "arguments."'],
    ['"outbox": { "key": "_meta." }', 'outbox.key: expected "arguments.NAME" or "_meta.NAME"'],
    ['"outbox": { "key": "_meta.progressToken" }', 'outbox.key: "progressToken" of _meta is the protocol\'s own'],
    [
      '"outbox": { "lane": "project" }',
      'outbox.lane: expected "arguments.NAME" or false, found "project" (did you mean "arguments.project"?)',
    ],
    ['"outbox": { "lane": true }', 'outbox.lane: expected "arguments.NAME" or false, found true (remove the key'],
    [
      '"outbox": { "key": "arguments.id", "lane": "arguments.id" }',
      "outbox.lane: this is the key, which is another one for each call",
    ],
    ['"outbox": { "maxAgeMs": 0 }', "outbox.maxAgeMs: expected a number of at least 1000"],
    ['"outbox": { "maxAgeMs": 9999999999 }', "outbox.maxAgeMs: expected a number of at most 2592000000"],
    ['"outbox": { "onUnknown": "stop" }', 'outbox.onUnknown: expected "skip" or "hold", found "stop"'],
    [
      '"outbox": true, "readOnly": true',
      'outbox: a tool that is "readOnly" has nothing that would have to be delivered',
    ],
    ['"outbox": true, "cache": true', 'outbox: a tool with "cache" is one that only reads'],
    [
      '"outbox": { "confirm": { "tool": "create_issue", "arguments": { "q": "{key}" }, "found": "/a" } }',
      "outbox.confirm.tool: this is the tool itself",
    ],
    [
      '"outbox": { "confirm": { "tool": "find", "arguments": { "q": "{kye}" }, "found": "/a" } }',
      'outbox.confirm.arguments: expected "{key}" in one of the strings: the same is asked of every write otherwise (did you mean "{key}"?)',
    ],
    [
      '"outbox": { "confirm": { "tool": "find", "arguments": { "q": "{key}" }, "found": "issues" } }',
      "outbox.confirm.found: expected a JSON pointer, which begins with /",
    ],
    ['"outbox": { "confirm": { "tool": "find" } }', "outbox.confirm.arguments: missing: expected an object"],
  ])("is a mistake with its place where the tool has { %s }", (tool, mistake) => {
    const said = mistakesOf(() => read(withTool(tool)));
    expect(said).toMatch(/^mcp\.json:2:\d+: mcpServers\.tracker\.tools\.create_issue\./);
    expect(said).toContain(mistake);
  });

  it("is a mistake at a server whose sessions are apart, and a confirming tool must not wait itself", () => {
    expect(mistakesOf(() => read(withTool('"outbox": true', ', "isolation": "session"')))).toContain(
      'mcp.json:2:32: mcpServers.tracker.tools.create_issue.outbox: calls cannot be kept at a server with "isolation": "session"',
    );
    const confirm = '"outbox": { "confirm": { "tool": "other", "arguments": { "q": "{key}" }, "found": "/a" } }';
    expect(mistakesOf(() => read(withTool(confirm, "", ', "other": { "outbox": true }')))).toContain(
      'outbox.confirm.tool: "other" has an "outbox" itself: expected a tool that only reads',
    );
  });

  it("is warned of where it has no effect", () => {
    expect(read(withTool('"outbox": true, "hide": true')).warnings).toEqual([
      expect.stringContaining('outbox: has no effect: the tool is hidden by "hide"'),
    ]);
    const confirm = '"outbox": { "confirm": { "tool": "find", "arguments": { "q": "{key}" }, "found": "/a" } }';
    expect(read(withTool(confirm)).warnings).toEqual([
      expect.stringContaining("outbox.confirm: has an effect only where agents choose keys themselves"),
    ]);
  });

  it("reads a long pointer in no time", () => {
    const found = `/${"a/".repeat(50_000)}~`;
    const said = mistakesOf(() =>
      read(withTool(`"outbox": { "confirm": { "tool": "f", "arguments": { "q": "{key}" }, "found": "${found}" } }`)),
    );
    expect(said).toContain("expected a JSON pointer");
  });
});
