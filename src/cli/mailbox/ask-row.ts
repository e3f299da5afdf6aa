// A question of a shared tool as a row of a table. Who asks wrote its arguments: a person decides by what they read, so nothing
// in it may hide, or stand elsewhere than it is.

import type { AsksAnswer } from "../../contracts/control/asks.js";
import { visible, visibleJson } from "../../runtime/visible.js";

export function askRow(ask: AsksAnswer["asks"][number], nowMs: number): string[] {
  const { id, worker, role, server, tool, until, arguments: args } = ask;
  return [
    String(id),
    visible(`${worker} (${role})`),
    visible(`${server}/${tool}`),
    `${Math.max(0, Math.round((Date.parse(until) - nowMs) / 1_000))} s`,
    visibleJson(args),
  ];
}
