// `toolway config check` and `toolway config schema`: what is wrong with a config, and the JSON Schema that editors
// check it by. Starts no server.

import { existsSync } from "node:fs";
import type { Config } from "../../config/config.js";
import { ExpectedError } from "../../runtime/expected-error.js";
import { shellWord } from "../../runtime/words/shell-word.js";
import { answersFor } from "../gateway/ask-inputs.js";
import type { GatewaySource } from "../gateway/port.js";
import { configPathFor, sourceFor } from "../gateway/source.js";
import { withGateway } from "../gateway/with-gateway.js";
import { configArg, defineCommand, jsonOption } from "../line/command.js";
import { Exit, UserError } from "../line/errors.js";
import { type Io, note, print, printJson, shortPath } from "../line/io.js";
import { count } from "../text/print.js";

export const configCheck = defineCommand({
  metadata: {
    name: "config check",
    summary: "Checks a config without starting any server.",
    description:
      "Checks a config without starting any server. Each mistake is one line: file:line:column, the key, what was " +
      "expected. Exits 2 when there are any. The files of `tls` must be there. Tools that roles, menus and the entries of servers name are compared with " +
      "those that a gateway of this config has seen.",
  },
  args: { file: configArg("The config. Default: the one that serve takes.") },
  options: { ...jsonOption },
  examples: [{ line: "toolway config check toolway.json", note: "in a hook, before a commit" }],
  async handler(input, io) {
    const path = configPathFor(input.file, io);
    if (path === undefined) {
      throw new UserError("There is no config here to check.", {
        kind: "usage",
        hint: "Name one, or run `toolway import --write` to make one.",
      });
    }
    const { ConfigError, loadConfig } = await import("../../config/load.js");
    try {
      const source = await sourceFor({ config: path, state: undefined }, io);
      const options = { env: io.env, home: io.home, answers: await answersFor(source), checksFiles: true };
      // Entries that are wrong by themselves keep nobody from hearing what else is to be said of the config.
      let config: Config;
      try {
        config = loadConfig(path, { ...options, wrongEntries: "keep" });
      } catch (error) {
        // What is wrong elsewhere hides no entry that is wrong: all is told at once.
        loadConfig(path, options);
        throw error;
      }
      const unusedPatterns = await unusedIn(config, source, io);
      try {
        loadConfig(path, options);
      } catch (error) {
        if (input.json) throw error;
        for (const warning of [...config.warnings, ...unusedPatterns]) note(io, `warning: ${warning}`);
        throw withWhatToDo(error, config.misconfigured);
      }
      if (input.json) {
        const servers = config.servers.map(({ name, target }) => ({ name, kind: target.kind }));
        const { disabled, warnings } = config;
        printJson(io, { ok: true, path, servers, disabled, warnings, unusedPatterns });
        return Exit.ok;
      }
      const warnings = [...config.warnings, ...unusedPatterns];
      for (const warning of warnings) note(io, `warning: ${warning}`);
      const servers = count(config.servers.length, "server");
      const verdict =
        warnings.length === 0 ? `is fine: ${servers}` : `can be used: ${servers}, ${count(warnings.length, "warning")}`;
      print(io, `${shortPath(io, path)} ${verdict}.`);
      return Exit.ok;
    } catch (error) {
      if (!input.json || !(error instanceof ConfigError)) throw error;
      printJson(io, { ok: false, path, mistakes: error.mistakes });
      return Exit.usage;
    }
  },
});

/**
 * What the others say of such a server is where and why, as the mistakes here do. Who comes here from them wants to know how
 * it goes on.
 */
function withWhatToDo(error: unknown, wrong: readonly { readonly name: string }[]): unknown {
  const [first] = wrong;
  if (!(error instanceof ExpectedError) || first === undefined) return error;
  const them = wrong.length === 1 ? JSON.stringify(first.name) : "these servers";
  const hint =
    `All others run without ${them}. Mend the ${wrong.length === 1 ? "entry" : "entries"} at the place above and save the file: a gateway that ` +
    `runs takes it on by itself. To do without: \`toolway remove ${shellWord(first.name)}\`, or "disabled": true in the entry.`;
  return new UserError(error.message, { kind: error.kind, hint, cause: error });
}

/**
 * What of roles, menus and entries fits no tool, by the lists that a gateway of this config has: the one that runs, or the last one.
 * Where there was none, nothing is known, and nothing is made to find out.
 */
async function unusedIn(config: Config, source: GatewaySource, io: Io): Promise<readonly string[]> {
  const { roles, menus } = config;
  const hasRules = Object.values(roles).some(({ allow, deny }) => (allow?.length ?? 0) + (deny?.length ?? 0) > 0);
  const isNamed = config.servers.some(({ tools, only }) => only !== undefined || Object.keys(tools).length > 0);
  if ((!hasRules && !isNamed && menus.length === 0) || !existsSync(source.stateDir)) return [];
  const servers = config.servers.map(({ name, tools, only }) => ({ name, tools, only }));
  try {
    return await withGateway(source, io, { servers: false }, async ({ client }) => {
      const { unusedPatterns } = (await client.post(
        "/roles/check",
        { roles, menus, servers },
        io.signal,
      )) as UnusedAnswer;
      return unusedPatterns;
    });
  } catch (error) {
    io.signal.throwIfAborted();
    if (error instanceof ExpectedError) return [];
    throw error;
  }
}

interface UnusedAnswer {
  readonly unusedPatterns: readonly string[];
}

export const configSchema = defineCommand({
  metadata: { name: "config schema", summary: "Prints the JSON Schema of the config." },
  args: {},
  options: { json: { description: "JSON is the only form; accepted for uniformity." } },
  examples: [{ line: "toolway config schema > toolway.schema.json", note: "for an editor's settings" }],
  async handler(_input, io) {
    const { configJsonSchemaText } = await import("../../config/json-schema.js");
    io.stdout.write(configJsonSchemaText());
    return Exit.ok;
  },
});
