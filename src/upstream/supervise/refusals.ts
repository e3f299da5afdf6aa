// What a call is told that cannot go to its server: which server, in what state, and when it is tried again.

import type { Supervision } from "../../contracts/server-spec.js";
import { Fault } from "../../protocol/errors.js";
import { sentence } from "../../runtime/words/sentence.js";

/** `nextTryInMs` is undefined where nothing is tried by itself. */
function unavailable(server: string, state: string, message: string, nextTryInMs?: number, cause?: Fault): Fault {
  const code = cause?.code === "unauthorized" ? "unauthorized" : "unavailable";
  const next = nextTryInMs === undefined ? {} : { nextTryInMs: Math.ceil(nextTryInMs) };
  const data = { fault: code, server, state, ...next };
  // What the cause says of a wire is about the start, or about another call: this one has not left.
  const wire = code === "unauthorized" ? cause?.wire : undefined;
  return new Fault(code, message, cause === undefined ? { data } : { data, cause, wire });
}

const seconds = (ms: number): string => `${Math.ceil(ms / 1000)} s`;

/** The server did not start. `said` is the line of its stderr that says most. */
export function down(server: string, fault: Fault, said: string | undefined, nextTryInMs: number | undefined): Fault {
  const parts = [sentence(`Server "${server}" is not available: ${fault.message}`)];
  if (said !== undefined && !fault.message.includes(said)) parts.push(`It wrote: ${sentence(said)}`);
  if (nextTryInMs !== undefined) {
    parts.push(`It is tried again on the next call, in ${seconds(nextTryInMs)} at the latest.`);
  }
  const message = parts.join(" ");
  return unavailable(server, "backoff", message, nextTryInMs, fault);
}

export function ejected(
  server: string,
  { max, windowMs }: Supervision["restarts"],
  fault: Fault | undefined,
  nextTryInMs: number | undefined,
): Fault {
  const why = fault === undefined ? "" : ` Last: ${sentence(fault.message)}`;
  const count = max === 1 ? "once" : `${max} times`;
  const again =
    nextTryInMs === undefined
      ? `It stays so until \`toolway reload ${server}\`.`
      : `It is tried again in ${seconds(nextTryInMs)}, or by \`toolway reload ${server}\`.`;
  const message = `Server "${server}" is ejected: it was restarted ${count} within ${seconds(windowMs)} and failed again.${why} ${again}`;
  return unavailable(server, "ejected", message, nextTryInMs, fault);
}

/** Its tools are pinned, and nobody knows whether they are still what was accepted: nothing of them is called. */
export function unchecked(server: string, why: string): Fault {
  const parts = [
    sentence(
      `The tools of server "${server}" cannot be compared with their pins, since its list could not be read: ${why}`,
    ),
    "It was started or met anew, and the tool may have changed: nothing was sent.",
    `The next call reads the list again; \`toolway status\` tells more, \`toolway reload ${server}\` starts it anew.`,
  ];
  return unavailable(server, "unchecked", parts.join(" "));
}

/** It never left: whoever passed it on passes it to the gateway that runs the server now. */
export function moved(): Fault {
  return new Fault("unavailable", "Another gateway runs this server by now.", { reason: "moved" });
}

export function stopped(server: string): Fault {
  return unavailable(server, "stopped", `Server "${server}" is stopped. \`toolway start ${server}\` starts it.`);
}

/** Its entry in the config cannot be used: nothing of it runs. */
export function misconfigured(server: string, why: string): Fault {
  const message = `Server "${server}" is misconfigured: ${why}. It starts when its entry in the config is corrected; \`toolway reload ${server}\` reads it again.`;
  return unavailable(server, "misconfigured", message);
}

/** The breaker is open, or half open with a call under way. */
export function heldBack(server: string, faults: number, nextTryInMs: number | undefined): Fault {
  const again =
    nextTryInMs === undefined
      ? "One call is being tried now; come back when it has ended."
      : `The next call is tried in ${seconds(nextTryInMs)}.`;
  const message = `Server "${server}" failed ${faults} times in a row, so calls to it are held back. ${again}`;
  const next = nextTryInMs === undefined ? {} : { nextTryInMs: Math.ceil(nextTryInMs) };
  const data = { fault: "unavailable", server, state: nextTryInMs === undefined ? "half-open" : "open", ...next };
  return new Fault("unavailable", message, { data, rule: "breaker", wire: { heldForMs: nextTryInMs } });
}

/** No session more gets a connection of its own. */
export function noRoom(server: string, capacity: number): Fault {
  const message = `Server "${server}" has no connection left for this session: of its ${capacity} ("sessionConnections") one principal gets three quarters at most, and less while others hold some. Close sessions that are not needed; those unused for ten minutes give way by themselves. Or raise "sessionConnections", or use "isolation": "shared".`;
  return new Fault("limit", message);
}
