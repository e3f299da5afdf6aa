// Verbs that go on until Ctrl-C, with a fake gateway: `calls -f` and the screen of `top`.

import { PassThrough } from "node:stream";
import { afterEach, beforeEach, expect, it } from "vitest";
import { fakeGateway, leaveFolder, makeFolder, run, STATUS } from "../../../test/fixtures/fake-gateway.js";
import { until } from "../../../test/fixtures/wait.js";
import { emptyRecord } from "../../observe/call-record.js";
import { History } from "../../observe/calls/history.js";
import { historyAnswer } from "../../observe/calls/shown-history.js";
import { Fault } from "../../protocol/errors.js";
import { Stopped } from "../line/io.js";

beforeEach(makeFolder);
afterEach(leaveFolder);

/** A command that runs, what it has written until now, and its Ctrl-C. */
function live(argv: readonly string[], over: object = {}) {
  const stop = new AbortController();
  const stdout = new PassThrough();
  let text = "";
  stdout.on("data", (chunk: Buffer) => {
    text += chunk.toString();
  });
  const ran = run(argv, { signal: stop.signal, stdout, ...over });
  return { out: () => text, stop: () => stop.abort(new Stopped("SIGINT")), ran };
}

const facts = { principal: "ann", role: "dev", method: "tools/call", server: "demo", id: 1, attempt: 1 };
const kept = (seq: number, tool: string) => ({
  ...{ ...facts, seq, tool, endedAt: "2026-01-02T07:10:11.123Z", outcome: "ok", failed: false },
  ...{ ms: 12, queuedMs: 0, startingMs: 0, credentialMs: 0, serverMs: 12 },
});
const UNDER_WAY = { ...facts, tool: "slow", ms: 1_290, phase: "server" };

it("calls -f goes on with what comes after the last call that it has shown, once each, until Ctrl-C [calls-recorded]", async () => {
  const first = { calls: [kept(4, "one")], underWay: [UNDER_WAY], last: 4 };
  // What was under way is shown when it has ended, and what does not fit moves the place on all the same.
  const more = [{ calls: [kept(5, "two"), kept(6, "slow")], underWay: [UNDER_WAY], last: 9 }];
  const { requests } = fakeGateway({
    "/calls?server=demo&limit=3": first,
    "/calls?server=demo&limit=5000&after=4": () => more.shift() ?? { calls: [], underWay: [], last: 9 },
    "/calls?server=demo&limit=5000&after=9": { calls: [], underWay: [UNDER_WAY], last: 9 },
  });
  const { out, stop, ran } = live(["calls", "-f", "--server", "demo", "-n", "3"]);
  await until("a look after the last call", () => requests.some(({ path }) => path.endsWith("after=9")));
  stop();
  expect(await ran).toMatchObject({ code: 0, err: "" });
  const line = (tool: string) => `07:10:11.123 ann demo/${tool}: ok, 12 ms (server 12 ms)\n`;
  expect(out()).toBe(`${line("one")}under way    ann demo/slow: 1290 ms, in server\n${line("two")}${line("slow")}`);
  expect(requests.filter(({ path }) => path.endsWith("limit=3"))).toHaveLength(1);
});

it("calls -f says at once where there is nothing yet, and goes on; with --json each is a line of JSON [calls-recorded] [told-why]", async () => {
  const none = { calls: [], underWay: [], last: 0 };
  for (const json of [false, true]) {
    fakeGateway({
      "/calls?limit=50": none,
      "/calls?limit=5000&after=0": { ...none, calls: [kept(1, "one")], last: 1 },
      "/calls?limit=5000&after=1": { ...none, last: 1 },
    });
    const { out, stop, ran } = live(["calls", "-f", ...(json ? ["--json"] : [])]);
    await until("the first call", () => out().endsWith("\n"));
    stop();
    expect(await ran).toMatchObject({ code: 0, err: json ? "" : "Nothing was called yet.\n" });
    if (json) expect(JSON.parse(out())).toEqual(kept(1, "one"));
    else expect(out()).toContain("demo/one: ok");
  }
});

const ENTER = "\u001b[?1049h\u001b[?25l";
const LEAVE = "\u001b[?25h\u001b[?1049l";
const HOME = "\u001b[H";

function historyOf(calls: number): unknown {
  const nowMs = Date.now();
  const history = new History((_, tool) => tool);
  for (let i = 0; i < calls; i++) {
    history.take({ ...emptyRecord(), server: "demo", endedAt: nowMs - 20_000, ms: 50, serverMs: 49, outcome: "ok" });
  }
  return JSON.parse(JSON.stringify(historyAnswer(new URLSearchParams(), history, nowMs)));
}

const REST_OF_LINE = "\u001b[K";
const REST_OF_SCREEN = "\u001b[J";
/** A terminal whose user wants no colours: what is drawn is words and what moves on it. */
const terminal = (rows: number) => ({ isTTY: true, columns: 120, rows, env: { NO_COLOR: "1" } });

/** The pictures that were drawn. */
const framesOf = (out: string): string[] => out.split(HOME).slice(1);

