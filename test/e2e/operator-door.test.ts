// The operator's door that the config holds open, of a real gateway: who is let in by which token, and who is not.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findGateway } from "../../src/control/client.js";
import { type Gateway, startGateway, stdioFixture, until } from "./harness.js";
import { createToken, freshId, statusOf, toolway } from "./operator.js";

describe("the operator's door, held open by the config", () => {
  let gateway: Gateway;
  let door: string;
  const tokens: Record<string, string> = {};

  beforeAll(async () => {
    const config = { mcpServers: { rug: stdioFixture("rug") }, admin: { listen: "127.0.0.1:0" }, mailboxes: {} };
    gateway = await startGateway(config, { auth: true });
    const control = await findGateway(gateway.stateDir);
    const port = async () => (await control?.get<{ port?: number }>("/door"))?.port;
    await until("the door to be open", async () => (await port()) !== undefined);
    door = `http://127.0.0.1:${await port()}`;
    for (const power of ["metrics", "viewer", "operator"]) {
      const { out } = await toolway(gateway, "token", "create", "--id", `door-${power}`, "--admin", power);
      tokens[power] = out.trim();
    }
    for (const role of ["agent", "executor", "sharer"]) tokens[role] = await createToken(gateway, role, role);
  });
  afterAll(() => gateway?.stop());

  const asking = (path: string, token: string | undefined, init: RequestInit = {}) =>
    fetch(`${door}${path}`, {
      ...init,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    });

  it("gives the metrics to its own tokens, and anything to no other [control-apart]", async () => {
    for (const power of ["metrics", "viewer", "operator"]) {
      const answer = await asking("/metrics", tokens[power]);
      expect([power, answer.status]).toEqual([power, 200]);
      expect(await answer.text()).toContain("toolway_build_info");
    }
    const { out } = await toolway(gateway, "token", "show");
    for (const [who, token] of [...Object.entries(tokens), ["default", out.trim()]] as [string, string][]) {
      if (["metrics", "viewer", "operator"].includes(who)) continue;
      for (const path of ["/metrics", "/api/status", "/api/feed", "/api/tokens"]) {
        expect([who, path, (await asking(path, token)).status]).toEqual([who, path, 401]);
      }
    }
  });

  it("opens to each token what its power is; none makes another, and none opens anything for an agent [control-apart]", async () => {
    const reload = { method: "POST", body: "{}" };
    expect((await asking("/api/status", tokens["metrics"])).status).toBe(403);
    expect((await asking("/api/status", tokens["viewer"])).status).toBe(200);
    expect((await asking("/api/reload", tokens["viewer"], reload)).status).toBe(403);
    expect((await asking("/api/servers/rug/stop", tokens["operator"], reload)).status).toBe(200);
    expect((await statusOf(gateway, "rug")).state).toBe("stopped");
    const made = { method: "POST", body: JSON.stringify({ id: "another", admin: "operator" }) };
    expect((await asking("/api/tokens", tokens["operator"], made)).status).toBe(403);
    const rotated = asking("/api/tokens/door-viewer/rotate", tokens["operator"], reload);
    expect((await rotated).status).toBe(403);
    for (const power of ["metrics", "viewer", "operator"]) {
      const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });
      const headers = { authorization: `Bearer ${tokens[power]}`, "content-type": "application/json" };
      expect((await fetch(gateway.url, { method: "POST", headers, body })).status).toBe(401);
    }
  });

  it("is shown in the list of tokens, and shut for one that was revoked [token-ends]", async () => {
    const id = freshId("scraper");
    const token = (await toolway(gateway, "token", "create", "--id", id, "--admin", "metrics")).out.trim();
    expect((await toolway(gateway, "token", "list")).out).toMatch(new RegExp(`${id} +\\(door: metrics\\)`));
    await toolway(gateway, "token", "rotate", id);
    expect((await asking("/metrics", token)).status).toBe(200);
    await toolway(gateway, "token", "revoke", id);
    expect((await asking("/metrics", token)).status).toBe(401);
    const twice = await toolway(gateway, "token", "create", "--id", "door-viewer", "--role", "agent");
    expect(twice.err).toContain("has a token already");
  });
});
