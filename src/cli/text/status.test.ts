import { PassThrough, Readable } from "node:stream";
import { expect, it } from "vitest";
import type { GatewayStatus, ServerStatus } from "../../contracts/status.js";
import type { Io } from "../line/io.js";
import { statusText } from "./status.js";

function io(isTTY: boolean): Io {
  const [stdin, stdout, stderr] = [Readable.from([]), new PassThrough(), new PassThrough()];
  const signal = new AbortController().signal;
  return { stdin, stdout, stderr, env: {}, cwd: "/here", home: "/home/ann", isTTY, isErrTTY: isTTY, signal };
}

function server(name: string, problems: readonly string[]): ServerStatus {
  return {
    name,
    kind: "http",
    isolation: "shared",
    via: undefined,
    state: "ready",
    era: "modern",
    version: "2026-07-28",
    serverInfo: { name, version: "1.2.3" },
    counts: { tools: 1, prompts: 0, resources: 0, resourceTemplates: 0 },
    quarantined: 0,
    listsFromBefore: false,
    oldLists: [],
    connections: 1,
    waiting: 0,
    inFlight: 0,
    restarts: 0,
    ejected: false,
    circuit: "closed",
    failures: 0,
    lazy: false,
    refs: 0,
    card: undefined,
    readyAfterMs: 12,
    lastError: undefined,
    nextTryInMs: undefined,
    pid: undefined,
    url: "http://127.0.0.1:1/mcp",
    cache: undefined,
    noise: { count: 0, sample: undefined },
    stderr: [],
    problems,
  };
}

function status(...servers: ServerStatus[]): GatewayStatus {
  return {
    toolway: "0.1.0",
    pid: 7,
    startedAt: new Date(0).toISOString(),
    recordings: [],
    asks: [],
    endingTokens: [],
    endpoint: "http://127.0.0.1:7420/mcp",
    stateDir: undefined,
    config: { path: undefined, error: undefined, warnings: [], unusedPatterns: [], waitsForRestart: [] },
    names: "prefixed",
    menu: "full",
    sessions: 0,
    presences: 0,
    draining: false,
    memory: { heldBytes: 1_500_000, limitBytes: 134_217_728 },
    servers,
    shares: [],
    mailboxes: undefined,
    executors: [],
    conflicts: [],
    notes: [],
  };
}

it("a server's problems stand below the table, each in one yellow line that cannot steer the terminal", () => {
  const found = status(server("good", []), server("odd", ['Tool "a\u001b[2J\nb" is left out.', "It does not listen."]));
  const plain = statusText(found, true, io(false), 0).split("\n\n").at(-1);
  expect(plain).toBe('odd: Tool "a[2J b" is left out.\nodd: It does not listen.');
  expect(statusText(found, true, io(true), 0)).toContain("\u001b[33modd: It does not listen.\u001b[0m");
});

it("a state directory that cannot be written is told where it stands, in red, with what to do [status-true]", () => {
  const found = { ...status(server("good", [])), stateDir: "/home/ann/state" };
  const problem = "No room left on the disk of /home/ann/state; free some space and writing goes on";
  const store = { path: "/home/ann/state", problem, since: new Date(0).toISOString(), isDiskFull: true };
  expect(statusText(found, true, io(false), 0)).toMatch(/^state +~\/state$/m);
  expect(statusText({ ...found, store }, true, io(false), 0)).toMatch(
    /^state +~\/state: cannot be written: No room left on the disk of \/home\/ann\/state; free some space and writing goes on\.$/m,
  );
  expect(statusText({ ...found, store }, true, io(true), 0)).toContain("\u001b[31mcannot be written\u001b[0m");
});

it("a mailbox in which the tools are shared is told with how its line does, and why it was refused", () => {
  const counts = { running: 0, calls: 3, repeated: 0, unknown: 0, late: 0 };
  const share = { broker: "wss://b", mailbox: "studio", state: "refused", why: "no such token", ...counts } as const;
  const text = statusText({ ...status(server("good", [])), shares: [share] }, true, io(false), 0);
  expect(text).toMatch(/^shared +as studio at wss:\/\/b: refused, no such token$/m);
});

