// `toolway token list`: who has a token. Tokens themselves are not kept, and not shown.

import { isObject } from "../../protocol/jsonrpc.js";
import { sourceFor } from "../gateway/source.js";
import { withGateway } from "../gateway/with-gateway.js";
import { defineCommand, gatewayOptions, jsonOption } from "../line/command.js";
import { Exit } from "../line/errors.js";
import { print, printJson } from "../line/io.js";
import { heading, oneLine, styleOf, table } from "../text/print.js";

interface TokenEntry {
  readonly id: string;
  readonly role: string;
  /** None for the default token. */
  readonly createdAt?: string;
  readonly expiresAt?: string;
}

/** Longer ids are cut in the table; `--json` has them whole. */
const ID_WIDTH = 60;

export const tokenList = defineCommand({
  metadata: { name: "token list", summary: "Lists who has a token, with role and expiry." },
  args: {},
  options: { ...gatewayOptions, ...jsonOption },
  examples: [{ line: "toolway token list", note: "ids, roles, dates; never a token" }],
  async handler(input, io) {
    return withGateway(sourceFor(input, io), io, { servers: false }, async ({ client }) => {
      const answer = await client.get("/tokens", io.signal);
      const tokens = (isObject(answer) && Array.isArray(answer["tokens"]) ? answer["tokens"] : []) as TokenEntry[];
      if (input.json) {
        printJson(io, tokens);
        return Exit.ok;
      }
      const style = styleOf(io);
      const rows = tokens.map(({ id, role, createdAt, expiresAt }) => [
        style.bold(oneLine(id, ID_WIDTH)),
        oneLine(role, ID_WIDTH),
        createdAt ?? "-",
        expiresAt === undefined ? "never" : expiryText(expiresAt, style.red),
      ]);
      print(io, table([heading(style, ["ID", "ROLE", "CREATED", "EXPIRES"]), ...rows]));
      return Exit.ok;
    });
  },
});

function expiryText(expiresAt: string, alarm: (text: string) => string): string {
  return Date.parse(expiresAt) <= Date.now() ? alarm(`${expiresAt} (expired)`) : expiresAt;
}
