// Lines that a text offers for pasting: each names the program as it was called and the config that was named.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { fakeGateway, folder, leaveFolder, makeFolder, run, TOOLS } from "../../../test/fixtures/fake-gateway.js";
import { TokenError } from "../../tokens/labels.js";
import { Stopped } from "../line/io.js";

beforeEach(() => {
  makeFolder();
  writeFileSync(join(folder, "mine.json"), '{"mcpServers":{"files":{"command":"x"}}}');
  writeFileSync(join(folder, "empty.json"), '{"mcpServers":{}}');
});
afterEach(leaveFolder);

const side = { hash: "abcdefabcdefabcdef", at: "2026-01-01T00:00:00.000Z", definition: "{}" };

describe("a line to paste works as it stands [told-why]", () => {
  it.each([
    [["inspect", "demo__echo"], "  npx toolway call demo__echo --config ./mine.json\n"],
    [["inspect", "demo__echo"], "`npx toolway pins diff demo --config ./mine.json`"],
    [
      ["pins", "diff", "demo"],
      "Accept it: npx toolway pins accept demo add --hash abcdefabcdef --config ./mine.json\n",
    ],
    [["tools"], "`npx toolway pins diff demo --config ./mine.json` shows what changed"],
    [["add", "files", "y"], "`npx toolway remove files --config ./mine.json`"],
    [["add", "docs", "npx -y z"], "`npx toolway add --config ./mine.json docs npx -y z`"],
    [["token", "create", "--id", "a", "--role", "b"], "`npx toolway token revoke a --config ./mine.json`"],
  ])("%s", async ([verb = "", ...words], line) => {
    const quarantined = "it changed: `toolway pins diff demo` shows how";
    fakeGateway({
      "/tools": { tools: TOOLS.map((tool) => ({ ...tool, quarantined })) },
      "/pins": { pins: [] },
      "/access?server=demo&tool=echo": { access: [] },
      "/pins/diff?server=demo": { diffs: [{ server: "demo", tool: "add", old: side, new: side }] },
      "/tokens": new TokenError("exists", '"a" has a token already. Revoke it first: `toolway token revoke a`'),
    });
    const option = ["--config", "mine.json"];
    const argv = verb === "add" ? [verb, ...option, ...words] : [verb, ...words, ...option];
    const { out, err } = await run(argv, { program: "npx toolway" });
    expect(out + err).toContain(line);
  });

  it("in an empty config, where a server is to be added", async () => {
    const { out } = await run(["list", "--config", "empty.json"], { program: "npx toolway" });
    expect(out).toContain("`npx toolway add --config ./empty.json NAME COMMAND…`");
  });

  it("at the start of a broker, with its state", async () => {
    fakeGateway();
    const stop = new AbortController();
    stop.abort(new Stopped("SIGINT"));
    const { out } = await run(["broker", "--state", "st"], { signal: stop.signal });
    expect(out).toContain("  toolway token create --id studio --role sharer --state ./st\n");
    expect(out).not.toContain("npx");
  });
});
