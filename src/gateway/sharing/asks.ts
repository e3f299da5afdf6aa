// Questions about calls that a person is asked about where nobody sits at a terminal for them: they wait, within bounds, for a
// word by `toolway asks` or the page. What nobody answers in time is not run.

import type { CallStart, Principal } from "../../contracts/caller.js";
import type { AskAnswer, AskedCall, AskShown } from "../../contracts/control/asks.js";
import { Fault } from "../../protocol/errors.js";
import type { Clock } from "../../runtime/clock.js";
import { KIB } from "../../runtime/sizes.js";

/** Who looks at a page, or is told to, answers within this; a worker that waits is told then. */
const ASK_MS = 60_000;
/** Questions that a person has before them. */
const MAX_ASKED = 64;
/** Workers and tools for which "always" was said. */
const MAX_ALWAYS = 1_000;
/** What is shown of the arguments. */
const MAX_SHOWN_CHARS = 4 * KIB;

interface Asked {
  readonly call: AskedCall;
  readonly key: string;
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

  /** Resolves where somebody says yes. Rejects with a Fault `denied`. */
  async ask(principal: Principal, { server = "", tool = "", message }: CallStart, leftMs: number): Promise<void> {
    const key = JSON.stringify([principal.id, server, tool]);
    if (this.#always.has(key)) return;
    if (this.#asked.size >= MAX_ASKED) throw refused(tool, `has ${MAX_ASKED} questions to answer already`);
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
      arguments: JSON.stringify(message.params?.["arguments"] ?? {}).slice(0, MAX_SHOWN_CHARS),
    };
    this.#told("a call waits for a person: `toolway asks` shows it", { ask: id, server, tool, worker: call.worker });
    const answer = await new Promise<AskAnswer | undefined>((resolve) => {
      const timer = setTimeout(() => resolve(undefined), waitMs);
      this.#asked.set(id, {
        call,
        key,
        resolve: (said) => {
          clearTimeout(timer);
          resolve(said);
        },
      });
    });
    this.#asked.delete(id);
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
      throw new Fault("not-found", "Nobody waits for that answer: it came too late, or was given.");
    if (answer === "always" && this.#always.size < MAX_ALWAYS) this.#always.add(asked.key);
    this.#asked.delete(id);
    asked.resolve(answer);
  }

  /** The gateway ends: nothing is run that nobody has allowed. */
  close(): void {
    for (const { resolve } of this.#asked.values()) resolve(undefined);
  }
}

function refused(tool: string, why: string): Fault {
  return new Fault("denied", `The person who shares "${tool}" ${why}. Not run.`);
}
