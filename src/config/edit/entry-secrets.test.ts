// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are variables of the config

import { describe, expect, it } from "vitest";
import { hideSecrets, literalSecrets, neededVariables } from "./entry-secrets.js";

describe("an entry as it is shown", () => {
  it.each<[string, string[], string[]]>([
    ["an option's value, however short", ["--api-key", "k7"], ["--api-key", "[redacted]"]],
    [
      "a password that is spelt like a host or a path",
      ["--password", "canary.horse", "--secret=/canary", "--token-file", "/run/secrets/x"],
      ["--password", "[redacted]", "--secret=[redacted]", "--token-file", "/run/secrets/x"],
    ],
    ["a pair", ["--token=canary", "-e", "API_KEY=abc"], ["--token=[redacted]", "-e", "API_KEY=[redacted]"]],
    [
      "a header given to a bridge",
      ["mcp-remote", "https://x/mcp", "--header", "Authorization: Bearer canary"],
      ["mcp-remote", "https://x/mcp", "--header", "Authorization: [redacted]"],
    ],
    [
      "a key beside a variable",
      ["--auth=${USER}:canary-pass", "postgres://me:canary-pass@db.example/${DB}"],
      ["--auth=${USER}[redacted]", "postgres://[redacted]@db.example/${DB}"],
    ],
    ["the default of a variable", ["--token", "${TOKEN:-canary-default}"], ["--token", "${TOKEN:-[redacted]}"]],
    ["nothing of what is no key", ["-y", "@a/b", "/srv/data", "--port", "3000", "--token", "${T}"], []],
  ])("hides %s in arguments [secrets-unseen]", (_what, args, shown) => {
    const hidden = hideSecrets({ command: "npx", args })["args"];
    expect(hidden).toEqual(shown.length === 0 ? args : shown);
    expect(JSON.stringify(hidden)).not.toContain("canary");
    expect(literalSecrets({ command: "npx", args }).length > 0).toBe(shown.length > 0);
  });

  it("hides values of env and headers, whole lines in a command, addresses and sign-in [secrets-unseen]", () => {
    const entry = {
      command: "npx -y x --api-key canary",
      url: "https://me:canary-pass@h.example/mcp?key=canary-query",
      env: { TOKEN: "canary", REF: "${REF}", OPT: "${OPT:-}", DEF: "${DEF:-canary}", MODE: "fast" },
      headers: { Authorization: "Bearer ${T}", "X-Key": "canary" },
      oauth: { clientId: "me", clientSecret: "canary" },
    };
    const hidden = hideSecrets(entry);
    expect(JSON.stringify(hidden)).not.toContain("canary");
    expect(hidden).toMatchObject({
      command: "npx -y x --api-key [redacted]",
      env: { TOKEN: "(hidden)", REF: "${REF}", OPT: "${OPT:-}", DEF: "(hidden)", MODE: "(hidden)" },
      headers: { Authorization: "Bearer ${T}", "X-Key": "(hidden)" },
      oauth: { clientId: "me", clientSecret: "[redacted]" },
    });
    expect(literalSecrets(entry)).toEqual(["command", "url", "env.TOKEN", "headers.X-Key", "oauth"]);
  });
});

it("the variables that an entry needs are those without a default, and none that we fill in ourselves", () => {
  const entry = {
    args: ["${userHome}/x", "${A}", "${B:-${C}}", "${D:-}"],
    headers: { Authorization: "Bearer ${env:E}", X: "${A}" },
  };
  expect(neededVariables(entry)).toEqual(["A", "E"]);
});
