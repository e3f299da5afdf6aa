// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are variables of the config

import { describe, expect, it } from "vitest";
import { mistakesOf } from "../../test/fixtures/config-mistakes.js";
import { redactorFor } from "../runtime/redact/secrets-of.js";
import { hideSecrets } from "./edit/entry-secrets.js";
import { parseConfig } from "./load.js";

const env = { WORKER_TOKEN: "tw_0123456789abcdef" };
const read = (text: string) => parseConfig(text, { path: "mcp.json", env, home: "/home/me" });

const STUDIO =
  '{ "mcpServers": { "studio": { "mailbox": "studio", "broker": "wss://broker.example.com", "token": "${WORKER_TOKEN}" } } }';

describe("a machine behind a mailbox, in a config", () => {
  it("is one more server: of the modern era, never given up, and its token a secret", () => {
    const [server] = read(STUDIO).servers;
    expect(server?.target).toEqual({
      kind: "mailbox",
      mailbox: "studio",
      broker: "wss://broker.example.com/",
      token: "tw_0123456789abcdef",
      awayWaitMs: 20_000,
      secrets: [{ name: "WORKER_TOKEN", value: "tw_0123456789abcdef" }],
    });
    expect(server?.era).toBe("modern");
    expect(server?.supervision).toMatchObject({
      restarts: { max: Number.MAX_SAFE_INTEGER },
      breaker: { failures: Number.MAX_SAFE_INTEGER },
      pingMs: undefined,
    });
  });

  it("is shown without the token, also where it stands there literally", () => {
    const literal = { kind: "mailbox", mailbox: "studio", broker: undefined, token: "tw_fedcba9876543210" } as const;
    expect(redactorFor(literal).redact("said tw_fedcba9876543210 again")).not.toContain("fedcba");
    expect(JSON.stringify(hideSecrets({ mailbox: "studio", token: "tw_fedcba9876543210" }))).not.toContain("fedcba");
  });

  it("has the gateway's own broker where there is one, and no token then", () => {
    const [server] = read('{ "mailboxes": {}, "mcpServers": { "studio": { "mailbox": "studio" } } }').servers;
    expect(server?.target).toMatchObject({ kind: "mailbox", broker: undefined, token: undefined });
  });

  it("waits as long for a machine that is away as its entry says", () => {
    const text = STUDIO.replace('"token"', '"awayWaitMs": 0, "token"');
    expect(read(text).servers[0]?.target).toMatchObject({ awayWaitMs: 0 });
  });

  it.each([
    [
      '"mailbox": "a", "broker": "ws://127.0.0.1:1", "url": "http://x/mcp"',
      'mcpServers.s.url: expected either "mailbox" or "url", found both (a server is a program to start, an address to connect to or the mailbox of a machine: remove one)',
    ],
    [
      '"mailbox": "a", "broker": "ws://127.0.0.1:1", "command": "npx"',
      'mcpServers.s.command: expected either "mailbox" or "command", found both',
    ],
    ['"mailbox": "a"', 'mcpServers.s.mailbox: expected the address of its "broker" (add "broker": "wss://…"'],
    [
      '"mailbox": "a", "broker": "https://x"',
      "mcpServers.s.broker: expected an address that starts with ws:// or wss://",
    ],
    ['"broker": "wss://x"', 'mcpServers.s.broker: "broker" stands beside a "mailbox", and there is none'],
    ['"command": "npx", "token": "t"', 'mcpServers.s.token: "token" stands beside a "mailbox", and there is none'],
    [
      '"mailbox": "a", "broker": "wss://x", "headers": { "A": "b" }',
      'mcpServers.s.headers: "headers" has no meaning beside "mailbox" (remove the key)',
    ],
    [
      '"mailbox": "a", "broker": "wss://x", "isolation": "session"',
      'mcpServers.s.isolation: a mailbox has one connection for all: expected "shared"',
    ],
    ['"mailbx": "a", "broker": "wss://x"', 'mcpServers.s.mailbx: unknown key (did you mean "mailbox"?)'],
  ])("is a mistake with its place where its entry is { %s }", (entry, mistake) => {
    const said = mistakesOf(() => read(`{ "mcpServers": { "s": { ${entry} } } }`));
    expect(said).toContain("mcp.json:1:");
    expect(said).toContain(mistake);
    expect(said).not.toContain("missing: expected");
  });

  it("is warned of where the token goes unencrypted", () => {
    const { warnings } = read(STUDIO.replace("wss://", "ws://"));
    expect(warnings).toEqual([expect.stringContaining("the token and all messages go there unencrypted (use wss://)")]);
  });
});
