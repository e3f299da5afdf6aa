// Two builds side by side on one engine, as in an upgrade: the one of dist/, and a copy of it that writes some records in a form of
// the next version. What both know is good at both; what the older one cannot read it leaves alone.

import { cpSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { makeEngineKey } from "../../src/gateway/engine/keys.js";
import { type Gateway, root, startGateway, startHttpFixture } from "../e2e/harness.js";
import { callTool, createToken, hasTool, statusOfAll, toolway } from "../e2e/operator.js";
import { begin, post } from "../fixtures/engine-gateways.js";
import { temporaryFolder } from "../fixtures/folders.js";
import { NO_NATS, natsPrograms, startNats } from "../fixtures/nats.js";
import { until } from "../fixtures/wait.js";

const title = natsPrograms.length === 0 ? `two versions, ${NO_NATS}` : "two versions on one engine";

/** What the next version does otherwise: it reads the form 2, and writes records so whose keys begin with "newer". */
const CHANGES: readonly (readonly [now: string, next: string])[] = [
  ['>1)return"newer";if(head.v!==1||', '>2)return"newer";if(head.v!==1&&head.v!==2||'],
  ["{v:1,id,after,writes:heads", '{v:heads.some((one)=>String(one[2]).startsWith("newer"))?2:1,id,after,writes:heads'],
];

/** A whole build in a folder of its own. Returns its program. */
function buildNewer(): string {
  const folder = temporaryFolder("toolway-newer-");
  cpSync(join(root, "dist"), join(folder, "dist"), { recursive: true });
  cpSync(join(root, "package.json"), join(folder, "package.json"));
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  const chunks = join(folder, "dist/chunks");
  let changed = 0;
  for (const name of readdirSync(chunks)) {
    const text = readFileSync(join(chunks, name), "utf8");
    if (!CHANGES.every(([now]) => text.includes(now))) continue;
    writeFileSync(
      join(chunks, name),
      CHANGES.reduce((rest, [now, next]) => rest.replace(now, next), text),
    );
    changed++;
  }
  if (changed === 0) throw new Error("The build has no place that says the version of a record: see CHANGES.");
  return join(folder, "dist/cli/main.js");
}

const receiptIn = (result: Record<string, unknown> | undefined) =>
  (result?.["structuredContent"] as { receipt?: string } | undefined)?.receipt ?? "";

describe.skipIf(natsPrograms.length === 0)(title, () => {
  it("share tokens, sessions and receipts; a record of the newer is left alone by the older, held and shown; another config is told by status and doctor [engine-versions] [engine-same-config]", async () => {
    const nats = await startNats();
    const key = join(temporaryFolder("toolway-versions-"), "key");
    writeFileSync(key, makeEngineKey(), { mode: 0o600 });
    const server = await startHttpFixture("tracker");
    const tools = { create_issue: { outbox: { lane: "arguments.project", key: "arguments.request_id" } } };
    const config = {
      mcpServers: { tracker: { type: "http", url: server.url, tools } },
      engine: { nats: nats.urls, key: { file: key }, replicas: 1 },
    };
    const older = await startGateway(config, { auth: true });
    const newer = await startGateway(config, { auth: true, program: buildNewer() });
    const both = [older, newer] as const;
    const status = async (gateway: Gateway, token: string) =>
      (await post(gateway, token, { id: 1, method: "ping" }, await begin(gateway, token))).status;

    const tokens = [await createToken(older, "ada", "default"), await createToken(newer, "bob", "default")] as const;
    for (const gateway of both) {
      for (const token of tokens)
        await until("the token to be good", async () => (await status(gateway, token)) === 200);
      await until("its tools", () => hasTool(gateway.url, "create_issue", tokens[0]));
    }
    for (const [home, other] of [both, [newer, older]] as const) {
      const session = await begin(home, tokens[0]);
      const { status: answered } = await post(other, tokens[0], { id: 2, method: "tools/list" }, session);
      expect(answered).toBe(200);
    }
    await server.kill();
    for (const [n, [taker, other]] of ([both, [newer, older]] as const).entries()) {
      const args = { project: `p${n}`, title: `t${n}`, request_id: `k${n}` };
      const id = receiptIn((await callTool(taker.url, "create_issue", args, tokens[0])).result);
      const { result } = await callTool(other.url, "toolway__receipt", { id }, tokens[0]);
      expect(result?.["structuredContent"]).toMatchObject({ receipt: id, state: "queued" });
    }

    expect(await statusOfAll(older)).toMatchObject({ engine: { held: 0 } });
    const unreadable = await createToken(newer, "newer-eve", "default");
    expect(await status(newer, unreadable)).toBe(200);
    await until("it to be held", async () => (await statusOfAll(older)).engine?.held === 1);
    expect((await toolway(older, "status")).out).toContain("1 record of a newer Toolway or another key left alone");
    await expect(status(older, unreadable)).rejects.toThrow("401");
    // Neither read nor written over.
    expect((await toolway(older, "token", "list")).out).not.toContain("newer-eve");
    const again = await toolway(older, "token", "create", "--id", "newer-eve", "--role", "default");
    expect([again.code === 0, again.err]).toEqual([false, expect.stringContaining("newer version of Toolway")]);
    expect(await status(newer, unreadable)).toBe(200);
    expect((await statusOfAll(newer)).engine?.held).toBe(0);

    // In the middle of an upgrade one goes by the next config already.
    await newer.writeConfig({ ...config, roles: { ci: { deny: ["tracker/*"] } } });
    await until("the difference", async () => (await statusOfAll(older)).engine?.differences.length === 1);
    const differs = /Gateway \S+ goes by another config: roles\. Give all of them the same\./;
    for (const verb of ["status", "doctor"]) expect((await toolway(older, verb)).out).toMatch(differs);
  }, 180_000);
});
