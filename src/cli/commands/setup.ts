// `toolway setup`: Toolway in a client's own config, for good. What it does is in ../setup.

import { defineCommand, gatewayOptions, jsonOption } from "../line/command.js";
import { usageError } from "../line/errors.js";

const CLIENTS = [
  "claude",
  "claude-desktop",
  "codex",
  "gemini",
  "opencode",
  "cursor",
  "vscode",
  "windsurf",
  "zed",
  "copilot",
  "qwen",
  "amp",
] as const;

export const setup = defineCommand({
  metadata: {
    name: "setup",
    summary: "Puts Toolway into a client's own config, for good.",
    description:
      "Puts Toolway into the config of a client, or takes it out again; without a client, lists which are installed and " +
      "which are set up. The change is shown before it is made, and made when you agree, or by --yes. Comments and all " +
      "that is not ours stay as they are; what the file was before our entry came in is beside it, as FILE.toolway.bak. Each client has a " +
      "principal of its own, setup-CLIENT. Its token stands in no file of the client: the client asks `toolway token header` for " +
      "it, or finds it in a variable, or starts `toolway stdio`.",
  },
  args: { client: { description: `One of ${CLIENTS.join(", ")}.`, completes: CLIENTS } },
  options: {
    remove: { description: "Takes our entry out, and revokes the token." },
    scope: {
      value: "SCOPE",
      choices: ["user", "project"],
      description: "user: your own config. project: the one of this folder. Default: user.",
    },
    role: {
      value: "ROLE",
      description: "The role of the config that the client gets. Default: all that the default token may do.",
    },
    via: {
      value: "WAY",
      choices: ["helper", "variable", "program"],
      description: "How the client is let in. Default: the best that it takes; in a project, a variable.",
    },
    dryRun: { description: "Shows the change, and makes none." },
    yes: { description: "Makes the change without asking." },
    ...gatewayOptions,
    ...jsonOption,
  },
  examples: [
    { line: "toolway setup", note: "what is installed, and what is set up" },
    { line: "toolway setup claude", note: "shows the change, asks, and makes it" },
    { line: "toolway setup codex --role reader --yes", note: "with the rules of that role, without asking" },
    { line: "toolway setup cursor --scope project --dry-run", note: "what would be written in this folder" },
    { line: "toolway setup claude --remove", note: "out again; the token is revoked" },
  ],
  async handler(input, io) {
    if (input.client === undefined) {
      const asked = input.remove || input.scope !== undefined || input.role !== undefined || input.via !== undefined;
      // The list makes no change, with --dry-run or without.
      if (asked || input.yes) throw usageError("Say which client is meant.", "`toolway setup` lists them.");
      const { listClients } = await import("../edit/index.js");
      return listClients(io, input.json);
    }
    const { setUp } = await import("../edit/index.js");
    return setUp(input.client, input, io);
  },
});
