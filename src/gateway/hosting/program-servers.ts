// The servers of a gateway as a program has them that spawns and calls them itself: which of them are started for it, how
// long it waits for their lists, why it gets none, and the references by which it keeps them.

import { Fault } from "../../protocol/errors.js";
import { abortable, doneWithin } from "../../runtime/wait.js";
import type { UpstreamServer } from "../../upstream/server.js";
import type { ServerPool } from "../../upstream/servers.js";

export interface ListsWait {
  /** How long a server may take that was never read. */
  readonly deadlineMs: number;
  /** Whether lazy ones are started. */
  readonly startLazy: boolean;
  readonly signal: AbortSignal | undefined;
}

/** Why a server's tools may be missing or out of date; undefined where they are as they should be. */
export type ToolsFault = () => Fault | undefined;

export class ProgramServers {
  readonly #pool: ServerPool;
  /** Those that nobody refers to, each of which goes when its time fires. */
  readonly #leaving = new Map<string, NodeJS.Timeout>();

  constructor(pool: ServerPool) {
    this.#pool = pool;
  }

  /** A call of its tools is about to come. */
  want(name: string): void {
    this.#pool.want(name);
  }

  /** Waits for a server that was never read, lazy or not: its tools are wanted. */
  async wantTools(name: string, signal: AbortSignal | undefined): Promise<ToolsFault> {
    const server = this.#pool.want(name);
    if (!server.listed) await abortable(server.firstTry, signal);
    return () => (server.listed ? undefined : unavailable(server));
  }

  /** Waits for a server that was never read, within bounds: its tools are wanted beside those of others. */
  async lookAt(name: string, { deadlineMs, startLazy, signal }: ListsWait): Promise<ToolsFault> {
    const server = this.#pool.supervised(name);
    // A lazy one may sleep, and what is known of it from before is right.
    if (server === undefined || (server.spec.supervision.lazy && !startLazy)) return () => undefined;
    if (!server.listed) {
      server.ensure();
      if (!(await doneWithin(server.firstTry, deadlineMs, signal))) {
        return () => new Fault("timeout", `Server "${name}" has not told its tools within ${deadlineMs} ms.`);
      }
    }
    return () => (server.listed && server.trouble === undefined ? undefined : unavailable(server));
  }

  /** Resolves when it is up and its lists are read; rejects where the first try failed. */
  async whenUp(name: string): Promise<void> {
    const server = this.#pool.supervised(name);
    if (server === undefined) throw new Fault("closing", `Server "${name}" was stopped.`);
    await server.firstTry;
    if (!server.listed) throw unavailable(server);
  }

  /** Resolves when nothing of it runs any more. To be called before it is taken off the list. */
  gone(name: string): () => Promise<void> {
    const server = this.#pool.supervised(name);
    return async () => server?.stop();
  }

  /** One reference more: a server that was about to go stays. */
  retain(name: string): void {
    this.#stay(name);
    this.#pool.retain(name);
  }

  /**
   * One reference less. True where it was the last and the server is to go now. One that has `keepAliveMs` goes after
   * that: `later` is called then, unless it is retained meanwhile.
   */
  release(name: string, later: () => void): boolean {
    if (this.#pool.release(name) > 0) return false;
    const keepAliveMs = this.#pool.supervised(name)?.spec.supervision.keepAliveMs;
    if (keepAliveMs === undefined) return true;
    this.#stay(name);
    this.#leaving.set(name, setTimeout(later, keepAliveMs).unref());
    return false;
  }

  /** How many references there are. */
  refs(name: string): number {
    return this.#pool.supervised(name)?.refs ?? 0;
  }

  /** Nothing goes by itself any more: all of it is about to be stopped. */
  close(): void {
    for (const name of [...this.#leaving.keys()]) this.#stay(name);
  }

  #stay(name: string): void {
    clearTimeout(this.#leaving.get(name));
    this.#leaving.delete(name);
  }
}

function unavailable({ name, trouble = "it was stopped, or has not been started" }: UpstreamServer): Fault {
  return new Fault("unavailable", `Server "${name}" is not available: ${trouble}`);
}
