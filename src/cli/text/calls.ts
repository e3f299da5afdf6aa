// Calls as a person reads them, a line each.

import type { CallUnderWay, KeptCall } from "../../contracts/control/calls.js";
import { shortMs } from "../../runtime/clock.js";
import { type Io, shown } from "../line/io.js";

/** `07:10:11.123 ann files/read_file: ok, 12 ms (server 11.2 ms)`. */
export function lineOf(call: KeptCall, io: Io): string {
  const { endedAt, principal, server, tool, method, outcome } = call;
  const what = [server, tool ?? method].filter((part) => part !== undefined).join("/");
  const phases = [
    ["queued", call.queuedMs],
    ["starting", call.startingMs],
    ["credential", call.credentialMs],
    ["server", call.serverMs],
  ] as const;
  const spent = phases.flatMap(([name, ms]) => (ms > 0 ? [`${name} ${shortMs(ms)} ms`] : []));
  const where = spent.length === 0 ? "" : ` (${spent.join(", ")})`;
  const came = `${outcome}${whyOf(call)}, ${shortMs(call.ms)} ms${where}`;
  return shown(`${endedAt.slice(11, 23)} ${principal} ${what}: ${came}${keptAs(call)}`, io.isTTY);
}

/** What refused it, or the code that its server answered with. */
function whyOf({ refusedBy, errorCode }: KeptCall): string {
  if (refusedBy !== undefined) return ` by ${refusedBy}`;
  return errorCode === undefined ? "" : ` ${errorCode}`;
}

function keptAs({ receipt }: KeptCall): string {
  return receipt === undefined ? "" : `, kept as ${receipt}`;
}

/** `under way    ann files/read_file: 1290 ms, in server`. */
export function lineUnderWay({ principal, server, tool, method, ms, phase }: CallUnderWay, io: Io): string {
  const what = [server, tool ?? method].filter((part) => part !== undefined).join("/");
  const now = phase === "own" ? "in the gateway" : `in ${phase}`;
  return shown(`under way    ${principal} ${what}: ${shortMs(ms)} ms, ${now}`, io.isTTY);
}
