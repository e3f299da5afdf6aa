// `toolway tools`: lists the tools that agents can call.

import type { GatewayStatus } from "../../contracts/status.js";
import { visible } from "../../runtime/visible.js";
import { shellWord } from "../../runtime/words/shell-word.js";
import { gatewayFor } from "../gateway/which.js";
import { withGateway } from "../gateway/with-gateway.js";
import { defineCommand, gatewayOptions, jsonOption } from "../line/command.js";
import { Exit, UserError, usageError } from "../line/errors.js";
import { note, print, printJson, shown } from "../line/io.js";
import { count, fittedTable, heading, oneLine, styleOf } from "../text/print.js";

/** A description tells what a tool is for in its first sentence; the rest is for agents. */
const DESCRIPTION_WIDTH = 80;

export const tools = defineCommand({
  metadata: {
    name: "tools",
    summary: "Lists the tools of all servers.",
    description: "Lists the tools of all servers: those of the running gateway, else of one started for this.",
  },
  args: {},
  options: {
    server: { value: "NAME", description: "Those of one server only.", completes: "server" },
    as: {
      value: "ID",
      description: "Those that are left to whoever has this token: by role and context.",
      completes: "token",
    },
    role: {
      value: "ROLE",
      description: "Those that are left to this role, in no context; `*` is every other one.",
      completes: "role",
    },
    ...gatewayOptions,
    ...jsonOption,
  },
  examples: [
    { line: "toolway tools", note: "all of them, with their first words" },
    { line: "toolway tools --server demo --json", note: "with descriptions and schemas" },
    { line: "toolway tools --as ci", note: "what an agent with the token ci sees" },
  ],
  async handler(input, io) {
    if (input.as !== undefined && input.role !== undefined) throw usageError("Give --as or --role, not both.");
    const { listTools, unknownServers } = await import("../text/tool-list.js");
    const source = await gatewayFor(input, io);
    const { all, unknown, servers } = await withGateway(source, io, { servers: true }, async ({ client }) => ({
      all: await listTools(client, io.signal, input),
      unknown: await unknownServers(client, io.signal),
      servers: ((await client.get("/status", io.signal)) as GatewayStatus).servers.map(({ name }) => name),
    }));
    const found = input.server === undefined ? all : all.filter(({ server }) => server === input.server);
    if (input.server !== undefined && found.length === 0) {
      const shownOf = [...new Set(all.map(({ server }) => server))].join(", ");
      // One that is there and not up is no mistake of the line.
      const isThere = servers.includes(input.server);
      throw new UserError(`No tools of a server ${input.server} are known.`, {
        kind: isThere ? "failed" : "usage",
        hint: shownOf === "" ? "No server has any; `toolway doctor` says why." : `Those of ${shownOf} are known.`,
      });
    }
    if (input.json) {
      printJson(io, found);
      return Exit.ok;
    }
    const style = styleOf(io);
    const narrowedTo = input.as ?? (input.role === undefined ? undefined : `the role ${input.role}`);
    if (unknown !== undefined && input.server === undefined) note(io, unknown);
    if (found.length === 0 && narrowedTo !== undefined) {
      note(io, `No tool is left to ${narrowedTo}: "roles" and "menus" of the config say what is.`);
      return Exit.ok;
    }
    if (found.length === 0) {
      note(io, "No tools. `toolway status` shows the servers, `toolway doctor` what is wrong with them.");
      return Exit.ok;
    }
    // In a pipe too: a table is for people, in a pager for instance, and scripts have --json.
    const rows = shown(found, true).map(({ name, server, description, quarantined }) => [
      style.bold(name),
      server,
      oneLine(quarantined === undefined ? (description ?? "") : `quarantined: ${quarantined}`, DESCRIPTION_WIDTH),
    ]);
    print(io, fittedTable([heading(style, ["TOOL", "SERVER", "DESCRIPTION"]), ...rows], io, { whole: ["TOOL"] }));
    const hidden = new Set(found.filter(({ quarantined }) => quarantined !== undefined).map(({ server }) => server));
    for (const server of hidden) {
      const how = `\`toolway pins diff ${shellWord(server)}\` shows what changed`;
      note(io, `Quarantined tools of ${visible(server)} are hidden from agents; ${how}.`);
    }
    if (io.isTTY) print(io, style.dim(`\n${count(found.length, "tool")}`));
    return Exit.ok;
  },
});
