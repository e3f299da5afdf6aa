import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { histories } from "../../../test/faults/length.js";
import { looksRandom } from "./ordinary.js";
import { redactorFor, type SecretSource, secretsOf } from "./secrets-of.js";

const found = (source: SecretSource) => [...secretsOf(source)];

describe("the secrets of an entry [secrets-unseen]", () => {
  it.each<[string, SecretSource, string]>([
    ["a variable's value", { secrets: [{ name: "SETTING", value: "correcthorse" }] }, "correcthorse"],
    [
      "what a password's variable holds, spelt like a host",
      { secrets: [{ name: "DB_PASSWORD", value: "correct.horse" }] },
      "correct.horse",
    ],
    [
      "what a password's variable holds, spelt like a path",
      { secrets: [{ name: "API_KEY", value: "/correct/horse" }] },
      "/correct/horse",
    ],
    ["env with a secret's name", { env: { DB_PASSWORD: "hunter" } }, "hunter"],
    ["env with a plain name", { env: { SETTING: "q8Zr2mK4vX7tB1nC" } }, "q8Zr2mK4vX7tB1nC"],
    ["what follows an option", { args: ["--api-key", "opensesame"] }, "opensesame"],
    ["what is part of an option", { args: ["--api-key=opensesame"] }, "opensesame"],
    ["an option in other letters", { args: ["--githubToken", "opensesame"] }, "opensesame"],
    ["an option with one dash", { args: ["-password", "p4s5"] }, "p4s5"],
    ["a variable for a container", { args: ["run", "-e", "API_TOKEN=opensesame", "image"] }, "opensesame"],
    ["a header in an argument", { args: ["--header", "Authorization: Bearer opensesame"] }, "opensesame"],
    [
      "an argument without a name",
      { args: ["ghp_16C7e42F292c6912E7710c838347Ae178B4a"] },
      "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    ],
    ["a part of a connection string", { env: { DB: "Server=db;User=me;Password=hunter;" } }, "hunter"],
    ["a password in a URL", { env: { DB: "postgres://me:h%40nter@db/app" } }, "h@nter"],
    ["a token in a URL's query", { args: ["https://h.example/?token=opensesame"] }, "opensesame"],
    ["a token in a URL's path", { env: { HOOK: "https://h.example/s/T0/a8Fk2LmQ9zXc7Vb1" } }, "a8Fk2LmQ9zXc7Vb1"],
    ["a member of JSON", { env: { ACCOUNT: '{"type":"x","private_key":"opensesame"}' } }, "opensesame"],
    ["a header in JSON", { env: { HEADERS: '{"Authorization":"Bearer opensesame"}' } }, "opensesame"],
    [
      "a line of a key",
      { env: { PEM: "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0\n-----END KEY-----" } },
      "MIIEvQIBADANBgkqhkiG9w0",
    ],
    ["a header", { headers: { "X-Api-Key": "opensesame" } }, "opensesame"],
    ["a header's credentials", { headers: { Authorization: "Bearer opensesame" } }, "opensesame"],
    ["a basic header's password", { headers: { Authorization: `Basic ${btoa("me:opensesame")}` } }, "opensesame"],
    ["the address's password", { url: "https://me:opensesame@h.example/mcp" }, "opensesame"],
    ["the address's query", { url: "https://h.example/mcp?k=opensesame" }, "opensesame"],
    ["a password that is spelt like a host", { env: { DB_PASSWORD: "correct.horse" } }, "correct.horse"],
    ["a password that is spelt like a path", { env: { DB_PASSWORD: "/correct/horse" } }, "/correct/horse"],
    ["a password that is spelt like an address", { env: { SECRET: "a://b" } }, "a://b"],
    ["what follows an option, with a dot", { args: ["--password", "my.secret"] }, "my.secret"],
    ["what is part of an option, with a dot", { args: ["--apiKey=my.secret"] }, "my.secret"],
    ["a part of a connection string, with a dot", { env: { DB: "UID=me;PWD=my.secret" } }, "my.secret"],
    ["a member of JSON, with a dot", { env: { ACCOUNT: '{"client_secret":"my.secret"}' } }, "my.secret"],
    ["a token in a URL's query, with a dot", { args: ["https://h.example/?token=my.secret"] }, "my.secret"],
    ["a header without a scheme, with a dot", { headers: { Authorization: "my.secret" } }, "my.secret"],
    ["a line that was written as the command", { command: "npx server --token opensesame" }, "opensesame"],
  ])("%s is one", (_, source, value) => {
    expect(found(source)).toContain(value);
  });

  it.each<[string, SecretSource]>([
    ["flags and small numbers", { env: { API_KEY: "1", USE_TOKEN: "true", TOKEN_LIMIT: "4096" } }],
    ["an option after an option", { args: ["--no-auth", "--verbose", "--token", "--quiet"] }],
    ["packages", { args: ["-y", "@modelcontextprotocol/server-filesystem@2025.11.25", "mcp-server-sqlite"] }],
    ["paths", { args: ["/srv/data/projects/notes", "--key", "/etc/ssl/private/server.key", "./src/index.ts"] }],
    [
      "places that came from outside",
      {
        secrets: ["/home/alexander", "db.internal:5432", "https://api.example.com/v1"].flatMap((value) =>
          ["DB", "TOKEN_URL"].map((name) => ({ name, value })),
        ),
      },
    ],
    [
      "places under a name that says so",
      {
        env: {
          DB_PASSWORD_FILE: "/run/secrets/db",
          AUTH_HOST: "auth.example",
          TOKEN_URL: "https://auth.example/token",
          API_KEY_SERVER: "keys.example:8443",
          GOOGLE_APPLICATION_CREDENTIALS: "/etc/google/account.json",
          SERVICE: '{"token_uri":"https://auth.example/token"}',
          PWD: "/srv/data",
        },
        args: ["--secretPath", "/run/secrets/x", "--token-file=./token.txt", "--tokenizer", "gpt2.bpe"],
      },
    ],
    ["passwords so short that they are in every text", { env: { DB_PASSWORD: "abc" }, args: ["--token", "a.b"] }],
    [
      "hosts, images and models",
      { args: ["ghcr.io/github/github-mcp-server:v1.2.3", "claude-sonnet-4-20250514", "db.internal.example.com:5432"] },
    ],
    [
      "words",
      { args: ["You are a helpful assistant", "requestSamplingFromClient"], env: { TZ: "America/Los_Angeles" } },
    ],
    ["headers that say what is wanted", { headers: { Accept: "application/json", "X-Region": "eu-central-1" } }],
    ["an address without any", { url: "https://api.example.com/v1/mcp?page=2" }],
  ])("%s are none", (_, source) => {
    expect(found(source)).toEqual([]);
  });

  it("random values of sixteen characters and more look so, whatever their alphabet", () => {
    const digits = {
      hex: "0123456789abcdef",
      base32: "abcdefghijklmnopqrstuvwxyz234567",
      base64: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
    };
    for (const alphabet of Object.values(digits)) {
      const values = fc.sample(fc.array(fc.constantFrom(...alphabet), { minLength: 24, maxLength: 64 }), {
        numRuns: histories(1_000),
        seed: 1,
      });
      const missed = values.filter((value) => !looksRandom(value.join("")));
      expect(missed.length).toBeLessThan(20);
    }
  });

  it("takes no longer for a value that is long and strange [bounded]", () => {
    const started = process.cpuUsage();
    for (const value of [
      "a".repeat(131_072),
      "a=".repeat(65_000),
      'key="'.repeat(26_000),
      "x:".repeat(65_000),
      "{".repeat(100_000),
    ]) {
      secretsOf({ env: { KEY: value, OTHER: value }, args: [value] });
    }
    expect(process.cpuUsage(started).user).toBeLessThan(3_000_000);
  });

  it("are gathered once for an entry", () => {
    const entry = { args: ["--token", "opensesame"] };
    expect(redactorFor(entry)).toBe(redactorFor(entry));
  });
});
