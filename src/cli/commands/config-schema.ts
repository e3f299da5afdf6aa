// `toolway config schema`: the JSON Schema of the config, for editors.

import { defineCommand } from "../line/command.js";
import { Exit } from "../line/errors.js";

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
