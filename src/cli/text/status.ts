// A gateway's status as a person reads it: the state of things in a table, and below it only what needs attention.

import type { AuditHeadAnswer } from "../../contracts/control/audit.js";
import type { ExecutorStatus } from "../../contracts/executors.js";
import type {
  CredentialStatus,
  EngineSeen,
  GatewayStatus,
  ServerState,
  ServerStatus,
  StoreSeen,
} from "../../contracts/status.js";
import { brokerUrlOf } from "../../mailbox/wire/address.js";
import { errorLines } from "../../runtime/words/error-lines.js";
import { sentence } from "../../runtime/words/sentence.js";
import { shellWord } from "../../runtime/words/shell-word.js";
import { hinted, type Io, shortPath } from "../line/io.js";
import { mailboxesLine } from "./mailboxes.js";
import { heldLines, outboxLine } from "./outbox.js";
import { count, duration, fittedTable, heading, oneLine, type Style, styleOf, table } from "./print.js";

/** An error in one line, with its advice; `--json` has the whole. */
const ERROR_WIDTH = 320;

/** So much of the error that a server wrote; `doctor` shows more. */
const STDERR_LINES = 3;

export function statusText(status: GatewayStatus, running: boolean, io: Io, nowMs: number): string {
  const style = styleOf(io);
  const facts: string[][] = [];
  const isBroker = status.config.path === undefined && status.mailboxes !== undefined;
  if (running) {
    const since = duration(Math.max(0, nowMs - Date.parse(status.startedAt)));
    const state = status.draining ? style.yellow("draining") : style.green("running");
    facts.push(["gateway", `${state}, Toolway ${status.toolway}, pid ${status.pid}, for ${since}`]);
    if (isBroker && status.endpoint !== undefined) facts.push(["broker", brokerUrlOf(status.endpoint)]);
    else facts.push(["endpoint", status.endpoint ?? "none"]);
    facts.push(["sessions", sessionsText(status)]);
    facts.push(["memory", `${bytes(status.memory.heldBytes)} of ${bytes(status.memory.limitBytes)} held`]);
  } else {
    facts.push(["gateway", "not running; the servers were started for this command only"]);
  }
  const isJoin = status.servers.length > 0 && status.servers.every(({ kind }) => kind === "mailbox");
  const builtIn = isBroker ? "none: a broker" : isJoin ? "none: toolway join" : "built-in demo";
  facts.push(["config", status.config.path === undefined ? builtIn : shortPath(io, status.config.path)]);
  if (status.engine !== undefined) facts.push(["engine", engineLine(status.engine, style, nowMs)]);
  if (status.mailboxes !== undefined) facts.push(["mailboxes", mailboxesLine(status.mailboxes, nowMs)]);
  if (status.outbox !== undefined) facts.push(["outbox", outboxLine(status.outbox, nowMs)]);
  if (status.audit !== undefined) facts.push(["audit", auditLine(status.audit, style, io)]);
  for (const { mailbox, broker, state, why } of status.shares) {
    const told =
      state === "connected" ? style.green(state) : state === "refused" ? style.red(state) : style.yellow(state);
    facts.push(["shared", `as ${mailbox} at ${broker}: ${told}${why === undefined ? "" : `, ${why}`}`]);
  }
  if (status.stateDir !== undefined) facts.push(["state", stateLine(status.stateDir, status.store, style, io)]);
  facts.push(["names", status.menu === "search" ? `${status.names}, behind find_tools and call_tool` : status.names]);

  const parts = [table(facts)];
  if (status.servers.length > 0) {
    const isCached = status.servers.some(({ cache }) => asked(cache) > 0);
    const columns = ["SERVER", "STATE", "KIND", "TOOLS", "READY IN", "RESTARTS", "IN FLIGHT"];
    const head = heading(style, [...columns, ...(isCached ? ["CACHED"] : []), "VERSION"]);
    parts.push(
      fittedTable([head, ...faultsFirst(status.servers).map((server) => serverRow(server, style, isCached))], io, {
        whole: ["SERVER", "STATE"],
      }),
    );
  } else if (!isBroker) {
    parts.push("No servers. Add some to the config; it is read again when it changes.");
  }
  if (status.executors.length > 0) {
    const head = heading(style, ["EXECUTOR", "STATE", "WHERE", "IN FLIGHT", "SINCE"]);
    parts.push(
      fittedTable([head, ...status.executors.flatMap((one) => executorRows(one, style, nowMs))], io, {
        whole: ["EXECUTOR", "STATE", "WHERE"],
      }),
    );
  }
  const remarks = remarksOf(status, running, style);
  if (remarks.length > 0) parts.push(hinted(io, remarks.join("\n")));
  return parts.join("\n\n");
}

