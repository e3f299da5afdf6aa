// `toolway version`: the version of this package, and with --json that of Node.

import { packageVersion } from "../../runtime/version.js";
import { defineCommand, jsonOption } from "../line/command.js";
import { Exit } from "../line/errors.js";
import { print, printJson } from "../line/io.js";

export const version = defineCommand({
  metadata: { name: "version", summary: "Prints the version, as --version does." },
  args: {},
  options: { ...jsonOption },
  examples: [{ line: "toolway version --json", note: "with the version of Node" }],
  async handler(input, io) {
    if (input.json) printJson(io, { toolway: packageVersion(), node: process.versions.node });
    else print(io, packageVersion());
    return Exit.ok;
  },
});
