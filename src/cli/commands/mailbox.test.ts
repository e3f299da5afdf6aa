// The verbs about mailboxes, from the words of the line to output and exit code, with a fake gateway.

import { PassThrough } from "node:stream";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { fakeGateway, leaveFolder, makeFolder, run, typing } from "../../../test/fixtures/fake-gateway.js";
import { until } from "../../../test/fixtures/wait.js";
import { ControlError } from "../../control/server.js";
import { Stopped } from "../line/io.js";

beforeEach(makeFolder);
afterEach(leaveFolder);

const minutesAgo = (minutes: number) => new Date(Date.now() - minutes * 60_000).toISOString();
const STUDIO = {
  mailbox: "studio",
  waiting: 9_990,
  leased: 10,
  dead: 2,
  bytes: 1,
  oldestAt: minutesAgo(5),
  connections: 1,
  since: minutesAgo(1),
};
const TOTALS = { inUse: 2, waiting: 3, leased: 1, dead: 0, connections: 2 };

describe("mailbox list", () => {
  it("shows what is in use, and says how many more there are [bounded]", async () => {
    const fake = fakeGateway({ "/mailboxes?limit=50&offset=0": { items: [STUDIO], total: 9_951 } });
    const { code, out, err } = await run(["mailbox"]);
    expect(code).toBe(0);
    expect(out).toMatch(/studio +9,990 +10 +2 +5 min +1, since \d\d/);
    expect(out).toContain("… and 9,950 more (--offset 1)");
    expect(err).toContain("toolway mailbox dead studio");
    expect(fake.requests).toHaveLength(1);
    const json = await run(["mailbox", "list", "--json"]);
    expect(JSON.parse(json.out)).toEqual({ mailboxes: [STUDIO], total: 9_951 });
  });

  it("refuses a page that is none, and says where no gateway runs what to start", async () => {
    fakeGateway({});
    expect(await run(["mailbox", "list", "--limit", "2000"])).toMatchObject({ code: 2, out: "" });
    expect(await run(["mailbox", "list", "--offset", "x"])).toMatchObject({ code: 2, out: "" });
    fakeGateway({}, {}, false);
    const { code, err } = await run(["mailbox", "list"]);
    expect(code).toBe(1);
    expect(err).toContain("toolway broker");
  });
});

