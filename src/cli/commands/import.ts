// `toolway import`: takes the servers of the clients on this machine into one config. What it does is in ../edit.

import { CLIENTS } from "../../agents/import/clients.js";
import { defineCommand, jsonOption } from "../line/command.js";

const CLIENT_IDS = Object.keys(CLIENTS);

export const importConfigs = defineCommand({
  metadata: {
    name: "import",
    summary: "Takes the servers of your clients into one config.",
    description:
      "Finds the configs of the clients on this machine (Claude Code and Desktop, Cursor, VS Code, Codex, Gemini CLI, " +
      "opencode, Windsurf, Zed and others), in this folder and in your home, and shows the servers that it would take. " +
      "What a client has switched off or does not allow is left out, and so is what Claude Code keeps for other projects. " +
      "Nothing is written without --write; the clients' own files are never changed. The preview hides keys in env, " +
      "headers, arguments and addresses; the written file and --json have them.",
  },
  args: {},
  options: {
    write: {
      value: "FILE",
      preset: "toolway.json",
      description: "Adds them to this file, which need not exist. Default: ./toolway.json.",
      completes: "file",
    },
    from: {
      value: "CLIENT",
      repeat: true,
      description: `That client only: ${CLIENT_IDS.join(", ")}.`,
      completes: CLIENT_IDS,
    },
    only: {
      value: "NAME",
      repeat: true,
      description: "The server of that name only; `*` stands for any letters, and commas part several.",
      completes: "importable",
    },
    exclude: { value: "NAME", repeat: true, description: "Not the server of that name.", completes: "importable" },
    allProjects: { description: "Also the servers that Claude Code keeps for other projects." },
    dryRun: { description: "Shows what --write would do, and does not." },
    ...jsonOption,
  },
  examples: [
    { line: "toolway import", note: "what is there, and what the config would be" },
    { line: "toolway import --write", note: "into ./toolway.json; what it has stays" },
    { line: "toolway import --from cursor --exclude 'test-*' --write", note: "what Cursor has, without some" },
  ],
  async handler(input, io) {
    const { importServers } = await import("../edit/index.js");
    return importServers(input, io);
  },
});
