// The real Codex, started by `toolway run --approve`: it calls a tool of a server behind the gateway, offline, against a
// scripted model. In the full runs only; without Codex they fail.

import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { codexOfFullRuns } from "../codex/binary.js";
import { FINAL_MESSAGE, startFakeModel } from "../codex/fake-model.js";
import { cli, startGateway, stdioFixture, temporaryDirectory } from "../e2e/harness.js";
import { start } from "../fixtures/processes.js";

const codex = await codexOfFullRuns();

describe.skipIf(codex.path === undefined)("toolway run with the real Codex", () => {
  it("calls a tool with the secret of its run, and the run says so at its end [run-own] [run-secret]", async () => {
    const gateway = await startGateway({ mcpServers: { ledger: stdioFixture("ledger") } }, { auth: true });
    const model = await startFakeModel({ server: "toolway", name: "echo", arguments: { text: "hello" } });
    const home = await temporaryDirectory();
    for (const folder of ["bin", "work"]) mkdirSync(join(home, folder));
    symlinkSync(codex.path ?? "", join(home, "bin", "codex"));
    const provider = ['model = "fake"', 'model_provider = "fake"', "[model_providers.fake]", 'name = "fake"'];
    const config = [...provider, `base_url = ${JSON.stringify(model.baseUrl)}`, 'wire_api = "responses"', ""];
    writeFileSync(join(home, "config.toml"), config.join("\n"));
    const own = ["exec", "--json", "--skip-git-repo-check", "--cd", join(home, "work"), "--sandbox", "read-only"];
    const at = ["--config", gateway.configPath, "--state", gateway.stateDir];
    const line = [cli, "run", "codex", ...at, "--approve", "--", ...own, "Call the tool."];
    const env = { PATH: `${join(home, "bin")}:${process.env["PATH"]}`, HOME: home, CODEX_HOME: home };
    const run = start("toolway run codex", process.execPath, line, env);
    run.child.stdin.end();
    const code = await run.closed;
    await model.close();
    expect(run.log()).toContain(FINAL_MESSAGE);
    expect(run.log()).toMatch(/run-[0-9a-f]{12}: 1 call, none refused/);
    expect(code).toBe(0);
  });
});
