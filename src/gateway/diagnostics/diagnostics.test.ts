// What stands against calls while the audit log cannot be written, and how acts of operators come into it.

import { expect, it } from "vitest";
import { ownToolName } from "../../contracts/names.js";
import type { ControlRequest } from "../../control/server.js";
import { CaughtDay } from "../../observe/calls/caught-day.js";
import { createLog } from "../../observe/log.js";
import type { CallRecords } from "../../observe/metrics/call-records.js";
import type { CallObserver } from "../../observe/observed-call.js";
import { ServerEvents } from "../../observe/server-events.js";
import { Access } from "../../pipeline/access.js";
import { ProgramGuard } from "../../policy/guard.js";
import { compilePolicy } from "../../policy/policy.js";
import { auditFull, Diagnostics } from "./diagnostics.js";
import { diagnosticRoutes } from "./routes.js";

it("nothing is called while the audit log is full and calls are to be refused, whoever asks, and then it goes on [audit-tells]", () => {
  const pins = { quarantine: () => undefined, isQuarantined: () => false } as never;
  const access = new Access(compilePolicy({ roles: {}, unlistedRoles: "allow" }), new ProgramGuard(() => {}), pins);
  const call = () => access.demand({ id: "ann", role: "dev" }, "files", ownToolName("read"));
  let isFull = true;
  access.halted = () => (isFull ? auditFull("ENOSPC") : undefined);
  expect(call).toThrow("Nothing is called while the audit log of this gateway cannot be written.");
  // What is listed is asked elsewhere, and goes on.
  expect(access.decide({ id: "ann", role: "dev" }, "files", ownToolName("read")).kind).toBe("allow");
  isFull = false;
  expect(call).not.toThrow();
});

/** What these tests do not look at. */
const REST = {
  caught: new CaughtDay(0),
  serverEvents: new ServerEvents(() => 0),
  agents: () => [],
  redactFor: () => undefined,
  servers: () => [],
  toolsOf: () => undefined,
  asks: () => undefined,
  endingTokens: () => [],
};

it("an act is a line with its target and what came of it, without the rest of its body; looking is none [audit-tells] [secrets-unseen]", async () => {
  const lines: unknown[][] = [];
  const audit = { operator: (...line: unknown[]) => void lines.push(line) };
  const records = { audit, history: { isChanged: false } } as unknown as CallRecords;
  const log = createLog({ write: () => {} });
  const diagnostics = new Diagnostics({
    records,
    observer: {} as CallObserver,
    stateDir: undefined,
    auditDir: "/audit",
    log,
    ...REST,
  });
  const routes = diagnostics.audited(
    {
      "GET /status": () => ({}),
      "POST /tokens": () => ({ token: "tw_secret" }),
      "DELETE /tokens/:id": () => {
        throw Object.assign(new Error("no"), { code: "not-found" });
      },
    },
    "page",
  );
  const request = (over: Partial<ControlRequest>): ControlRequest => ({
    params: {},
    query: new URLSearchParams(),
    body: undefined,
    signal: new AbortController().signal,
    ...over,
  });
  await routes["GET /status"]?.(request({}));
  const body = { id: "ann", role: "dev", secret: "hunter2", names: ["x"] };
  expect(await routes["POST /tokens"]?.(request({ body }))).toEqual({ token: "tw_secret" });
  // What a token of the operator's door opens is the most that an act can give away.
  await routes["POST /tokens"]?.(request({ body: { id: "root", admin: "operator" } }));
  await expect(routes["DELETE /tokens/:id"]?.(request({ params: { id: "bob" } }))).rejects.toThrow("no");
  expect(lines).toEqual([
    ["page", "POST /tokens", { id: "ann", role: "dev" }, "ok"],
    ["page", "POST /tokens", { id: "root", admin: "operator" }, "ok"],
    ["page", "DELETE /tokens/:id", { id: "bob" }, "not-found"],
  ]);
});

it("who asks for an audit log that is not kept is told how to have one [audit-tells]", async () => {
  const records = { audit: undefined, history: { isChanged: false } } as unknown as CallRecords;
  const diagnostics = new Diagnostics({
    records,
    observer: {} as CallObserver,
    stateDir: undefined,
    auditDir: undefined,
    log: createLog({ write: () => {} }),
    ...REST,
  });
  const request = { params: {}, query: new URLSearchParams(), body: undefined, signal: new AbortController().signal };
  await expect(diagnosticRoutes(diagnostics)["GET /audit/head"]?.(request)).rejects.toThrow(
    'Write "audit": {} into it, and start the gateway again.',
  );
});

it("a token that is unknown at the operator's door is counted, and a line [audit-tells]", () => {
  const told: unknown[] = [];
  const records = {
    audit: { refusedToken: (...line: unknown[]) => told.push(line) },
    eventMetrics: { refused: (rule: string) => told.push(rule) },
    history: { isChanged: false },
  } as unknown as CallRecords;
  const log = createLog({ write: () => {} });
  const observer = {} as CallObserver;
  const diagnostics = new Diagnostics({ records, observer, stateDir: undefined, auditDir: "/audit", log, ...REST });
  diagnostics.refusedToken("10.0.0.1", "/api/status", "why");
  expect(told).toEqual(["token", ["10.0.0.1", "/api/status", "why"]]);
});
