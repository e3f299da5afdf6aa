// The tools of a gateway as the control socket lists them, and how a name that a person typed finds one.

import type { GatewayStatus, ServerStatus } from "../../contracts/status.js";
import { isObject, type JsonObject } from "../../protocol/jsonrpc.js";
import { nearest } from "../../runtime/nearest.js";
import { sentence } from "../../runtime/words/sentence.js";
import { shellWord } from "../../runtime/words/shell-word.js";
import type { GatewayClient } from "../gateway/port.js";
import { UserError, usageError } from "../line/errors.js";
import { count, duration, oneLine } from "./print.js";

export interface ToolLine {
  /** As agents see it. */
  readonly name: string;
  readonly server: string;
  readonly ownName: string;
  readonly description?: string;
  readonly inputSchema?: JsonObject;
  readonly outputSchema?: JsonObject;
  /** What its server claims of it. */
  readonly annotations?: JsonObject;
  /** Why no agent may use it. */
  readonly quarantined?: string;
}

/** More names than this help nobody. */
const MAX_SUGGESTIONS = 5;

/** `as`: what is left to the principal of this id; `role`: to whoever has this one, in no context. */
export async function listTools(
  client: GatewayClient,
  signal: AbortSignal,
  { as, role }: { readonly as?: string | undefined; readonly role?: string | undefined } = {},
): Promise<readonly ToolLine[]> {
  const [key, value] = as === undefined ? ["role", role] : ["as", as];
  const answer = await client.get(
    value === undefined ? "/tools" : `/tools?${key}=${encodeURIComponent(value)}`,
    signal,
  );
  return isObject(answer) && Array.isArray(answer["tools"]) ? (answer["tools"] as ToolLine[]) : [];
}

/** By the name that agents see, or by the server's own name where only one server has it, or as `server/tool`. */
export function findTool(typed: string, tools: readonly ToolLine[]): ToolLine | undefined {
  const exact = tools.find(({ name }) => name === typed);
  if (exact !== undefined) return exact;
  const own = ofOwnName(typed, tools);
  return own.length === 1 ? own[0] : undefined;
}

function ofOwnName(typed: string, tools: readonly ToolLine[]): ToolLine[] {
  return tools.filter((tool) => tool.ownName === typed || isQualified(typed, tool));
}

function isQualified(typed: string, { server, ownName }: ToolLine): boolean {
  return typed === `${server}/${ownName}`;
}

/** Whether no other server could be meant: a name without its server may be that of a tool of any. */
function saysServer(typed: string, tool: ToolLine): boolean {
  return tool.name === typed || isQualified(typed, tool);
}

/** The tool that was meant. Throws where there is none, or where the name says too little. */
export async function demandTool(
  typed: string,
  client: GatewayClient,
  signal: AbortSignal,
  tell: (text: string) => void,
): Promise<ToolLine> {
  const tools = await listTools(client, signal);
  const tool = findTool(typed, tools);
  if (tool === undefined) {
    const sharing = ofOwnName(typed, tools);
    throw sharing.length > 1 ? ambiguousTool(typed, sharing) : await missingTool(typed, tools, client, signal);
  }
  if (saysServer(typed, tool)) return tool;
  const { unasked } = await possibleOwners(typed, client, signal);
  if (unasked.length > 0) {
    tell(
      `toolway: "${typed}" is taken for ${tool.name}. Could not be asked whether they have one, too: ${unasked.join(", ")}.`,
    );
  }
  return tool;
}

const NUMBERS = ["No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine"];

/** Which of them answered first must not decide what is called. */
function ambiguousTool(typed: string, sharing: readonly ToolLine[]): UserError {
  const many = NUMBERS[sharing.length] ?? String(sharing.length);
  const names = sharing.map(({ name }) => name).join(", ");
  return usageError(`${many} servers have a tool "${typed}": ${names}.`, "Name one of them.");
}

/**
 * Whether it is of no use to wait for a tool any longer: the name says which it is, or no server that is still starting
 * could have it. One that has a tool of this name is not enough where others may have one, too. Until then `say` is
 * told what is waited for.
 */
export async function isDecided(
  typed: string,
  client: GatewayClient,
  signal: AbortSignal,
  say: (text: string) => void,
): Promise<boolean> {
  const tools = await listTools(client, signal);
  const tool = findTool(typed, tools);
  if (tool !== undefined && saysServer(typed, tool)) return true;
  const { awaited } = await possibleOwners(typed, client, signal);
  if (awaited.length > 0 && tools.length > 0) {
    const why =
      ofOwnName(typed, tools).length === 0
        ? `${typed} is not among the tools that are known`
        : `Other servers may have a tool ${typed}, too`;
    say(`${why}; waiting for ${awaited.join(", ")} …`);
  }
  return awaited.length === 0;
}

