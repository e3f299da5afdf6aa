// opencode: takes a config in a variable, which it merges with the user's files, deeply and before the project's. A file
// in its place would lose to the project's, whose address would then be sent our secret.

import { join } from "node:path";
import { Source } from "../../config/jsonc.js";
import { type ClientFields, table } from "../import/values.js";
import { entryName, hasOption, ownFiles, ownServers } from "./own-servers.js";
import { type AgentPlan, type RunClient, type RunFacts, SECRET_VARIABLE, willRefuse } from "./plan.js";

const title = "opencode";
const CONTENT = "OPENCODE_CONFIG_CONTENT";

const NO_JSON = {
  message: `${CONTENT} is set and is no JSON, so that Toolway's entry cannot be put into it.`,
  hint: `Mend it, or leave it out of this run: \`env -u ${CONTENT} toolway run opencode\`.`,
};

export const opencode: RunClient = {
  id: "opencode",
  title,
  program: "opencode",
  install: "npm install -g opencode-ai",
  plan,
};

function plan(facts: RunFacts): AgentPlan {
  const { url, args, only, approve, env } = facts;
  const given = env[CONTENT] ?? "";
  const before = contentOf(given);
  if (before === undefined) return { args, env: {}, files: [], notes: [], mistake: NO_JSON };
  const { OPENCODE_CONFIG: file = "", OPENCODE_CONFIG_DIR: dir = "" } = env;
  const named = dir === "" ? [] : [join(dir, "opencode.json"), join(dir, "opencode.jsonc")];
  const more = [...(file === "" ? [] : [file]), ...named];
  const servers = new Map(ownServers("opencode", facts, more));
  for (const [one, entry] of Object.entries(table(before["mcp"]))) {
    servers.set(one, [table(entry), ...(servers.get(one) ?? [])]);
  }
  const { name, notes } = entryName(servers, isSame, title);
  const entry = {
    type: "remote",
    url,
    enabled: true,
    // It would look for an authorization server, and show our secret there.
    oauth: false,
    headers: { Authorization: `Bearer {env:${SECRET_VARIABLE}}` },
  };
  const off = only ? [...servers].map(([one, [own]]) => [one, switchedOff(own)]) : [];
  const answers = answersOf([...configsByRank(facts, file, named), before]);
  const content = {
    ...before,
    mcp: { ...table(before["mcp"]), ...Object.fromEntries(off), [name]: entry },
    ...(approve ? { permission: { ...permissionOf(before), ...approval(name, answers) } } : {}),
  };
  const isRefusing = asksFirst(name, answers);
  return {
    args,
    env: { [CONTENT]: JSON.stringify(content) },
    files: [],
    notes: [
      ...notes,
      ...(args[0] === "run" && isRefusing && !approve && !hasOption(args, "--auto")
        ? [willRefuse(title, "`opencode run` cannot ask, and your permissions want it to")]
        : []),
    ],
  };
}

/** What is read of the user's permissions, the weakest file first, as opencode merges them. */
function configsByRank(facts: RunFacts, named: string, inFolder: readonly string[]): (ClientFields | undefined)[] {
  const files = ownFiles("opencode", facts);
  const own = files.filter(({ project }) => project === undefined).map((one) => one.file);
  // Those of a folder further out are weaker.
  const inProject = files.filter(({ project }) => project !== undefined);
  const outerFirst = inProject.sort((a, b) => (a.project ?? "").length - (b.project ?? "").length);
  const paths = [...own, ...(named === "" ? [] : [named]), ...outerFirst.map((one) => one.file), ...inFolder];
  return paths.map((path) => contentOf(facts.read(path) ?? ""));
}

/** What is answered to which pattern. The last pattern that fits a tool counts. */
type Answers = ReadonlyMap<string, unknown>;

function permissionOf(config: ClientFields | undefined): ClientFields {
  const permission = config?.["permission"];
  // A word in its place is for all tools.
  return typeof permission === "string" ? { "*": permission } : table(permission);
}

/** A key that a stronger file has too keeps its place. */
function answersOf(configs: readonly (ClientFields | undefined)[]): Answers {
  const answers = new Map<string, unknown>();
  for (const config of configs) {
    for (const [pattern, answer] of Object.entries(permissionOf(config))) answers.set(pattern, answer);
  }
  return answers;
}

/** What counts of it for our tools: what was said of all of them last, and what of some of them after that. */
function forOurs(name: string, answers: Answers): { all: unknown; some: [pattern: string, answer: unknown][] } {
  const ours = `${name}_`;
  let all: unknown;
  let some: [string, unknown][] = [];
  for (const [pattern, said] of answers) {
    const answer = typeof said === "string" ? said : table(said)["*"];
    if (isForAll(pattern, ours)) [all, some] = [answer, []];
    else if (pattern.startsWith(ours)) some.push([pattern, answer]);
  }
  return { all, some };
}

function isForAll(pattern: string, ours: string): boolean {
  return pattern.endsWith("*") && ours.startsWith(pattern.replace(/\*+$/, ""));
}

/** Whether calls of our tools are asked for, or of some of them. */
function asksFirst(name: string, answers: Answers): boolean {
  const { all, some } = forOurs(name, answers);
  return [all, ...some.map(([, answer]) => answer)].some((answer) => answer === "ask" || answer === "deny");
}

/**
 * Our tools need no question, but for those that are denied by name. Each pattern is one that no config has: of a key that is
 * there already, the place would stay, and what comes behind it would count.
 */
function approval(name: string, answers: Answers): Record<string, string> {
  const taken = new Set(answers.keys());
  const denied = forOurs(name, answers).some.filter(([, answer]) => answer === "deny");
  const patterns = [`${name}_*`, ...denied.map(([pattern]) => pattern)].map((pattern) => {
    const free = freeSpelling(pattern, taken);
    taken.add(free);
    return free;
  });
  return Object.fromEntries(patterns.map((pattern, at) => [pattern, at === 0 ? "allow" : "deny"]));
}

/** Another pattern for the same tools: more stars are one, and a sign in a name's place is any. */
function freeSpelling(pattern: string, taken: ReadonlySet<string>): string {
  let free = pattern;
  for (let at = pattern.length - 1; taken.has(free) && at >= 0; at--) {
    free = pattern.includes("*") ? free.replace("*", "**") : `${pattern.slice(0, at)}?${pattern.slice(at + 1)}`;
  }
  return free;
}

/** Each file is checked by itself before they are merged: what an entry must have is repeated, and no header or variable of it. */
function switchedOff({ type, url, command }: ClientFields): ClientFields {
  return { type, ...(url === undefined ? {} : { url }), ...(command === undefined ? {} : { command }), enabled: false };
}

/** Entries are merged, headers included: one with more than we set would send it along. */
function isSame(entry: ClientFields): boolean {
  const headers = Object.keys(table(entry["headers"]));
  return entry["type"] === "remote" && headers.every((header) => header === "Authorization");
}

/** Undefined where it cannot be read. */
function contentOf(text: string): ClientFields | undefined {
  if (text.trim() === "") return {};
  let isWrong = false;
  const value = new Source(text).read((path) => {
    if (path.length === 0) isWrong = true;
  });
  return isWrong ? undefined : table(value);
}
