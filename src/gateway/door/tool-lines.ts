// The tools of a gateway for a page: in short, and a few in each turn of the event loop, however many there are.

import type { RolesAnswer, ToolInShort, ToolPin } from "../../contracts/control/tools.js";
import type { PinLine } from "../../contracts/pins.js";
import { ControlError, type ControlRoutes, jsonLines } from "../../control/server.js";
import { KIB } from "../../runtime/sizes.js";
import { SMALL_WORK_BYTES, turns } from "../../runtime/turns/turns.js";

/** What a tool counts for at least, however short its definition is: the rules of all roles are asked for each. */
const TOOL_BYTES = 16 * KIB;
/** As much of a description as a row shows. */
const DESCRIPTION_CHARS = 300;
/** JSON of definitions, as models read it: four characters are about a token. */
const CHARS_A_TOKEN = 4;

interface Listed {
  readonly name: string;
  readonly server: string;
  readonly ownName: string;
  readonly description: string | undefined;
  readonly inputSchema: unknown;
  readonly quarantined?: string;
}

/** The rule that hides a tool from somebody; undefined where they may call it. */
type RuleOf = (server: string, ownName: string) => string | undefined;

/** So many roles are told apart. A config has a handful. */
const MAX_ROLES = 50;

export interface ToolsOfGateway {
  tools(): Promise<readonly Listed[]>;
  /** What is kept of each server's tools. */
  pins(): { readonly lines: readonly PinLine[]; readonly trusted: readonly string[] };
  /** The roles of the config, and `*` for every other one. */
  roles(): readonly string[];
  hiddenFrom(role: string): RuleOf;
  /** The rule that hides a tool from a principal; undefined where it may be called. Throws where nobody has this id. */
  hiddenBy(principal: string): RuleOf;
}

/** `GET /tools/lines?as=…` or `?role=…`, `GET /tools/one?name=…`, `GET /roles`. */
export function toolLineRoutes(gateway: ToolsOfGateway): ControlRoutes {
  return {
    "GET /tools/lines": async ({ query, signal }) => {
      const [as, role] = [query.get("as"), query.get("role")];
      const rule = as !== null ? gateway.hiddenBy(as) : role === null ? undefined : gateway.hiddenFrom(role);
      return jsonLines(
        linesOf(await gateway.tools(), { rule, roles: rulesByRole(gateway), pins: pinsOf(gateway) }, signal),
      );
    },
    "GET /roles": async ({ signal }): Promise<RolesAnswer> => rolesAnswer(gateway, await gateway.tools(), signal),
    "GET /tools/one": async ({ query }) => {
      const name = query.get("name");
      const tool = (await gateway.tools()).find((one) => one.name === name);
      if (tool === undefined) throw new ControlError("not-found", "There is no such tool.");
      const pin = pinOf(gateway, tool);
      return { tool, ...(pin === undefined ? {} : { pin }) };
    },
  };
}

function rulesByRole(gateway: ToolsOfGateway): [role: string, rule: RuleOf][] {
  return gateway
    .roles()
    .slice(0, MAX_ROLES)
    .map((role) => [role, gateway.hiddenFrom(role)]);
}

function pinsOf(gateway: ToolsOfGateway): (server: string, ownName: string) => ToolInShort["pin"] {
  const { lines, trusted } = gateway.pins();
  const byTool = new Map(lines.map(({ server, tool, state }) => [`${server}/${tool}`, state]));
  const isTrusted = new Set(trusted);
  return (server, ownName) => (isTrusted.has(server) ? "always" : byTool.get(`${server}/${ownName}`));
}

function pinOf(gateway: ToolsOfGateway, { server, ownName }: Listed): ToolPin | undefined {
  const { lines, trusted } = gateway.pins();
  if (trusted.includes(server)) return { state: "always" };
  const line = lines.find((one) => one.server === server && one.tool === ownName);
  if (line === undefined) return undefined;
  const { state, hash, acceptedAt, firstSeen } = line;
  const since = acceptedAt ?? firstSeen;
  return { state, ...(since === undefined ? {} : { since }), ...(hash === undefined ? {} : { hash }) };
}

/** All tools, each with about how many tokens its definition costs, in turns; no more of them where whoever asked has gone. */
async function* inTurns(tools: readonly Listed[], gone: AbortSignal): AsyncIterableIterator<[Listed, tokens: number]> {
  let bytes = 0;
  for (const tool of tools) {
    if (bytes >= SMALL_WORK_BYTES) {
      await turns.wait(bytes);
      bytes = 0;
    }
    if (gone.aborted) return;
    const { name, description = "", inputSchema } = tool;
    const chars = name.length + description.length + (JSON.stringify(inputSchema) ?? "").length;
    bytes += Math.max(TOOL_BYTES, chars);
    yield [tool, Math.ceil(chars / CHARS_A_TOKEN)];
  }
}

async function rolesAnswer(
  gateway: ToolsOfGateway,
  tools: readonly Listed[],
  signal: AbortSignal,
): Promise<RolesAnswer> {
  const roles = rulesByRole(gateway).map(([role, rule]) => ({ role, rule, tools: 0, tokens: 0 }));
  for await (const [tool, tokens] of inTurns(tools, signal)) {
    if (tool.quarantined !== undefined) continue;
    for (const one of roles) {
      if (one.rule(tool.server, tool.ownName) !== undefined) continue;
      one.tools++;
      one.tokens += tokens;
    }
  }
  return { roles: roles.map(({ rule: _, ...one }) => ({ ...one, of: tools.length })) };
}

interface LineParts {
  readonly rule: RuleOf | undefined;
  readonly roles: readonly [role: string, rule: RuleOf][];
  readonly pins: (server: string, ownName: string) => ToolInShort["pin"];
}

async function* linesOf(
  tools: readonly Listed[],
  { rule, roles, pins }: LineParts,
  signal: AbortSignal,
): AsyncIterableIterator<ToolInShort> {
  for await (const [{ name, server, ownName, description = "", quarantined }, tokens] of inTurns(tools, signal)) {
    const hiddenBy = rule?.(server, ownName);
    const allowed = roles.filter(([, hides]) => hides(server, ownName) === undefined).map(([role]) => role);
    const pin = pins(server, ownName);
    yield {
      name,
      server,
      ownName,
      description: description.slice(0, DESCRIPTION_CHARS),
      tokens,
      ...(pin === undefined ? {} : { pin }),
      ...(allowed.length === roles.length ? {} : { roles: allowed }),
      ...(quarantined === undefined ? {} : { quarantined: true }),
      ...(hiddenBy === undefined ? {} : { hiddenBy }),
    };
  }
}
