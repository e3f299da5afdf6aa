// What `share` and `join` say where the broker does not take them, with a fake gateway.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { fakeGateway, folder, leaveFolder, makeFolder, run } from "../../../test/fixtures/fake-gateway.js";
import { failedProbe } from "../gateway/failed-probe.js";
import { replaceGatewayPort } from "../gateway/port.js";

beforeEach(makeFolder);

afterEach(leaveFolder);

const broker = ["--broker", "ws://127.0.0.1:7440"];

describe("share that the broker refuses [told-why]", () => {
  const refused = async (env: Record<string, string>) => {
    writeFileSync(join(folder, "mine.json"), '{"mcpServers":{}}');
    replaceGatewayPort({ ...fakeGateway().port, share: async () => ({ why: "The broker refused the token." }) });
    return run(["share", "mine.json", ...broker, "--as", "studio", "--state", "st"], { env });
  };

  it("names the command for the broker's machine, without this machine's config and state", async () => {
    const { code, err } = await refused({ TOOLWAY_TOKEN: "tw_wrong" });
    expect(code).toBe(1);
    expect(err).toContain("`toolway token create --id studio --role sharer` at the broker");
    expect(err).not.toContain("mine.json");
    expect(err).not.toContain("not set");
  });

  it.each([{}, { TOOLWAY_TOKEN: "" }])("says that there is no token in %j", async (env) => {
    expect((await refused(env)).err).toContain("TOOLWAY_TOKEN is not set.");
  });
});

describe("join that the broker refuses [told-why]", () => {
  const refused = async (env: Record<string, string>, code = "unauthorized") => {
    const error = { code, message: "The broker refuses us.", remedy: 'Check "token" in its entry.' };
    replaceGatewayPort({ ...fakeGateway().port, probe: async () => failedProbe(error) });
    return run(["join", ...broker, "--from", "studio", "--state", "st", "--require"], { env });
  };

  it("says that TOOLWAY_TOKEN is not set, where it is not", async () => {
    for (const env of [{}, { TOOLWAY_TOKEN: "" }] as Record<string, string>[]) {
      const { code, err } = await refused(env);
      expect([code, err]).toEqual([1, expect.stringContaining("TOOLWAY_TOKEN is not set")]);
    }
  });

  it("names the token of the line and no entry of a config, where it is set", async () => {
    const { err } = await refused({ TOOLWAY_TOKEN: "tw_wrong" });
    expect(err).toContain("`toolway token list` at the broker");
    expect(err).not.toMatch(/its entry|not set|--state/);
  });

  it("leaves the remedy of any other fault as it is", async () => {
    expect((await refused({}, "unavailable")).err).toContain("its entry");
  });
});

it("names --pair beside --broker, where neither is given [told-why]", async () => {
  for (const verb of ["share", "join"]) {
    const { code, err } = await run([verb]);
    expect([code, err]).toEqual([2, expect.stringMatching(/--broker is missing.*--pair/s)]);
  }
});
