import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MAX_SHOWN_CHARACTERS, maskedText, shownText } from "./shown-text.js";

const KEY = "sk-93c1e07ab4f25d6681";

describe("the text of a config as it is shown", () => {
  it("is the text itself, with variables by their names and keys hidden, wherever they stand [secrets-unseen]", () => {
    const text = `{
  // Servers of the team.
  "mcpServers": {
    "gh": {
      "command": "npx", // old: ${KEY}
      "tools": { "add": { "outbox": { "key": "arguments.request_id" } } },
      "args": ["-y", "server", "--api-key", "${KEY}", "\${HOME}/x"],
      "env": { "TOKEN": "${KEY}", "NAME": "\${GH_NAME}", },
    },
    "linear": { "url": "https://u:${KEY}@a.example/mcp?key=${KEY}", "headers": { "Authorization": "Bearer \${T}" } },
    "oauth": { "url": "https://b.example", "auth": { "oauth": { "clientSecret": "${KEY}" } } }
  },
  "inputs": [{ "id": "pw", "password": true, "default": "short" }],
  "executors": { "office": { "url": "wss://c.example", "token": "${KEY}" } },
  "telemetry": { "otlp": "https://d.example", "headers": { "x-api-key": "${KEY}" } },
  /* token = ${KEY} */
  "drainMs": 1000
}
`;
    const shown = shownText(text) ?? "";
    expect(shown).not.toContain(KEY);
    expect(shown).not.toContain('"short"');
    for (const kept of [
      "// Servers of the team.",
      '"arguments.request_id"',
      '"npx"',
      `\${HOME}/x`,
      `\${GH_NAME}`,
      `Bearer \${T}`,
      '"drainMs": 1000',
    ]) {
      expect(shown).toContain(kept);
    }
    expect(shown.split("\n")).toHaveLength(text.split("\n").length);
    const plain = '{\n  // Nothing here.\n  "mcpServers": { "a": { "command": "x", "args": ["--port", "80"] } },\n}\n';
    expect(shownText(plain)).toBe(plain);
  });

  it("has no key that stands where credentials stand, whatever the key is [secrets-unseen]", () => {
    const key = fc.stringMatching(/^[A-Za-z0-9_-]{20,40}$/).filter((text) => /\d/.test(text) && /[a-z]/i.test(text));
    fc.assert(
      fc.property(key, (secret) => {
        const config = {
          mcpServers: {
            a: { command: "x", env: { A: secret }, args: ["--token", secret, `--password=${secret}`] },
            b: { url: "https://x.example/mcp", headers: { Authorization: `Bearer ${secret}` } },
          },
          executors: { e: { url: "wss://y.example", token: secret } },
        };
        expect(shownText(JSON.stringify(config, undefined, 2))).not.toContain(secret);
      }),
    );
  });

  it.each<[string, string, string[]]>([
    ...["broker", "url", "command", "args", "httpUrl", "env", "headers"].map((name): [string, string, string[]] => [
      `beside a server named ${name}`,
      `{ "mcpServers": { "${name}": { "command": "x" }, "gh": { "command": "y", "env": { "DB": "canary" }, "args": ["--token", "canary"] } } }`,
      ['"gh"', '"--token"'],
    ]),
    ["in an entry that lies in another", `{ "command": "x", "gh": { "env": { "DB": "canary" } } }`, ['"DB"']],
    [
      "in a list with a comment in it",
      `{ "env": { "A": ["x", // my key\n "canary"] },\n "drainMs": 1 }`,
      ['"drainMs": 1'],
    ],
    ["after a comment in a hidden value", `{ "env": { "A": { // a token\n "B": "canary" } } }`, ['"A"']],
    [
      "in arguments of a program that gives a token",
      `{ "s": { "url": "https://x.example", "auth": { "bearer": { "command": ["vault", "read", "--token", "canary"] } } } }`,
      ['"vault", "read", "--token"'],
    ],
    [
      "in a list of variables",
      `{ "s": { "command": "x", "env": ["DB=canary"], "headers": ["X-A: canary"] } }`,
      ['"x"'],
    ],
    [
      "in a list of another name",
      `{ "s": { "command": "x", "more": ["TOKEN=canary", { "token": "canary" }] } }`,
      ["TOKEN="],
    ],
    [
      "as sign-in",
      `{ "s": { "url": "https://x.example", "auth": "ghp_canary8Xv3Qw9LmZ2tR7" } }`,
      ["https://x.example"],
    ],
    ["under a name that says nothing", `{ "s": { "command": "x", "note": "ghp_canary8Xv3Qw9LmZ2tR7" } }`, ['"note"']],
    [
      "in addresses of other names",
      `{ "s": { "httpUrl": "https://x.example/mcp?q=canary7" } }`,
      ["https://x.example/mcp"],
    ],
    ["in a list of addresses", `{ "engine": { "nats": ["tls://me:canary7@a.example"] } }`, ["@a.example"]],
    ["in a comment with an address", `{\n // postgres://bob:canary@db.example/x\n "drainMs": 1 }`, ['"drainMs": 1']],
    ["in a member that was taken out", `{\n // "DB": "canary",\n "drainMs": 1 }`, ['"drainMs": 1']],
    ["in a long comment, whose lines stay", `{ /* one\n token = canary\n */ "drainMs": 1 }`, ['\n\n "drainMs": 1']],
  ])("has no key %s [secrets-unseen]", (_where, text, kept) => {
    const shown = shownText(text) ?? "";
    expect(shown).not.toContain("canary");
    for (const part of kept) expect(shown).toContain(part);
    expect(shown.split("\n")).toHaveLength(text.split("\n").length);
  });

  it("has what a login tells everybody, and names of tools", () => {
    const text = `{ "s": { "url": "https://x.example", "auth": { "oauth": { "clientId": "Iv1.8a61f9b3a7aba766", "scopes": ["tokens:read"] } } } }`;
    expect(shownText(text)).toBe(text);
  });

  it.each([
    ["a key whose quote is missing", `{ "PASSWORD: "canary", "x": 1 }`],
    ["other quotes", `{ 'PASSWORD': 'canary' }`],
    ["no quotes", `{ PASSWORD: canary, x: 1 }`],
  ])("is without its values where it is no JSON for %s [secrets-unseen]", (_why, text) => {
    expect(shownText(text)).toBeUndefined();
    expect(maskedText(text)).not.toContain("canary");
  });

  it("is told soon of any text [bounded]", () => {
    const begun = performance.now();
    for (const sign of ["a", "://", '"', "aé"]) {
      shownText(`{ /* ${sign.repeat(Math.floor((MAX_SHOWN_CHARACTERS - 20) / sign.length))} */ }`);
    }
    expect(performance.now() - begun).toBeLessThan(5_000);
  });

  it("is not shown where it is no JSON, or too long; then it is without its values [bounded]", () => {
    const broken = `{\n  "mcpServers": {\n    "gh": { "env": { "TOKEN": "${KEY}" } \n    "x": { "command": "${KEY} }\n  TOKEN=${KEY}\n`;
    expect(shownText(broken)).toBeUndefined();
    expect(shownText(`{ "a": "${"x".repeat(MAX_SHOWN_CHARACTERS)}" }`)).toBeUndefined();
    const masked = maskedText(broken);
    expect(masked.split("\n")[2]).toBe('    "gh": { "env": { "TOKEN": "…" } ');
    expect(masked).not.toContain(KEY);
    expect(masked.split("\n")).toHaveLength(broken.split("\n").length);
    expect(maskedText("x".repeat(1_000_000)).length).toBeLessThanOrEqual(MAX_SHOWN_CHARACTERS);
  });
});
