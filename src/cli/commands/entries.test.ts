// The verbs that edit a config, in process, with a fake gateway.

import { chmodSync, lstatSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { fakeGateway, folder, leaveFolder, makeFolder, run } from "../../../test/fixtures/fake-gateway.js";

const FILE = `{
  // what the team uses
  "mcpServers": {
    "docs": { "url": "https://docs.example/mcp", "headers": { "Authorization": "Bearer canary" } }, // read-only
    "files": { "command": "npx", "args": ["-y", "files", "--api-key", "canary"], "disabled": true },
    "gh": { "command": "gh", "env": { "TOKEN": "\${GH_TOKEN}" } },
  },
}
`;

beforeEach(() => {
  makeFolder();
  fakeGateway({}, {}, false);
  writeFileSync(join(folder, "toolway.json"), FILE);
});
afterEach(leaveFolder);

const text = () => readFileSync(join(folder, "toolway.json"), "utf8");

describe("list", () => {
  it("shows every server of the file, what is missing, and no key [secrets-unseen]", async () => {
    const { code, out } = await run(["list"]);
    expect(code).toBe(0);
    expect(out).toMatch(/docs +http +on +https:\/\/docs\.example\/mcp\n/);
    expect(out).toMatch(/files +stdio +off +npx -y files --api-key \[redacted\]\n/);
    expect(out).toMatch(/gh +stdio +needs GH_TOKEN +gh\n/);
    expect(out).toContain("3 servers in ./toolway.json.");
    expect(JSON.parse((await run(["list", "--json"], { env: { GH_TOKEN: "x" } })).out)).toMatchObject({
      config: join(folder, "toolway.json"),
      servers: [
        { name: "docs", kind: "http", disabled: false, entry: { headers: { Authorization: "(hidden)" } } },
        { name: "files", disabled: true },
        { name: "gh", unset: [] },
      ],
    });
  });

  it("says what to do without a config", async () => {
    const { code, err } = await run(["list"], { cwd: join(folder, "home") });
    expect(code).toBe(2);
    expect(err).toContain("toolway add NAME COMMAND…");
  });
});

describe("remove", () => {
  it("takes one entry out, and leaves the rest of the file as it was [config-kept]", async () => {
    chmodSync(join(folder, "toolway.json"), 0o640);
    expect(await run(["remove", "files"])).toEqual({ code: 0, out: "Removed files from ./toolway.json.\n", err: "" });
    expect(text()).toBe(
      FILE.split("\n")
        .filter((line) => !line.includes('"files"'))
        .join("\n"),
    );
    expect(statSync(join(folder, "toolway.json")).mode & 0o777).toBe(0o640);
    fakeGateway();
    expect((await run(["remove", "gh"])).out).toContain("The gateway that runs for it stops the server by itself.");
    expect(JSON.parse((await run(["remove", "docs", "--json"])).out)).toEqual({
      config: join(folder, "toolway.json"),
      removed: "docs",
      gateway: true,
    });
    expect(text()).toContain("// what the team uses");
  });

  it("keeps a link a link [config-kept]", async () => {
    symlinkSync("toolway.json", join(folder, "link.json"));
    await run(["remove", "gh", "--config", "link.json"]);
    expect(lstatSync(join(folder, "link.json")).isSymbolicLink()).toBe(true);
    expect(text()).not.toContain('"gh"');
  });

  it("names the nearest where there is none of that name, and refuses what is not JSON", async () => {
    expect(await run(["remove", "doc"])).toMatchObject({
      code: 1,
      err: "toolway: ./toolway.json has no server doc.\n  Did you mean docs?\n",
    });
    writeFileSync(join(folder, "toolway.json"), "{ oops");
    expect((await run(["remove", "docs"])).err).toContain("toolway.json:1:3: not valid JSON");
    expect(text()).toBe("{ oops");
  });
});

it("names for completion come from the config and from the clients, without a gateway", async () => {
  expect((await run(["__complete", "entry", "--", "remove"])).out).toBe("docs\nfiles\ngh\n");
  expect((await run(["__complete", "entry", "--", "remove", "--config", "none.json"])).out).toBe("");
  writeFileSync(join(folder, ".mcp.json"), '{"mcpServers":{"a":{"command":"a"},"with blank":{"command":"b"}}}');
  expect((await run(["__complete", "importable"])).out).toBe("a\n");
});
