// `token` from the words of the line to output and exit code, with a fake gateway.

import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { fakeGateway, folder, leaveFolder, makeFolder, run } from "../../../test/fixtures/fake-gateway.js";
import type { GatewaySource } from "../gateway/port.js";

beforeEach(makeFolder);

afterEach(leaveFolder);

describe("tokens", () => {
  it("are made, listed, shown and revoked through the gateway", async () => {
    const tokens = [{ id: "ci", role: "reader", createdAt: "2026-01-01", expiresAt: "2020-01-01T00:00:00Z" }];
    const fake = fakeGateway({
      "/tokens/default": { token: "tw_default" },
      "/tokens": (body: unknown) => (body ? { token: "tw_new" } : { tokens }),
    });
    expect(await run(["token", "create", "--id", "ci", "--role", "reader", "--expires", "30d"])).toMatchObject({
      out: "tw_new\n",
    });
    expect(fake.requests[0]?.body).toEqual({ id: "ci", role: "reader", expires: "30d" });
    expect((await run(["token", "list"])).out).toContain("(expired)");
    expect(await run(["token", "show"])).toMatchObject({ code: 0, out: "tw_default\n" });
    expect((await run(["token", "revoke", "cy"])).err).toContain("Did you mean ci?");
    expect(await run(["token", "revoke", "ci"])).toMatchObject({ code: 0, out: "Revoked ci.\n" });
    expect(fake.requests.at(-1)?.path).toBe("DELETE /tokens/ci");
  });

  it("of a role that the config does not have are made, with a remark", async () => {
    const roles = { roles: { reader: { allow: [] } }, mcpServers: {} };
    writeFileSync(join(folder, "toolway.json"), JSON.stringify(roles));
    fakeGateway({ "/tokens": { token: "tw_new" } });
    const create = (role: string) => run(["token", "create", "--id", "x", "--role", role]);
    expect(await create("reader")).toEqual({ code: 0, out: "tw_new\n", err: "" });
    expect((await create("raeder")).err).toContain('no role "raeder"');
    expect((await create("raeder")).err).toContain('this token may use every tool. Did you mean "reader"? Then revoke');
    expect((await create("executer")).err).toContain('this token may use every tool. Did you mean "executor"?');
    expect((await create("Executor")).err).toContain('Did you mean "executor"?');
    expect((await create("something")).err).not.toContain("Did you mean");
    rmSync(join(folder, "toolway.json"));
    expect((await create("executer")).err).toContain('Did you mean "executor"?');
    expect((await create("something")).err).toBe("The built-in demo has no roles: this token may use every tool.\n");
  });

  it("of executors that the config does not have are made, with a remark [status-true]", async () => {
    const executors = { mcpServers: { a: { url: "http://a", via: "office" } }, executors: { office: {}, lab: {} } };
    writeFileSync(join(folder, "toolway.json"), JSON.stringify(executors));
    fakeGateway({ "/tokens": { token: "tw_new" } });
    const create = (...more: string[]) => run(["token", "create", "--role", "executor", ...more]);
    expect((await create("--id", "office")).err).toBe("");
    expect((await create("--id", "x", "--name", "lab,office")).err).toBe("");
    expect((await create("--id", "ofice")).err).toBe(
      'The config has no executor "ofice" under "executors": nobody is let in by that name. ' +
        'Did you mean "office"? Then revoke this one, and make another.\n',
    );
    expect((await create("--id", "office", "--name", "lab,annex")).err).toContain(
      'no executor "annex" under "executors": nobody is let in by that name. Add it: "executors": { "annex": {} }.',
    );
  });

  it("are shown from the state directory where no gateway runs", async () => {
    fakeGateway(
      {},
      {
        defaultToken: async (source: GatewaySource) => (source.stateDir === join(folder, "s") ? "tw_file" : undefined),
      },
      false,
    );
    expect(await run(["token", "show", "--state", "s"])).toMatchObject({ out: "tw_file\n" });
    expect(await run(["token", "show"])).toMatchObject({ code: 1, out: "" });
  });
});
