// What the operator's page makes of names and texts that others wrote, before a browser sees them.

import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { auditWords } from "../dashboard/audit/words.js";
import { piecesOf } from "../dashboard/foreign.js";
import { brokerSummary, caughtWords, type Known, needsOf, summaryOf, waitingWords } from "../dashboard/needs.js";
import { flowPicture } from "../dashboard/overview/flow-layout.js";
import { pageName } from "../dashboard/page-name.js";
import { expand } from "../src/config/variables.js";
import type { ServerStatus } from "../src/contracts/status.js";
import { hiddenIn, visible } from "../src/runtime/visible.js";
import { CHARACTER } from "./fixtures/characters.js";

const NOTHING: Known = {
  servers: [],
  config: undefined,
  outbox: undefined,
  mailboxes: undefined,
  shares: [],
  audit: undefined,
  engine: undefined,
  store: undefined,
  asks: [],
  endingTokens: [],
};

/** What the config says of a variable, as it says it itself. */
// biome-ignore lint/suspicious/noTemplateCurlyInString: a variable of the config
const { problems: NOT_SET } = expand("${NOT_THERE}", { env: {} } as Parameters<typeof expand>[1]);

function linesFor(name: string): string[] {
  const server = (state: string, more: object = {}) =>
    ({ name, state, circuit: "closed", quarantined: 1, via: name, ...more }) as unknown as ServerStatus;
  return needsOf({
    ...NOTHING,
    servers: [
      server("ejected"),
      server("backoff"),
      server("waiting"),
      server("idle", { credential: { needsLogin: true } }),
    ],
    outbox: {
      waiting: 1,
      oldestAt: undefined,
      unknown: 0,
      held: [{ server: name, lane: "a", depth: 1, why: "x" }],
      heldCount: 1,
    },
    shares: [{ mailbox: name, state: "refused" }] as unknown as Known["shares"],
  }).map(({ line }) => line);
}

describe("a line to copy", () => {
  it("has a name for one word of a shell, whatever the name holds [terminal-inert]", () => {
    for (const name of ["$(id)", "a; id", "a b", "a|id", "a>b", "it's"]) {
      const lines = linesFor(name);
      expect(lines).toHaveLength(10);
      const word = `'${name.replaceAll("'", "'\\''")}'`;
      for (const line of lines) expect(line).toContain(` ${word}`);
    }
  });

  it("leaves out a name that holds a line break, a hidden character or a backtick [terminal-inert]", () => {
    for (const name of ["a\nid\n", "a\u202eb", "a`id`", "a\u{e0101}"]) {
      for (const line of linesFor(name)) expect(line).toContain("<name>");
    }
  });
});

