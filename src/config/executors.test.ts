// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are variables of the config

import { describe, expect, it } from "vitest";
import { mistakesOf } from "../../test/fixtures/config-mistakes.js";
import { parseConfig } from "./load.js";

const env = { OFFICE_TOKEN: "s3cret-value", LAB: "lab.example.com" };
const read = (text: string) => parseConfig(text, { path: "mcp.json", env, home: "/home/me" });
const WIKI = '"wiki": { "url": "http://wiki.internal/mcp", "via": "office" }';

describe("executors in a config", () => {
  it("dial in, or are dialled at one address or several, variables expanded", () => {
    const { executors, warnings } = read(`{ "executors": {
      "office": {},
      "lab": { "url": "wss://\${LAB}:7430/x", "token": "\${OFFICE_TOKEN}" },
      "two": { "urls": ["ws://127.0.0.1:1", "ws://127.0.0.1:2"], "token": "t0ken" } },
      "mcpServers": {} }`);
    expect(executors).toEqual([
      { name: "office", urls: [], token: undefined, noAuth: false },
      { name: "lab", urls: ["wss://lab.example.com:7430/x"], token: "s3cret-value", noAuth: false },
      { name: "two", urls: ["ws://127.0.0.1:1/", "ws://127.0.0.1:2/"], token: "t0ken", noAuth: false },
    ]);
    expect(warnings).toEqual([]);
  });

  it("are named by the servers behind them", () => {
    const { servers } = read(
      `{ "mcpServers": { ${WIKI}, "own": { "url": "http://x/mcp" } }, "executors": { "office": {} } }`,
    );
    expect(servers.map(({ target }) => target)).toEqual([
      { kind: "http", url: "http://wiki.internal/mcp", headers: {}, via: "office" },
      { kind: "http", url: "http://x/mcp", headers: {} },
    ]);
  });

  it.each([
    [', "token": "t"', "the token and all requests"],
    ["", "all requests"],
  ])("are warned of where what is sent%s goes unencrypted", (token, what) => {
    const { warnings } = read(`{ "mcpServers": {}, "executors": { "a": { "url": "ws://far.example"${token} } } }`);
    expect(warnings).toEqual([`mcp.json:1:50: executors.a.url: ${what} go there unencrypted (use wss://)`]);
  });

  it.each([
    [
      "a name that is nearly there",
      `{ "mcpServers": {\n ${WIKI.replace("office", "ofice")} },\n "executors": { "office": {} } }`,
      'mcp.json:2:54: mcpServers.wiki.via: there is no executor "ofice" in "executors" (did you mean "office"?)',
    ],
    [
      "a name that is not",
      `{ "mcpServers": {\n ${WIKI} } }`,
      'mcp.json:2:54: mcpServers.wiki.via: there is no executor "office" in "executors" (add it: "executors": { "office": {} })',
    ],
    [
      "a program",
      '{ "mcpServers": { "a": { "command": "x", "via": "office" } }, "executors": { "office": {} } }',
      'mcp.json:1:42: mcpServers.a.via: an executor makes HTTP requests: expected a "url" with it, found a "command" (run the program in that network, behind HTTP, or remove the key)',
    ],
    [
      "one with a mistake in it is not unknown",
      `{ "mcpServers": { ${WIKI} },\n "executors": { "office": { "uri": "ws://x" } } }`,
      'mcp.json:2:29: executors.office.uri: unknown key: expected "url", "urls", "token" or "noAuth" (did you mean "url"?)',
    ],
    [
      "an address of another kind",
      '{ "mcpServers": {}, "executors": { "a": { "url": "https://x", "token": "${OFFICE_TOKEN}" } } }',
      'mcp.json:1:50: executors.a.url: expected an address that starts with ws:// or wss:// (for instance "wss://example.com")',
    ],
    [
      "both",
      '{ "mcpServers": {}, "executors": { "a": { "url": "ws://x", "urls": ["ws://y"] } } }',
      'mcp.json:1:60: executors.a.urls: "url" and "urls" mean the same: expected one of them',
    ],
    [
      "a token for nobody",
      '{ "mcpServers": {}, "executors": { "a": { "token": "x" } } }',
      'mcp.json:1:43: executors.a.token: a "token" is shown to executors at a "url", and there is none (executors that dial in show one of ours: `toolway token create --id a --role executor`)',
    ],
    [
      "a variable that is not set",
      '{ "mcpServers": {}, "executors": { "a": { "url": "ws://x", "token": "${NO_TOKEN}" } } }',
      expect.stringContaining("executors.a.token"),
    ],
    [
      "a name that cannot be part of an address",
      '{ "mcpServers": {}, "executors": { "..": {} } }',
      'mcp.json:1:36: executors[".."]: ".." cannot be part of an address (rename the executor)',
    ],
  ])("that cannot be used: %s", (_, text, printed) => {
    const told = mistakesOf(() => read(text));
    expect(told).toEqual(printed);
    expect(told).not.toContain("s3cret");
  });
});
