// What the operator's page works out of what it is told, before a browser draws it.

import { describe, expect, it } from "vitest";
import { agentRows } from "../dashboard/agents.js";
import { stateWord } from "../dashboard/needs.js";
import { hourPicture } from "../dashboard/servers/hour.js";
import { claimWords, pinWords, roleWords, sinceWords, unusedTools, whoMayCall } from "../dashboard/tools/unused.js";
import { deliveredWords, joinedWrites, laneRows, waitWords } from "../dashboard/waiting/lanes.js";
import { lifeOf } from "../dashboard/waiting/life.js";
import { styleOf } from "../src/cli/text/print.js";
import { stateText } from "../src/cli/text/status.js";
import type { HistoryAnswer } from "../src/contracts/control/history.js";
import type { ToolInShort } from "../src/contracts/control/tools.js";
import { ownToolName } from "../src/contracts/names.js";
import type { OutboxEntry, OutboxLane } from "../src/contracts/outbox.js";
import type { ServerStatus } from "../src/contracts/status.js";

describe("a server's state", () => {
  it("is told by the words of `toolway status`", () => {
    const said = (state: "ready" | "backoff" | "ejected", circuit: "closed" | "open" | "half-open") =>
      stateText({ state, circuit } as ServerStatus, styleOf({ env: {}, isTTY: false }));
    for (const state of ["ready", "backoff", "ejected"] as const) {
      for (const circuit of ["closed", "open", "half-open"] as const) {
        expect(stateWord({ state, circuit })).toBe(said(state, circuit));
      }
    }
  });
});

describe("agents that are connected", () => {
  it("are one row where they are alike, because their calls are counted together", () => {
    const agent = { principal: "ann", role: "dev", client: "claude", era: "legacy", version: "2025-06-18" } as const;
    const seen = { ...agent, server: undefined, calls: 16, failed: 2, lastCallAt: undefined };
    const rows = agentRows([seen, { ...seen, principal: "bob", calls: 1 }, seen]);
    expect(rows.map(({ agent: { principal, calls }, sessions }) => [principal, calls, sessions])).toEqual([
      ["ann", 16, 2],
      ["bob", 1, 1],
    ]);
  });
});

describe("a server's hour", () => {
  const untilMs = Date.parse("2026-01-01T10:00:00Z");
  const empty = Array.from({ length: 360 }, () => 0);
  const past = (more: Partial<NonNullable<HistoryAnswer["line"]>>) => ({
    stepMs: 10_000,
    untilMs,
    line: { server: "a", calls: empty, errors: empty, p50: empty, p95: empty, restarts: empty, ...more },
  });

  it("has its restarts where they were, and the breaker from its opening to its closing or to now", () => {
    const calls = empty.with(0, 6).with(359, 3);
    const restarts = empty.with(180, 2);
    const picture = hourPicture(past({ calls, errors: empty.with(359, 1), restarts }), [
      { at: "2026-01-01T08:00:00Z", circuit: "open" },
      { at: "2026-01-01T08:30:00Z", circuit: "closed" },
      { at: "2026-01-01T09:30:00Z", circuit: "open" },
      { at: "2026-01-01T09:30:30Z", circuit: "closed" },
      { at: "2026-01-01T09:59:00Z", circuit: "open" },
    ]);
    expect(picture.restarts.map(({ x, count }) => [Math.round(x), count])).toEqual([[301, 2]]);
    expect(picture.open.map(({ x, width }) => [Math.round(x), Math.round(width)])).toEqual([
      [300, 5],
      [590, 10],
    ]);
    expect(picture.words).toBe(
      "In the last hour: 9 calls, 1 failed; started again 2 times; its breaker was open 2 times, 90 s in all",
    );
    expect(picture.calls.split(" ")).toHaveLength(60);
    expect(picture.failed).not.toBe("");
  });

  it("is told of a server that nobody called, too", () => {
    const { calls, restarts, open, words } = hourPicture({ ...past({}), line: undefined }, []);
    expect([calls, restarts, open]).toEqual(["", [], []]);
    expect(words).toBe("In the last hour: 0 calls, 0 failed; not started again; its breaker stayed closed");
  });
});

function entry(id: string, more: Partial<OutboxEntry>): OutboxEntry {
  return {
    ...{ id, server: "tracker", tool: ownToolName("create"), state: "queued", idempotencyKey: id, position: 0 },
    ...{ takenMs: 1_000, sinceMs: 1_000, why: undefined, attempts: 0, result: undefined, error: undefined },
    ...{ principal: "ann", lane: "a", heldFor: undefined, nextTryMs: undefined, bytes: 1 },
    ...more,
  };
}

