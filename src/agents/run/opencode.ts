// opencode: takes a config in a variable, which it merges with the user's files, deeply and before the project's. A file
// in its place would lose to the project's, whose address would then be sent our secret.

import { join } from "node:path";
import { Source } from "../../config/jsonc.js";
import { type ClientFields, table } from "../import/values.js";
import { entryName, ownServers } from "./own-servers.js";
import { type AgentPlan, type RunClient, type RunFacts, SECRET_VARIABLE } from "./plan.js";

const title = "opencode";
const CONTENT = "OPENCODE_CONFIG_CONTENT";

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
  if (before === undefined) {
    return { args, env: {}, files: [], notes: [`${CONTENT} is set and is no JSON: opencode gets it as it is.`] };
  }
  const { OPENCODE_CONFIG: file = "", OPENCODE_CONFIG_DIR: dir = "" } = env;
  const more = [...(file === "" ? [] : [file]), ...(dir === "" ? [] : [join(dir, "opencode.json")])];
  const servers = ownServers("opencode", facts, more);
  for (const [one, entry] of Object.entries(table(before["mcp"]))) servers.set(one, table(entry));
  const { name, notes } = entryName(servers, isSame, title);
  const entry = {
    type: "remote",
    url,
    enabled: true,
    // It would look for an authorization server, and show our secret there.
    oauth: false,
    headers: { Authorization: `Bearer {env:${SECRET_VARIABLE}}` },
  };
  // Each file is checked by itself before they are merged, so that an entry is repeated whole.
  const off = only ? [...servers].map(([one, own]) => [one, { ...own, enabled: false }]) : [];
  const permission = before["permission"];
  const isOpen = permission === undefined || (typeof permission === "object" && permission !== null);
  const content = {
    ...before,
    mcp: { ...table(before["mcp"]), ...Object.fromEntries(off), [name]: entry },
    ...(approve && isOpen ? { permission: { ...table(permission), [`${name}_*`]: "allow" } } : {}),
  };
  return { args, env: { [CONTENT]: JSON.stringify(content) }, files: [], notes };
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
