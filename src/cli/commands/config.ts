// `toolway config check` and `toolway config schema`: what is wrong with a config, and the JSON Schema that editors
// check it by. Starts nothing.

import { configPathFor } from "../gateway/source.js";
import { defineCommand, jsonOption } from "../line/command.js";
import { Exit, UserError } from "../line/errors.js";
import { note, print, printJson, shortPath } from "../line/io.js";
import { count } from "../text/print.js";

export const configCheck = defineCommand({
  metadata: {
    name: "config check",
    summary: "Checks a config without starting anything.",
    description:
      "Checks a config without starting anything. Each mistake is one line: file:line:column, the key, what was " +
      "expected. Exits 2 when there are any.",
  },
  args: { file: { description: "The config. Default: the one that serve takes.", isConfig: true, completes: "file" } },
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
      const config = loadConfig(path, { env: io.env, home: io.home });
      if (input.json) {
        const servers = config.servers.map(({ name, target }) => ({ name, kind: target.kind }));
        printJson(io, { ok: true, path, servers, disabled: config.disabled, warnings: config.warnings });
        return Exit.ok;
      }
      for (const warning of config.warnings) note(io, `warning: ${warning}`);
      print(io, `${shortPath(io, path)} is fine: ${count(config.servers.length, "server")}.`);
      return Exit.ok;
    } catch (error) {
      if (!input.json || !(error instanceof ConfigError)) throw error;
      printJson(io, { ok: false, path, mistakes: error.mistakes });
      return Exit.usage;
    }
  },
});

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
