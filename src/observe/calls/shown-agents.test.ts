import { expect, it } from "vitest";
import { agentsAnswer, type ConnectedAgent, MAX_AGENTS_SHOWN } from "./shown-agents.js";

const NOW_MS = Date.UTC(2026, 0, 1);

function agent(id: string, name: string | undefined, more: object = {}): ConnectedAgent {
  return {
    session: {
      ...{ principal: { id, role: "dev" }, clientInfo: name === undefined ? {} : { name }, sessionKey: `of ${id}` },
      ...{ era: "legacy", version: "2025-11-25", ...more },
    },
    scope: undefined,
  };
}

const kept = (calls: readonly [id: string, name: string, outcome: "ok" | "timeout"][]) => ({
  first: 1,
  last: calls.length,
  at: (seq: number) => {
    const [id, name, outcome] = calls[seq - 1] ?? ["", "", "ok"];
    const principal = { id, role: "dev" };
    return { endedAt: NOW_MS + seq, principal, clientInfo: { name }, sessionKey: `of ${id}`, outcome };
  },
});

it("those that are connected are told with what they called, the last caller first, and programs are none", () => {
  const calls = kept([
    ["ann", "codex", "ok"],
    ["ann", "codex", "timeout"],
    ["bob", "gemini", "ok"],
  ]);
  const connected = [
    agent("cyd", undefined),
    agent("ann", "codex"),
    agent("bob", undefined, { era: "modern" }),
    agent("operator", "toolway", { hearsNothing: true }),
  ];
  const answer = agentsAnswer(connected, calls, { role: 3 });
  expect(answer.agents.map(({ principal, calls: own, failed }) => [principal, own, failed])).toEqual([
    ["bob", 1, 0],
    ["ann", 2, 1],
    ["cyd", 0, 0],
  ]);
  expect(answer.agents[0]).toMatchObject({
    era: "modern",
    client: "gemini",
    lastCallAt: new Date(NOW_MS + 3).toISOString(),
  });
  expect([answer.agents[2]?.lastCallAt, answer.total, answer.refused]).toEqual([undefined, 3, { role: 3 }]);
});

it("more than anybody reads are a number, and a long name is cut [bounded]", () => {
  const many = Array.from({ length: 1_000 }, (_, n) => agent(`a${n}`, "x".repeat(10_000)));
  const { agents, total } = agentsAnswer(many, kept([]), {});
  expect([agents.length, total, agents[0]?.client?.length]).toEqual([MAX_AGENTS_SHOWN, 1_000, 128]);
});

it("modern agents that share a token are told apart by the names of their calls, as far as those are few [bounded]", () => {
  const calls = kept([
    ["ann", "codex", "timeout"],
    ["ann", "claude-code", "ok"],
    ["bob", "codex", "ok"],
    ["ann", "claude-code", "ok"],
  ]);
  const connected = [agent("ann", undefined, { era: "modern" })];
  const rows = ({ agents }: ReturnType<typeof agentsAnswer>) =>
    agents.map(({ client, calls: own, failed }) => [client, own, failed]);
  expect(rows(agentsAnswer(connected, calls, {}))).toEqual([
    ["claude-code", 2, 0],
    ["codex", 1, 1],
  ]);
  const many = kept(Array.from({ length: 20 }, (_, n) => ["ann", `name ${n}`, "ok"]));
  const told = rows(agentsAnswer(connected, many, {}));
  expect([told.length, told.at(-1)]).toEqual([9, [undefined, 12, 0]]);
});
