// All that is known of one tool, as a person reads it: what `toolway inspect` prints.

import type { PinLine } from "../../contracts/pins.js";
import { isObject } from "../../protocol/jsonrpc.js";
import { hinted, type Io } from "../line/io.js";
import { type Parameter, parametersOf } from "../line/parameters.js";
import { fittedTable, styleOf } from "../text/print.js";
import type { ToolLine } from "../text/tool-list.js";

/** Who may call a tool, as the control socket tells it. */
export interface ToolAccess {
  readonly role: string;
  readonly allowed: boolean;
  readonly rule?: string;
}

interface Known {
  readonly tool: ToolLine;
  readonly pin: PinLine | undefined;
  readonly isTrusted: boolean;
  readonly access: readonly ToolAccess[];
  readonly example: string;
}

export function toolSheet({ tool, pin, isTrusted, access, example }: Known, io: Io): string {
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

function accessLine({ role, allowed, rule }: ToolAccess): string {
  return `${role}: ${allowed ? "yes" : `no, ${rule ?? "it is denied"}`}`;
}
