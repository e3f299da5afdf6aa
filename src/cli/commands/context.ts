// `toolway context show`, `set` and `unset`: what is known of a principal's situation, by which the config's menus are
// narrowed. Agents cannot set it; operators do, here.

import { isObject } from "../../protocol/jsonrpc.js";
import type { GatewayClient } from "../gateway/port.js";
import { gatewayFor } from "../gateway/which.js";
import { withGateway } from "../gateway/with-gateway.js";
import { defineCommand, gatewayOptions, jsonOption } from "../line/command.js";
import { Exit, type ExitCode, usageError } from "../line/errors.js";
import { type Io, note, print, printJson } from "../line/io.js";
import { fittedTable, heading, oneLine, styleOf } from "../text/print.js";

/** Values are cut in the table; `--json` has them whole. */
const VALUE_WIDTH = 80;

/** The one of the default token. */
const DEFAULT_ID = "default";

const principalOption = {
  principal: {
    value: "ID",
    description: `Whose context: the id of a token. Default: ${DEFAULT_ID}.`,
    completes: "token",
  },
} as const;

interface ContextLine {
  readonly principal: string;
  readonly context: Readonly<Record<string, string>>;
}

export const contextShow = defineCommand({
  metadata: {
    name: "context show",
    summary: "Shows what is known of each principal's situation.",
    description:
      "Shows the keys and values that the rules under `menus` in the config go by. `toolway tools --as ID` shows what " +
      "they leave.",
    isDefault: true,
  },
  args: {},
  options: {
    principal: { value: "ID", description: "Of this one alone: the id of a token.", completes: "token" },
    ...gatewayOptions,
    ...jsonOption,
  },
  examples: [
    { line: "toolway context show", note: "of all that have one" },
    { line: "toolway context show --principal ci --json", note: "in a script" },
  ],
  async handler(input, io) {
    return withGateway(await gatewayFor(input, io), io, { servers: false }, async ({ client }) => {
      const query = input.principal === undefined ? "" : `?principal=${encodeURIComponent(input.principal)}`;
      const answer = await client.get(`/context${query}`, io.signal);
      const lines = linesIn(answer);
      if (input.json) printJson(io, input.principal === undefined ? lines : lines[0]);
      else printLines(io, lines);
      return Exit.ok;
    });
  },
});

export const contextSet = defineCommand({
  metadata: {
    name: "context set",
    summary: "Says what a principal's situation is, for the menus of the config.",
    description:
      "Sets keys of a principal's context. The rules under `menus` in the config go by it: what is left of the tools " +
      "changes at once, and agents whose lists are others then are told. It is kept over restarts.",
  },
  args: {
    facts: { required: true, description: "KEY=VALUE, as many as there are.", rest: { alone: /./ } },
  },
  options: { ...principalOption, ...gatewayOptions, ...jsonOption },
  examples: [
    { line: "toolway context set phase=review", note: "of whoever has the default token" },
    { line: "toolway context set repo=acme/site branch=main --principal ci", note: "of the token ci" },
  ],
  handler(input, io) {
    const changes = input.facts.map((fact) => {
      const at = fact.indexOf("=");
      if (at < 1) throw usageError(`${oneLine(fact, VALUE_WIDTH)} is not KEY=VALUE.`, "For instance: phase=review");
      return [fact.slice(0, at), fact.slice(at + 1)] as const;
    });
    return change(input, Object.fromEntries(changes), io);
  },
});

export const contextUnset = defineCommand({
  metadata: { name: "context unset", summary: "Takes keys out of a principal's context." },
  args: { keys: { required: true, description: "The keys, as many as there are.", rest: { alone: /./ } } },
  options: { ...principalOption, ...gatewayOptions, ...jsonOption },
  examples: [{ line: "toolway context unset phase --principal ci", note: "rules that ask for it fit no more" }],
  handler: (input, io) => change(input, Object.fromEntries(input.keys.map((key) => [key, null])), io),
});

interface ChangeInput {
  readonly principal: string | undefined;
  readonly config: string | undefined;
  readonly state: string | undefined;
  readonly json: boolean;
}

async function change(input: ChangeInput, changes: Readonly<Record<string, string | null>>, io: Io): Promise<ExitCode> {
  return withGateway(await gatewayFor(input, io), io, { servers: false }, async ({ client }) => {
    const answer = await post(client, { principal: input.principal ?? DEFAULT_ID, changes }, io);
    if (input.json) printJson(io, answer);
    else printLines(io, linesIn(answer));
    return Exit.ok;
  });
}

function post(client: GatewayClient, body: object, io: Io): Promise<unknown> {
  return client.post("/context", body, io.signal);
}

function linesIn(answer: unknown): ContextLine[] {
  if (!isObject(answer)) return [];
  return (Array.isArray(answer["contexts"]) ? answer["contexts"] : [answer]) as ContextLine[];
}

function printLines(io: Io, lines: readonly ContextLine[]): void {
  const style = styleOf(io);
  const rows = lines.flatMap(({ principal, context }) =>
    Object.entries(context).map(([key, value]) => [
      style.bold(oneLine(principal, VALUE_WIDTH)),
      key,
      oneLine(value, VALUE_WIDTH),
    ]),
  );
  if (rows.length === 0) note(io, "Nothing is set. `toolway context set KEY=VALUE` does.");
  else
    print(
      io,
      fittedTable([heading(style, ["PRINCIPAL", "KEY", "VALUE"]), ...rows], io, { whole: ["PRINCIPAL", "KEY"] }),
    );
}