describe("the lanes of what waits", () => {
  it("have their writes in order, those that wait for a person first, and those without an order as one", () => {
    const writes = [
      entry("3", { position: 1, takenMs: 30 }),
      entry("2", { takenMs: 20 }),
      entry("5", { lane: "b", takenMs: 50, heldFor: "a person" }),
      entry("6", { lane: "", takenMs: 60 }),
      entry("7", { lane: "", takenMs: 70 }),
      entry("8", { lane: "", state: "done" }),
      entry("9", { lane: "a", state: "unknown" }),
    ];
    const lane = (name: string, depth: number, heldFor?: string): OutboxLane => ({
      ...{ server: "tracker", lane: name, depth, oldestMs: undefined, heldFor },
      ...{ isServerHeld: false, isOrdered: !name.startsWith("write ") },
    });
    const lanes = [
      lane("a", 7),
      lane("b", 1, "a person"),
      lane("write 6", 1),
      lane("write 7", 1),
      lane("c", 0, "held"),
    ];
    const rows = laneRows(writes, lanes);
    expect(rows.map(({ lane: name, depth, writes: own }) => [name, depth, own.map(({ id }) => id)])).toEqual([
      ["b", 1, ["5"]],
      ["c", 0, []],
      ["a", 7, ["2", "3"]],
      ["", 2, ["6", "7"]],
    ]);
  });

  it("of a server that an operator holds are released with it, those without an order as one", () => {
    const held = { server: "tracker", depth: 1, oldestMs: 1, heldFor: "all lanes", isServerHeld: true };
    const lanes = [
      { ...held, lane: "a", isOrdered: true },
      ...["write 6", "write 7", "write 8"].map((lane) => ({ ...held, lane, isOrdered: false })),
    ];
    const rows = laneRows([entry("1", {}), entry("6", { lane: "", takenMs: 2_000 })], lanes);
    expect(rows.map(({ lane, heldFor, isWhole, depth }) => [lane, heldFor, isWhole, depth])).toEqual([
      ["a", "all lanes", true, 1],
      ["", "all lanes", true, 3],
    ]);
    // One by itself is held and released by itself; what one write without an order waits for holds no others.
    const own = { ...held, isServerHeld: false, heldFor: "unknown" };
    const some = [
      { ...own, lane: "a", isOrdered: true },
      { ...own, lane: "write 6", isOrdered: false },
      { ...own, lane: "write 9", isOrdered: false, depth: 0 },
    ];
    const apart = laneRows([entry("1", {}), entry("6", { lane: "", heldFor: "unknown", takenMs: 2_000 })], some);
    expect(apart.map(({ lane, heldFor, isWhole }) => [lane, heldFor, isWhole])).toEqual([
      ["a", "unknown", false],
      ["", undefined, true],
    ]);
  });

  it("have those of unknown outcome that the list of all has no place for, each once", () => {
    const [done, unknown] = [entry("2", { state: "done" }), entry("1", { state: "unknown" })];
    expect(joinedWrites([done], [unknown, { ...done, state: "unknown" }])).toEqual([done, unknown]);
  });

  it("say, where nothing waits, how many were delivered in a day and how long the longest waited", () => {
    const nowMs = 2 * 86_400_000;
    const done = (id: string, takenMs: number, sinceMs: number) => entry(id, { state: "done", takenMs, sinceMs });
    const minutes = (ms: number) => `${ms / 60_000} min`;
    const words = (...writes: OutboxEntry[]) => deliveredWords(writes, nowMs, minutes);
    const [late, soon] = [done("1", nowMs - 300_000, nowMs - 60_000), done("2", nowMs - 900, nowMs - 200)];
    const [old, dropped] = [done("3", 0, 1_000_000), entry("4", { state: "cancelled", sinceMs: nowMs })];
    expect(words(late, soon, old, dropped)).toBe("2 writes were delivered in 24 h, the longest waited 4 min.");
    expect(words(soon)).toBe("1 write was delivered in 24 h, none waited longer than a second.");
    expect(words(old, dropped)).toBe("");
    const many = Array.from({ length: 1_000 }, (_, n) => done(String(n), nowMs - 300_000, nowMs - 60_000));
    expect(words(...many)).toBe("At least 1,000 writes were delivered in 24 h, the longest waited 4 min.");
  });

  it("say what each write waits for", () => {
    expect(waitWords(entry("1", {}))).toBe("is next");
    expect(waitWords(entry("1", { position: 1, why: "away" }))).toBe("waits for the one before it");
    expect(waitWords(entry("1", { position: 4 }))).toBe("waits for the 4 before it");
    expect(waitWords(entry("1", { why: "the server is away" }))).toBe("the server is away");
    expect(waitWords(entry("1", { position: 4, heldFor: "login" }))).toBe("login");
    expect(waitWords(entry("1", { state: "sending" }))).toBe("on its way");
  });
});

