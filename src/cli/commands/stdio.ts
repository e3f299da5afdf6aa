// `toolway stdio`: the gateway as a program that a client starts. Nothing but protocol goes to stdout.

import { sentence } from "../../runtime/words/sentence.js";
import { gatewayPort } from "../gateway/port.js";
import { sourceFor } from "../gateway/source.js";
import { gatewayFor } from "../gateway/which.js";
import { configArg, defineCommand, folderOption } from "../line/command.js";
import { Exit, UserError, usageError } from "../line/errors.js";
import { note } from "../line/io.js";

export const stdio = defineCommand({
  metadata: {
    name: "stdio",
    lasts: true,
    summary: "Speaks MCP on stdin and stdout, for clients that start their servers.",
    description:
      "Speaks MCP on stdin and stdout, for clients that start their servers. It joins the gateway that runs for the " +
      "same config; where none runs, it is one, until its input ends. Logs go to stderr.",
  },
  args: { config: configArg("The config, as for serve.") },
  options: {
    state: folderOption("The state directory, as for serve."),
    role: {
      value: "ROLE",
      description: "A role of the config that the agent is narrowed to. Default: all that the default token may do.",
      completes: "role",
    },
    as: {
      value: "ID",
      description: "The id of a token: the agent is whom that is for, with its role, until it is revoked.",
      completes: "token",
    },
    callLog: { description: "Logs each call to stderr, in one line: who, which tool, how long, what came of it." },
  },
  examples: [
    { line: "toolway stdio ~/toolway.json", note: "the line for a client's config" },
    { line: "claude mcp add toolway -- toolway stdio", note: "Claude Code starts it by itself" },
    { line: "toolway stdio --role reader", note: "with the rules of that role alone" },
    { line: "toolway stdio --as ci", note: "as the principal of that token" },
  ],
  async handler(input, io) {
    if (input.as !== undefined && input.role !== undefined) {
      throw usageError("--as has the role of its token.", "Leave --role out, or --as.");
    }
    const port = await gatewayPort();
    const named = { config: input.config, state: input.state };
    const source = await gatewayFor(named, io).catch((error: unknown) => {
      if (!(error instanceof UserError) || input.config !== undefined) throw error;
      // A client that was told of no config gets the demo, as ever, and its log says what else there is.
      note(io, `${sentence(error.message)} This one is the built-in demo. ${error.hint ?? ""}`);
      return sourceFor(named, io);
    });
    await port.stdio(source, {
      input: io.stdin,
      output: io.stdout,
      signal: io.signal,
      role: input.role,
      as: input.as,
      logCalls: input.callLog,
    });
    return Exit.ok;
  },
});
