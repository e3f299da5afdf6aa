// `toolway token create`: a token for somebody, with a role.

import { isObject } from "../../protocol/jsonrpc.js";
import type { GatewaySource } from "../gateway/port.js";
import { sourceFor } from "../gateway/source.js";
import { withGateway } from "../gateway/with-gateway.js";
import { defineCommand, gatewayOptions, jsonOption } from "../line/command.js";
import { Exit, usageError } from "../line/errors.js";
import { note, print, printJson } from "../line/io.js";

export const tokenCreate = defineCommand({
  metadata: {
    name: "token create",
    summary: "Makes a token for an agent or a person, with a role.",
    description:
      "Makes a token and prints it, this once: only its hash is kept. What a role may use is in the config, under `roles`.",
  },
  args: {},
  options: {
    id: { value: "ID", required: true, description: "Who it is for; shown in lists and logs." },
    role: { value: "ROLE", required: true, description: "The role that the token carries." },
    expires: { value: "TIME", description: "When it ends: 30d, 12h, or a date such as 2030-01-31. Default: never." },
    ...gatewayOptions,
    ...jsonOption,
  },
  examples: [
    { line: "toolway token create --id ci --role reader --expires 30d", note: "for a month" },
    {
      line: "export TOOLWAY_TOKEN=$(toolway token create --id me --role admin)",
      note: "straight into the environment",
    },
    {
      line: "toolway token create --id office --role executor",
      note: "lets an executor in at /executors/<name>, and no agent",
    },
  ],
  async handler(input, io) {
    const expires = input.expires === undefined ? {} : { expires: input.expires };
    if (input.id.trim() === "") throw usageError("--id is empty.");
    if (input.role.trim() === "") throw usageError("--role is empty.");
    const source = sourceFor(input, io);
    return withGateway(source, io, { servers: false }, async ({ client }) => {
      const answer = await client.post("/tokens", { id: input.id, role: input.role, ...expires }, io.signal);
      const token = isObject(answer) ? String(answer["token"]) : "";
      if (input.json) printJson(io, isObject(answer) ? { id: input.id, role: input.role, ...answer } : answer);
      else print(io, token);
      if (!input.json && io.isErrTTY) note(io, "Keep it: it cannot be shown again.");
      const remark = await remarkOn(input.role, source);
      if (remark !== undefined) note(io, remark);
      return Exit.ok;
    });
  },
});

const EXECUTOR_ROLE = "executor";

/** A role that the config does not have is legal, and seldom what was meant. */
async function remarkOn(role: string, { configPath, env, home }: GatewaySource): Promise<string | undefined> {
  // Not of the config: it opens the door of executors, and no tools.
  if (configPath === undefined || role === EXECUTOR_ROLE) return undefined;
  const { loadConfig } = await import("../../config/load.js");
  try {
    const { roles, unlistedRoles } = loadConfig(configPath, { env, home });
    if (Object.hasOwn(roles, role)) return undefined;
    const may = unlistedRoles === "allow" ? "every tool" : "no tool";
    return `The config has no role "${role}" under "roles": this token may use ${may}.`;
  } catch {
    // The token was made; what is wrong with the config is for `config check` to tell.
    return undefined;
  }
}