it("of a login it is said until when its token is good, or that one is needed, and by which words", () => {
  const login = { source: "the login", state: "known" } as const;
  const until = "2026-05-01T10:00:00.000Z";
  const found = status(
    { ...server("good", []), credential: { ...login, needsLogin: false, until } },
    { ...server("ending", []), credential: { ...login, needsLogin: false, isRenewed: false, until } },
    { ...server("endless", []), credential: { ...login, needsLogin: false } },
    { ...server("away", []), credential: { ...login, state: "absent", needsLogin: true } },
  );
  const below = statusText(found, true, io(false), 0).split("\n\n").at(-1)?.split("\n") ?? [];
  expect(below.toSorted()).toEqual([
    "away: needs login: `toolway login away`",
    `ending: logged in, its token is good until ${until}; then somebody has to log in again`,
    "endless: logged in",
    `good: logged in, its token is good until ${until} and renewed by itself`,
  ]);
});

it("an engine that is away is told with why, when it is tried again, what does not work meanwhile, and who goes by another config [engine-told] [engine-same-config]", () => {
  const there = {
    state: "connected",
    gateway: "a",
    node: "nats-1:4222",
    version: "2.9.10",
    since: new Date(0).toISOString(),
    problem: undefined,
    nextTry: undefined,
    isStale: false,
    held: 0,
    differences: [],
    gateways: [],
  } as const;
  const line = (more: object) => {
    const engine = { ...there, ...more };
    const text = statusText({ ...status(server("good", [])), engine }, true, io(false), 90_000);
    return /^engine +(.*)$/m.exec(text)?.[1];
  };
  expect(line({})).toBe("connected to nats-1:4222 (nats-server 2.9.10) for 90.0 s");
  const differs = 'Gateway b goes by another config: server "rug". Give all of them the same.';
  const away = {
    state: "away",
    problem: "Nobody answers there",
    nextTry: new Date(92_000).toISOString(),
    isStale: true,
  };
  expect(line({ ...away, held: 2, differences: [differs] })).toBe(
    "away from nats-1:4222 (nats-server 2.9.10) for 90.0 s. Nobody answers there. Next try in 2.0 s. " +
      `${differs} Tokens are not taken until it is back. 2 records of a newer Toolway or another key left alone.`,
  );
});

it("of kept calls it is said how many wait and since when, which lanes are on hold and why, and how many are of unknown outcome [status-true]", () => {
  const text = (more: object) => {
    const outbox = { waiting: 0, oldestAt: undefined, unknown: 0, held: [], heldCount: 0, ...more };
    return statusText({ ...status(server("tracker", [])), outbox }, true, io(false), 600_000);
  };
  const line = (more: object) => /^outbox +(.*)$/m.exec(text(more))?.[1];
  expect(line({})).toBe("0 waiting");
  const oldestAt = new Date(360_000).toISOString();
  expect(line({ waiting: 1_200, oldestAt })).toBe("1,200 waiting, the oldest 4 min");
  const held = [
    { server: "tracker", lane: "principal ann", depth: 3, why: "an operator holds it" },
    { server: "tracker", lane: "", depth: 1, why: "HTTP 403" },
  ];
  const all = { waiting: 4, oldestAt, unknown: 2, held, heldCount: 5 };
  expect(line(all)).toBe("4 waiting, the oldest 4 min; 5 lanes on hold; 2 of unknown outcome");
  expect(text(all).split("\n\n").at(-1)?.split("\n")).toEqual([
    "outbox: 3 calls to tracker wait in lane principal ann: an operator holds it.",
    "outbox: 1 call to tracker waits: HTTP 403.",
    "outbox: and 3 more lanes on hold.",
    "outbox: 2 calls of unknown outcome: `toolway outbox list --only unknown` shows them, `toolway outbox resolve` settles one.",
  ]);
});

