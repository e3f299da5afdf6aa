// The audit log of a gateway that runs: what stands in it, that it is as it was written over kill -9 and a restart, and that
// what is done to it is found.

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { root, type ServerEntry, startGateway, until } from "./harness.js";
import { callTool, createToken, toolway } from "./operator.js";

const SECRET = "only-agent-and-server-know-this";
const demo: ServerEntry = { command: process.execPath, args: [join(root, "dist/demo/server.js")] };

it("what was called, refused and done by operators is in the audit log, over kill -9, and what is changed in it is named [audit-tells]", async () => {
  const kept = { ...demo, tools: { add: { outbox: true } } };
  const config = { mcpServers: { demo: kept }, audit: { arguments: "hmac" } };
  const gateway = await startGateway(config, { auth: true });
  const token = await createToken(gateway, "ann", "default");
  await until("a call that is answered", async () => {
    const { error } = await callTool(gateway.url, "echo", { text: SECRET }, token);
    return error === undefined;
  });
  expect((await fetch(gateway.url, { method: "POST" })).status).toBe(401);
  await toolway(gateway, "stop", "demo");
  await callTool(gateway.url, "add", { a: 2, b: 3 }, token);
  await toolway(gateway, "start", "demo");
  const file = join(gateway.stateDir, "audit", readdirSync(join(gateway.stateDir, "audit"))[0] as string);
  const text = () => readFileSync(file, "utf8");
  await until("a line of the write that was kept", () => text().includes('"kind":"write"'));
  await toolway(gateway, "reload", "demo");
  await until("a line of the last act", () => text().includes("POST /servers/:server/reload"));
  await gateway.stop("SIGKILL");
  const again = await gateway.again();
  const lines = (await toolway(again, "audit", "--json", "-n", "100")).out.trim().split("\n");
  const found = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  const hmac = { hmac: expect.any(String), length: expect.any(Number) };
  expect(found).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ kind: "call", principal: "ann", server: "demo", tool: "echo", arguments: hmac }),
      expect.objectContaining({ kind: "write", principal: "ann", server: "demo", tool: "add", outcome: "ok" }),
      expect.objectContaining({ kind: "refusal", rule: "token", address: "127.0.0.1" }),
      expect.objectContaining({
        kind: "operator",
        by: "socket",
        act: "POST /tokens",
        target: { id: "ann", role: "default" },
      }),
      expect.objectContaining({ kind: "operator", target: { server: "demo" }, outcome: "ok" }),
      expect.objectContaining({ kind: "resumed" }),
    ]),
  );
  expect(text()).not.toContain(SECRET);
  expect(text()).not.toContain(token);
  expect((await toolway(again, "audit", "--tool", "echo", "--csv")).out).toMatch(/^seq,time.*\n\d+,.*,call,ann,/);
  expect((await toolway(again, "metrics")).out).toMatch(/^toolway_audit_lines_total\{result="written"\} \d+$/m);
  const good = await toolway(again, "audit", "verify");
  expect(good).toMatchObject({ code: 0, out: expect.stringContaining("are as they were written") });
  const [, anchor] = /The last is (\S+)/.exec(good.out) ?? [];
  await again.stop();
  expect(again.log()).toContain("audit anchor ");
  // Its tail cut off: nobody sees it but by an anchor, or the next gateway by its store.
  const whole = text();
  writeFileSync(file, `${whole.trimEnd().split("\n").slice(0, -2).join("\n")}\n`);
  const unseen = { code: 0, err: expect.stringContaining("whether lines after it were cut off, cannot be seen") };
  expect(await toolway(again, "audit", "verify")).toMatchObject(unseen);
  const { prev } = JSON.parse(whole.split("\n")[1] as string) as { prev: string };
  expect(await toolway(again, "audit", "verify", "--anchor", `1:${prev}`)).toMatchObject(unseen);
  expect(await toolway(again, "audit", "verify", "--anchor", anchor as string)).toMatchObject({
    code: 1,
    out: expect.stringContaining("its tail was cut off"),
  });
  writeFileSync(file, whole.replace('"principal":"ann"', '"principal":"bob"'));
  expect(await toolway(again, "audit", "verify")).toMatchObject({
    code: 1,
    out: expect.stringContaining("it was changed"),
  });
});
