import { Duplex, PassThrough } from "node:stream";
import { afterEach, expect, it, vi } from "vitest";
import type { CallTally } from "../../contracts/caller.js";
import type { RunLine } from "../../contracts/runs.js";
import { serveRun } from "./run-socket.js";

afterEach(() => vi.useRealTimers());

it("a run is told its figures when they change, once a second at most, and a last time before the gateway closes [run-own]", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  const [toGateway, toRun] = [new PassThrough(), new PassThrough()];
  const told: RunLine[] = [];
  toRun.on("data", (chunk: Buffer) => {
    for (const line of chunk.toString().split("\n").filter(Boolean)) told.push(JSON.parse(line) as RunLine);
  });
  const tally: CallTally = { calls: 0, refused: new Map(), queued: 0 };
  // Those of before the run are not counted.
  let restarts = 3;
  let closing: () => void = () => {};
  const held = { run: "r", principal: { id: "run-r", role: "default" }, tally, secret: "s" };
  serveRun(Duplex.from({ readable: toGateway, writable: toRun }), {
    runs: {
      expect: () => () => {},
      begin: async () => held,
      resume: async () => held,
      release: () => {},
      onClosing: (listener) => {
        closing = listener;
        return () => {
          closing = () => {};
        };
      },
    },
    endpoint: async () => "http://127.0.0.1:1/mcp",
    firstTries: () => [],
    demandRole: () => {},
    setContext: async () => {},
    restarts: () => restarts,
    forRuns: false,
    noAuth: false,
  });
  const settled = () => new Promise((done) => setImmediate(done));
  const figures = () => told.filter(({ kind }) => kind === "figures");
  toGateway.write('{"kind":"begin","client":"claude","context":{}}\n');
  await vi.waitFor(() => expect(told).toHaveLength(1));
  vi.advanceTimersByTime(5_000);
  await settled();
  expect(figures()).toEqual([]);
  tally.calls = 7;
  tally.queued = 1;
  vi.advanceTimersByTime(5_000);
  await settled();
  expect(figures()).toEqual([{ kind: "figures", calls: 7, refused: [], restarts: 0, queued: 1 }]);
  restarts = 5;
  vi.advanceTimersByTime(5_000);
  await settled();
  expect(figures().slice(1)).toEqual([{ kind: "figures", calls: 7, refused: [], restarts: 2, queued: 1 }]);
  tally.refused.set("budget", 2);
  closing();
  await settled();
  expect(figures().at(-1)).toMatchObject({ calls: 7, restarts: 2, refused: [{ rule: "budget", count: 2 }] });
  toGateway.write('{"kind":"end"}\n');
  await vi.waitFor(() => expect(told.at(-1)?.kind).toBe("ended"));
  // Nothing is looked at any more.
  expect(vi.getTimerCount()).toBe(0);
});
