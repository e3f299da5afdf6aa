// What needs a person, from what is known: one row for each thing, with a sentence that says why and a line to type. It
// decides only, and knows neither the browser nor the gateway.

import type { GatewayStatus, ServerStatus } from "../src/contracts/status.js";
import { sentence } from "../src/runtime/words/sentence.js";
import { shellWord } from "../src/runtime/words/shell-word.js";

export interface Act {
  readonly label: string;
  readonly method: "POST" | "DELETE";
  readonly path: string;
  readonly body?: unknown;
  /** In place of it: one for each of what is decided about at once. */
  readonly bodies?: readonly unknown[];
  /** What to type, where it is another line than the one of what it is about. */
  readonly line?: string;
  /** What happens, where it cannot be undone: asked once before. */
  readonly sure?: string;
}

export interface Need {
  readonly key: string;
  readonly what: string;
  readonly why: string;
  /** Since when; undefined where nobody knows. */
  readonly since?: string | undefined;
  /** Until when it waits for somebody. */
  readonly until?: string | undefined;
  /** What to type; the page's button does the same. */
  readonly line: string;
  readonly act?: Act;
  /** Where more than one thing can be done. */
  readonly acts?: readonly Act[];
  /** The server at which somebody has to log in. */
  readonly login?: string;
  /** The question that it is, for what it would be called with. */
  readonly ask?: number;
  /** The view that has more of it. */
  readonly href: string;
}

export interface Known {
  readonly servers: readonly ServerStatus[];
  readonly config: GatewayStatus["config"] | undefined;
  readonly outbox: GatewayStatus["outbox"];
  readonly mailboxes: GatewayStatus["mailboxes"];
  readonly shares: GatewayStatus["shares"];
  readonly audit: GatewayStatus["audit"];
  readonly engine: GatewayStatus["engine"];
  readonly store: GatewayStatus["store"];
  readonly asks: GatewayStatus["asks"];
  readonly endingTokens: GatewayStatus["endingTokens"];
  readonly forRuns?: GatewayStatus["forRuns"];
}

/** What to type so that the gateway gets the variables that this text misses; undefined where it misses none. */
type StartLine = (why: string) => string | undefined;

export function needsOf(known: Known): Need[] {
  const { servers, config, outbox, mailboxes, shares, audit, engine, store, asks, endingTokens } = known;
  const starts: StartLine = (why) => startLine(why, config?.path, known.forRuns === true);
  return [
    // Somebody waits for these, and not for long.
    ...asks.map(askNeed),
    ...(engine === undefined ? [] : engineNeeds(engine)),
    ...(store === undefined ? [] : [storeNeed(store)]),
    ...(audit === undefined ? [] : auditNeeds(audit)),
    ...(mailboxes?.problem === undefined ? [] : [noMailboxesNeed(mailboxes.problem)]),
    ...servers.flatMap((server) => needsOfServer(server, starts)),
    ...(config?.error === undefined ? [] : [editNeed(config.error, config.errorAt)]),
    ...(config?.unusedPatterns ?? []).map((text) => patternNeed(text, config?.unusedSince?.[text])),
    ...(outbox === undefined ? [] : outboxNeeds(outbox)),
    ...(mailboxes === undefined || mailboxes.dead === 0 ? [] : [deadNeed(mailboxes.dead, mailboxes.deadSince)]),
    ...shares.filter(({ state }) => state === "refused").map(shareNeed),
    ...endingTokens.map(tokenNeed),
  ];
}

/** The words of `toolway status`: what the supervisor does next is its business, that a server is down is the reader's. */
export function stateWord({ state, circuit }: Pick<ServerStatus, "state" | "circuit">): string {
  if (state === "ready" && circuit !== "closed") return `circuit ${circuit}`;
  return state === "backoff" ? "down" : state;
}

/** Whether agents can use it now, or could if they asked. What was stopped by a person is as they want it. */
export function isFine({ state, circuit }: ServerStatus): boolean {
  return (state === "ready" || state === "idle" || state === "stopped" || state === "starting") && circuit === "closed";
}

/** Fine, and no person has anything to do about it: what the sentence at the top counts, and the rows of Servers go by. */
export function isWell(server: ServerStatus): boolean {
  return isFine(server) && server.quarantined === 0 && server.credential?.needsLogin !== true;
}

