// `toolway add`: writes a server into a config, after it was started once to see that it works. What it does is in
// ../edit.

// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are variables of the config

import { defineCommand, fileOption, jsonOption } from "../line/command.js";
import { detail, examineAll } from "./doctor.js";

/** What is no program. */
const ADDRESS = /^(?:https?|wss?|unix):\/\//i;

export const add = defineCommand({
  metadata: {
    name: "add",
    summary: "Adds a server to a config.",
    description:
      "Adds a server to a config: a command with its arguments, an address, or the address of a broker (ws://, wss://), for " +
      "the tools that a machine shares in a mailbox there. It is started once, as `doctor` does, and " +
      "written only when it works. Comments and layout of the file stay as they are; a file that is not there is made. A " +
      "gateway that runs for the config starts the server by itself. Everything behind the command is the command's, " +
      "but for --env, --header, --mailbox, --token and --no-check at the end of the line; behind `--`, wherever it stands, everything is.",
  },
  args: {
    name: { required: true, description: "Its name in the config." },
    command: {
      required: true,
      description: "The program with its arguments, or the address of an HTTP server or of a broker.",
      rest: { alone: ADDRESS },
      completes: "file",
    },
  },
  options: {
    env: {
      value: "NAME=VALUE",
      repeat: true,
      atEnd: true,
      description:
        "A variable for the program. `NAME` alone is written as `${NAME}`, and taken from where the gateway runs.",
    },
    header: {
      value: "NAME: VALUE",
      repeat: true,
      atEnd: true,
      description: "A header for the address. `${VAR}` in it is taken from where the gateway runs.",
    },
    mailbox: {
      value: "ID",
      atEnd: true,
      description: "With the address of a broker: the mailbox of the machine. Default: the name.",
    },
    token: {
      value: "TOKEN",
      atEnd: true,
      description: "With the address of a broker: the token there. `${VAR}` is taken from where the gateway runs.",
    },
    noCheck: { atEnd: true, description: "Writes it without starting it." },
    config: fileOption("The config, which need not exist. Default: the one that serve takes, else ./toolway.json."),
    ...jsonOption,
  },
  examples: [
    { line: "toolway add files npx -y @modelcontextprotocol/server-filesystem ~/notes", note: "a program" },
    {
      line: "toolway add github npx -y server-github --env GITHUB_TOKEN",
      note: "with a key that stays out of the file",
    },
    {
      line: "toolway add docs https://docs.example/mcp --header 'Authorization: Bearer ${DOCS_TOKEN}'",
      note: "an address",
    },
    {
      line: "toolway add studio wss://broker.example.com --token '${WORKER_TOKEN}'",
      note: "what a machine shares as studio",
    },
  ],
  async handler(input, io) {
    const { addToConfig } = await import("../edit/index.js");
    return addToConfig({ ...input, isAddress: ADDRESS.test(input.command[0] ?? "") }, io, { examineAll, detail });
  },
});