describe("a write's life", () => {
  it("goes from its taking over each step to its end, as parts that make up the whole", () => {
    const { marks, parts } = lifeOf(
      entry("1", {
        state: "done",
        sinceMs: 11_000,
        life: [
          { atMs: 2_000, state: "queued", why: "the server is away", times: 23, lastMs: 10_000 },
          { atMs: 11_000, state: "done" },
        ],
      }),
      99_000,
    );
    expect(marks.map(({ atMs, words, kind }) => [atMs, words, kind])).toEqual([
      [1_000, "taken from ann", "wait"],
      [2_000, "went back to its place 23 times: the server is away", "wait"],
      [11_000, "done", "good"],
    ]);
    expect(parts.map(({ from, to }) => [from, to])).toEqual([
      [0, 0.1],
      [0.1, 1],
    ]);
  });

  it("goes on to now where it waits, and says so where it is on its way", () => {
    const { marks, parts } = lifeOf(entry("1", { state: "sending", sinceMs: 3_000 }), 5_000);
    expect(marks.map(({ words }) => words)).toEqual(["taken from ann", "is on its way"]);
    expect(parts.at(-1)?.to).toBe(1);
    expect(lifeOf(entry("1", {}), 5_000).marks).toHaveLength(1);
    expect(lifeOf(entry("1", { state: "unknown", why: "cut off", sinceMs: 2_000 }), 5_000).marks.at(-1)).toMatchObject({
      words: "nobody knows whether it was done: cut off",
      kind: "bad",
    });
  });
});

describe("tools that nobody calls", () => {
  const NOW_MS = Date.parse("2026-01-15T12:00:00Z");
  const tool = (name: string, tokens: number): ToolInShort => ({
    ...{ name: `gh__${name}`, server: "gh", ownName: name, description: "", tokens },
  });
  const used = (name: string, lastUsedAt: string) => ({
    ...{
      server: "gh",
      tool: name,
      calls: 1,
      errors: 0,
      lastUsedAt,
      day: { calls: 0, errors: 0 },
      p95: 1,
      resultBytes: 1,
    },
  });

  it("are those of the last week, or of the time since they are counted, with the lines that hide them", () => {
    const tools = [tool("read", 10), tool("write", 20), tool("drop", 30)];
    const past = [used("read", "2026-01-14T00:00:00Z"), used("write", "2026-01-02T00:00:00Z")];
    const unused = unusedTools(tools, { since: "2026-01-01T00:00:00Z", tools: past }, NOW_MS);
    expect(unused).toMatchObject({ count: 2, tokens: 50, sinceMs: NOW_MS - 7 * 86_400_000 });
    expect(JSON.parse(unused?.lines ?? "")).toEqual({
      mcpServers: { gh: { tools: { write: { hide: true }, drop: { hide: true } } } },
    });
    expect(unusedTools(tools, { since: "2026-01-14T06:00:00Z", tools: past }, NOW_MS)?.sinceMs).toBe(
      Date.parse("2026-01-14T06:00:00Z"),
    );
    expect(unusedTools(tools, { since: undefined, tools: [] }, NOW_MS)).toBeUndefined();
    expect(unusedTools([tool("read", 10)], { since: "2026-01-01T00:00:00Z", tools: past }, NOW_MS)).toBeUndefined();
  });

  it("are said by the day of the week, and who may call one in short", () => {
    expect(sinceWords(Date.parse("2026-01-12T12:00:00Z"), NOW_MS, "en-GB")).toBe("Monday");
    expect(sinceWords(NOW_MS - 7 * 86_400_000, NOW_MS, "en-GB")).toMatch(/^Thursday.* 8 January$/);
    expect([undefined, [], ["dev", "*"]].map((roles) => whoMayCall(roles))).toEqual([
      ...["everybody", "nobody", "dev, all other roles"],
    ]);
    expect([pinWords("pinned")[1], pinWords("changed")[2], pinWords(undefined)[1]]).toEqual([
      ...["pinned", "bad", "not pinned"],
    ]);
  });
});

describe("a tool in quarantine", () => {
  it("may be called by nobody until it is accepted, whatever the roles allow", () => {
    expect([whoMayCall(["dev"], true), whoMayCall(undefined, true), whoMayCall([], true)]).toEqual([
      ...["nobody until it is accepted, then dev", "nobody until it is accepted, then everybody", "nobody"],
    ]);
    const [dev, guest] = [
      { role: "dev", allowed: true },
      { role: "guest", allowed: false, rule: "roles.guest" },
    ];
    expect([roleWords(dev, true), roleWords(guest, true)]).toEqual([
      ...["dev: no, not until it is accepted", "guest: no, roles.guest"],
    ]);
    expect([roleWords(dev, false), roleWords(guest, false)]).toEqual(["dev: yes", "guest: no, roles.guest"]);
  });
});

describe("what a server claims of its tool", () => {
  it("is said in words, and as it was written where nobody knows what it means", () => {
    const own = { title: "Look", readOnlyHint: true, destructiveHint: false, idempotentHint: "yes" };
    expect(claimWords(own)).toBe('title: "Look", it only reads, it destroys nothing, idempotentHint: "yes"');
    for (const none of [undefined, {}]) expect(claimWords(none)).toBe("nothing of what it does");
  });
});
