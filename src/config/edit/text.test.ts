import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { histories } from "../../../test/faults/length.js";
import { parseConfig } from "../load.js";
import { addServers, removeServer, serversInText } from "./text.js";

const servers = { b: { command: "b", args: ["-y"] } };

describe("addServers", () => {
  it("keeps comments, order and layout", () => {
    const text =
      '{\n\t// mine\n\t"mcpServers": {\n\t\t"a": { "command": "a" }, // first\n\t},\n\t"listen": "127.0.0.1:1",\n}\n';
    const added = addServers(text, servers);
    expect(added).toBe(
      '{\n\t// mine\n\t"mcpServers": {\n\t\t"a": { "command": "a" }, // first\n\t\t"b": {\n\t\t\t"command": "b",\n' +
        '\t\t\t"args": [\n\t\t\t\t"-y"\n\t\t\t]\n\t\t},\n\t},\n\t"listen": "127.0.0.1:1",\n}\n',
    );
    const config = parseConfig(added, { path: "/x/c.json", env: {} });
    expect(config.servers.map((server) => server.name)).toEqual(["a", "b"]);
    expect(config.listen.port).toBe(1);
  });

  it("leaves a comment with the entry on whose line it stands", () => {
    const text = '{\r\n  "mcpServers": {\r\n    "a": { "command": "a" } // first, no comma\r\n  }\r\n}\r\n';
    expect(addServers(text, { b: { url: "https://b/" } })).toBe(
      '{\r\n  "mcpServers": {\r\n    "a": { "command": "a" }, // first, no comma\r\n    "b": {\r\n      "url": "https://b/"\r\n    }\r\n  }\r\n}\r\n',
    );
  });

  it("adds to VS Code's key where the file has that, and makes a file where there is none", () => {
    expect(JSON.parse(addServers('{ "servers": {} }', servers))).toEqual({ servers });
    expect(JSON.parse(addServers("{}", servers))).toEqual({ mcpServers: servers });
    expect(JSON.parse(addServers(undefined, servers))).toEqual({ mcpServers: servers });
    expect(addServers('{"mcpServers": {"a": {"command": "a"}}}', { b: { command: "b" } })).toBe(
      '{"mcpServers": {"a": {"command": "a"}, "b": { "command": "b" }}}',
    );
  });

  it("refuses a file that it would spoil", () => {
    expect(() => addServers("{ oops", servers, "my.json")).toThrow(/^my.json:1:3: not valid JSON/);
    expect(() => addServers("[]", servers)).toThrow(/expected an object/);
    expect(() => addServers('{ "mcp": { "a": {} } }', servers)).toThrow(/this is the form of another client/);
    expect(() => addServers('{ "mcpServers": 7 }', servers, "my.json")).toThrow(/^my.json:1:17: mcpServers: expected/);
  });
});

describe("removeServer", () => {
  it("takes the entry with the comments on its line and directly above it, and no other [config-kept]", () => {
    const text = `{
  "mcpServers": {
    // all of them
    "a": { "command": "a" }, // about a
    // about b
    "b": { "command": "b" } // the last
  }
}
`;
    expect(removeServer(text, "a")).toBe(`{
  "mcpServers": {
    // all of them
    // about b
    "b": { "command": "b" } // the last
  }
}
`);
    expect(removeServer(text, "b")).toBe(`{
  "mcpServers": {
    // all of them
    "a": { "command": "a" } // about a
  }
}
`);
    const blank = text.replace("    // about b\n", "    // about more\n\n    /* about\n    // b */\n    // and b\n");
    expect(removeServer(blank, "b")).toBe(`{
  "mcpServers": {
    // all of them
    "a": { "command": "a" } // about a
    // about more

  }
}
`);
    expect(removeServer(text, "c")).toBeUndefined();
  });

  it("works within one line, and leaves an empty object behind the last", () => {
    const text = '{"mcpServers": {"a": {"command": "a"}, "b": {"command": "b"}}, "names": "plain"}';
    expect(removeServer(text, "a")).toBe('{"mcpServers": {"b": {"command": "b"}}, "names": "plain"}');
    expect(removeServer(text, "b")).toBe('{"mcpServers": {"a": {"command": "a"}}, "names": "plain"}');
    expect(removeServer('{"servers": {"a": {}}}', "a")).toBe('{"servers": {}}');
  });
});

describe("any file that people write", () => {
  const gap = fc.constantFrom("", " ", "\n", "\n  ", "\t", " /* c# */ ", " // c#\n", "\n    // c#\n    ", "\r\n  ");
  const trailing = fc.boolean();
  const entry = fc.constantFrom('{ "command": "x" }', '{"url":"https://x/"}', '{\n  "command": "y" // c#\n}');
  const member = fc.record({ before: gap, colon: gap, value: entry, after: gap, behind: gap });
  const file = fc
    .record({ members: fc.array(member, { maxLength: 4 }), trailing, inner: gap, outer: gap, more: fc.boolean() })
    .map(({ members, trailing: comma, inner, outer, more }) => {
      const body = members.map(({ before, colon, value, after, behind }, i) => {
        const end = i < members.length - 1 || comma ? `,${behind}` : "";
        return `${before}"s${i}"${colon}:${value}${after}${end}`;
      });
      const rest = more ? `,${outer}"names": "plain"` : "";
      let comments = 0;
      return `{${outer}"mcpServers": {${body.join("")}${inner}}${rest}${outer}}`.replaceAll(
        "c#",
        () => `c${comments++}`,
      );
    });
  const commentsOf = (text: string) => [...text.matchAll(/\bc\d+\b/g)].map(([word]) => word);

  it("keeps values, order and every comment when a server is added, and gives them back when it is removed [config-kept]", () => {
    fc.assert(
      fc.property(file, (text) => {
        const before = serversInText(text);
        const added = addServers(text, { new: { command: "n", args: ["1"] } });
        expect(serversInText(added)).toEqual({ ...before, new: { command: "n", args: ["1"] } });
        expect(Object.keys(serversInText(added))).toEqual([...Object.keys(before), "new"]);
        expect(commentsOf(added)).toEqual(commentsOf(text));
        const removed = removeServer(added, "new") ?? "";
        expect(serversInText(removed)).toEqual(before);
        expect(commentsOf(removed)).toEqual(commentsOf(text));
      }),
      { numRuns: histories(1_000, 3_000) },
    );
  });

  it("loses no other server, and no comment outside of the entry's own lines, when one is removed [config-kept]", () => {
    fc.assert(
      fc.property(file, fc.nat(3), (text, index) => {
        const before = serversInText(text);
        const name = `s${index}`;
        const removed = removeServer(text, name);
        if (!(name in before)) {
          expect(removed).toBeUndefined();
          return;
        }
        const { [name]: _gone, ...rest } = before;
        expect(serversInText(removed ?? "")).toEqual(rest);
      }),
      { numRuns: histories(1_000, 3_000) },
    );
  });
});