/** A log that cannot be written may be why every call is refused, while all servers are fine. */
function auditLine({ path, seq, lost, problem, refusing }: AuditHeadAnswer, style: Style, io: Io): string {
  const where = shortPath(io, path);
  const gone = lost === 0 ? "" : `; ${style.yellow(`${count(lost, "line")} lost`)} since the start`;
  if (problem === undefined) return `${count(seq, "line")} in ${where}${gone}`;
  const then = refusing ? "Calls are refused until it can." : "Lines that find no room are lost.";
  return `${style.red("cannot be written")}: ${sentence(problem)} ${then} Make room in ${where}${gone}`;
}

/** Of what cannot be kept now nobody hears who does not ask for it: a write, a pin, a token. */
function stateLine(dir: string, store: StoreSeen | undefined, style: Style, io: Io): string {
  if (store === undefined) return shortPath(io, dir);
  return `${shortPath(io, dir)}: ${style.red("cannot be written")}: ${sentence(store.problem)}`;
}

function engineLine(
  { state, node, version, since, problem, nextTry, isStale, held, differences }: EngineSeen,
  style: Style,
  nowMs: number,
) {
  const lasts = duration(Math.max(0, nowMs - Date.parse(since)));
  const where = node === undefined ? "" : ` ${state === "connected" ? "to" : "from"} ${node}`;
  const told = state === "connected" ? style.green(state) : style.red(state);
  const first = `${told}${where}${version === undefined ? "" : ` (nats-server ${version})`} for ${lasts}`;
  const parts: string[] = [];
  if (problem !== undefined) parts.push(sentence(problem));
  if (nextTry !== undefined) parts.push(`Next try in ${duration(Math.max(0, Date.parse(nextTry) - nowMs))}.`);
  parts.push(...differences);
  if (isStale) parts.push("Tokens are not taken until it is back.");
  if (held > 0) parts.push(`${count(held, "record")} of a newer Toolway or another key left alone.`);
  return parts.length === 0 ? first : [`${first}.`, ...parts].join(" ");
}

/** What an operator must not overlook is at the top; the rest is in the order of the config. */
function faultsFirst(servers: readonly ServerStatus[]): readonly ServerStatus[] {
  return [...servers].sort((one, other) => Number(isInTrouble(other)) - Number(isInTrouble(one)));
}

/**
 * Whether nothing is wrong that a script would want to hear of. What waits for a person by design (a changed tool, a login) is
 * no fault, and neither is a server that nobody has wanted yet, or that an operator stopped.
 */
export function isWell({
  servers,
  config,
  certificate,
  store,
  audit,
  engine,
  mailboxes,
  shares,
}: GatewayStatus): boolean {
  return (
    !servers.some((server) => isInTrouble(server) && !waitsForLogin(server)) &&
    [config.error, certificate?.error, store, audit?.problem, mailboxes?.problem].every((one) => one === undefined) &&
    Object.keys(config.keptEntries ?? {}).length === 0 &&
    (engine === undefined || (engine.state === "connected" && engine.problem === undefined)) &&
    shares.every(({ state }) => state !== "refused")
  );
}

/** A server that answers nothing until somebody logs in is tried again and again, and is down meanwhile. */
function waitsForLogin({ state, credential }: ServerStatus): boolean {
  return state !== "misconfigured" && credential?.needsLogin === true;
}

function isInTrouble({ state, circuit }: ServerStatus): boolean {
  return IN_TROUBLE.has(state) || circuit !== "closed";
}

/** In trouble, or a person has something to do about it: what `top` counts, as the page does. */
export function needsSomebody(server: ServerStatus): boolean {
  return isInTrouble(server) || server.quarantined > 0 || waitsForLogin(server);
}

const IN_TROUBLE: ReadonlySet<ServerState> = new Set<ServerState>(["misconfigured", "ejected", "backoff", "waiting"]);

/** `0 B`, `12 KiB`, `1.4 MiB`: what is small is seen as small, and nothing is rounded up. */
function bytes(n: number): string {
  if (n < 1024) return `${n} B`;
  if (n < 1024 * 1024) return `${Math.floor(n / 1024)} KiB`;
  const mebibytes = n / (1024 * 1024);
  return `${Number.isInteger(mebibytes) ? mebibytes : mebibytes.toFixed(1)} MiB`;
}

/** Agents of the modern era have no session; they are told of where there are any. */
function sessionsText({ sessions, presences }: GatewayStatus): string {
  if (presences === 0) return String(sessions);
  return `${sessions}; and ${count(presences, "caller")} of the modern era, which has no sessions`;
}