/** As many as a gateway starts side by side; of more it sees to the order itself. */
const MAX_STARTED = 16;

/** The servers that have to be started before it is decided; undefined where that is all there are, or many. */
export async function serversToStart(
  typed: string,
  client: GatewayClient,
  signal: AbortSignal,
): Promise<readonly string[] | undefined> {
  const { awaited, all } = await possibleOwners(typed, client, signal);
  return awaited.length === all || awaited.length > MAX_STARTED ? undefined : awaited;
}

/**
 * Of the servers that may have a tool which is not listed: those that may still tell of it, and those that have not told.
 * And how many servers there are.
 */
async function possibleOwners(typed: string, client: GatewayClient, signal: AbortSignal) {
  const { servers: owners = [] } = await ownersOf(typed, client, signal);
  const { servers } = (await client.get("/status", signal)) as GatewayStatus;
  const unasked = servers.filter(({ name, state, listsFromBefore }) => {
    // Nobody could call a tool of one that is stopped, or whose entry cannot be used.
    if (!owners.includes(name) || state === "stopped" || state === "misconfigured") return false;
    return state !== "ready" || listsFromBefore;
  });
  const awaited = unasked.filter(({ state }) => state !== "backoff" && state !== "ejected");
  return { awaited: awaited.map(({ name }) => name), unasked: unasked.map(({ name }) => name), all: servers.length };
}

interface Owners {
  /** The servers that may have a tool that is not listed. */
  readonly servers?: readonly string[];
  /** Why it is not, where the entry of its server hides it. */
  readonly hidden?: string;
}

async function ownersOf(typed: string, client: GatewayClient, signal: AbortSignal): Promise<Owners> {
  return (await client.get(`/tools/owners?tool=${encodeURIComponent(typed)}`, signal)) as Owners;
}

/** What is said of a tool that is not listed: it is hidden, its server is down, or the name is wrong. */
async function missingTool(
  typed: string,
  tools: readonly ToolLine[],
  client: GatewayClient,
  signal: AbortSignal,
): Promise<UserError> {
  const { servers: owners, hidden } = await ownersOf(typed, client, signal);
  if (hidden !== undefined) return usageError(hidden, "Its entry decides: change `only` or `tools` there.");
  const servers = await serversNotUp(client, signal, owners);
  const [only] = servers;
  // Its prefix is in the name: whether there is such a tool, that server alone would know.
  if (only !== undefined && owners?.length === 1 && typed.startsWith(only.name)) return notUp(typed, only);
  return unknownTool(typed, tools, unknownText(servers));
}

/** Said of a tool that can be of one server alone, which has not told of its tools. */
export function notUp(typed: string, server: ServerStatus): UserError {
  const { what, why, next } = howItIs(server);
  const message = `${typed} cannot be called: server ${server.name} ${what}, and its tools are not known.${why}`;
  return new UserError(message, { hint: next });
}

/** Why it is in a sentence; what servers say of it may be long. */
const WHY_WIDTH = 300;

/** How a server is that is not up, why, and what a person does about it. */
export function howItIs(server: ServerStatus) {
  const { name, lastError, nextTryInMs } = server;
  const [what, next] = NOT_UP[needsLogin(server) ? "login" : server.state];
  const why = lastError === undefined || needsLogin(server) ? "" : ` ${sentence(oneLine(lastError, WHY_WIDTH))}`;
  const again = nextTryInMs === undefined ? "" : ` It is tried again in ${duration(nextTryInMs)}.`;
  return { what, why, next: `${next(shellWord(name))}${again}` };
}

/** So many are told of one by one; who has more looks at them all. */
const MAX_TOLD = 5;

/** What an agent will miss that is started now, a line for each server that did not come up. */
export function missingServers(servers: readonly ServerStatus[]): string[] {
  const missing = servers.filter(
    (server) =>
      needsLogin(server) || ["misconfigured", "backoff", "ejected", "waiting", "starting"].includes(server.state),
  );
  const lines = missing.slice(0, MAX_TOLD).map((server) => {
    const { what, why, next } = howItIs(server);
    return `${server.name} ${what}.${why} ${next}`;
  });
  const more = missing.length - lines.length;
  return more === 0 ? lines : [...lines, `${count(more, "more server")} did not come up: \`toolway status\`.`];
}

/** How a server is that is not up, and what a person does about it. */
const NOT_UP: Readonly<
  Record<ServerStatus["state"] | "login", readonly [what: string, next: (name: string) => string]>
