// `toolway list` and `toolway remove`: the servers of a config as its file has them. They start nothing and need no
// gateway; one that runs sees the edit by itself. `toolway add` is add.ts.

import { nearest } from "../../runtime/nearest.js";
import { readConfigText, writeConfigText } from "../gateway/config-file.js";
import { runningGateway } from "../gateway/port.js";
import { configPathFor } from "../gateway/source.js";
import { gatewayFor } from "../gateway/which.js";
import { defineCommand, jsonOption } from "../line/command.js";
import { Exit, UserError, usageError } from "../line/errors.js";
import { type Io, print, printJson, shortPath, shown } from "../line/io.js";
import { count, heading, oneLine, styleOf, table } from "../text/print.js";

/** A command line in a table; `--json` has the whole. */
const WHAT_WIDTH = 80;

const configOption = {
  config: { value: "FILE", description: "The config. Default: the one that serve takes.", completes: "file" },
} as const;

export const list = defineCommand({
  metadata: {
    name: "list",
    summary: "Lists the servers of a config.",
    description:
      "Lists the servers that stand in a config, those that are switched off too, with what is started or connected to. " +
      "Starts nothing: `toolway status` shows how they are. Keys are hidden, with --json too.",
  },
  args: {},
  options: { ...configOption, ...jsonOption },
  examples: [
    { line: "toolway list", note: "what the config has" },
    { line: "toolway list --config ~/.cursor/mcp.json --json", note: "another file, in a script" },
  ],
  async handler(input, io) {
    const path = existingConfig(input.config, io);
    const { serversInText } = await import("../../config/edit/text.js");
    const { hideSecrets, neededVariables } = await import("../../config/edit/entry-secrets.js");
    const servers = Object.entries(serversInText(readConfigText(path), path)).map(([name, raw]) => {
      const entry = typeof raw === "object" && raw !== null ? (raw as Record<string, unknown>) : {};
      return {
        name,
        kind: kindOf(entry),
        disabled: entry["disabled"] === true || entry["enabled"] === false,
        unset: neededVariables(entry).filter((variable) => io.env[variable] === undefined),
        entry: hideSecrets(entry),
      };
    });
    if (input.json) {
      printJson(io, { config: path, servers });
      return Exit.ok;
    }
    if (servers.length === 0) {
      print(io, `${shortPath(io, path)} has no servers. \`toolway add NAME COMMAND…\` adds one.`);
      return Exit.ok;
    }
    const style = styleOf(io);
    const rows = shown(servers, io.isTTY).map(({ name, kind, disabled, unset, entry }) => [
      style.bold(name),
      kind,
      disabled ? style.dim("off") : unset.length > 0 ? style.yellow(`needs ${unset.join(", ")}`) : "on",
      oneLine(whatOf(entry), WHAT_WIDTH),
    ]);
    print(io, table([heading(style, ["SERVER", "KIND", "STATE", "WHAT"]), ...rows]));
    print(io, style.dim(`\n${count(servers.length, "server")} in ${shortPath(io, path)}.`));
    return Exit.ok;
  },
});

export const remove = defineCommand({
  metadata: {
    name: "remove",
    summary: "Takes a server out of a config.",
    description:
      "Takes a server out of a config. Comments and layout of the rest stay as they are. A gateway that runs for the " +
      "config stops the server by itself.",
  },
  args: { server: { required: true, description: "Its name in the config.", completes: "entry" } },
  options: { ...configOption, ...jsonOption },
  examples: [
    { line: "toolway remove github", note: "out of the config that serve takes" },
    { line: "toolway remove github --config team.json", note: "out of another" },
  ],
  async handler(input, io) {
    const path = existingConfig(input.config, io);
    const { removeServer, serversInText } = await import("../../config/edit/text.js");
    const before = readConfigText(path);
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
  },
});

function existingConfig(named: string | undefined, io: Io): string {
  const path = configPathFor(named, io);
  if (path !== undefined) return path;
  throw usageError("There is no config here.", "Name one by --config FILE, or make one: `toolway add NAME COMMAND…`.");
}

function noSuchServer(name: string, names: readonly string[], path: string, io: Io): UserError {
  const near = nearest(name, names);
  return new UserError(`${shortPath(io, path)} has no server ${name}.`, {
    hint: near === undefined ? `It has: ${names.join(", ") || "none"}.` : `Did you mean ${near}?`,
  });
}

/** Whether a gateway runs for the file: it sees the edit by itself. */
export async function isServed(path: string, io: Io): Promise<boolean> {
  const source = await gatewayFor({ config: path, state: undefined }, io);
  // One that is just going away is none.
  return (await (await runningGateway()).find(source).catch(() => undefined)) !== undefined;
}

function kindOf(entry: Readonly<Record<string, unknown>>): string {
  if (entry["command"] !== undefined) return "stdio";
  return entry["type"] === "sse" ? "sse" : "http";
}

function whatOf(entry: Readonly<Record<string, unknown>>): string {
  const { command, args, url, httpUrl, serverUrl } = entry;
  if (typeof command === "string") return [command, ...(Array.isArray(args) ? args.map(String) : [])].join(" ");
  return String(url ?? httpUrl ?? serverUrl ?? "");
}