/** The calls that the cache was asked about. */
function asked(cache: ServerStatus["cache"]): number {
  return cache === undefined ? 0 : cache.hits + cache.coalesced + cache.misses;
}

/** How many of those it answered: `3 of 4`. */
function cachedText(cache: ServerStatus["cache"]): string {
  return cache === undefined || asked(cache) === 0 ? "-" : `${cache.hits + cache.coalesced} of ${asked(cache)}`;
}

function serverRow(server: ServerStatus, style: Style, isCached: boolean): string[] {
  const version = [server.serverInfo?.version, server.version === undefined ? undefined : `MCP ${server.version}`];
  return [
    style.bold(server.name),
    stateText(server, style),
    kindText(server),
    toolsText(server, style),
    server.readyAfterMs === undefined ? "-" : duration(server.readyAfterMs),
    String(server.restarts),
    String(server.inFlight),
    ...(isCached ? [cachedText(server.cache)] : []),
    version.filter((part) => part !== undefined).join(", "),
  ];
}

function toolsText({ counts, quarantined, oldLists }: ServerStatus, style: Style): string {
  const hidden = quarantined === 0 ? "" : style.red(`, ${quarantined} quarantined`);
  return `${counts.tools}${oldLists.includes("tools") ? " (from before)" : ""}${hidden}`;
}

function kindText({ kind, via, isolation, connections, placement }: ServerStatus): string {
  if (placement !== undefined) {
    const { gateway = "no gateway", isHere } = placement;
    return `${kind ?? "-"} at ${isHere ? "this gateway" : gateway}`;
  }
  const how = via === undefined ? (kind ?? "-") : `${kind} via ${via}`;
  return isolation === "session" ? `${how}, ${count(connections, "session")}` : how;
}

function executorRows({ name, members }: ExecutorStatus, style: Style, nowMs: number): string[][] {
  if (members.length === 0) return [[style.bold(name), style.red("not connected"), "-", "-", "-"]];
  return members.map(({ where, state, inFlight, since }) => [
    style.bold(name),
    state === "ready" ? style.green(state) : style.red(state),
    where,
    String(inFlight),
    duration(Math.max(0, nowMs - Date.parse(since))),
  ]);
}

export function stateText(server: ServerStatus, style: Style): string {
  // Up, but no calls go to it: what an operator must not overlook.
  if (server.state === "ready" && server.circuit !== "closed") return style.red(`circuit ${server.circuit}`);
  return paintState(server.state, style);
}

function paintState(state: ServerState, style: Style): string {
  switch (state) {
    case "ready":
      return style.green(state);
    case "backoff":
      // What the supervisor does next is its business; what a person needs to see is that the server is down.
      return style.red("down");
    case "ejected":
    case "waiting":
    case "misconfigured":
      return style.red(state);
    case "starting":
      return style.yellow(state);
    case "idle":
    case "stopped":
      return style.dim(state);
  }
}

/** Faults first, then what waits for somebody, then what is merely worth knowing. */
function remarksOf(status: GatewayStatus, running: boolean, style: Style): string[] {
  return [...configRemarks(status, style), ...faultRemarks(status, running, style), ...lesserRemarks(status, style)];
}

function configRemarks({ config, certificate }: GatewayStatus, style: Style): string[] {
  const lines: string[] = [];
  if (config.error !== undefined) {
    lines.push(style.red("The last edit of the config was not applied; the one before it goes on:"));
    lines.push(...config.error.split("\n").map((line) => `  ${line}`));
  }
  if (certificate?.error !== undefined) {
    lines.push(style.red(`The new TLS certificate is not used, the one before goes on: ${certificate.error}`));
  }
  return lines;
}

function faultRemarks(status: GatewayStatus, running: boolean, style: Style): string[] {
  const lines: string[] = [];
  if (status.outbox !== undefined) lines.push(...heldLines(status.outbox).map((line) => style.red(line)));
  for (const { name, members } of status.executors) {
    for (const { where, state, lastError } of members) {
      if (state === "ready" || lastError === undefined) continue;
      lines.push(style.red(`executor ${name} at ${where}: ${oneLine(lastError, ERROR_WIDTH)}`));
    }
  }
  for (const server of status.servers) {
    if (server.state === "misconfigured") {
      lines.push(
        ...(server.lastError ?? "").split("\n").map((line) => style.red(`${server.name}: misconfigured: ${line}`)),
      );
    } else if (server.lastError !== undefined) {
      // Nobody tries again what was started for this command only.
      const again = running ? nextTry(server) : "";
      const message = sentence(oneLine(server.lastError, ERROR_WIDTH));
      lines.push(style.red(`${server.name}: ${message}${again}`));
      for (const line of errorLines(server.stderr).slice(0, STDERR_LINES)) {
        const text = oneLine(line, ERROR_WIDTH);
        if (!message.includes(text)) lines.push(style.dim(`  stderr: ${text}`));
      }
    }
    if (server.ejected) {
      lines.push(
        style.red(
          `${server.name}: restarted too often and ejected; \`toolway reload ${shellWord(server.name)}\` tries it.`,
        ),
      );
    }
    if (server.circuit !== "closed") lines.push(style.red(circuitText(server)));
  }
  if (status.servers.some(({ state }) => state === "backoff")) lines.push("`toolway doctor` says what to fix.");
  return lines;
}

