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
    expect((await run(["token", "revoke", "cy"])).err).toContain("`toolway token list` shows them.");
    expect(await run(["token", "revoke", "ci"])).toMatchObject({ code: 0, out: "Revoked ci.\n" });
    expect(fake.requests.at(-1)?.path).toBe("DELETE /tokens/ci");
  });

  it("are listed with the mailboxes that they may send to, where any may [status-true]", async () => {
    const tokens = [
      { id: "ci", role: "reader", maySendTo: ["studio", "lab"] },
      { id: "ops", role: "admin", maySendTo: "any" },
      { id: "studio", role: "sharer" },
    ];
    fakeGateway({ "/tokens": { tokens } });
    const { out } = await run(["token", "list"]);
    expect(out).toMatch(/^ID +ROLE +MAY SEND TO +CREATED +EXPIRES$/m);
    expect(out).toMatch(/^ci +reader +studio, lab +-/m);
    expect(out).toMatch(/^ops +admin +any mailbox +-/m);
    expect(out).toMatch(/^studio +sharer +- +-/m);
    fakeGateway({ "/tokens": { tokens: tokens.slice(2) } });
    expect((await run(["token", "list"])).out).not.toContain("MAY SEND TO");
  });

  it("are listed with the names of the executors that they open, where none are given with their id [status-true]", async () => {
    const tokens = [
      { id: "office", role: "executor" },
      { id: "annex", role: "executor", names: ["lab", "attic"] },
      { id: "ci", role: "reader" },
    ];
    fakeGateway({ "/tokens": { tokens } });
    const { out } = await run(["token", "list"]);
    expect(out).toMatch(/^office +executor office +-/m);
    expect(out).toMatch(/^annex +executor lab, attic +-/m);
    expect(out).toMatch(/^ci +reader +-/m);
  });

  it("that may send to a mailbox which nobody has are made, with a remark [told-why]", async () => {
    const tokens = [{ id: "studio", role: "sharer" }];
    fakeGateway({ "/tokens": (body: unknown) => (body ? { token: "tw_new" } : { tokens }) });
    const create = (...to: string[]) =>
      run(["token", "create", "--id", "w", "--role", "r", ...to.flatMap((id) => ["--may-send-to", id])]);
    expect(await create("studio")).toEqual({ code: 0, out: "tw_new\n", err: "" });
    const { code, out, err } = await create("studoi", "lab");
    expect([code, out]).toEqual([0, "tw_new\n"]);
    expect(err).toContain('No mailbox "studoi" is known here yet: no token has that id. Did you mean "studio"?');
    expect(err).toContain('No mailbox "lab" is known here yet: no token has that id.\n');
    expect((await create("studio,lab")).err).toBe(
      'No mailbox "studio,lab" is known here yet: no token has that id. Several are named with a --may-send-to for each.\n',
    );
  });

  it("may send to the mailboxes that are named, each by its id as it is written, or to any", async () => {
    const fake = fakeGateway({ "/tokens": (body: unknown) => (body ? { token: "tw_new" } : { tokens: [] }) });
    const create = async (...more: string[]) => {
      const { code } = await run(["token", "create", "--id", "w", "--role", "r", ...more]);
      const asked = fake.requests.findLast(({ body }) => body !== undefined);
      return [code, (asked?.body as { maySendTo?: unknown } | undefined)?.maySendTo];
    };
    const named = ["studio", "lab, upstairs", "*", "studio"].flatMap((id) => ["--may-send-to", id]);
    expect(await create(...named)).toEqual([0, ["studio", "lab, upstairs", "*"]]);
    // A line that is left to the slower reader is understood alike.
    expect(await create("--may-send-to=studio", "--may-send-to=lab,attic")).toEqual([0, ["studio", "lab,attic"]]);
    expect(await create("--may-send-to-any")).toEqual([0, "any"]);
    expect(await create()).toEqual([0, undefined]);
    const asked = fake.requests.length;
    for (const wrong of [
      ["--may-send-to-any", "--may-send-to", "studio"],
      ["--may-send-to", ""],
    ]) {
      expect((await run(["token", "create", "--id", "w", "--role", "r", ...wrong])).code).toBe(2);
    }
    expect((await run(["token", "create", "--id", "w", "--admin", "viewer", "--may-send-to", "studio"])).code).toBe(2);
    expect(fake.requests.length).toBe(asked);
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
    const fake = fakeGateway({ "/tokens": { token: "tw_new" } });
    const create = (...more: string[]) => run(["token", "create", "--role", "executor", ...more]);
    expect((await create("--id", "office")).err).toBe("");
    expect((await create("--id", "x", "--name", "lab, office")).err).toBe("");
    // Without names the gateway takes the one that equals the id.
    expect(fake.requests.filter(({ body }) => body !== undefined)).toEqual([
      { path: "/tokens", body: { id: "office", role: "executor" } },
      { path: "/tokens", body: { id: "x", role: "executor", names: ["lab", "office"] } },
    ]);
    expect((await create("--id", "ofice")).err).toBe(
      'The config has no executor "ofice" under "executors": nobody is let in by that name. ' +
        'Did you mean "office"? Then revoke this one, and make another.\n',
    );
    expect((await create("--id", "office", "--name", "lab,annex")).err).toContain(
      'no executor "annex" under "executors": nobody is let in by that name. Add it: "executors": { "annex": {} }.',
    );
  });

  it("are refused with all that is missing, at once [told-why]", async () => {
    const said = async (...words: string[]) => (await run(["token", "create", ...words])).err.split("\n")[0];
    expect(await said()).toBe("toolway: --id ID and --role ROLE (or --admin POWER) are missing");
    expect(await said("--id", "ci")).toBe("toolway: --role ROLE (or --admin POWER) is missing");
    expect(await said("--admin", "viewer")).toBe("toolway: --id ID is missing");
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

function gatewayWith(answers: Record<string, unknown>) {
  const fake = fakeGateway({ "/tokens": { tokens: [{ id: "default" }, { id: "studio" }] }, ...answers });
  return fake;
}

it("token rotate prints the new secret alone, and beside it until when the old one is good [token-ends]", async () => {
  const oldSecretUntil = new Date(new Date().setHours(10, 12)).toISOString();
  const fake = gatewayWith({ "/tokens/studio/rotate": { token: "tw_new", oldSecretUntil } });
  const ran = await run(["token", "rotate", "studio"]);
  expect(ran).toMatchObject({ code: 0, out: "tw_new\n" });
  expect(ran.err).toContain("The old secret is good until 10:12.");
  expect(fake.requests.at(-1)).toEqual({ path: "/tokens/studio/rotate", body: { admin: true } });
  const json = await run(["token", "rotate", "studio", "--json"]);
  expect(JSON.parse(json.out)).toEqual({ id: "studio", token: "tw_new", oldSecretUntil });
});

it("token rotate names the nearest id where there is none, and asks for no secret", async () => {
  const fake = gatewayWith({});
  const ran = await run(["token", "rotate", "studoi"]);
  expect(ran).toMatchObject({ code: 2, out: "" });
  expect(ran.err).toContain("Did you mean studio?");
  expect(fake.requests.map(({ path }) => path)).toEqual(["/tokens"]);
});

it("token list shows an old secret as long as it is good", async () => {
  const soon = new Date(Date.now() + 5 * 60_000);
  const past = new Date(Date.now() - 60_000);
  const tokens = [
    { id: "studio", role: "sharer", createdAt: "2026-01-01", oldSecretUntil: soon.toISOString() },
    { id: "attic", role: "sharer", createdAt: "2026-01-01", oldSecretUntil: past.toISOString() },
  ];
  gatewayWith({ "/tokens": { tokens } });
  const { out } = await run(["token", "list"]);
  const lines = out.split("\n");
  const time = [soon.getHours(), soon.getMinutes()].map((part) => String(part).padStart(2, "0")).join(":");
  expect(lines.find((line) => line.startsWith("studio"))).toContain(`never, old secret until ${time}`);
  expect(lines.find((line) => line.startsWith("attic"))).toMatch(/never$/);
});