describe("what needs a person", () => {
  it("begins with an audit log that cannot be written, and says where calls are refused for it [status-true]", () => {
    const audit = { path: "/var/lib/a b", seq: 9, hash: "", written: 9, lost: 0, problem: "ENOSPC: no space left" };
    const servers = [{ name: "a", state: "ejected", circuit: "open", quarantined: 0 } as unknown as ServerStatus];
    const [first, second] = needsOf({ ...NOTHING, servers, audit: { ...audit, refusing: true } });
    expect(first).toMatchObject({ what: "Every call is refused", line: "df -h '/var/lib/a b'" });
    expect(first?.why).toContain("ENOSPC: no space left. Calls are refused until the audit log can be written.");
    expect(second?.what).toBe("a was given up");
    expect(needsOf({ ...NOTHING, audit: { ...audit, refusing: false } })[0]?.why).toContain("are lost");
    expect(needsOf({ ...NOTHING, audit: { ...audit, problem: undefined, refusing: false } })).toEqual([]);
  });

  it("says that the state directory cannot be written, above what is wrong with servers, and which line shows where the room went [status-true]", () => {
    const since = "2026-01-01T00:00:00.000Z";
    const store = { path: "/var/lib/a b", problem: "No room left on the disk of /var/lib/a b", since };
    const servers = [{ name: "a", state: "ejected", circuit: "open", quarantined: 0 } as unknown as ServerStatus];
    const [first, second] = needsOf({ ...NOTHING, servers, store: { ...store, isDiskFull: true } });
    expect(first).toMatchObject({
      what: "The state directory cannot be written",
      why: expect.stringMatching(
        /^No room left on the disk of \/var\/lib\/a b\. Until then what has to be kept is refused/,
      ),
      since,
      line: "df -h '/var/lib/a b'",
    });
    expect(second?.what).toBe("a was given up");
    expect(needsOf({ ...NOTHING, store: { ...store, isDiskFull: false } })).toMatchObject([{ line: "toolway status" }]);
  });

  it("says that lines of the audit log are lost when there is room again, and that mailboxes cannot be kept [status-true]", () => {
    const at = "2026-01-01T00:00:00.000Z";
    const audit = { path: "/a", seq: 9, hash: "", written: 9, lost: 2_000, lostAt: at, refusing: false };
    const none = { inUse: 0, waiting: 0, leased: 0, dead: 0, connections: 0, oldest: undefined, mailboxes: [] };
    const mailboxes = { ...none, problem: "ENOSPC: no space left" };
    const needs = needsOf({ ...NOTHING, audit: { ...audit, problem: undefined }, mailboxes });
    expect(needs).toMatchObject([
      { what: "2,000 lines of the audit log are lost", since: at, line: "toolway audit verify" },
      { what: "Mailboxes cannot be kept", why: expect.stringMatching(/^ENOSPC: no space left\. It is tried again/) },
    ]);
    expect(brokerSummary(mailboxes, needs)).toBe("Mailboxes cannot be kept; 2 things need you.");
    expect(brokerSummary(none, [])).toBe("No mailbox is in use. Nothing needs you.");
  });

  it("speaks of one as of one", () => {
    const outbox = (unknown: number) => ({ waiting: 0, unknown, held: [], heldCount: 0 }) as unknown as Known["outbox"];
    const dead = (count: number) => ({ inUse: 1, dead: count }) as unknown as Known["mailboxes"];
    const whyOf = (more: Partial<Known>) => needsOf({ ...NOTHING, ...more })[0]?.why;
    expect(whyOf({ outbox: outbox(1) })).toMatch(/^It may have happened\./);
    expect(whyOf({ outbox: outbox(2) })).toMatch(/^They may have happened\./);
    expect(whyOf({ mailboxes: dead(1) })).toMatch(
      /^It failed too often, .* became of it: send it again, or drop it\.$/,
    );
    expect(whyOf({ mailboxes: dead(2) })).toMatch(/^They failed .* became of them: send them again, or drop them\.$/);
  });

  it("says since when, wherever the gateway knows it", () => {
    const at = "2026-01-01T00:00:00.000Z";
    const server = (state: string, more: object = {}) =>
      ({ name: state, state, circuit: "closed", quarantined: 0, since: at, ...more }) as unknown as ServerStatus;
    const none = { inUse: 0, waiting: 0, leased: 0, connections: 0, oldest: undefined, mailboxes: [] };
    const needs = needsOf({
      ...NOTHING,
      servers: [
        server("misconfigured"),
        server("ejected"),
        server("backoff", { credential: { needsLogin: true } }),
        server("ready", { since: "2020-01-01T00:00:00.000Z", quarantined: 1, quarantinedAt: at }),
      ],
      config: {
        ...{ path: "/c", error: "no JSON", errorAt: at, warnings: [], waitsForRestart: [] },
        ...{ unusedPatterns: ["p"], unusedSince: { p: at } },
      },
      outbox: {
        ...{ waiting: 1, oldestAt: at, unknown: 1, unknownAt: at, heldCount: 1 },
        held: [{ server: "s", lane: "a", depth: 1, why: "x", oldestAt: at }],
      },
      mailboxes: { ...none, dead: 1, deadSince: at },
      shares: [{ mailbox: "m", state: "refused", since: at }] as unknown as Known["shares"],
    });
    expect(needs.map(({ key, since }) => [key, since])).toEqual(
      [
        ...["config/misconfigured", "ejected/ejected", "login/backoff", "pins/ready", "edit", "pattern/p", "unknown"],
        ...["lane/s/a", "dead", "share/m"],
      ].map((key) => [key, at]),
    );
    // Of one that answers without a login, when it came up says nothing.
    const [login] = needsOf({ ...NOTHING, servers: [server("ready", { credential: { needsLogin: true } })] });
    expect(login).toMatchObject({ key: "login/ready", since: undefined });
  });
});

