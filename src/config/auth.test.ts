import { describe, expect, it } from "vitest";
import { mistakesOf } from "../../test/fixtures/config-mistakes.js";
import { parseConfig } from "./load.js";

const read = (entry: string) =>
  parseConfig(`{ "mcpServers": { "gh": ${entry} } }`, { path: "/etc/way/mcp.json", env: {}, home: "/home/me" });

describe("the credential of an entry", () => {
  it.each([
    ['{ "env": "GH" }', { from: "env", name: "GH" }],
    ['{ "file": "./token" }', { from: "file", path: "/etc/way/token" }],
    ['{ "file": "~/token" }', { from: "file", path: "/home/me/token" }],
    [
      '{ "command": ["gh", "auth", "token"] }',
      { from: "command", line: ["gh", "auth", "token"], ttlMs: 300_000, cwd: "/etc/way" },
    ],
    [
      '{ "command": ["./token.sh"], "ttlMs": 5 }',
      { from: "command", line: ["/etc/way/token.sh"], ttlMs: 5, cwd: "/etc/way" },
    ],
  ])("%s is where its token comes from", (bearer, auth) => {
    const { servers, warnings } = read(`{ "url": "https://x/mcp", "auth": { "bearer": ${bearer} } }`);
    expect(servers[0]?.target).toEqual({ kind: "http", url: "https://x/mcp", headers: {}, auth });
    expect(warnings).toEqual([]);
  });

  it.each([
    ['"oauth"', { from: "oauth" }],
    [
      '{ "oauth": { "clientId": "me", "clientSecret": { "env": "S" }, "scopes": ["a"], "redirectPort": 7000 } }',
      { from: "oauth", clientId: "me", clientSecret: { from: "env", name: "S" }, scopes: ["a"], redirectPort: 7000 },
    ],
    [
      '{ "oauth": { "clientMetadataUrl": "https://me.example/client.json" } }',
      { from: "oauth", clientMetadataUrl: "https://me.example/client.json" },
    ],
    [
      '{ "clientCredentials": { "clientId": "ci", "clientSecret": { "file": "./s" } } }',
      { from: "clientCredentials", clientId: "ci", clientSecret: { from: "file", path: "/etc/way/s" } },
    ],
  ])("%s is a login", (said, auth) => {
    const { servers, warnings } = read(`{ "url": "https://x/mcp", "auth": ${said} }`);
    expect(servers[0]?.target).toEqual({ kind: "http", url: "https://x/mcp", headers: {}, auth });
    expect(warnings).toEqual([]);
  });

  it.each([
    ['{ "command": "gh", "auth": "oauth" }', /gh\.auth.*and this is a program/],
    [
      '{ "url": "https://x/mcp", "auth": { "oauth": {}, "bearer": { "env": "A" } } }',
      /expected one of "bearer", "oauth" and "clientCredentials", found "bearer" and "oauth"/,
    ],
    ['{ "url": "https://x/mcp", "auth": { "oauth": { "clientSecret": "s" } } }', /a secret is that of a "clientId"/],
    [
      '{ "url": "https://x/mcp", "auth": { "oauth": { "clientMetadataUrl": "http://me.example/c" } } }',
      /starts with https:\/\//,
    ],
    [
      '{ "url": "https://x/mcp", "auth": { "clientCredential": { "clientId": "a" } } }',
      /did you mean "clientCredentials"/,
    ],
    ['{ "url": "https://x/mcp", "auth": { "clientCredentials": { "clientId": "a" } } }', /clientSecret/],
    ['{ "command": "gh", "auth": { "bearer": { "env": "GH" } } }', /gh\.auth.*and this is a program/],
    ['{ "url": "https://x/mcp", "auth": { "bearer": {} } }', /expected one of "env", "file" and "command", found none/],
    [
      '{ "url": "https://x/mcp", "auth": { "bearer": { "env": "A", "file": "b" } } }',
      /expected one of .* found "env" and "file"/,
    ],
    ['{ "url": "https://x/mcp", "auth": { "bearer": { "command": [] } } }', /expected a program and its arguments/],
    ['{ "url": "https://x/mcp", "auth": { "bearer": { "env": "A", "ttlMs": 5 } } }', /this is for a "command"/],
    ['{ "url": "https://x/mcp", "auth": { "bearer": { "evn": "A" } } }', /did you mean "env"/],
    ['{ "url": "https://x/mcp", "auth": { "baerer": { "env": "A" } } }', /unknown key.*did you mean "bearer"/s],
    [
      '{ "url": "https://x/mcp", "headers": { "authorization": "x" }, "auth": { "bearer": { "env": "A" } } }',
      /"auth" and the header "authorization" are both credentials/,
    ],
    ['{ "mailbox": "m", "broker": "ws://127.0.0.1:1", "auth": { "bearer": { "env": "A" } } }', /beside "mailbox"/],
  ])("%s is a mistake with its place", (entry, why) => {
    expect(mistakesOf(() => read(entry))).toMatch(why);
  });

  it("that stands where a word is expected is not repeated in what is wrong [secrets-unseen]", () => {
    const key = "ghp_8Xv3Qw9LmZ2tR7kP";
    const mistakes = mistakesOf(() => read(`{ "url": "https://x/mcp", "type": "${key}" }`));
    expect(mistakes).toMatch(/gh\.type: expected .*, found another text/);
    const { warnings, misconfigured } = read(`{ "url": "https://x/mcp", "auth": "${key}" }`);
    expect(JSON.stringify([mistakes, warnings, misconfigured])).not.toContain(key);
  });

  it("of another client is told as before, and is no mistake", () => {
    const { warnings } = read('{ "url": "https://x/mcp", "auth": { "CLIENT_ID": "me" } }');
    expect(warnings.join()).toContain('"auth"'.replaceAll('"', ""));
  });
});
