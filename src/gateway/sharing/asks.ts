// Questions about calls that a person is asked about where nobody sits at a terminal for them: they wait, within bounds, for a
// word by `toolway asks` or the page. What nobody answers in time is not run.

import type { CallStart, Principal } from "../../contracts/caller.js";
import type { AskAnswer, AskedCall, AskShown } from "../../contracts/control/asks.js";
import { Fault } from "../../protocol/errors.js";
import { jsonHead } from "../../protocol/json-head.js";
import type { Clock } from "../../runtime/clock.js";
import { KIB } from "../../runtime/sizes.js";

/** Who looks at a page, or is told to, answers within this; a worker that waits is told then. */
const ASK_MS = 60_000;
/** Questions that a person has before them. */
const MAX_ASKED = 64;
/** Of one worker: more than an agent calls at once, and so few that it takes eight to leave no place for another. */
const MAX_ASKED_BY_ONE = 8;
/** Workers and tools for which "always" was said. */
const MAX_ALWAYS = 1_000;
/** What is shown of the arguments. */
const MAX_SHOWN_CHARS = 4 * KIB;

interface Asked {
  readonly call: AskedCall;
  readonly key: string;
  readonly principal: string;
  resolve(answer: AskAnswer | undefined): void;
}

type Told = (text: string, fields: Readonly<Record<string, unknown>>) => void;

export class Asks {
  readonly #clock: Clock;
  readonly #told: Told;
  readonly #asked = new Map<number, Asked>();
  readonly #always = new Set<string>();
  #count = 0;

  /** `told` is where a person may see that somebody waits. */
  constructor(clock: Clock, told: Told) {
    this.#clock = clock;
    this.#told = told;
  }

  /**
   * Resolves where somebody says yes. Rejects with a Fault: `denied`, or `cancelled` where `signal` says that nobody waits
   * for the call any more.
   */
  async ask(principal: Principal, start: CallStart, leftMs: number, signal: AbortSignal): Promise<void> {
    const { server = "", tool = "", message } = start;
    const key = JSON.stringify([principal.id, server, tool]);
    if (this.#always.has(key)) return;
    if (this.#asked.size >= MAX_ASKED) throw refused(tool, `has ${MAX_ASKED} questions to answer already`);
    const own = [...this.#asked.values()].filter((one) => one.principal === principal.id);
    if (own.length >= MAX_ASKED_BY_ONE) {
      throw refused(tool, `has ${MAX_ASKED_BY_ONE} questions of this worker to answer already`);
    }
    demandWanted(signal);
    const id = ++this.#count;
    const waitMs = Math.min(ASK_MS, Math.max(0, leftMs));
    const nowMs = this.#clock.wall();
    const call: AskedCall = {
      id,
      worker: principal.id.replace(/^mailbox\//, ""),
      role: principal.role,
      server,
      tool,
      askedAt: new Date(nowMs).toISOString(),
      until: new Date(nowMs + waitMs).toISOString(),
      arguments: jsonHead(message.params?.["arguments"] ?? {}, MAX_SHOWN_CHARS)[0],
    };
    this.#told("a call waits for a person: `toolway asks` shows it", { ask: id, server, tool, worker: call.worker });
    const answer = await new Promise<AskAnswer | undefined>((resolve) => {
      const giveUp = () => end(undefined);
      const end = (said: AskAnswer | undefined) => {
        clearTimeout(timer);
        signal.removeEventListener("abort", giveUp);
        this.#asked.delete(id);
        resolve(said);
      };
      const timer = setTimeout(giveUp, waitMs);
      signal.addEventListener("abort", giveUp);
      this.#asked.set(id, { call, key, principal: principal.id, resolve: end });
    });
    demandWanted(signal);
    if (answer === "yes" || answer === "always") return;
    if (answer === "no") throw refused(tool, "was asked, and said no");
    throw refused(tool, `was asked, and did not answer within ${Math.round(waitMs / 100) / 10} s`);
  }

  /** Oldest first, without what they would be called with. */
  get shown(): readonly AskShown[] {
    return this.list().map(({ arguments: _, ...rest }) => rest);
  }

  list(): readonly AskedCall[] {
    return [...this.#asked.values()].map(({ call }) => call);
  }

  /** Throws a Fault `not-found` where nobody waits for it. */
  answer(id: number, answer: AskAnswer): void {
    const asked = this.#asked.get(id);
    if (asked === undefined)
      throw new Fault(
        "not-found",
        "Nobody waits for that answer: it came too late, was given, or the call was taken back.",
      );
    if (answer === "always" && this.#always.size < MAX_ALWAYS) this.#always.add(asked.key);
    asked.resolve(answer);
  }

  /** The gateway ends: nothing is run that nobody has allowed. */
  close(): void {
    for (const { resolve } of [...this.#asked.values()]) resolve(undefined);
  }
}

/** A person was asked meanwhile, or is about to be. */
export function demandWanted({ aborted }: AbortSignal): void {
  if (aborted) throw new Fault("cancelled", "Nobody waits for this call any more. Not run.");
}

export function refused(tool: string, why: string): Fault {
  return new Fault("denied", `The person who shares "${tool}" ${why}. Not run.`);
}