describe("a text of somebody else's", () => {
  it("shows each hidden character by its number, those that carry text in variation selectors too [terminal-inert]", () => {
    const text = "a\u{e0101}b\ufe0fc\u00a0d\u3164e\u2800f\u202eg\ud800h";
    expect(
      piecesOf(text, false)
        .map((piece) => (piece.isHidden ? `[${piece.text}]` : piece.text))
        .join(""),
    ).toBe("a[U+E0101]b[U+FE0F]c[U+00A0]d[U+3164]e[U+2800]f[U+202E]g[U+D800]h");
  });

  it("keeps line breaks and tabs where it has lines, and shows them elsewhere", () => {
    expect(piecesOf("a\r\n\tb", true)).toEqual([{ text: "a\n\tb", isHidden: false }]);
    expect(piecesOf("a\nb", false)[1]).toEqual({ text: "U+000A", isHidden: true });
    expect(piecesOf("", true)).toEqual([]);
  });

  it("loses nothing and hides nothing, in 2,000 texts [terminal-inert]", () => {
    fc.assert(
      fc.property(fc.string({ unit: CHARACTER }), (text) => {
        const pieces = piecesOf(text, false);
        for (const piece of pieces) expect(hiddenIn(piece.text)).toEqual([]);
        const shown = pieces.map((piece) => (piece.isHidden ? `\\u{${piece.text.slice(2)}}` : piece.text)).join("");
        expect(shown).toBe(visible(text));
      }),
      { numRuns: 2_000 },
    );
  });
});

it("what nobody noticed is said in words with where those are, and nothing where there was nothing", () => {
  expect(caughtWords({ restart: 1, queued: 1_200, session: 0, menu: 2, other: 3 })).toEqual([
    { text: "1 call that succeeded after its server was started again", href: "/calls?mended=restart" },
    { text: "1,200 writes delivered later", href: "/waiting?state=done" },
    { text: "2 lists given while a server was away", href: "/calls?mended=menu" },
  ]);
});

it("a question waits before all else, with its answers; an engine that is away and a token that ends are told", () => {
  const at = "2026-01-01T00:00:00.000Z";
  const ask = { id: 3, worker: "w", role: "dev", server: "s", tool: "t", askedAt: at, until: at };
  const engine = {
    state: "away" as const,
    ...{ gateway: "g", node: undefined, version: undefined, since: at, problem: "no route" },
    ...{ nextTry: at, isStale: false, held: 0, differences: ["Gateway x goes by another config"], gateways: [] },
  };
  const needs = needsOf({ ...NOTHING, asks: [ask], engine, endingTokens: [{ id: "ann", at }] });
  expect(needs.map(({ what }) => what)).toEqual([
    "w wants to call s/t",
    "The engine is away",
    "Another gateway goes by another config",
    "The token of ann ends soon",
  ]);
  expect(needs[0]).toMatchObject({ line: "toolway asks answer 3 yes", until: at, ask: 3 });
  expect(needs[0]?.acts?.map(({ body, line }) => [body, line])).toEqual(
    ["yes", "no", "always"].map((answer) => [{ answer }, `toolway asks answer 3 ${answer}`]),
  );
  expect(needs[1]).toMatchObject({ since: at, line: "toolway doctor --engine" });
});

it("the flow has the ends that its lines lead to, tall enough for their names, and lines as thick as their calls", () => {
  const line = (agent: string, server: string, calls: number, errors = 0) => ({
    ...{ agent, client: undefined, server, calls, errors },
  });
  const picture = flowPicture([line("a", "x", 100), line("a", "y", 1, 1), line("b", "x", 50)]);
  expect(picture.agents.map(({ name, calls }) => [name, calls])).toEqual([
    ["a", 101],
    ["b", 50],
  ]);
  expect(picture.servers.map(({ name, errors }) => [name, errors])).toEqual([
    ["x", 0],
    ["y", 1],
  ]);
  expect(picture.height).toBeGreaterThanOrEqual(2 * 20);
  const [thick, thin, half] = picture.bands.map(({ width }) => width);
  expect(thick).toBe(2 * (half ?? 0));
  expect(thin).toBeGreaterThan(1);
  expect(flowPicture([]).bands).toEqual([]);
});

describe("the page that was built", () => {
  it("is small enough for a slow line: 60 kB for the first view, 120 kB in all, as they are sent [bounded]", () => {
    const folder = new URL("../dist/dashboard/", import.meta.url).pathname;
    const sizes = readdirSync(folder)
      .filter((name) => name.endsWith(".br"))
      .map((name) => ({ name, bytes: statSync(join(folder, name)).size }));
    const sum = (some: typeof sizes) => some.reduce((all, { bytes }) => all + bytes, 0);
    expect(sizes.map(({ name }) => name)).toContain("main.js.br");
    // What is loaded with a view of its own has another name.
    expect(sum(sizes.filter(({ name }) => /^(index|main|icon)\./.test(name)))).toBeLessThanOrEqual(60_000);
    expect(sum(sizes)).toBeLessThanOrEqual(120_000);
  });
});

