// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are variables of the config

import { describe, expect, it } from "vitest";
import { mistakesOf } from "../../test/fixtures/config-mistakes.js";
import { parseConfig } from "./load.js";

const read = (engine: object) =>
  parseConfig(`{\n  "mcpServers": {},\n  "engine": ${JSON.stringify(engine)}\n}`, {
    path: "/home/me/toolway.json",
    env: { NATS: "nats.internal", PASSWORD: "s3cret" },
    home: "/home/me",
  });
const KEY = { env: "TOOLWAY_ENGINE_KEY" };

describe("engine in a config", () => {
  it("[engine-door] has addresses with and without a port, IPv6 and variables, and defaults for the rest", () => {
    const { engine, warnings } = read({ nats: ["tls://${NATS}", "tls://[::1]:5222", "tls://b:4223/"], key: KEY });
    expect(engine).toEqual({
      nodes: [
        { host: "nats.internal", port: 4222 },
        { host: "::1", port: 5222 },
        { host: "b", port: 4223 },
      ],
      tls: { ca: undefined, cert: undefined, key: undefined },
      auth: undefined,
      key: { from: "env", name: "TOOLWAY_ENGINE_KEY" },
      replicas: 3,
      prefix: "tw",
      monitor: undefined,
      staleMs: 60_000,
      failReady: false,
    });
    expect(warnings).toEqual([]);
  });

  it("[engine-door] has secrets by variable or file, with paths from the file's folder", () => {
    const { engine } = read({
      nats: ["tls://a"],
      auth: { user: "al", password: { file: "./secrets/nats" } },
      tls: { ca: "ca.pem" },
      key: { file: "~/engine.key" },
      replicas: 1,
      prefix: "team_a",
      monitor: "http://127.0.0.1:8222/",
    });
    expect(engine).toMatchObject({
      auth: { by: "password", user: "al", password: { from: "file", path: "/home/me/secrets/nats" } },
      tls: { ca: "/home/me/ca.pem" },
      key: { from: "file", path: "/home/me/engine.key" },
      replicas: 1,
      prefix: "team_a",
      monitor: "http://127.0.0.1:8222",
    });
  });

  it.each([
    [{ nats: ["nats://al:${PASSWORD}@h:4222"] }, "engine.nats[0]: a secret does not belong into an address"],
    [{ nats: ["tls://a", "nats://b"] }, "engine.nats[1]: expected all addresses with tls://"],
    [{ nats: ["http://a:4222"] }, "engine.nats[0]: expected tls://HOST:PORT or nats://HOST:PORT"],
    [{ nats: ["nats://a:70000"] }, "engine.nats[0]: expected tls://HOST:PORT"],
    [{ nats: ["nats://a:4222/path"] }, "engine.nats[0]: expected tls://HOST:PORT"],
    [{ nats: [] }, "engine.nats: expected at least one address"],
    [{ nats: ["nats://127.0.0.1"], tls: {} }, "engine.tls: this is for addresses with tls://"],
    [{ nats: ["tls://a"], tls: { cert: "c.pem" } }, 'engine.tls: expected "cert" and "key" together'],
    [{ nats: ["tls://a"], auth: {} }, 'engine.auth: expected one of "token"'],
    [{ nats: ["tls://a"], auth: { user: "al" } }, 'engine.auth: expected "user" and "password" together'],
    [{ nats: ["tls://a"], auth: { token: KEY, nkey: KEY } }, "found more than one"],
    [{ nats: ["tls://a"], auth: { token: {} } }, 'engine.auth.token: expected one of "env" and "file", found none'],
    [{ nats: ["tls://a"], auth: { token: "s3cret" } }, "engine.auth.token: expected an object, found a string"],
    [{ nats: ["tls://a"], replicas: 2 }, "engine.replicas: expected 1, 3 or 5"],
    [{ nats: ["tls://a"], prefix: "a.b" }, "engine.prefix: expected letters, digits"],
    [{ nats: ["tls://a"], monitor: "127.0.0.1:8222" }, "engine.monitor: expected http://HOST:PORT"],
    [{ nats: ["tls://a"], replica: 3 }, "engine.replica: unknown key"],
  ])("[engine-door] [secrets-unseen] a mistake has its place and what to write instead: %j", (engine, expected) => {
    const told = mistakesOf(() => read({ ...engine, key: KEY }));
    expect(told).toContain(expected);
    expect(told).toMatch(/^\/home\/me\/toolway\.json:3:/);
    expect(told).not.toContain("s3cret");
  });

  it("[engine-sealed] without a key is a mistake", () => {
    expect(mistakesOf(() => read({ nats: ["tls://a"] }))).toContain("engine.key: missing");
  });

  it.each(["10.0.0.7", "localhost.example.com", "127.evil.net", "127.0.0.1.example.com"])(
    "[engine-door] in clear over a network is warned of: %s",
    (host) => {
      expect(read({ nats: [`nats://${host}`], key: KEY }).warnings.join()).toContain(
        "go there unencrypted (use tls://)",
      );
    },
  );

  it.each(["127.0.0.1", "127.0.0.2", "localhost", "LOCALHOST", "[::1]", "[::ffff:127.0.0.1]"])(
    "[engine-door] in clear on this machine is not warned of: %s",
    (host) => {
      expect(read({ nats: [`nats://${host}`], key: KEY }).warnings).toEqual([]);
    },
  );
});
