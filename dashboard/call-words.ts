// One call in words: where its time went, what it waited for, what came of it and what to do. It decides only, and knows
// neither the browser nor the gateway.

import type { KeptCall } from "../src/contracts/control/calls.js";
import { shellWord } from "../src/runtime/words/shell-word.js";

export interface Phase {
  readonly name: "queued" | "starting" | "credential" | "server" | "own";
  readonly ms: number;
  /** `waited 1.2 s while github was started again`. */
  readonly words: string;
}

/** A time that a person reads: three figures, with its unit. */
export function timeText(ms: number): string {
  if (ms >= 60_000) return `${(ms / 60_000).toFixed(1)} min`;
  if (ms >= 1_000) return `${(ms / 1_000).toFixed(ms >= 10_000 ? 1 : 2)} s`;
  return `${ms >= 100 ? Math.round(ms) : ms >= 10 ? ms.toFixed(1) : ms.toFixed(2)} ms`;
}

export function sizeText(bytes: number | undefined): string {
  if (bytes === undefined) return "";
  if (bytes >= 1024 * 1024) return `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
  return bytes >= 1024 ? `${(bytes / 1024).toFixed(1)} KiB` : `${bytes} B`;
}

/** What a call waits for that has not ended yet, by its phase. */
export const PHASE_WORDS: Readonly<Record<string, string>> = {
  own: "in the gateway",
  queued: "waits for its turn",
  starting: "waits for its server to start",
  credential: "waits for a token",
  server: "at its server",
  returning: "on its way back",
};

/** A phase below this is there in every call, and no word of it helps anybody. */
const WORTH_A_WORD_MS = 0.05;

/** In the order in which they come. Their sum is the call's time. */
export function phasesOf(call: KeptCall): Phase[] {
  const server = call.server ?? "the server";
  const started = call.mended === "restart" ? "was started again" : "was started or connected";
  const all: Phase[] = [
    { name: "queued", ms: call.queuedMs, words: `waited ${timeText(call.queuedMs)} for its turn` },
    {
      name: "starting",
      ms: call.startingMs,
      words: `waited ${timeText(call.startingMs)} while ${server} ${started}`,
    },
    {
      name: "credential",
      ms: call.credentialMs,
      words: `waited ${timeText(call.credentialMs)} for ${call.mended === "token" ? "a new token" : "the credential"}`,
    },
    { name: "server", ms: call.serverMs, words: `${server} took ${timeText(call.serverMs)}` },
    { name: "own", ms: call.ownMs, words: `Toolway itself took ${timeText(call.ownMs)}` },
  ];
  return all.filter(({ ms }) => ms >= WORTH_A_WORD_MS);
}

/** What is remarkable about it besides its times. */
export function remarksOf({ attempt, cache, mended, receipt, server }: KeptCall): string[] {
  return [
    ...(receipt === undefined ? [] : ["It was kept for later: its agent was given a receipt in place of a result."]),
    ...(attempt > 1 ? [`It was sent ${attempt} times: to do it twice does no harm.`] : []),
    ...(cache === "hit" ? ["It was answered from what was kept; no server was asked."] : []),
    ...(cache === "coalesced" ? ["It waited for the same call of somebody else, and got its answer."] : []),
    ...(mended === "restart" ? [`Its agent noticed nothing of ${server ?? "the server"} being started again.`] : []),
    ...(mended === "token" ? ["Its agent noticed nothing of the token being renewed."] : []),
    ...(mended === "menu" ? ["A server was away: its tools are in the list as they were."] : []),
  ];
}

/** What each rule is, for whom it refused. */
export const RULES: Readonly<Record<string, string>> = {
  token: "the token or session is unknown, or over",
  role: "the role may not call it",
  menu: "the menu of its context does not have it",
  guard: "the program around the gateway refused it",
  pin: "the tool changed since it was accepted",
  budget: "the budget of its server is used up",
  breaker: "the breaker of its server is open",
  limit: "a bound of the gateway was reached",
};

/** What to do about an outcome that is none. Undefined where there is nothing to do. */
export function adviceOn(call: KeptCall): { text: string; line?: string } | undefined {
  const { outcome, server, tool, principal, refusedBy, errorCode } = call;
  const rule = refusedBy === undefined ? undefined : RULES[refusedBy];
  const name = shellWord(server ?? "");
  switch (outcome) {
    case "ok":
    case "cancelled":
      return undefined;
    case "tool-error":
      return { text: "The tool itself answered that it failed: its agent was told why.", line: `toolway logs ${name}` };
    case "rpc-error":
      return {
        text: `The server answered with an error${errorCode === undefined ? "" : ` (code ${errorCode})`}: its agent was told which.`,
        line: `toolway logs ${name}`,
      };
    case "timeout":
      return {
        text: 'It took longer than "callTimeoutMs" of its server. Raise that, or look at what the server does.',
        line: `toolway logs ${name}`,
      };
    case "unavailable":
      return {
        text: `${rule === undefined ? "The server could not be reached" : `It was not sent: ${rule}`}. Its page says why.`,
        line: `toolway doctor ${name}`,
      };
    case "unauthorized":
      return { text: "The server wants a login, or refused the one that it got.", line: `toolway login ${name}` };
    case "outcome-unknown":
      return { text: "The connection was lost while it ran: it may have happened.", line: `toolway logs ${name}` };
    case "denied":
      return {
        text: `A rule refused it to ${principal}: ${rule ?? "a role, a menu, the guard or a pin"}.`,
        ...(tool === undefined ? {} : { line: `toolway inspect ${shellWord(`${server ?? ""}/${tool}`)}` }),
      };
    case "limit":
      return {
        text: `A limit was reached: ${rule ?? "a budget, or how many may be under way"}.`,
        line: "toolway status",
      };
    case "not-found":
      return { text: "There is no such tool for this agent.", line: `toolway tools --as ${shellWord(principal)}` };
    default:
      return { text: "It went wrong on its way.", line: `toolway logs ${name}` };
  }
}