/** A variable that is not set, in the words of the config's mistakes. */
const NOT_SET = /(?:^|[\s(])([A-Za-z_]\w*) is not set \(set this environment variable and restart/g;
/** More of them make no line that anybody reads. */
const MAX_NOT_SET = 4;

/** What to type where variables are not set: another start, since a gateway keeps the environment of its own. */
function startLine(why: string, path: string | undefined, isForRuns: boolean): string | undefined {
  const names = [...new Set([...why.matchAll(NOT_SET)].map(([, name]) => name))];
  if (names.length === 0 || names.length > MAX_NOT_SET || path === undefined || isForRuns) return undefined;
  return [...names.map((name) => `${name}=…`), "toolway serve --config", shellWord(path)].join(" ");
}

function needsOfServer(server: ServerStatus, starts: StartLine): Need[] {
  const { name, state, lastError, credential, quarantined, quarantinedAt, since } = server;
  const href = `/servers/${encodeURIComponent(name)}`;
  const reload = { label: "Reload", method: "POST", path: `/servers/${encodeURIComponent(name)}/reload` } as const;
  const needs: Need[] = [];
  if (state === "misconfigured") {
    const why = sentence(lastError ?? "Its entry in the config cannot be used");
    const line = starts(why) ?? "toolway config check";
    needs.push({
      key: `config/${name}`,
      what: `${name} is misconfigured`,
      why,
      since,
      line,
      href,
    });
  } else if (credential?.needsLogin === true) {
    const why = sentence(credential.problem ?? "Nobody has logged in");
    needs.push({
      key: `login/${name}`,
      what: `${name} needs a login`,
      why,
      // Of one that answers without it, it says since when it answers.
      since: isFine(server) ? undefined : since,
      line: `toolway login ${shellWord(name)}`,
      login: name,
      href,
    });
  } else if (state === "ejected") {
    const why = `It failed too often and is tried again only now and then. ${sentence(lastError ?? "")}`.trim();
    const line = `toolway reload ${shellWord(name)}`;
    needs.push({ key: `ejected/${name}`, what: `${name} was given up`, why, since, line, act: reload, href });
  } else if (state === "backoff" || server.circuit === "open") {
    const why = sentence(lastError ?? "It does not answer");
    const line = `toolway reload ${shellWord(name)}`;
    needs.push({ key: `down/${name}`, what: `${name} is down`, why, since, line, act: reload, href });
  } else if (state === "waiting") {
    const why = `Its executor "${server.via ?? ""}" is not connected.`;
    const line = `toolway executor --connect … --name ${shellWord(server.via ?? "")}`;
    needs.push({ key: `executor/${name}`, what: `${name} is out of reach`, why, since, line, href });
  }
  if (quarantined > 0) {
    const why =
      quarantined === 1
        ? "One tool is not what you accepted, and no agent may use it: see what changed, then accept or reject it."
        : `${quarantined} tools are not what you accepted, and no agent may use them: see what changed, then accept or reject it.`;
    const line = `toolway pins diff ${shellWord(name)}`;
    needs.push({
      key: `pins/${name}`,
      what: `${name} changed its tools`,
      why,
      since: quarantinedAt,
      line,
      href: `/pins/${encodeURIComponent(name)}`,
    });
  }
  return needs;
}

function askNeed({ id, worker, role, server, tool, askedAt, until }: GatewayStatus["asks"][number]): Need {
  const answer = (label: string, said: "yes" | "no" | "always", sure?: string): Act => ({
    label,
    method: "POST",
    path: `/asks/${id}`,
    body: { answer: said },
    line: `toolway asks answer ${id} ${said}`,
    ...(sure === undefined ? {} : { sure }),
  });
  return {
    key: `ask/${id}`,
    what: `${worker} wants to call ${server}/${tool}`,
    why: `It has the role ${role}, and the config says that a person is asked. What nobody answers in time is not run.`,
    since: askedAt,
    until,
    line: `toolway asks answer ${id} yes`,
    acts: [
      answer("Let it run", "yes"),
      answer("Refuse", "no"),
      answer("Always", "always", `${worker} may call ${tool} without a question until the gateway ends.`),
    ],
    ask: id,
    href: "/",
  };
}

function engineNeeds({ state, problem, since, isStale, differences }: NonNullable<GatewayStatus["engine"]>): Need[] {
  const needs: Need[] = [];
  if (state !== "connected" && state !== "closed") {
    const then = isStale
      ? "It has been away for so long that no token is taken any more."
      : "Calls go on; what has to be written waits for it.";
    const what = state === "refused" ? "The engine refuses this gateway" : "The engine is away";
    const why = `${problem === undefined ? "" : `${sentence(problem)} `}${then}`;
    needs.push({ key: "engine", what, why, since, line: "toolway doctor --engine", href: "/config" });
  }
  if (state === "connected" && problem !== undefined) {
    const what = "The engine has no room";
    needs.push({ key: "engine", what, why: sentence(problem), line: "toolway doctor --engine", href: "/config" });
  }
  for (const text of differences) {
    const what = "Another gateway goes by another config";
    needs.push({ key: `gateway/${text}`, what, why: sentence(text), line: "toolway doctor --engine", href: "/config" });
  }
  return needs;
}

function storeNeed({ path, problem, since, isDiskFull }: NonNullable<Known["store"]>): Need {
  const why = `${sentence(problem)} Until then what has to be kept is refused: writes of the outbox, pins, tokens. Calls go on.`;
  const line = isDiskFull ? `df -h ${shellWord(path)}` : "toolway status";
  return { key: "store", what: "The state directory cannot be written", why, since, line, href: "/" };
}

function tokenNeed({ id, at }: GatewayStatus["endingTokens"][number]): Need {
  return {
    key: `token/${id}`,
    what: `The token of ${id} ends soon`,
    why: "Whoever uses it is refused then. A token with another end is made under another id.",
    until: at,
    line: "toolway token list",
    href: "/access",
  };
}

/** First of all: it may stop every call while all servers are fine. What is lost stays lost when there is room again. */
function auditNeeds({ path, problem, problemAt, refusing, lost, lostAt }: NonNullable<Known["audit"]>): Need[] {
  const gone = `${lost.toLocaleString("en")} ${lost === 1 ? "line" : "lines"} of the audit log`;
  if (problem === undefined) {
    if (lost === 0) return [];
    const what = lost === 1 ? `${gone} is lost` : `${gone} are lost`;
    const why =
      "There was no room for them: who called what then is not in it. A line there says how many. This stays here until the next start.";
    return [{ key: "audit", what, why, since: lostAt, line: "toolway audit verify", href: "/audit" }];
  }
  const what = refusing ? "Every call is refused" : "The audit log cannot be written";
  const then = refusing
    ? "Calls are refused until the audit log can be written."
    : "Lines that find no room to wait are lost.";
  const why = `${sentence(problem)} ${then} Make room there.${lost === 0 ? "" : ` Lost until now: ${gone}.`}`;
  return [{ key: "audit", what, why, since: problemAt, line: `df -h ${shellWord(path)}`, href: "/audit" }];
}

function noMailboxesNeed(problem: string): Need {
  const why = `${sentence(problem)} It is tried again; until then nobody reaches them.`;
  return { key: "mailboxes", what: "Mailboxes cannot be kept", why, line: "toolway status", href: "/waiting" };
}

function editNeed(error: string, since: string | undefined): Need {
  const why = `What ran before goes on. ${sentence(error)}`;
  return {
    key: "edit",
    what: "The last edit of the config is not applied",
    why,
    since,
    line: "toolway config check",
    href: "/config",
  };
}

function patternNeed(text: string, since: string | undefined): Need {
  return {
    key: `pattern/${text}`,
    what: "A rule of the config fits no tool",
    why: sentence(text),
    since,
    line: "toolway config check",
    href: "/config",
  };
}

function outboxNeeds(outbox: NonNullable<GatewayStatus["outbox"]>): Need[] {
  const needs: Need[] = [];
  if (outbox.unknown > 0) {
    const what =
      outbox.unknown === 1 ? "One write has an unknown outcome" : `${outbox.unknown} writes have an unknown outcome`;
    const why = `${outbox.unknown === 1 ? "It" : "They"} may have happened. Look at the server, then say which it was.`;
    const line = "toolway outbox list --only unknown";
    needs.push({ key: "unknown", what, why, since: outbox.unknownAt, line, href: "/waiting" });
  }
  for (const { server, lane, depth, why, oldestAt } of outbox.held) {
    const line = `toolway outbox release ${shellWord(server)}`;
    // As the line beside it does, all lanes: one by itself would stay on hold where a person holds the server.
    const act: Act = { label: "Release", method: "POST", path: "/outbox/release", body: { server } };
    const what = `${depth} ${depth === 1 ? "write waits" : "writes wait"} for ${server}`;
    needs.push({
      key: `lane/${server}/${lane}`,
      what,
      why: sentence(why),
      since: oldestAt,
      line,
      act,
      href: "/waiting",
    });
  }
  return needs;
}

function deadNeed(dead: number, since: string | undefined): Need {
  const what = dead === 1 ? "One dead letter" : `${dead} dead letters`;
  const [they, them] = dead === 1 ? ["It", "it"] : ["They", "them"];
  const why = `${they} failed too often, or nobody knows what became of ${them}: send ${them} again, or drop ${them}.`;
  return { key: "dead", what, why, since, line: "toolway mailbox list", href: "/waiting" };
}

function shareNeed({ mailbox, why = "", since }: GatewayStatus["shares"][number]): Need {
  return {
    key: `share/${mailbox}`,
    what: `The mailbox ${mailbox} is refused`,
    why: sentence(why === "" ? "The broker does not want us" : why),
    since,
    line: `toolway token create --id ${shellWord(mailbox)} --role sharer`,
    href: "/",
  };
}

/** What stands at the top of every view. */
export function summaryOf(servers: readonly ServerStatus[], needs: readonly Need[]): string {
  if (servers.length === 0 && needs.length === 0) return "No servers yet.";
  const fine = servers.filter(isWell).length;
  const all = servers.length === 1 ? "The server is" : `All ${servers.length} servers are`;
  const rest = servers.length === 1 ? "The server is not fine" : `${fine} of ${servers.length} servers are fine`;
  const some = fine === servers.length ? `${all} fine` : rest;
  const state = servers.length === 0 ? "No servers yet" : some;
  if (needs.length === 0) return `${state}. Nothing needs you.`;
  return `${state}; ${needs.length === 1 ? "one thing needs" : `${needs.length} things need`} you.`;
}

/** Beside Waiting, where nothing of it needs a person: that writes wait is no fault, and no secret. Empty where none do. */
export function waitingWords(writes: number): string {
  return writes === 0 ? "" : `${writes.toLocaleString("en")} ${writes === 1 ? "waits" : "wait"}`;
}

/** The same of a broker by itself. */
export function brokerSummary(mailboxes: Known["mailboxes"], needs: readonly Need[]): string {
  const { inUse = 0, problem } = mailboxes ?? {};
  const used =
    inUse === 0 ? "No mailbox is in use" : inUse === 1 ? "One mailbox is in use" : `${inUse} mailboxes are in use`;
  // Nobody reaches them: how many would be in use is beside the point.
  const state = problem === undefined ? used : "Mailboxes cannot be kept";
  if (needs.length === 0) return `${state}. Nothing needs you.`;
  return `${state}; ${needs.length === 1 ? "one thing needs" : `${needs.length} things need`} you.`;
}

/** Each leads to those calls. A session that went on and a tool that was held back are no calls: to where they are seen. */
const CAUGHT: Readonly<Record<string, readonly [one: string, many: string, href: string]>> = {
  restart: [
    "call that succeeded after its server was started again",
    "calls that succeeded after their servers were started again",
    "/calls?mended=restart",
  ],
  token: ["renewed token", "renewed tokens", "/calls?mended=token"],
  queued: ["write delivered later", "writes delivered later", "/waiting?state=done"],
  session: ["session that went on after a restart", "sessions that went on after a restart", "/access"],
  menu: ["list given while a server was away", "lists given while a server was away", "/calls?mended=menu"],
  pin: ["changed tool held back", "changed tools held back", "/pins"],
};

export interface CaughtWords {
  readonly text: string;
  /** Where those are. */
  readonly href: string;
}

/** What agents did not have to notice, in words; empty where there was nothing. */
export function caughtWords(counts: Readonly<Record<string, number>>): CaughtWords[] {
  return Object.entries(CAUGHT).flatMap(([kind, [one, many, href]]) => {
    const count = counts[kind] ?? 0;
    return count === 0 ? [] : [{ text: `${count.toLocaleString("en")} ${count === 1 ? one : many}`, href }];
  });
}
