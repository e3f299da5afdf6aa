// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are variables of the config

import { describe, expect, it } from "vitest";
import { agentEnvironment, credentialVariables } from "./environment.js";

const CONFIG = `{
  // As people write it.
  "mcpServers": {
    "github": { "url": "https://x/?k=\${URL_KEY}", "headers": { "Authorization": "Bearer \${GITHUB_TOKEN}" } },
    "db": { "command": "db", "cwd": "\${COMPASS}/\${DB_PASS}", "args": ["\${HOME}/x", "--pass", "\${DB_PASSWORD}", "\${PROJECT}"], "env": { "A": "\${env:DB_URL:-none}", "P": "\${PATH}" } },
    "mine": { "url": "https://y", "auth": { "bearer": { "env": "MINE_BEARER" } } },
    "ci": { "url": "https://z", "auth": { "clientCredentials": { "clientId": "c", "clientSecret": { "env": "CI_SECRET" } } } },
    "gem": { "httpUrl": "https://g/?k=\${GEM_WORD}" },
    "surf": { "serverUrl": "https://s/?k=\${SURF_WORD}" },
    "ask": { "command": "a", "env": { "K": "\${input:api-key}" } },
  },
  "executors": { "far": { "urls": ["wss://a/\${FAR_WORD}"] } },
  "telemetry": { "otlp": "https://o/\${OTLP_WORD}" },
  "engine": { "servers": ["tls://nats:4222"], "key": { "env": "SEAL" }, "auth": { "user": "u", "password": { "env": "NATS_WORD" } } },
}`;

describe("the environment of an agent", () => {
  it("lacks every variable that the config's env, headers, auth, arguments and addresses refer to, and those that an engine's key and password are in, but for ordinary ones [run-secret]", () => {
    expect([...credentialVariables(CONFIG)].sort((a, b) => a.localeCompare(b))).toEqual([
      "CI_SECRET",
      "DB_PASS",
      "DB_PASSWORD",
      "DB_URL",
      "FAR_WORD",
      "GEM_WORD",
      "GITHUB_TOKEN",
      "INPUT_API_KEY",
      "MINE_BEARER",
      "NATS_WORD",
      "OTLP_WORD",
      "PROJECT",
      "SEAL",
      "SURF_WORD",
      "URL_KEY",
    ]);
  });

  it("is the user's without those and without Toolway's own, and says what was left out [run-secret]", () => {
    const user = {
      PATH: "/bin",
      GITHUB_TOKEN: "canary",
      DB_URL: "canary",
      TOOLWAY_TOKEN: "canary",
      Toolway_x: "1",
      A: "1",
    };
    const credentials = new Set(["GITHUB_TOKEN", "DB_URL", "NOT_SET"]);
    expect(agentEnvironment(user, credentials, [])).toEqual({
      env: { PATH: "/bin", A: "1" },
      left: ["DB_URL", "GITHUB_TOKEN"],
    });
    expect(agentEnvironment(user, credentials, ["GITHUB_TOKEN"])).toEqual({
      env: { PATH: "/bin", A: "1", GITHUB_TOKEN: "canary" },
      left: ["DB_URL"],
    });
  });
});
