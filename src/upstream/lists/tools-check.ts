// Sees to it that calls of tools go out on a new connection only once the server's tools have been read anew: a program
// may be another than before. What a change means is not decided here; whoever is shown the lists does that.

import { messageOf } from "../../runtime/expected-error.js";
import type { CallSender } from "../link/own-call.js";
import { isUnknownMethod, type ServerLists } from "./lists.js";
import { LIST_MS, readList } from "./read.js";
import { hashOf } from "./rereads.js";

/** A server lists by what an agent can do, if it does, and there are few kinds of agents. Others cost a reading. */
const MAX_VARIANTS = 16;

export interface ToolsCheckOptions {
  readonly lists: ServerLists;
  /** The list that agents are shown, as it was last read. */
  readonly shownHash: () => string | undefined;
  /** Reads that list once more, at once. */
  readonly readShown: () => Promise<unknown>;
  /** A reason without what agents must not read. */
  readonly forAgents: (reason: string) => string;
}

/** All of it resolves with why the tools could not be read, as agents may hear it; undefined where they were. */
export class ToolsCheck {
  readonly #options: ToolsCheckOptions;
  /** Lists of single sessions that are others than the one shown, though that one had not changed. */
  readonly #variants = new Set<string>();
  #variantsOf: string | undefined;

  constructor(options: ToolsCheckOptions) {
    this.#options = options;
  }

  /** The list that agents are shown is being read. */
  async after(reading: Promise<unknown> | undefined): Promise<string | undefined> {
    await reading;
    const { lists, forAgents } = this.#options;
    return lists.isRead("tools") ? undefined : forAgents(lists.faultOf("tools") ?? "the reading was given up");
  }

  /** Another session at the server whose list agents are shown. */
  again(): Promise<string | undefined> {
    return this.after(this.#options.readShown());
  }

  /**
   * A process that is one session's alone. Its list is shown to nobody; where it is another than the one shown, that one
   * is read again: the program may have changed, or it lists by what the agent can do. `shown`: the reading of the one
   * shown, where that is under way.
   */
  async ofSession(sender: CallSender, shown?: Promise<unknown>): Promise<string | undefined> {
    await shown;
    let hash: string;
    try {
      hash = await readHash(sender);
    } catch (error) {
      return this.#options.forAgents(messageOf(error));
    }
    if (hash === this.#options.shownHash() || this.#variantsNow.has(hash)) return undefined;
    const why = await this.again();
    if (why === undefined && this.#variantsNow.size < MAX_VARIANTS) this.#variantsNow.add(hash);
    return why;
  }

  /** They were looked at beside the list that is shown, and are forgotten with it. */
  get #variantsNow(): Set<string> {
    const shown = this.#options.shownHash();
    if (this.#variantsOf !== shown) this.#variants.clear();
    this.#variantsOf = shown;
    return this.#variants;
  }
}

async function readHash(sender: CallSender): Promise<string> {
  try {
    return hashOf(await readList(sender, "tools", AbortSignal.timeout(LIST_MS)));
  } catch (error) {
    if (isUnknownMethod(error)) return hashOf([]);
    throw error;
  }
}
