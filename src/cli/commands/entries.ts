// `toolway list` and `toolway remove`: the servers of a config as its file has them. What they do is in ../edit, as for
// `toolway add`.

import { defineCommand, fileOption, jsonOption } from "../line/command.js";

const configOption = {
  config: fileOption("The config. Default: the one that serve takes."),
} as const;

export const list = defineCommand({
  metadata: {
    name: "list",
    summary: "Lists the servers of a config.",
    description:
      "Lists the servers that stand in a config, those that are switched off too, with what is started or connected to. " +
      "Starts nothing: `toolway status` shows how they are. Keys are hidden, with --json too. Exits 2 where the file as a " +
      "whole cannot be used.",
  },
  args: {},
  options: { ...configOption, ...jsonOption },
  examples: [
    { line: "toolway list", note: "what the config has" },
    { line: "toolway list --config ~/.cursor/mcp.json --json", note: "another file, in a script" },
  ],
  async handler(input, io) {
    const { listServers } = await import("../edit/index.js");
    return listServers(input, io);
  },
});

export const remove = defineCommand({
  metadata: {
    name: "remove",
    summary: "Takes a server out of a config.",
    description:
      "Takes a server out of a config, with its own comments: on its line, and directly above it unless it is the " +
      "first. Comments and layout of the rest stay as they are. A gateway that runs for the " +
      "config stops the server by itself.",
  },
  args: { server: { required: true, description: "Its name in the config.", completes: "entry" } },
  options: { ...configOption, ...jsonOption },
  examples: [
    { line: "toolway remove github", note: "out of the config that serve takes" },
    { line: "toolway remove github --config team.json", note: "out of another" },
  ],
  async handler(input, io) {
    const { removeFromConfig } = await import("../edit/index.js");
    return removeFromConfig(input, io);
  },
});