it("without problems there is nothing below the table", () => {
  const text = statusText(status(server("good", [])), true, io(false), 0);
  expect(text.split("\n").at(-1)).toMatch(/^good +ready +http +1 .*MCP 2026-07-28$/);
});

it("what gets no calls is not to be overlooked: ejected, or with its circuit open [host-14]", () => {
  const ejected: ServerStatus = { ...server("dead", []), state: "ejected", ejected: true };
  const open: ServerStatus = { ...server("sick", []), circuit: "open", failures: 5, nextTryInMs: 12_000 };
  const text = statusText(status(ejected, open), true, io(false), 0);
  expect(text).toMatch(/^dead +ejected /m);
  expect(text).toContain("dead: restarted too often and ejected; `toolway reload dead` tries it.");
  expect(text).toMatch(/^sick +circuit open /m);
  expect(text).toMatch(/sick: failed 5 times in a row, so its calls are held back; the next is tried in 12/);
});

it("executors have a table of their own, and what is not connected is not to be overlooked", () => {
  const at = { inFlight: 3, extended: true, since: new Date(0).toISOString(), lastError: undefined };
  const office = { where: "ws://10.0.0.7:7430", state: "ready", ...at } as const;
  const away = { where: "ws://10.0.0.8:7430", state: "connecting", ...at, lastError: "nothing listens there" } as const;
  const executors = [
    { name: "office", ready: true, problem: undefined, members: [office, away] },
    { name: "lab", ready: false, problem: "No executor.", members: [] },
  ];
  const found = { ...status({ ...server("wiki", []), via: "office" }), executors };
  const text = statusText(found, true, io(false), 60_000);
  expect(text).toMatch(/^wiki +ready +http via office /m);
  expect(text).toMatch(/^office +ready +ws:\/\/10\.0\.0\.7:7430 +3 /m);
  expect(text).toMatch(/^lab +not connected /m);
  expect(text).toContain("executor office at ws://10.0.0.8:7430: nothing listens there");
});

it("a server whose entry is wrong has each of its mistakes on a line [bad-entry-alone]", () => {
  const lastError = "a.json:1:2: mcpServers.x.type: one\na.json:3:4: mcpServers.x.env.A: two";
  const wrong: ServerStatus = { ...server("x", []), kind: undefined, state: "misconfigured", lastError };
  const text = statusText(status(wrong), true, io(false), 0);
  expect(text).toMatch(/^x +misconfigured +- /m);
  expect(text.split("\n\n").at(-1)).toBe(
    "x: misconfigured: a.json:1:2: mcpServers.x.type: one\nx: misconfigured: a.json:3:4: mcpServers.x.env.A: two",
  );
});

it("quarantined tools are counted, and the way to them is named [status-true]", () => {
  const notes: ServerStatus = {
    ...server("notes", []),
    counts: { ...server("x", []).counts, tools: 3 },
    quarantined: 2,
  };
  const text = statusText(status(notes), true, io(false), 0);
  expect(text).toMatch(/^notes +ready +http +3, 2 quarantined /m);
  expect(text).toContain("notes: 2 of 3 tools quarantined, hidden from agents: `toolway pins diff notes` shows why.");
});

it("tools are from before where their own list is, whatever became of the others [status-true]", () => {
  const text = (more: Partial<ServerStatus>) => statusText(status({ ...server("s", []), ...more }), true, io(false), 0);
  expect(text({ listsFromBefore: true, oldLists: ["tools"] })).toMatch(/^s +ready +http +1 \(from before\) /m);
  expect(text({ listsFromBefore: true, oldLists: ["prompts"] })).not.toContain("from before");
  expect(text({ listsFromBefore: true, oldLists: [] })).not.toContain("from before");
});