> = {
  idle: ["has not been started", (name) => `\`toolway start ${name}\` starts it.`],
  starting: ["is still starting", () => "Try again in a moment; `toolway status` says how it does."],
  waiting: ["waits for its executor, which is not connected", () => "Start the executor; `toolway status` says which."],
  ready: ["is up", (name) => `\`toolway reload ${name}\` reads its tools.`],
  backoff: ["is down", (name) => `\`toolway doctor --server ${name}\` says what to fix.`],
  ejected: [
    "is ejected, since it was restarted too often",
    (name) => `\`toolway doctor --server ${name}\` says what to fix; then \`toolway reload ${name}\` tries it.`,
  ],
  stopped: ["is stopped", (name) => `\`toolway start ${name}\` starts it.`],
  misconfigured: ["is misconfigured", (name) => `\`toolway doctor --server ${name}\` says what to fix in its entry.`],
  login: ["needs a login", (name) => `\`toolway login ${name}\` logs in.`],
};

function needsLogin({ credential }: ServerStatus): boolean {
  return credential?.needsLogin === true;
}

/** Servers that are not up and whose tools nobody knows: what is looked for, if something is, may be theirs. */
export async function unknownServers(client: GatewayClient, signal: AbortSignal): Promise<string | undefined> {
  return unknownText(await serversNotUp(client, signal));
}

async function serversNotUp(
  client: GatewayClient,
  signal: AbortSignal,
  owners?: readonly string[],
): Promise<readonly ServerStatus[]> {
  const status = (await client.get("/status", signal)) as GatewayStatus;
  return status.servers.filter(
    ({ name, state, counts }) => (owners?.includes(name) ?? true) && state !== "ready" && counts.tools === 0,
  );
}

function unknownText(servers: readonly ServerStatus[]): string | undefined {
  const names = servers.map((server) => `${server.name} (${stateWord(server)})`);
  return names.length === 0
    ? undefined
    : `Not up, so that their tools are not known: ${names.join(", ")}. \`toolway status\` says why.`;
}

function stateWord(server: ServerStatus): string {
  if (needsLogin(server)) return "needs a login";
  return server.state === "backoff" ? "down" : server.state;
}

export function unknownTool(typed: string, tools: readonly ToolLine[], unknown?: string): UserError {
  // Where some are not up, it is not known that there is none; of the others perhaps none was asked.
  if (tools.length === 0 && unknown === undefined) {
    return new UserError(`There is no tool ${typed}: no server has any.`, {
      hint: "`toolway doctor` says what is wrong with the servers.",
    });
  }
  const near = suggestions(typed, tools);
  // What is looked for may be of a server that is down, and then no other tool was meant.
  const meant = near.length > 0 ? `Did you mean ${near.join(", ")}?` : undefined;
  const hint = [unknown, meant].filter((part) => part !== undefined).join(" ") || "`toolway tools` lists them.";
  // Nobody knows yet whether the name is wrong while a server that may have it is down.
  return new UserError(`There is no tool ${typed}.`, { hint, kind: unknown === undefined ? "usage" : "failed" });
}

/** Names that contain what was typed, or the other way round, and the one that a typo or two leads to. */
function suggestions(typed: string, tools: readonly ToolLine[]): string[] {
  const word = typed.toLowerCase();
  const same = tools.filter(({ ownName }) => ownName === typed);
  const holding = tools.filter(({ name, ownName }) => {
    const own = ownName.toLowerCase();
    // A letter or two are in nearly every name.
    return (word.length > 2 && name.toLowerCase().includes(word)) || (own.length > 2 && word.includes(own));
  });
  const names = new Set([...same, ...holding].map(({ name }) => name));
  // A prefix that is right says nothing of how near the rest is: then the rest alone is compared.
  const prefixes = new Set(tools.map(prefixOf).filter((prefix) => prefix !== "" && typed.startsWith(prefix)));
  for (const prefix of prefixes) addNearest(typed.slice(prefix.length), ofPrefix(tools, prefix), names);
  if (prefixes.size === 0) {
    const byName = nearest(
      typed,
      tools.map(({ name }) => name),
    );
    if (byName !== undefined) names.add(byName);
    addNearest(typed, tools, names);
  }
  return [...names].slice(0, MAX_SUGGESTIONS);
}

function prefixOf({ name, ownName }: ToolLine): string {
  return name.endsWith(ownName) ? name.slice(0, name.length - ownName.length) : "";
}

function ofPrefix(tools: readonly ToolLine[], prefix: string): ToolLine[] {
  return tools.filter((tool) => prefixOf(tool) === prefix);
}

function addNearest(typed: string, tools: readonly ToolLine[], names: Set<string>): void {
  const near = nearest(
    typed,
    tools.map(({ ownName }) => ownName),
  );
  for (const { name, ownName } of tools) if (near !== undefined && ownName === near) names.add(name);
}
