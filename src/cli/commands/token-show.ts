// `toolway token show`: the default token, alone on stdout, for `export TOOLWAY_TOKEN=$(…)`.

import { isObject } from "../../protocol/jsonrpc.js";
import { runningGateway } from "../gateway/port.js";
import { sourceFor } from "../gateway/source.js";
import { defineCommand, gatewayOptions, jsonOption } from "../line/command.js";
import { Exit, UserError } from "../line/errors.js";
import { print, printJson } from "../line/io.js";

export const tokenShow = defineCommand({
  metadata: {
    name: "token show",
    summary: "Prints the default token.",
    description: "Prints the default token: of the running gateway, else from the state directory.",
  },
  args: {},
  options: { ...gatewayOptions, ...jsonOption },
  examples: [{ line: "export TOOLWAY_TOKEN=$(toolway token show)", note: "for the agents started from this shell" }],
  async handler(input, io) {
    const source = sourceFor(input, io);
    const port = await runningGateway();
    const running = await port.find(source);
    const answer = running === undefined ? undefined : await running.get("/tokens/default", io.signal);
    const asked = isObject(answer) && typeof answer["token"] === "string" ? answer["token"] : undefined;
    const token = asked ?? (await port.defaultToken(source));
    if (token === undefined) {
      throw new UserError(
        running === undefined ? "There is no token yet for this config." : "This gateway asks for no token.",
        { hint: "`toolway serve` makes one at its first start. Another config's: add --config FILE." },
      );
    }
    if (input.json) printJson(io, { token });
    else print(io, token);
    return Exit.ok;
  },
});
