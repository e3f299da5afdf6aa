// The audit log of whole gateways: one writer for a folder, and what goes on while it cannot be written.

import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Agent } from "../../../test/fixtures/agent.js";
import { closeGateways, listed, start } from "../../../test/fixtures/gateways.js";
import { Tracker } from "../../../test/fixtures/outbox/tracker.js";
import { RECEIPT_TOOL } from "../../contracts/outbox.js";
import { verifyAudit } from "../../observe/audit/verify.js";
import { AuditWriter } from "../../observe/audit/writer.js";
import type { JsonObject } from "../../protocol/jsonrpc.js";

const SOON = { timeout: 60_000, interval: 20 };

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "toolway-open-audit-"));
});
afterEach(async () => {
  vi.restoreAllMocks();
  await closeGateways();
  rmSync(folder, { recursive: true, force: true });
});

it("a folder that two configs name has one writer: the second gateway does not start, until the first has closed it [audit-tells]", async () => {
  const path = join(folder, "audit");
  const config = { mcpServers: {}, audit: { path } };
  const first = await start(config, { stateDir: join(folder, "one"), lasting: true });
  const second = () => start(config, { stateDir: join(folder, "two") });
  await expect(second()).rejects.toThrow(path);
  await first.close({ drainMs: 0 });
  await (await second()).close({ drainMs: 0 });
  const { lines, wrong, notes } = await verifyAudit(path, []);
  expect({ wrong, notes }).toEqual({ wrong: undefined, notes: [] });
  const kinds = readdirSync(path)
    .filter((name) => name.endsWith(".jsonl"))
    .flatMap((name) => readFileSync(join(path, name), "utf8").trim().split("\n"))
    .map((line) => (JSON.parse(line) as { kind: string }).kind);
  expect(kinds).toHaveLength(lines);
  expect(kinds.filter((kind) => kind === "resumed")).toHaveLength(2);
});

it("while calls are refused for an audit log that cannot be written, lists and receipts go on, and then calls do [audit-tells]", async () => {
  const tracker = new Tracker();
  await tracker.listen();
  try {
    const gateway = await start(
      {
        mcpServers: {
          tracker: {
            type: "http",
            url: `http://127.0.0.1:${tracker.port}/mcp`,
            tools: { create_issue: { outbox: { key: "arguments.request_id" } } },
          },
        },
        audit: { onFull: "refuse" },
      },
      { stateDir: join(folder, "state") },
    );
    await listed(gateway, "tracker");
    await vi.waitFor(() => expect(gateway.outbox).toBeDefined(), SOON);
    await gateway.outbox?.hold("tracker", undefined);
    const agent = new Agent(gateway, "ada");
    const kept = (await agent.call("tracker__create_issue", { n: 1 }).answer())["result"] as JsonObject;
    const { receipt } = kept["structuredContent"] as { receipt: string };
    vi.spyOn(AuditWriter.prototype, "append").mockRejectedValue(new Error("ENOSPC: no space left on device, write"));
    await vi.waitFor(async () => {
      await agent.call("tracker__find_issues", { query: "x" }).answer();
      gateway.diagnostics.records.flush();
      await gateway.diagnostics.records.audit?.flush();
      expect(gateway.status().audit).toMatchObject({ refusing: true });
    }, SOON);
    for (const tool of ["find_issues", "create_issue"]) {
      expect(await agent.call(`tracker__${tool}`, { query: "x" }).answer()).toMatchObject({
        error: { message: expect.stringContaining("audit log of this gateway cannot be written") },
      });
    }
    const asked = await agent.call(RECEIPT_TOOL, { receipt }).answer();
    expect(asked).toMatchObject({ result: { structuredContent: { receipts: [{ receipt, state: "queued" }] } } });
    const read = await agent.send("resources/read", { uri: `toolway://receipts/${receipt}` }).answer();
    expect(read).toMatchObject({ result: { contents: [{ uri: `toolway://receipts/${receipt}` }] } });
    expect(await agent.send("tools/list").answer()).toHaveProperty("result.tools");
    vi.restoreAllMocks();
    await gateway.diagnostics.records.audit?.flush();
    expect(await agent.call("tracker__find_issues", { query: "x" }).answer()).toHaveProperty("result");
  } finally {
    await closeGateways();
    await tracker.close();
  }
});
