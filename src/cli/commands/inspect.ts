// `toolway inspect`: everything that is known of one tool.

import type { PinLine } from "../../contracts/pins.js";
import { isObject } from "../../protocol/jsonrpc.js";
import type { GatewayClient } from "../gateway/port.js";
import { gatewayFor } from "../gateway/which.js";
import { withGateway } from "../gateway/with-gateway.js";
import { defineCommand, gatewayOptions, jsonOption } from "../line/command.js";
import { Exit } from "../line/errors.js";
import { hinted, type Io, note, pasted, print, printJson, shown } from "../line/io.js";
import { exampleCall, type Parameter, parametersOf } from "../line/parameters.js";
import { fittedTable, styleOf } from "../text/print.js";
import { demandTool, isDecided, type ToolLine } from "../text/tool-list.js";

/** Who may call a tool, as the control socket tells it. */
interface Access {
  readonly role: string;
  readonly allowed: boolean;
  readonly rule?: string;
}

export const inspect = defineCommand({
  metadata: {
    name: "inspect",
    summary: "Shows a tool: parameters, an example, its pin, who may call it.",
    description:
      "Shows all that is known of a tool: what it does, its parameters, a call to paste, what its server claims of it, " +
      "its pin, and which roles may call it. Nothing is called.",
  },
  args: {
    tool: {
      required: true,
      description: "Its name, as `toolway tools` lists it; or as `toolway call` takes it.",
      completes: "tool",
    },
  },
  options: { ...gatewayOptions, ...jsonOption },
  examples: [
    { line: "toolway inspect demo__add", note: "parameters, and a call to paste" },
    { line: "toolway inspect demo__add --json | jq .inputSchema", note: "its whole schema" },
  ],
  async handler(input, io) {
    const source = await gatewayFor(input, io);
    // Every server is started anyway, and what is waited for is said where that takes long.
    const until = (client: GatewayClient): Promise<boolean> => isDecided(input.tool, client, io.signal, () => {});
    return withGateway(source, io, { servers: true, until }, async ({ client }) => {
      const tool = await demandTool(input.tool, client, io.signal, (text) => note(io, text));
      const { server, ownName } = tool;
      const { pins, trusted = [] } = (await client.get("/pins", io.signal)) as PinsKnown;
      const pin = pins.find((one) => one.server === server && one.tool === ownName);
      const query = new URLSearchParams({ server, tool: ownName });
      const { access } = (await client.get(`/access?${query}`, io.signal)) as { access: readonly Access[] };
      const example = pasted(io, exampleCall(tool.name, tool.inputSchema));
      if (input.json) printJson(io, { ...tool, pin, access, example });
      else {
        const isTrusted = trusted.includes(server);
        print(io, text(shown({ tool, pin, isTrusted, access, example }, io.isTTY), io));
      }
      return Exit.ok;
    });
  },
});

interface PinsKnown {
  readonly pins: readonly PinLine[];
  /** Servers whose tools are not pinned. */
  readonly trusted?: readonly string[];
}

interface Known {
  readonly tool: ToolLine;
  readonly pin: PinLine | undefined;
  readonly isTrusted: boolean;
  readonly access: readonly Access[];
  readonly example: string;
}

function text({ tool, pin, isTrusted, access, example }: Known, io: Io): string {
  const style = styleOf(io);
  const parameters = parametersOf(tool.inputSchema);
  const section = (name: string, lines: readonly string[]) => [
    "",
    style.dim(name),
    ...lines.map((line) => `  ${line}`),
  ];
  const claims = isObject(tool.annotations) ? Object.entries(tool.annotations) : [];
  const returned = parametersOf(tool.outputSchema);
  return [
    style.bold(tool.name),
    ...(tool.description ?? "It has no description.").trimEnd().split("\n"),
    "",
    `${tool.ownName} of server ${tool.server}`,
    ...(tool.quarantined === undefined ? [] : [style.yellow(hinted(io, `quarantined: ${tool.quarantined}`))]),
    ...section("PARAMETERS", parameters.length === 0 ? ["none"] : rows(parameters, io)),
    ...(returned.length === 0 ? [] : section("RETURNS", rows(returned, io))),
    ...section("EXAMPLE", [example]),
    ...(claims.length === 0
      ? []
      : section(
          "CLAIMS OF ITS SERVER",
          claims.map(([key, value]) => `${key}: ${JSON.stringify(value)}`),
        )),
    ...section("PIN", [hinted(io, pinLine(pin, isTrusted, tool.quarantined))]),
    ...section(
      "MAY CALL IT",
      // Where the config names no role, there is none that others would be other than.
      access.length === 1
        ? access.map((one) => accessLine({ ...one, role: "every role" }))
        : access.map((one) => accessLine(one)),
    ),
  ].join("\n");
}

function rows(parameters: readonly Parameter[], io: Io): string[] {
  const cells = parameters.map(({ name, type, required, description }) => [
    name,
    type,
    required ? "required" : "",
    (description ?? "").replace(/\s+/g, " "),
  ]);
  return fittedTable(cells, io).split("\n");
}

/** Why the tool is quarantined is said above, where it is: the pin says it in the same words. */
function pinLine(pin: PinLine | undefined, isTrusted: boolean, quarantined: string | undefined): string {
  if (pin === undefined) return isTrusted ? "none: its server is trusted" : "none yet: its list was not read";
  const { state, hash, acceptedAt, firstSeen, reason } = pin;
  const since = acceptedAt ?? firstSeen;
  const why = reason === quarantined ? undefined : reason;
  return [state, hash, since === undefined ? undefined : `since ${since}`, why].filter(Boolean).join(", ");
}

function accessLine({ role, allowed, rule }: Access): string {
  return `${role}: ${allowed ? "yes" : `no, ${rule ?? "it is denied"}`}`;
}