describe("mailbox show and dead", () => {
  it("show messages and dead letters, with what is hidden in ids made visible [terminal-inert]", async () => {
    const message = {
      id: "m-1\u001b[2J",
      from: "worker-1",
      kind: "mcp_request",
      bytes: 1_200,
      at: minutesAgo(5),
      leftMs: 3_000_000,
      state: "leased",
      failures: 1,
    };
    fakeGateway({
      "/mailboxes/messages?mailbox=studio&limit=50&offset=0": { items: [message], total: 1 },
      "/mailboxes/dead?mailbox=studio&limit=50&offset=0": {
        items: [{ ...message, failedAt: minutesAgo(3), reason: "no brush" }],
        total: 1,
      },
    });
    const shown = (await run(["mailbox", "show", "studio"])).out;
    expect(shown).toMatch(/m-1\\u\{001B\}\[2J +worker-1 +mcp_request +1,200 +5 min +50 min +leased +1/);
    expect((await run(["mailbox", "dead", "studio"])).out).toMatch(/worker-1 +mcp_request +3 min ago +no brush/);
  });

  it("name the nearest mailbox where there is none of that name", async () => {
    const missing = new ControlError("not-found", 'There is no mailbox "studoi": no token has this id.');
    fakeGateway({
      "/mailboxes/messages?mailbox=studoi&limit=50&offset=0": missing,
      "/mailboxes/names": { names: ["studio", "attic"] },
    });
    const { code, err } = await run(["mailbox", "show", "studoi"]);
    expect(code).toBe(2);
    expect(err).toContain("Did you mean studio?");
  });
});

describe("mailbox retry and drop", () => {
  const answers = {
    "/mailboxes/retry": { id: "retry-x", from: "worker-1" },
    "/mailboxes/drop": { messages: 3, deadLetters: 0 },
    "/mailboxes/summary?mailbox=studio": STUDIO,
  };
  const posted = (fake: ReturnType<typeof fakeGateway>) => fake.requests.filter(({ body }) => body !== undefined);

  it("ask first, and do nothing where nobody agrees or can be asked", async () => {
    const fake = fakeGateway(answers);
    expect(await run(["mailbox", "retry", "studio", "m-1"])).toMatchObject({ code: 2, out: "" });
    expect(await run(["mailbox", "drop", "studio", "--all"])).toMatchObject({ code: 2, out: "" });
    const refused = await run(["mailbox", "drop", "studio", "--all"], typing("n"));
    expect(refused.code).toBe(1);
    expect(refused.err).toContain("Drop all 10,000 messages (10 being worked at) and 2 dead letters from studio");
    expect(refused.err).toContain("Nothing was changed.");
    expect(posted(fake)).toEqual([]);
    expect(await run(["mailbox", "retry", "studio", "m-1"], typing("y"))).toMatchObject({ code: 0 });
    expect(posted(fake)).toHaveLength(1);
  });

  it("say which id a message has that was sent again", async () => {
    const fake = fakeGateway(answers);
    const { out, err } = await run(["mailbox", "retry", "studio", "m-1", "--from", "worker-1", "--yes"]);
    expect(out).toBe("Sent again to studio as retry-x.\n");
    expect(err).toContain("goes to worker-1, which has been told before that m-1 failed");
    expect(posted(fake).at(-1)?.body).toEqual({ mailbox: "studio", id: "m-1", from: "worker-1" });
    const json = await run(["mailbox", "drop", "studio", "m-1", "--yes", "--json"]);
    expect(JSON.parse(json.out)).toEqual({ mailbox: "studio", messages: 3, deadLetters: 0 });
    expect(posted(fake).at(-1)?.body).toEqual({ mailbox: "studio", id: "m-1", deadOnly: false });
  });

  it("want a message or --all, and not both", async () => {
    fakeGateway(answers);
    expect((await run(["mailbox", "drop", "studio", "--yes"])).code).toBe(2);
    expect((await run(["mailbox", "drop", "studio", "m-1", "--all", "--yes"])).code).toBe(2);
  });
});

describe("mailbox watch", () => {
  it("writes a line for each change where it is piped, and Ctrl-C ends it with 0", async () => {
    const looks = [TOTALS, TOTALS, { ...TOTALS, waiting: 4 }];
    const stop = new AbortController();
    const fake = fakeGateway({
      "/mailboxes/totals": () => {
        if (looks.length === 1) stop.abort(new Stopped("SIGINT"));
        return looks.shift() ?? TOTALS;
      },
    });
    const { code, out } = await run(["mailbox", "watch"], { signal: stop.signal });
    expect(code).toBe(0);
    const lines = out.trim().split("\n");
    expect(lines).toHaveLength(2);
    expect(lines[0]).toMatch(/^\d{4}-.*Z 2 mailboxes in use; 3 waiting, 1 leased, 0 dead letters; 2 connections$/);
    expect(lines[1]).toContain("4 waiting");
    expect(fake.requests).toHaveLength(3);
  });

  it("rewrites one line in a terminal, no longer than it is wide", async () => {
    const stop = new AbortController();
    fakeGateway({ "/mailboxes/totals": TOTALS });
    let seen = "";
    const stdout = new PassThrough().on("data", (chunk: Buffer) => {
      seen += chunk.toString();
    });
    const ran = run(["mailbox", "watch"], { signal: stop.signal, isTTY: true, columns: 30, stdout });
    await until("two looks", () => seen.split("\r").length > 2);
    stop.abort(new Stopped("SIGINT"));
    expect((await ran).code).toBe(0);
    expect(seen.split("\r")[1]).toBe("\u001b[K2 mailboxes in use; 3 waiting");
    expect(seen.endsWith("\n")).toBe(true);
  });
});