it("a server with a tool that is held back, or that wants a login, is not among those that are fine [status-true]", () => {
  const server = (more: object = {}) =>
    ({ name: "s", state: "ready", circuit: "closed", quarantined: 0, ...more }) as unknown as ServerStatus;
  const held = server({ quarantined: 1 });
  const login = server({ credential: { needsLogin: true } });
  const said = (...servers: ServerStatus[]) => summaryOf(servers, needsOf({ ...NOTHING, servers }));
  expect(said(server(), held, login)).toBe("1 of 3 servers are fine; 2 things need you.");
  expect(said(held)).toBe("The server is not fine; one thing needs you.");
  expect(said(server(), server({ credential: { needsLogin: false } }))).toBe(
    "All 2 servers are fine. Nothing needs you.",
  );
});

it("two gateways are told apart by what their pages are called, also where both configs are called toolway.json", () => {
  expect(pageName("/home/ann/notes/toolway.json", false, "7421")).toBe("notes/toolway.json");
  expect(pageName("/home/ann/site/toolway.json", false, "7422")).toBe("site/toolway.json :7422");
  expect(pageName("/toolway.json", false, "")).toBe("toolway.json");
  expect(pageName(undefined, false, "7421")).toBe("demo");
  expect(pageName(undefined, true, "40123")).toBe("broker :40123");
});

it("how many writes wait stands beside Waiting, also where nobody has to do anything about them", () => {
  expect([0, 1, 4, 1_200].map(waitingWords)).toEqual(["", "1 waits", "4 wait", "1,200 wait"]);
});

it("where a variable is not set, what to type is a start with it: a reload would not bring it in", () => {
  const lineOf = (lastError: string, more: Partial<Known> = {}) => {
    const server = { name: "a", state: "misconfigured", circuit: "closed", quarantined: 0, lastError };
    const config = { path: "/etc/tool way.json" } as Known["config"];
    return needsOf({ ...NOTHING, config, servers: [server as unknown as ServerStatus], ...more })[0]?.line;
  };
  const missing = (name: string) =>
    NOT_SET.map(({ message, hint }) =>
      `t.json:1:2: headers.A: ${message} (${hint})`.replaceAll("NOT_THERE", name),
    ).join();
  expect(lineOf(missing("A_TOKEN"))).toBe("A_TOKEN=… toolway serve --config '/etc/tool way.json'");
  expect(lineOf(`${missing("A")}\n${missing("B")}; ${missing("A")}`)).toMatch(/^A=… B=… toolway serve /);
  // Others start it, or nobody knows by which file it runs.
  expect(lineOf(missing("A"), { forRuns: true })).toBe("toolway config check");
  expect(lineOf(missing("A"), { config: undefined })).toBe("toolway config check");
  expect(lineOf("the rule of X is not set")).toBe("toolway config check");
});

it("every line of the audit log says what it is about, also those of the log itself", () => {
  const words = (kind: string, more: object) => auditWords({ seq: 1, time: "2026-01-01T00:00:00.000Z", kind, ...more });
  expect(words("call", { server: "a", tool: "b", method: "tools/call" })).toBe("a/b");
  expect(words("call", { server: "a", method: "resources/read" })).toBe("a/resources/read");
  expect(words("operator", { act: "POST /reload", target: { a: "b" } })).toBe('POST /reload {"a":"b"}');
  expect(words("refusal", { rule: "token", address: "::1", path: "/mcp" })).toBe("/mcp");
  expect(words("refusal", { rule: "token", address: "::1", more: 40 })).toBe("40 more like these, in one second");
  expect(words("gap", { lost: 1 })).toBe("1 line lost: there was no room");
  expect(words("file", {})).toBe("the first file");
  expect(words("file", { after: "x" })).toBe("a new file, which goes on with the one before");
  expect(words("removed", { file: "1.jsonl" })).toBe("1.jsonl was removed for its age, or for room");
  expect(words("resumed", { pid: 7 })).toBe("a gateway began to write, process 7");
  expect(words("resumed", { pid: 7, torn: true })).toBe("a gateway began to write, process 7, after a torn line");
  expect(words("resumed", { due: { seq: 9 } })).toBe("a gateway began to write, without lines that were written");
});

it("where there are no servers yet, it is said all the same how much needs a person [status-true]", () => {
  const broken = needsOf({ ...NOTHING, config: { error: "line 1: not JSON" } as Known["config"] });
  expect(summaryOf([], broken)).toBe("No servers yet; one thing needs you.");
  expect(summaryOf([], [])).toBe("No servers yet.");
});
