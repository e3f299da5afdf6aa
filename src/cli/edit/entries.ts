// What `toolway list` and `toolway remove` do: they read and edit the file of a config. They start nothing and need no
// gateway; one that runs sees the edit by itself.

import { hideSecrets } from "../../config/edit/entry-secrets.js";
import { removeServer, serversInText } from "../../config/edit/text.js";
import { ConfigError, parseConfig } from "../../config/load.js";
import { nearest } from "../../runtime/nearest.js";
import { answersFor } from "../gateway/ask-inputs.js";
import { runningGateway } from "../gateway/port.js";
import { configPathFor, sourceFor } from "../gateway/source.js";
import { gatewayFor } from "../gateway/which.js";
import { Exit, type ExitCode, UserError, usageError } from "../line/errors.js";
import { hinted, type Io, note, print, printJson, shortPath, shown } from "../line/io.js";
import { count, fittedTable, heading, oneLine, type Style, styleOf } from "../text/print.js";
import { readConfigText, readConfigToEdit, writeConfigText } from "./config-file.js";

/** A command line in a table; `--json` has the whole. */
const WHAT_WIDTH = 80;

interface ListInput {
  readonly config: string | undefined;
  readonly json: boolean;
}

export async function listServers(input: ListInput, io: Io): Promise<ExitCode> {
  const path = existingConfig(input.config, io);
  const text = readConfigText(path);
  const answers = await answersFor(await sourceFor({ config: path, state: undefined }, io));
  const { wrong, off, fatal } = mistakesIn(text, { path, answers, io });
  const servers = Object.entries(serversInText(text, path)).map(([rawName, raw]) => {
    const entry = typeof raw === "object" && raw !== null ? (raw as Record<string, unknown>) : {};
    const name = rawName.trim();
    return {
      name,
      kind: kindOf(entry),
      disabled: off.has(name) || entry["disabled"] === true || entry["enabled"] === false,
      misconfigured: wrong.get(name),
      entry: hideSecrets(entry),
    };
  });
  if (input.json) {
    printJson(io, { config: path, servers, ...(fatal === undefined ? {} : { mistakes: fatal.mistakes }) });
    return fatal === undefined ? Exit.ok : Exit.usage;
  }
  if (servers.length === 0) {
    print(io, hinted(io, `${shortPath(io, path)} has no servers. \`toolway add NAME COMMAND…\` adds one.`));
    return Exit.ok;
  }
  const style = styleOf(io);
  const told = shown(servers, io.isTTY);
  const rows = told.map(({ name, kind, disabled, misconfigured, entry }) => [
    style.bold(name),
    kind,
    disabled ? style.dim("off") : stateOf(misconfigured, fatal, style),
    oneLine(whatOf(entry), WHAT_WIDTH),
  ]);
  print(
    io,
    fittedTable([heading(style, ["SERVER", "KIND", "STATE", "WHAT"]), ...rows], io, {
      whole: ["SERVER", "STATE"],
    }),
  );
  print(io, style.dim(`\n${count(servers.length, "server")} in ${shortPath(io, path)}.`));
  for (const { name, misconfigured } of told) {
    if (misconfigured !== undefined) print(io, `${style.bold(name)} is misconfigured: ${misconfigured}`);
  }
  if (wrong.size > 0) note(io, "`toolway config check` says where, and what to do.");
  if (fatal === undefined) return Exit.ok;
  note(io, `No gateway takes this config as it is, and none of its servers runs:\n${fatal.message}`);
  return Exit.usage;
}

/** For completion, with no gateway that runs. */
export function entryNames(path: string | undefined): readonly string[] {
  return path === undefined ? [] : Object.keys(serversInText(readConfigText(path)));
}

function stateOf(misconfigured: string | undefined, fatal: ConfigError | undefined, style: Style): string {
  if (fatal !== undefined) return style.red("unusable");
  return misconfigured === undefined ? "on" : style.yellow("misconfigured");
}

interface Mistakes {
  /** What is wrong with entries, by their names. */
  readonly wrong: ReadonlyMap<string, string>;
  /** Servers that are switched off, by their entries or by a list of the client that wrote the file. */
  readonly off: ReadonlySet<string>;
  /** What is wrong elsewhere, so that nothing of the file is used. */
  readonly fatal: ConfigError | undefined;
}

/** `answers`: what people gave to inputs of the config, as a gateway of it has them. */
interface Around {
  readonly path: string;
  readonly answers: () => ReadonlyMap<string, string>;
  readonly io: Pick<Io, "env" | "home">;
}

function mistakesIn(text: string, { path, answers, io: { env, home } }: Around): Mistakes {
  try {
    const { misconfigured, disabled } = parseConfig(text, { path, env, home, answers, wrongEntries: "keep" });
    const wrong = new Map(misconfigured.map(({ name, why }) => [name, why]));
    return { wrong, off: new Set(disabled), fatal: undefined };
  } catch (error) {
    if (error instanceof ConfigError) return { wrong: new Map(), off: new Set(), fatal: error };
    throw error;
  }
}

export async function removeFromConfig(input: ListInput & { readonly server: string }, io: Io): Promise<ExitCode> {
  const path = existingConfig(input.config, io);
  const before = readConfigToEdit(path);
  const after = removeServer(before, input.server, path);
  if (after === undefined) throw noSuchServer(input.server, Object.keys(serversInText(before, path)), path, io);
  writeConfigText(path, after);
  const running = await isServed(path, io);
  if (input.json) {
    printJson(io, { config: path, removed: input.server, gateway: running });
    return Exit.ok;
  }
  print(io, `Removed ${input.server} from ${shortPath(io, path)}.`);
  if (running) print(io, "The gateway that runs for it stops the server by itself.");
  return Exit.ok;
}

function existingConfig(named: string | undefined, io: Io): string {
  const path = configPathFor(named, io);
  if (path !== undefined) return path;
  throw usageError("There is no config here.", "Name one by --config FILE, or make one: `toolway add NAME COMMAND…`.");
}

function noSuchServer(name: string, names: readonly string[], path: string, io: Io): UserError {
  const near = nearest(name, names);
  return usageError(
    `${shortPath(io, path)} has no server ${name}.`,
    near === undefined ? `It has: ${names.join(", ") || "none"}.` : `Did you mean ${near}?`,
  );
}

/** Whether a gateway runs for the file: it sees the edit by itself. */
export async function isServed(path: string, io: Io): Promise<boolean> {
  try {
    const source = await gatewayFor({ config: path, state: undefined }, io);
    return (await (await runningGateway()).find(source)) !== undefined;
  } catch (error) {
    // Several run for it; one that is just going away is none.
    return error instanceof UserError;
  }
}

function kindOf(entry: Readonly<Record<string, unknown>>): string {
  if (entry["command"] !== undefined) return "stdio";
  if (entry["mailbox"] !== undefined) return "mailbox";
  if (whatOf(entry) === "") return "-";
  return entry["type"] === "sse" ? "sse" : "http";
}

function whatOf(entry: Readonly<Record<string, unknown>>): string {
  const { command, args, url, httpUrl, serverUrl, mailbox, broker } = entry;
  if (typeof command === "string") return [command, ...(Array.isArray(args) ? args.map(String) : [])].join(" ");
  if (typeof mailbox === "string") return broker === undefined ? mailbox : `${mailbox} at ${String(broker)}`;
  return String(url ?? httpUrl ?? serverUrl ?? "");
}
