// `status`, `config check`, `state dump` and the hidden verb of completion, with a fake gateway.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { fakeGateway, folder, leaveFolder, makeFolder, run, STATUS } from "../../../test/fixtures/fake-gateway.js";
import { keepWorker } from "../../mailbox/pairing/kept-workers.js";
import { stateDirFor, stateRootFor } from "../../runtime/state-dir.js";

beforeEach(makeFolder);

afterEach(leaveFolder);

it("status shows what is wrong below the table", async () => {
  fakeGateway();
  const { out } = await run(["status"]);
  expect(out).toMatch(/demo +down +stdio +2 \(from before\)/);
  expect(out).toContain(
    "demo: It ended with code 1. Next try in 2.0 s.\n  stderr: Error: no key\n`toolway doctor` says what to fix.",
  );
  expect(JSON.parse((await run(["status", "--json"])).out)).toMatchObject({ running: true, pid: 7 });
});

it("status exits 1 where something is wrong, with --json too, and 0 for what is idle or stopped [told-why]", async () => {
  const codes = async (change: object) => {
    fakeGateway({ "/status": { ...STATUS, ...change } });
    return [(await run(["status"])).code, (await run(["status", "--json"])).code];
  };
  const server = (change: object) => ({ servers: [{ ...STATUS.servers[0], state: "ready", ...change }] });
  for (const state of ["ready", "idle", "starting", "stopped"]) expect(await codes(server({ state }))).toEqual([0, 0]);
  for (const state of ["backoff", "ejected", "misconfigured", "waiting"]) {
    expect(await codes(server({ state })), state).toEqual([1, 1]);
  }
  expect(await codes(server({ circuit: "open" }))).toEqual([1, 1]);
  const credential = (needsLogin: boolean) => ({ source: "oauth", state: "missing", needsLogin });
  expect(await codes(server({ state: "backoff", credential: credential(true) }))).toEqual([0, 0]);
  expect(await codes(server({ state: "misconfigured", credential: credential(true) }))).toEqual([1, 1]);
  expect(await codes(server({ state: "backoff", credential: credential(false) }))).toEqual([1, 1]);
  const well = server({});
  const { config } = STATUS;
  expect(await codes({ ...well, config: { ...config, error: "toolway.json:1:1: no JSON" } })).toEqual([1, 1]);
  expect(await codes({ ...well, config: { ...config, keptEntries: { demo: "toolway.json:1:1: x" } } })).toEqual([1, 1]);
  expect(await codes({ ...well, config: { ...config, keptEntries: {} } })).toEqual([0, 0]);
  const engine = { state: "connected", since: "2026-11-19T10:00:00.000Z", differences: [], gateways: [], held: 0 };
  expect(await codes({ ...well, engine })).toEqual([0, 0]);
  expect(await codes({ ...well, engine: { ...engine, problem: "The engine has no room." } })).toEqual([1, 1]);
  expect(await codes({ ...well, engine: { ...engine, state: "away" } })).toEqual([1, 1]);
  expect(await codes({ ...well, store: { path: "/state", problem: "No room left.", since: "" } })).toEqual([1, 1]);
  // The answer is whole all the same.
  expect(JSON.parse((await run(["status", "--json"])).out)).toMatchObject({ running: true, store: { path: "/state" } });
});

it("config check does not call a config fine that has a warning [status-true]", async () => {
  const config = { mcpServers: { demo: { command: "x" } }, roles: { reader: { deny: ["demo/delete_*"] } } };
  writeFileSync(join(folder, "mine.json"), JSON.stringify(config));
  mkdirSync(stateDirFor(join(folder, "mine.json"), {}, join(folder, "home")), { recursive: true });
  fakeGateway({ "/roles/check": { unusedPatterns: ["it fits no tool."] } });
  expect(await run(["config", "check", "mine.json"])).toEqual({
    code: 0,
    out: "./mine.json can be used: 1 server, 1 warning.\n",
    err: "warning: it fits no tool.\n",
  });
  // Beside an entry that is wrong, too: who mends that one would find out about the rest only then.
  const wrong = { ...config, mcpServers: { demo: { command: "x" }, other: { command: `\${NOT_SET}` } } };
  writeFileSync(join(folder, "mine.json"), JSON.stringify(wrong));
  const { code, err } = await run(["config", "check", "mine.json"]);
  expect(code).toBe(2);
  expect(err).toMatch(/warning: it fits no tool\.\n.*NOT_SET is not set/);
  writeFileSync(join(folder, "mine.json"), JSON.stringify(config));
  fakeGateway({ "/roles/check": { unusedPatterns: [] } });
  expect((await run(["config", "check", "mine.json"])).out).toBe("./mine.json is fine: 1 server.\n");
});