it("top has a screen of its own, draws each picture over the one before, and gives the terminal back at Ctrl-C [calls-recorded]", async () => {
  let calls = 0;
  fakeGateway({
    "/history": () => {
      calls += 10;
      return historyOf(calls);
    },
    "/calls?limit=0": { calls: [], underWay: [UNDER_WAY], last: 1 },
  });
  const { out, stop, ran } = live(["top"], terminal(30));
  await until("a second picture", () => framesOf(out()).length >= 2);
  expect(out()).not.toContain(LEAVE);
  stop();
  expect(await ran).toMatchObject({ code: 0, err: "" });
  expect(out().startsWith(`${ENTER}${HOME}`)).toBe(true);
  expect(out().endsWith(LEAVE)).toBe(true);
  const frames = framesOf(out().slice(0, -LEAVE.length));
  for (const [n, frame] of frames.entries()) {
    expect(frame).toContain(`${(n + 1) * 10} calls a minute`);
    expect(frame).toContain("demo/slow");
    // Whatever was longer in the picture before is wiped out, on each line and below the last.
    expect(frame.endsWith(`${REST_OF_LINE}${REST_OF_SCREEN}`)).toBe(true);
    const lines = frame.slice(0, -REST_OF_SCREEN.length).split("\n");
    for (const line of lines) expect(line.endsWith(REST_OF_LINE)).toBe(true);
  }
});

it.each([
  ["", "server"],
  [", also where names are longer than its lines", "a-server-with-a-name-that-is-long-".repeat(4)],
])(
  "top fits into the rows of the terminal%s, and says how many servers and calls it leaves out [bounded]",
  async (_what, name) => {
    const [one] = STATUS.servers;
    const servers = Array.from({ length: 60 }, (_, n) => ({ ...one, name: `${name}-${n}` }));
    const underWay = Array.from({ length: 9 }, () => UNDER_WAY);
    fakeGateway({
      "/status": { ...STATUS, servers },
      "/history": historyOf(1),
      "/calls?limit=0": { calls: [], underWay, last: 1 },
    });
    for (const rows of [24, 40]) {
      const { out, stop, ran } = live(["top"], terminal(rows));
      await until("a picture", () => out().includes(REST_OF_SCREEN));
      stop();
      await ran;
      const lines = (framesOf(out())[0] ?? "").split("\n");
      const bare = lines.map((line) => line.replace(REST_OF_LINE, "").replace(REST_OF_SCREEN, ""));
      const onScreen = bare.reduce((sum, line) => sum + Math.max(1, Math.ceil(line.length / 120)), 0);
      expect(onScreen).toBeLessThanOrEqual(rows);
      const shown = lines.filter((line) => line.startsWith(`${name}-`)).length;
      expect(shown).toBeGreaterThanOrEqual(3);
      expect(lines.some((line) => line.startsWith(`and ${60 - shown} more`))).toBe(true);
      expect(lines.some((line) => line.startsWith("and 4 more"))).toBe(true);
    }
  },
);

it("top leaves out calls with long names too, where the terminal has no room for them, and says how many [bounded]", async () => {
  const [one] = STATUS.servers;
  const servers = Array.from({ length: 5 }, (_, n) => ({ ...one, name: `s-${n}` }));
  const underWay = Array.from({ length: 9 }, () => ({ ...UNDER_WAY, tool: "a_tool_with_a_long_name_".repeat(20) }));
  fakeGateway({
    "/status": { ...STATUS, servers },
    "/history": historyOf(1),
    "/calls?limit=0": { calls: [], underWay, last: 1 },
  });
  for (const [rows, told] of [
    [14, "9 calls under way"],
    [24, "and 8 more"],
  ] as const) {
    const { out, stop, ran } = live(["top"], terminal(rows));
    await until("a picture", () => out().includes(REST_OF_SCREEN));
    stop();
    await ran;
    const bare = (framesOf(out())[0] ?? "").replaceAll(REST_OF_LINE, "").replace(REST_OF_SCREEN, "").split("\n");
    expect(bare.reduce((sum, line) => sum + Math.max(1, Math.ceil(line.length / 120)), 0)).toBeLessThanOrEqual(rows);
    expect(bare.filter((line) => line.startsWith("s-")).length).toBeGreaterThanOrEqual(3);
    expect(bare.at(-1)).toBe(told + LEAVE);
  }
});

it("top gives the terminal back where the gateway goes away, and says so after it [told-why]", async () => {
  const gone = { is: false };
  fakeGateway({
    "/history": () => {
      if (gone.is) throw new Fault("unavailable", "The gateway does not answer.");
      return historyOf(1);
    },
    "/calls?limit=0": { calls: [], underWay: [], last: 1 },
  });
  const { out, ran } = live(["top"], terminal(30));
  await until("a picture", () => framesOf(out()).length >= 1);
  gone.is = true;
  const { code, err } = await ran;
  expect(out().endsWith(LEAVE)).toBe(true);
  expect(code).not.toBe(0);
  expect(err).toContain("The gateway does not answer.");
});
