import { expect, it } from "vitest";
import { flowAnswer } from "./shown-flow.js";

type Record = Parameters<Parameters<typeof flowAnswer>[0]["at"]>[0] extends number
  ? ReturnType<Parameters<typeof flowAnswer>[0]["at"]>
  : never;

function kept(records: readonly Record[]) {
  return { first: 1, last: records.length, at: (seq: number) => records[seq - 1] as Record };
}

function call(endedAt: number, agent: string, server: string | undefined, outcome: Record["outcome"] = "ok"): Record {
  return { endedAt, principal: { id: agent, role: "default" }, clientInfo: { name: "claude" }, server, outcome };
}

it("sums who called which server in the last hour, and leaves the rest as numbers", () => {
  const nowMs = 10 * 3_600_000;
  const old = call(nowMs - 3_600_001, "ann", "github");
  const some = [call(nowMs, "ann", "github"), call(nowMs, "ann", "github", "timeout"), call(nowMs, "ann", undefined)];
  expect(flowAnswer(kept([old, ...some]), nowMs)).toEqual({
    lines: [{ agent: "ann", client: "claude", server: "github", calls: 2, errors: 1 }],
    moreAgents: 0,
    moreServers: 0,
    calls: 2,
    since: new Date(nowMs).toISOString(),
  });
  expect(flowAnswer(kept([]), nowMs)).toMatchObject({ lines: [], calls: 0, since: undefined });
  const many = Array.from({ length: 600 }, (_, n) => call(nowMs, `agent${n % 20}`, `server${n % 500}`));
  const answer = flowAnswer(kept(many), nowMs);
  expect(new Set(answer.lines.map(({ agent }) => agent)).size).toBeLessThanOrEqual(8);
  expect(new Set(answer.lines.map(({ server }) => server)).size).toBeLessThanOrEqual(12);
  expect([answer.moreAgents, answer.moreServers]).toEqual([12, 488]);
});