it("status without a gateway promises no next try, and config check misses no file of tls [told-why]", async () => {
  fakeGateway({}, {}, false);
  const { out } = await run(["status"]);
  expect(out).toContain("demo: It ended with code 1.\n");
  expect(out).not.toContain("Next try");
  const tls = { cert: "cert.pem", key: "key.pem" };
  writeFileSync(join(folder, "toolway.json"), JSON.stringify({ mcpServers: {}, tls }));
  writeFileSync(join(folder, "key.pem"), "");
  const { code, err } = await run(["config", "check"]);
  expect(code).toBe(2);
  expect(err).toMatch(/toolway\.json:1:\d+: tls\.cert: .*cert\.pem cannot be read: it does not exist/);
  expect(err).not.toContain("tls.key");
});

it("state dump prints the lines as they come", async () => {
  fakeGateway();
  expect((await run(["state", "dump"])).out).toBe('{"a":1}\n{"b":2}\n');
});

it("the hidden verb for completion gives names, and nothing when there is no gateway", async () => {
  fakeGateway();
  expect((await run(["__complete", "tool", "--", "call", "--json"])).out).toBe("demo__add\ndemo__echo\n");
  expect((await run(["__complete", "server"])).out).toBe("demo\n");
  fakeGateway({ "/tokens": { tokens: [{ id: "ci" }, { id: "two words" }, { id: "setup-codex" }] } });
  expect((await run(["__complete", "token", "--", "token", "revoke"])).out).toBe("ci\nsetup-codex\n");
  fakeGateway({ "/tokens": { tokens: [{ id: "default" }, { id: "ci" }] } });
  // The default token can be meant, and neither be revoked nor rotated.
  expect((await run(["__complete", "token", "--", "stdio", "--as"])).out).toBe("default\nci\n");
  expect((await run(["__complete", "token", "--", "token", "revoke"])).out).toBe("ci\n");
  const at = (gateway: string, host: string, port: number) => ({
    gateway,
    place: { host, address: `10.0.0.1:${port}` },
  });
  fakeGateway({ "/gateways": { gateways: [at("Xk3Q", "web", 1), at("b7aZ", "web", 2), { gateway: "broker" }] } });
  expect((await run(["__complete", "gateway", "--", "drain"])).out).toBe(
    "this\nXk3Q\nb7aZ\nbroker\n10.0.0.1:1\n10.0.0.1:2\n",
  );
  writeFileSync(join(folder, "toolway.json"), '{"mcpServers":{},"roles":{"reader":{"allow":["*"]}}}');
  expect((await run(["__complete", "role", "--", "run", "--role"])).out).toBe("reader\n");
  expect((await run(["__complete", "role", "--", "token", "create", "--role"])).out).toBe("reader\nexecutor\nsharer\n");
  const worker = { broker: "ws://127.0.0.1:7440/mailboxes", id: "w", token: "tw_x", mailbox: "studio" };
  keepWorker(stateRootFor({}, join(folder, "home")), worker);
  expect((await run(["__complete", "paired", "--", "join", "--from"])).out).toBe("studio\n");
  fakeGateway({ "/tools": () => new Promise(() => undefined) });
  expect(await run(["__complete", "tool"])).toEqual({ code: 0, out: "", err: "" });
  fakeGateway({}, {}, false);
  expect(await run(["__complete", "tool"])).toEqual({ code: 0, out: "", err: "" });
});