it("faults stand before warnings, those before conflicts, and a note is not called a conflict [status-true]", () => {
  const found: GatewayStatus = {
    ...status({ ...server("dead", []), state: "backoff", lastError: "It ended." }),
    config: {
      path: undefined,
      error: undefined,
      warnings: ["here: x"],
      unusedPatterns: ['role "r", "deny": "s/x" fits no tool.'],
      waitsForRestart: ["listen", "tls"],
    },
    conflicts: ["two claim it"],
    notes: ["one is left out"],
  };
  expect(statusText(found, true, io(false), 0).split("\n\n").at(-1)?.split("\n")).toEqual([
    "dead: It ended. Next try with the next call.",
    "`toolway doctor` says what to fix.",
    "warning: here: x",
    'warning: role "r", "deny": "s/x" fits no tool.',
    '"listen", "tls" in the config changed, and take effect at the next start of the gateway.',
    "conflict: two claim it",
    "note: one is left out",
  ]);
});

it("agents of the modern era are told apart from sessions, and memory is not rounded up [status-true]", () => {
  const found = { ...status(), sessions: 2, presences: 1 };
  const text = statusText(found, true, io(false), 0);
  expect(text).toMatch(/^sessions +2; and 1 caller of the modern era, which has no sessions$/m);
  expect(text).toMatch(/^memory +1\.4 MiB of 128 MiB held$/m);
  expect(statusText({ ...found, presences: 0 }, true, io(false), 0)).toMatch(/^sessions +2$/m);
  const small = { ...found, memory: { heldBytes: 900, limitBytes: 200 * 1024 } };
  expect(statusText(small, true, io(false), 0)).toMatch(/^memory +900 B of 200 KiB held$/m);
});

it("an audit log is one line: where it is, what was lost, and that calls are refused while it cannot be written [status-true]", () => {
  const audit = { path: "/a", seq: 9, hash: "", written: 9, lost: 0, problem: undefined, refusing: false };
  const text = (more: object) => statusText({ ...status(), audit: { ...audit, ...more } }, true, io(false), 0);
  expect(statusText(status(), true, io(false), 0)).not.toMatch(/^audit/m);
  expect(text({})).toMatch(/^audit +9 lines in \/a$/m);
  expect(text({ lost: 3 })).toMatch(/^audit +9 lines in \/a; 3 lines lost since the start$/m);
  const full = "ENOSPC: no space left on device, write";
  expect(text({ problem: full, refusing: true })).toMatch(
    /^audit +cannot be written: ENOSPC: .*, write\. Calls are refused until it can\. Make room in \/a$/m,
  );
  expect(text({ problem: full })).toMatch(/Lines that find no room are lost\./);
});

it("mailboxes are one line: what is in use, what waits, what failed, who is connected [status-true]", () => {
  const mailboxes = {
    inUse: 2,
    waiting: 1_200,
    leased: 3,
    dead: 1,
    connections: 4,
    oldest: { mailbox: "studio", at: new Date(0).toISOString() },
    mailboxes: [],
  };
  const text = statusText({ ...status(), mailboxes }, true, io(false), 240_000);
  expect(text).toContain(
    "mailboxes  2 mailboxes in use; 1,200 waiting, 3 leased, 1 dead letter; 4 connections; the oldest 4 min in studio",
  );
  expect(text).toContain("none: a broker");
});

it("servers in trouble stand first in the table, the others in the order of the config [status-true]", () => {
  const named = (name: string, more: Partial<ServerStatus>): ServerStatus => ({ ...server(name, []), ...more });
  const text = statusText(
    status(
      named("up", {}),
      named("odd", { state: "misconfigured" }),
      named("idle", { state: "idle" }),
      named("open", { circuit: "open" }),
    ),
    true,
    io(false),
    0,
  );
  const rows = text.split("\n").flatMap((line) => /^(up|odd|idle|open) {2,}/.exec(line)?.[1] ?? []);
  expect(rows).toEqual(["odd", "open", "up", "idle"]);
});
