// `toolway token revoke`: a token ends now.

import { isObject } from "../../protocol/jsonrpc.js";
import { nearest } from "../../runtime/nearest.js";
import { sourceFor } from "../gateway/source.js";
import { withGateway } from "../gateway/with-gateway.js";
import { defineCommand, gatewayOptions, jsonOption } from "../line/command.js";
import { Exit, UserError } from "../line/errors.js";
import { print, printJson } from "../line/io.js";

export const tokenRevoke = defineCommand({
  metadata: {
    name: "token revoke",
    summary: "Ends a token, and the sessions that it opened.",
  },
  args: { id: { required: true, description: "The id that it was created with." } },
  options: { ...gatewayOptions, ...jsonOption },
  examples: [{ line: "toolway token revoke ci", note: "whoever holds it is out" }],
  async handler(input, io) {
    return withGateway(sourceFor(input, io), io, { servers: false }, async ({ client }) => {
      const known = idsOf(await client.get("/tokens", io.signal));
      if (!known.includes(input.id)) {
        const near = nearest(input.id, known);
        throw new UserError(`There is no token with the id ${input.id}.`, {
          hint: near === undefined ? "`toolway token list` shows them." : `Did you mean ${near}?`,
        });
      }
      await client.delete(`/tokens/${encodeURIComponent(input.id)}`, io.signal);
      if (input.json) printJson(io, { revoked: input.id });
      else print(io, `Revoked ${input.id}.`);
      return Exit.ok;
    });
  },
});

function idsOf(answer: unknown): string[] {
  const tokens = isObject(answer) && Array.isArray(answer["tokens"]) ? answer["tokens"] : [];
  return tokens.filter(isObject).map(({ id }) => String(id));
}
