// Gemini CLI: has no option and no variable that adds a server. So it gets a home of the run's own, in which its settings
// are the user's with our entry, and all else leads to the user's own folder. What goes back is run-folder.ts.

import { dirname, join } from "node:path";
import { Source } from "../../config/jsonc.js";
import { textsOf } from "../../runtime/words/json-values.js";
import { geminiFolder } from "../import/clients.js";
import { type ClientFields, table } from "../import/values.js";
import { entryName, hasOption, isHttp, ownServers, unreadable } from "./own-servers.js";
import {
  type AgentPlan,
  BEARER_REFERENCE,
  ENTRY_NAME,
  type RunClient,
  type RunFacts,
  SECRET_VARIABLE,
  willRefuse,
} from "./plan.js";

const title = "Gemini CLI";
/** Gemini's own folder in what it takes for the home. */
const DIRECTORY = ".gemini";
const SETTINGS = "settings.json";

const TRUST = "GEMINI_CLI_TRUST_WORKSPACE";
const TRUSTED_FOLDERS = "trustedFolders.json";
const WILL_END =
  `${title} will end at once in this run, with exit code 55: without a terminal it works in trusted folders alone, and this is ` +
  `none. Trust it once, in a ${title} that you start here by hand; or give it --skip-trust, or set ${TRUST}=true.`;

export const gemini: RunClient = {
  id: "gemini",
  title,
  program: "gemini",
  install: "npm install -g @google/gemini-cli",
  plan,
};

function plan(facts: RunFacts): AgentPlan {
  const { url, args, only, approve, folder, read } = facts;
  const from = geminiFolder(facts);
  // A project's entry goes before the user's, where ours will stand.
  const inProject = table(table(parsed(read(join(facts.cwd, DIRECTORY, SETTINGS)))["mcpServers"]));
  const isSame = (entry: ClientFields) => isHttp(entry) && inProject[ENTRY_NAME] === undefined;
  const { name, notes } = entryName(ownServers("gemini", facts), isSame, title);
  const own = join(from, SETTINGS);
  const before = parsed(read(own));
  const entry = { httpUrl: url, headers: { Authorization: BEARER_REFERENCE }, ...(approve ? { trust: true } : {}) };
  const security = table(before["security"]);
  const redaction = table(security["environmentVariableRedaction"]);
  const blocked = [...new Set([...textsOf(redaction["blocked"]), SECRET_VARIABLE])];
  const settings = {
    ...before,
    mcpServers: { ...(only ? {} : table(before["mcpServers"])), [name]: entry },
    security: { ...security, environmentVariableRedaction: { ...redaction, enabled: true, blocked } },
  };
  const isHeadless = hasOption(args, "-p", "--prompt") || facts.isPiped;
  const isOpen = hasOption(args, "--yolo", "-y", "--allowed-tools") || args.includes("yolo");
  const isTrusting = table(security["folderTrust"])["enabled"] === false || isTrusted(facts, from);
  const home = join(folder, "gemini");
  return {
    args: [...(only ? [`--allowed-mcp-server-names=${name}`] : []), ...withOurName(args, name)],
    env: { GEMINI_CLI_HOME: home },
    files: [{ path: join("gemini", DIRECTORY, SETTINGS), text: `${JSON.stringify(settings, null, 2)}\n` }],
    home: { from, to: join(home, DIRECTORY), entry: name },
    notes: [
      ...notes,
      ...unreadable(own, read(own), title),
      ...(isHeadless && !isTrusting ? [WILL_END] : []),
      ...(isHeadless && !approve && !isOpen
        ? [willRefuse(title, "without a terminal it offers the tools of trusted servers alone")]
        : []),
    ],
  };
}

function parsed(text: string | undefined): ClientFields {
  return table(new Source(text ?? "{}").read(() => {}));
}

/** Whether Gemini takes the folder for trusted, by the line, the environment, or what it was told before. */
function isTrusted({ args, cwd, env, read }: RunFacts, from: string): boolean {
  if (hasOption(args, "--skip-trust") || env[TRUST] === "true") return true;
  if (env[TRUST] === "false") return false;
  const told = parsed(read(env["GEMINI_CLI_TRUSTED_FOLDERS_PATH"] || join(from, TRUSTED_FOLDERS)));
  // Of several that the folder is in, the longest path counts.
  const around = Object.entries(told).filter(([path, level]) =>
    isWithin(cwd, level === "TRUST_PARENT" ? dirname(path) : path),
  );
  const [, nearest] = around.sort(([a], [b]) => b.length - a.length)[0] ?? [];
  return nearest === "TRUST_FOLDER" || nearest === "TRUST_PARENT";
}

function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith("/") ? folder : `${folder}/`);
}

/** Whoever restricts the servers by name means the user's own: ours is there by the run. */
function withOurName(args: readonly string[], name: string): string[] {
  const at = args.findIndex((word) => /^--allowed-mcp-server-names(=|$)/.test(word));
  if (at < 0) return [...args];
  return [...args.slice(0, at), `--allowed-mcp-server-names=${name}`, ...args.slice(at)];
}
