// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are variables of the config

import { describe, expect, it } from "vitest";
import { ownToolName } from "../contracts/names.js";
import { parseConfig } from "./load.js";

const options = { path: "/proj/mcp.json", env: { HOST: "example.com" }, home: "/home/me" };
const parse = (value: unknown) => parseConfig(JSON.stringify(value), options);
const server = (entry: object) => parse({ mcpServers: { a: { command: "x", ...entry } } }).servers[0];
const mistakes = (value: unknown): string => {
  try {
    parse(value);
    return "";
  } catch (error) {
    return (error as Error).message;
  }
};
const wrong = (entry: object) => mistakes({ mcpServers: { a: { command: "x", ...entry } } });

const DEFAULTS = {
  restarts: { max: 5, windowMs: 300_000 },
  backoff: { baseMs: 100, maxMs: 5_000 },
  breaker: { failures: 5, openMs: 30_000 },
  ejectedProbeMs: 300_000,
  lazy: false,
  keepAliveMs: undefined,
  pingMs: 30_000,
  callCeilingMs: 3_600_000,
  sessionConnections: 200,
};

describe("supervision", () => {
  it("has its defaults; an HTTP server is not pinged, and is tried again by itself more often [host-14]", () => {
    expect(server({})?.supervision).toEqual(DEFAULTS);
    const http = parse({ mcpServers: { a: { url: "http://x/mcp" } } }).servers[0];
    expect(http?.supervision).toEqual({ ...DEFAULTS, pingMs: undefined, ejectedProbeMs: 60_000 });
    expect(http).toMatchObject({ trust: "pinned", card: undefined, budget: undefined });
  });

  it("takes each key, and fills in the rest of an object", () => {
    const entry = {
      restarts: { max: 0 },
      backoff: { maxMs: 1_000 },
      breaker: { openMs: 5 },
      ejectedProbeMs: 60_000,
      lazy: true,
      keepAliveMs: 1_000,
      pingMs: 0,
      callCeilingMs: 400_000,
      sessionConnections: 20,
    };
    expect(server(entry)?.supervision).toEqual({
      restarts: { max: 0, windowMs: 300_000 },
      backoff: { baseMs: 100, maxMs: 1_000 },
      breaker: { failures: 5, openMs: 5 },
      ejectedProbeMs: 60_000,
      lazy: true,
      keepAliveMs: 1_000,
      pingMs: undefined,
      callCeilingMs: 400_000,
      sessionConnections: 20,
    });
  });

  it("takes 0 for never", () => {
    const never = { pingMs: 0, ejectedProbeMs: 0 };
    const http = parse({ mcpServers: { a: { url: "http://x/mcp", ...never } } }).servers[0];
    expect(http?.supervision).toMatchObject({ pingMs: undefined, ejectedProbeMs: undefined });
  });

  it("lets a call take its own time at least", () => {
    expect(server({ callTimeoutMs: 9_000_000 })?.supervision.callCeilingMs).toBe(9_000_000);
  });

  it.each([
    [{ restarts: { maximum: 1 } }, 'restarts.maximum: unknown key: expected "max" or "windowMs"'],
    [{ breaker: { failures: 0 } }, "breaker.failures: expected a number of at least 1"],
    [{ backoff: { baseMs: 500, maxMs: 100 } }, 'backoff.maxMs: expected at least "baseMs", which is 500'],
    [{ budget: { calls: 1 } }, "budget.windowMs: missing: expected a number"],
    [{ trust: "alway" }, 'trust: expected "pinned" or "always", found "alway" (did you mean "always"?)'],
    [{ card: "ftp://x/card" }, "card: expected an address that starts with http:// or https://"],
    [{ tools: { budget: { idempotant: true } } }, 'tools.budget.idempotant: unknown key: expected "name"'],
    [
      { prompts: { p: { readOnly: true } } },
      'prompts.p.readOnly: unknown key: expected "name", "description" or "hide"',
    ],
    [{ lasy: true }, 'lasy: unknown key (did you mean "lazy"?)'],
  ])("%j is a mistake", (entry, printed) => expect(wrong(entry)).toContain(`mcpServers.a.${printed}`));
});

describe("trust", () => {
  it("is pinned unless the config says always; Gemini CLI's true loosens nothing", () => {
    expect(server({ trust: "always" })?.trust).toBe("always");
    for (const trust of [true, false, "pinned", undefined]) expect(server({ trust })?.trust).toBe("pinned");
  });

  it("of single tools is said in the config, which decides what may be called again", () => {
    const tools = {
      read: { readOnly: true },
      put: { idempotent: true },
      post: { cache: true },
      constructor: { readOnly: false },
    };
    const found = server({ tools });
    expect([...(found?.repeatable ?? [])]).toEqual(["read", "put"]);
    expect(found?.tools["post"]).toMatchObject({ readOnly: false, idempotent: false, cache: true });
    expect(found?.repeatable.has(ownToolName("constructor"))).toBe(false);
  });
});

it("a card is a path from the config's folder, or an address", () => {
  expect(server({ card: "cards/a.json" })?.card).toBe("/proj/cards/a.json");
  expect(server({ card: "~/a.json" })?.card).toBe("/home/me/a.json");
  expect(server({ card: "https://${HOST}/card" })?.card).toBe("https://example.com/card");
});

it("budgets of servers and of roles are read", () => {
  const budget = { calls: 3, windowMs: 1_000 };
  const config = parse({ mcpServers: { a: { command: "x", budget } }, roles: { r: { budget }, s: {} } });
  expect(config.servers[0]?.budget).toEqual(budget);
  expect(config.roles["r"]?.budget).toEqual(budget);
  expect(config.roles["s"]?.budget).toBeUndefined();
});

describe("cache and telemetry", () => {
  it("have their defaults", () => {
    expect(parse({ mcpServers: {} })).toMatchObject({
      cache: { maxBytes: 67_108_864, entriesPerTool: 64, maxTtlMs: 3_600_000 },
      telemetry: undefined,
    });
  });

  it("take what they are given, and leave Gemini CLI's telemetry alone", () => {
    const config = parse({
      mcpServers: {},
      cache: { entriesPerTool: 2 },
      telemetry: { otlp: "http://127.0.0.1:4318/v1/traces" },
    });
    expect(config.cache).toEqual({ maxBytes: 67_108_864, entriesPerTool: 2, maxTtlMs: 3_600_000 });
    expect(config.telemetry).toEqual({ otlp: "http://127.0.0.1:4318/v1/traces", metrics: true });
    const gemini = { enabled: true, target: "gcp", otlpEndpoint: "" };
    expect(parse({ mcpServers: {}, telemetry: gemini })).toMatchObject({ telemetry: undefined, warnings: [] });
  });

  it("refuse a wrong address as a mistake", () => {
    const printed = "telemetry.otlp: expected an address that starts with http:// or https://";
    expect(mistakes({ mcpServers: {}, telemetry: { otlp: "collector:4318" } })).toContain(printed);
    expect(mistakes({ mcpServers: {}, telemetry: { otlp: 1 } })).toContain("telemetry.otlp: expected a string");
  });
});
