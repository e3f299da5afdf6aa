// The verbs about kept calls, from the words of the line to output and exit code, with a fake gateway.

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { fakeGateway, leaveFolder, makeFolder, run, STATUS, typing } from "../../../test/fixtures/fake-gateway.js";
import { until } from "../../../test/fixtures/wait.js";
import { Stopped } from "../line/io.js";

beforeEach(makeFolder);
afterEach(leaveFolder);

const minutesAgo = (minutes: number) => Date.now() - minutes * 60_000;
const WRITE = {
  id: "0f3a",
  server: "tracker",
  tool: "create_issue",
  state: "queued",
  idempotencyKey: "key-1",
  position: 2,
  takenMs: minutesAgo(5),
  sinceMs: minutesAgo(4),
  why: "the server is away\u001b[2J",
  attempts: 3,
  principal: "ann",
  lane: "ann",
  bytes: 1_200,
};
const TOTALS = { waiting: 3, oldestAt: new Date(minutesAgo(5)).toISOString(), unknown: 1, held: [], heldCount: 0 };

describe("outbox list", () => {
  it("shows what is kept and why, with what is hidden in it made visible [terminal-inert]", async () => {
    fakeGateway({ "/outbox?limit=50": { writes: [WRITE] } });
    const { code, out } = await run(["outbox"], { columns: 200 });
    expect(code).toBe(0);
    expect(out).toMatch(/0f3a +queued +tracker +create_issue +ann +5 min +3 +the server is away/);
    expect(out).not.toContain("\u001b[2J");
    const json = await run(["outbox", "list", "--json"]);
    expect(JSON.parse(json.out)).toEqual({ writes: [WRITE] });
  });

  it("says of one that waits behind others that it does, and promises no try before theirs", async () => {
    const behind = { ...WRITE, why: undefined, position: 1, nextTryMs: Date.now() + 3_000 };
    fakeGateway({ "/outbox?limit=50": { writes: [behind] }, "/outbox/writes/0f3a": behind });
    expect((await run(["outbox"], { columns: 200 })).out).toContain("others of its lane are before it");
    const { out } = await run(["outbox", "show", "0f3a"]);
    expect(out).toMatch(/before it +1/);
    expect(out).not.toContain("next try");
  });

  it("says that nothing is kept, and speaks of what fits only where something was asked for", async () => {
    fakeGateway({ "/outbox?limit=50": { writes: [] }, "/outbox?limit=50&server=tracker": { writes: [] } });
    expect((await run(["outbox"])).err).toBe("No call is kept.\n");
    expect((await run(["outbox", "--server", "tracker"])).err).toBe("No call is kept that fits.\n");
  });

  it("shows those of a server, a principal and a state, and the lanes", async () => {
    const lane = { server: "tracker", lane: "ann", depth: 4, oldestMs: minutesAgo(2), heldFor: "by the operator" };
    fakeGateway({
      "/outbox?limit=7&server=tracker&principal=ann&state=unknown": { writes: [] },
      "/outbox/lanes": { lanes: [lane], more: 1_200 },
    });
    const line = ["outbox", "list", "--server", "tracker", "--principal", "ann", "--only", "unknown", "--limit", "7"];
    expect(await run(line)).toMatchObject({
      code: 0,
      err: expect.stringContaining("No call is kept that fits.") as string,
    });
    const listed = await run(["outbox", "list", "--lanes"]);
    expect(listed.out).toMatch(/tracker +ann +4 +2 min +by the operator/);
    expect(listed.err).toMatch(/And 1,?200 lanes more\./);
    expect(await run(["outbox", "list", "--limit", "0"])).toMatchObject({ code: 2 });
    expect(await run(["outbox", "list", "--only", "lost"])).toMatchObject({ code: 2 });
  });

  it("says where no gateway runs what to start", async () => {
    fakeGateway({}, {}, false);
    const { code, err } = await run(["outbox"]);
    expect(code).toBe(1);
    expect(err).toContain("toolway serve");
  });
});

