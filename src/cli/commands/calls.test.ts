// `calls` and `top`, with a fake gateway: what is asked for, and how it looks.

import { afterEach, beforeEach, expect, it } from "vitest";
import { fakeGateway, leaveFolder, makeFolder, run } from "../../../test/fixtures/fake-gateway.js";
import { emptyRecord } from "../../observe/call-record.js";
import { History } from "../../observe/calls/history.js";
import { historyAnswer } from "../../observe/calls/shown-history.js";
import { sparkline } from "../text/top.js";

beforeEach(makeFolder);

afterEach(leaveFolder);

const facts = { principal: "ann", role: "dev", method: "tools/call", server: "demo", tool: "add", id: 1, attempt: 1 };
const KEPT = {
  ...facts,
  seq: 1,
  endedAt: "2026-01-02T07:10:11.123Z",
  outcome: "ok",
  failed: false,
  ms: 812.4,
  queuedMs: 0,
  startingMs: 790.2,
  credentialMs: 0,
  serverMs: 11.3,
};
const UNDER_WAY = { ...facts, ms: 1_290, phase: "server" };

it("calls says of each what it waited for, and what those wait for that have not ended [calls-recorded]", async () => {
  const answer = { calls: [KEPT], underWay: [UNDER_WAY], last: 1 };
  fakeGateway({ "/calls?server=demo&failed=true&slowerMs=1500&limit=7": answer, "/calls?limit=50": answer });
  const { out } = await run(["calls", "--slower", "1.5s", "--failed", "--server", "demo", "-n", "7"]);
  expect(out).toBe(
    "07:10:11.123 ann demo/add: ok, 812 ms (starting 790 ms, server 11 ms)\nunder way    ann demo/add: 1290 ms, in server\n",
  );
  const json = (await run(["calls", "--json"])).out.trim().split("\n");
  expect(json.map((line) => JSON.parse(line))).toEqual([KEPT, UNDER_WAY]);
});

it("calls says what refused one, the code of an error and the receipt of a write, and the slowest on demand [calls-recorded] [told-why]", async () => {
  const calls = [
    { ...KEPT, outcome: "denied", refusedBy: "menu" },
    { ...KEPT, outcome: "rpc-error", errorCode: -32602 },
    { ...KEPT, receipt: "r1" },
  ];
  fakeGateway({ "/calls?slowest=true&limit=50": { calls, underWay: [], last: 3 } });
  const { out } = await run(["calls", "--slowest"]);
  const where = "812 ms (starting 790 ms, server 11 ms)";
  expect(out.split("\n").map((line) => line.split(": ")[1])).toEqual([
    `denied by menu, ${where}`,
    `rpc-error -32602, ${where}`,
    `ok, ${where}, kept as r1`,
    undefined,
  ]);
  expect((await run(["calls", "--slowest", "-f"])).err).toContain("no meaning beside --follow");
});

it("calls says so where there is none to show [told-why]", async () => {
  const none = { calls: [], underWay: [], last: 0 };
  fakeGateway({ "/calls?limit=50": none, "/calls?server=nope&limit=50": { ...none, last: 7 } });
  expect(await run(["calls"])).toEqual({ code: 0, out: "", err: "Nothing was called yet.\n" });
  expect((await run(["calls", "--server", "nope"])).err).toBe("None of the calls that are kept fits.\n");
  expect(await run(["calls", "--json"])).toEqual({ code: 0, out: "", err: "" });
});

it("calls says what is wrong with a time or a count [told-why]", async () => {
  fakeGateway();
  expect((await run(["calls", "--slower", "soon"])).err).toContain(
    "--slower soon: expected a time such as 500ms or 2s.",
  );
  expect((await run(["calls", "-n", "5001"])).err).toContain("expected a whole number from 0 to 5000");
});

it("top has the sentence, the numbers, the hour, the servers and the calls under way [calls-recorded]", async () => {
  const nowMs = Date.now();
  const history = new History((_, tool) => tool);
  for (let i = 0; i < 30; i++) {
    const outcome = i % 10 === 0 ? ("timeout" as const) : ("ok" as const);
    history.take({ ...emptyRecord(), server: "demo", endedAt: nowMs - 20_000, ms: 50, serverMs: 49, outcome });
  }
  history.restarted("demo", nowMs);
  fakeGateway({
    "/history": JSON.parse(JSON.stringify(historyAnswer(new URLSearchParams(), history, nowMs))),
    "/calls?limit=0": { calls: [], underWay: Array.from({ length: 7 }, () => UNDER_WAY), last: 1 },
  });
  const { out } = await run(["top"]);
  expect(out).toContain("1 server needs you: demo.");
  expect(out).toMatch(/30 calls a minute {3}10 % failed {3}p95 \d\d ms, of which 1\.\d ms Toolway's own/);
  expect(out).toMatch(/last hour .*█/);
  expect(out).toMatch(/demo +down +30 +30 +10 % +\d\d ms +\d\d ms +\d+ +1/);
  expect(out).toMatch(/1\.3 s +ann +demo\/add +at its server\n/);
  expect(out).toContain("and 2 more");
  expect(JSON.parse((await run(["top", "--json"])).out)).toMatchObject({ history: { now: { calls: 30 } } });
});

it("a line of bars has one for each number, and none for nothing", () => {
  expect(sparkline([0, 1, 4, 8])).toBe(" ▁▄█");
  expect(sparkline([0, 0])).toBe("  ");
  expect(sparkline([1, 1_000])).toBe("▁█");
});
