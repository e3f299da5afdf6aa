// What people read of a machine that shares its tools: what is shared with whom, and how the line to the broker does.

import type { ShareLine } from "../../contracts/status.js";
import { visible } from "../../runtime/visible.js";
import { waitText } from "../../runtime/words/amounts.js";
import type { Io } from "../line/io.js";
import { count, styleOf, table } from "./print.js";

type Plan = Extract<ShareLine, { kind: "sharing" }>;
type State = Extract<ShareLine, { kind: "state" }>;

/** Names beyond these are counted. */
const MAX_NAMES = 12;

export function sharingText(plan: Plan, { broker, as }: { broker: string; as: string }, io: Io): string {
  const style = styleOf(io);
  const { servers, tools, roles, unlistedRoles, asked } = plan;
  const all = tools.length === 1 ? "the one tool" : `all ${tools.length} tools`;
  const facts = [
    ["broker", style.bold(broker)],
    ["mailbox", style.bold(as)],
    ["servers", servers.map(({ name, tools: own }) => `${visible(name)} (${count(own, "tool")})`).join(", ") || "none"],
    ["tools", named(tools)],
    ...roles.map(({ role, tools: seen }) => [
      `role ${visible(role)}`,
      seen === tools.length ? all : seen === 0 ? "nothing" : `${seen} of ${tools.length} tools`,
    ]),
    [roles.length === 0 ? "every role" : "other roles", unlistedRoles === "allow" ? all : "nothing (unlistedRoles)"],
    ...(asked.length === 0 ? [] : [["asks you before", named(asked)]]),
  ];
  return `${table(facts, "  ")}\n`;
}

/** Names are the words of servers. Scripts read them with --json, where they are as they are. */
function named(names: readonly string[]): string {
  const first = names.slice(0, MAX_NAMES).map(visible).join(", ");
  return names.length > MAX_NAMES ? `${first} and ${names.length - MAX_NAMES} more` : first || "none";
}

/**
 * Which states of the line are told: why it is away once, however often the broker is dialled in vain, and that it is back.
 */
export function newsOfLine(): (line: State) => boolean {
  let said: string | undefined;
  return ({ state, why }) => {
    if (state === "dialling") return said === undefined;
    const now = state === "waiting" ? `${state} ${why}` : state;
    if (now === said) return false;
    said = now;
    return true;
  };
}

export function stateText({ state, why, nextInMs }: State, broker: string): string {
  switch (state) {
    case "connected":
      return `Connected to ${broker}.`;
    case "waiting":
      return `Not connected to ${broker}: ${why}. Next try in ${waitText(nextInMs ?? 0)}.`;
    case "refused":
      return `The broker refused, and nothing is tried again: ${why}.`;
    case "stopped":
      return "Nothing is shared any more.";
    default:
      return `Dialling ${broker} …`;
  }
}