describe("outbox show", () => {
  it("shows one with its result, and says what to do about an unknown outcome [unknown-is-said]", async () => {
    const unknown = { ...WRITE, state: "unknown", position: undefined, error: '{"code":-31003}' };
    fakeGateway({ "/outbox/writes/0f3a": unknown });
    const { out, err } = await run(["outbox", "show", "0f3a"]);
    expect(out).toMatch(/state +unknown for 4 min \(since 20\d\d-/);
    expect(out).toContain("key-1");
    expect(out).toContain('{"code":-31003}');
    expect(err).toContain("toolway outbox resolve 0f3a --done");
  });
});

describe("outbox retry, drop and resolve", () => {
  it("ask before what cannot be taken back, and do nothing without a yes", async () => {
    const fake = fakeGateway({
      "/outbox/writes/0f3a": WRITE,
      "/outbox/writes/0f3a/drop": { ...WRITE, state: "cancelled" },
      "/outbox/writes/0f3a/retry": WRITE,
      "/outbox/writes/0f3a/resolve": WRITE,
    });
    const posted = () => fake.requests.filter(({ body }) => body !== undefined);
    expect((await run(["outbox", "drop", "0f3a"], typing("no"))).code).toBe(1);
    expect((await run(["outbox", "resolve", "0f3a", "--again"], typing("no"))).code).toBe(1);
    expect(posted()).toEqual([]);
    expect((await run(["outbox", "drop", "0f3a", "--yes"])).out).toContain("(create_issue of tracker) was dropped.");
    expect((await run(["outbox", "retry", "0f3a"])).out).toContain("goes back to its place");
    expect((await run(["outbox", "resolve", "0f3a", "--done"])).out).toContain("counts as done");
    expect(posted().at(-1)).toEqual({ path: "/outbox/writes/0f3a/resolve", body: { as: "done" } });
  });

  it("want to know one end of an unknown outcome", async () => {
    fakeGateway({});
    expect(await run(["outbox", "resolve", "0f3a"])).toMatchObject({ code: 2 });
    expect(await run(["outbox", "resolve", "0f3a", "--done", "--failed"])).toMatchObject({ code: 2 });
  });
});

describe("outbox hold, release and watch", () => {
  it("hold and release the lanes of a server", async () => {
    const status = { ...STATUS, servers: [{ name: "tracker" }] };
    fakeGateway({ "/status": status, "/outbox/hold": { lanes: 2 }, "/outbox/release": { lanes: 1 } });
    expect((await run(["outbox", "hold", "tracker"])).out).toContain("2 lanes of tracker are on hold");
    const released = await run(["outbox", "release", "tracker", "--lane", "ann", "--json"]);
    expect(JSON.parse(released.out)).toEqual({ server: "tracker", lane: "ann", lanes: 1 });
  });

  it("refuse a server that there is not, and say when nothing of one waits [told-why]", async () => {
    const status = { ...STATUS, servers: [{ name: "tracker" }] };
    const lanes = { lanes: [{ server: "gone", lane: "ann", depth: 1 }] };
    const fake = fakeGateway({ "/status": status, "/outbox/lanes": lanes, "/outbox/hold": { lanes: 0 } });
    const wrong = await run(["outbox", "hold", "trackr"]);
    expect(wrong).toMatchObject({ code: 2, err: expect.stringContaining("There is no server trackr.") });
    expect(wrong.err).toContain("There are: tracker.");
    expect(fake.requests.some(({ path }) => path === "/outbox/hold")).toBe(false);
    expect((await run(["outbox", "hold", "gone"])).code, "the config has it no more, and calls wait").toBe(0);
    expect((await run(["outbox", "hold", "tracker"])).out).toContain(
      "Nothing of tracker waits now: what comes is kept",
    );
  });

  it("shows the whole line in a terminal that does not know its width", async () => {
    const fake = fakeGateway({ "/outbox/totals": TOTALS });
    const stop = new AbortController();
    const running = run(["outbox", "watch"], { signal: stop.signal, isTTY: true, columns: 0 });
    await until(() => fake.requests.length > 0);
    stop.abort(new Stopped("SIGINT"));
    expect((await running).out).toContain("1 of unknown outcome");
  });

  it("has receipts that a shell completes", async () => {
    fakeGateway({ "/outbox": { writes: [{ id: "0f3a" }, { id: "two words" }] } });
    expect((await run(["__complete", "receipt", "--", "outbox", "show"])).out).toBe("0f3a\n");
  });

  it("show what waits until they are stopped", async () => {
    const fake = fakeGateway({ "/outbox/totals": TOTALS });
    const stop = new AbortController();
    const running = run(["outbox", "watch"], { signal: stop.signal });
    await until(() => fake.requests.length > 0);
    stop.abort(new Stopped("SIGINT"));
    const { code, out } = await running;
    expect(code).toBe(0);
    expect(out).toContain("3 waiting, the oldest 5 min; 1 of unknown outcome");
  });
});