function lesserRemarks(status: GatewayStatus, style: Style): string[] {
  const { config, servers } = status;
  const lines: string[] = [];
  for (const server of servers) if (server.quarantined > 0) lines.push(style.red(quarantineText(server)));
  for (const text of [...config.warnings, ...config.unusedPatterns]) lines.push(style.yellow(`warning: ${text}`));
  if (config.waitsForRestart.length > 0) lines.push(style.yellow(restartText(config.waitsForRestart)));
  for (const server of servers) {
    const credential = credentialText(server.name, server.credential);
    if (credential !== undefined) lines.push(style.red(`${server.name}: ${credential}`));
    else if (server.credential?.needsLogin === false) lines.push(`${server.name}: ${loginText(server.credential)}`);
    for (const problem of server.problems) {
      lines.push(style.yellow(`${server.name}: ${oneLine(problem, ERROR_WIDTH)}`));
    }
    if (server.noise.count > 0) {
      const sample = server.noise.sample === undefined ? "" : `, for instance: ${oneLine(server.noise.sample, 60)}`;
      lines.push(
        style.yellow(`${server.name}: not a message that can be read, ${count(server.noise.count, "time")}${sample}`),
      );
    }
  }
  for (const conflict of status.conflicts) lines.push(style.yellow(`conflict: ${conflict}`));
  for (const text of status.notes) lines.push(style.yellow(`note: ${text}`));
  return lines;
}

const CREDENTIAL_TROUBLE: Readonly<Partial<Record<CredentialStatus["state"], string>>> = {
  absent: "is not there or has no token in it, so requests go out without",
  refused: "gives a token that the server refuses",
  failed: "gives no token",
};

/** Undefined where all is well with it. */
function credentialText(server: string, credential: CredentialStatus | undefined): string | undefined {
  const trouble = credential === undefined ? undefined : CREDENTIAL_TROUBLE[credential.state];
  if (credential === undefined || trouble === undefined) return undefined;
  const { source, problem } = credential;
  if (credential.needsLogin === true) {
    const why = problem === undefined ? "" : ` (${oneLine(problem, ERROR_WIDTH)})`;
    return `needs login: \`toolway login ${shellWord(server)}\`${why}`;
  }
  return `${source} ${trouble}${problem === undefined ? "" : `: ${oneLine(problem, ERROR_WIDTH)}`}`;
}

/** Until when a login's token is good, and what comes then. */
function loginText({ until, isRenewed }: CredentialStatus): string {
  if (until === undefined) return "logged in";
  const then = isRenewed === false ? "; then somebody has to log in again" : " and renewed by itself";
  return `logged in, its token is good until ${until}${then}`;
}

/** `notes: 2 of 3 tools quarantined …`. */
export function quarantineText({
  name,
  counts,
  quarantined,
}: Pick<ServerStatus, "name" | "counts" | "quarantined">): string {
  return `${name}: ${quarantined} of ${count(counts.tools, "tool")} quarantined, hidden from agents: \`toolway pins diff ${shellWord(name)}\` shows why.`;
}

export function restartText(keys: readonly string[]): string {
  const names = keys.map((key) => `"${key}"`).join(", ");
  return `${names} in the config changed, and ${keys.length === 1 ? "takes" : "take"} effect at the next start of the gateway.`;
}

function circuitText({ name, circuit, failures, nextTryInMs }: ServerStatus): string {
  const held = `${name}: failed ${count(failures, "time")} in a row, so its calls are held back`;
  if (circuit === "half-open") return `${held}; one is being tried.`;
  return nextTryInMs === undefined ? `${held}.` : `${held}; the next is tried in ${duration(nextTryInMs)}.`;
}

function nextTry({ state, nextTryInMs }: ServerStatus): string {
  if (nextTryInMs !== undefined) return ` Next try in ${duration(nextTryInMs)}.`;
  return state === "backoff" || state === "idle" ? " Next try with the next call." : "";
}
