// `toolway engine key`: the key that every gateway on one engine is given.

import { resolve } from "node:path";
import { defineCommand, fileOption, jsonOption } from "../line/command.js";
import { Exit, UserError } from "../line/errors.js";
import { note, print, printJson, shortPath } from "../line/io.js";

export const engineKey = defineCommand({
  metadata: {
    name: "engine key",
    summary: "Makes a key for an engine that several gateways share.",
    description:
      'Makes a key and prints it, for "key" in "engine" of the config: every gateway on the engine is given the same. It ' +
      "wraps the keys under which logins, arguments, results and journals are sealed there. Nobody has another copy: keep " +
      "it as you keep passwords. To change it, add the new one behind the old one at every gateway, then put it first. docs/scale.md.",
  },
  args: {},
  options: {
    out: fileOption("Writes it into a new file that only you can read, in place of printing it."),
    ...jsonOption,
  },
  examples: [
    { line: "toolway engine key --out engine.key", note: 'then "key": { "file": "engine.key" }' },
    { line: "export TOOLWAY_ENGINE_KEY=$(toolway engine key)", note: 'then "key": { "env": "TOOLWAY_ENGINE_KEY" }' },
  ],
  async handler(input, io) {
    const { makeEngineKey } = await import("../gateway/engine.js");
    if (input.out === undefined) {
      const key = makeEngineKey();
      if (input.json) printJson(io, { key });
      else print(io, key);
      return Exit.ok;
    }
    const path = resolve(io.cwd, input.out);
    const { writeFile } = await import("node:fs/promises");
    try {
      await writeFile(path, `${makeEngineKey()}\n`, { flag: "wx", mode: 0o600 });
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      // A key that is written over takes all that was sealed under it along.
      if (code === "EEXIST") {
        throw new UserError(`${shortPath(io, path)} is there already, and a key is not written over.`, {
          hint: "Name another file.",
        });
      }
      throw new UserError(`${shortPath(io, path)} could not be written (${code ?? String(error)}).`);
    }
    if (input.json) printJson(io, { file: path });
    else note(io, `The key is in ${shortPath(io, path)}. Give it to every gateway on the engine, and keep a copy.`);
    return Exit.ok;
  },
});
