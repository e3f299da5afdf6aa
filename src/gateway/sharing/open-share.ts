// What a gateway that shares its tools loads, in one piece: one share is a sharer, and the endpoint that answers it.

import type { Config, ShareConfig } from "../../config/config.js";
import type { CallStart, Principal } from "../../contracts/caller.js";
import type { Service } from "../../contracts/service.js";
import type { Store } from "../../contracts/store.js";
import { type ListsRead, MailboxEndpoint } from "../../endpoint/mailbox/endpoint.js";
import { Journal } from "../../mailbox/share/journal.js";
import { Sharer, type SharerCounts, type SharerState } from "../../mailbox/share/sharer.js";
import type { Log } from "../../observe/log.js";
import { Fault } from "../../protocol/errors.js";
import { isoTime, systemClock } from "../../runtime/clock.js";
import type { HeldBytes } from "../../runtime/memory/held-bytes.js";
import type { Sealer } from "../../runtime/seal.js";

export { Asks } from "./asks.js";

export interface ShareParts {
  readonly service: Service;
  readonly sealer: Sealer;
  readonly held: HeldBytes;
  readonly log: Log;
  /** As it is now. */
  readonly config: () => Config;
  readonly servers: () => readonly string[];
  readonly lists: () => ListsRead;
}

type Ask = (principal: Principal, start: CallStart, leftMs: number, signal: AbortSignal) => Promise<void>;

export interface ShareHooks {
  /** Asks a person about a tool that the config says so of. */
  readonly ask?: Ask | undefined;
  readonly onState?: ((state: SharerState) => void) | undefined;
}

/** An agent that has been quiet for so long has gone: what servers keep for it alone is closed. */
const SESSION_QUIET_MS = 30 * 60_000;
const SWEEP_MS = 60_000;

export function openJournal(store: Store): Promise<Journal> {
  return Journal.open({ store, clock: systemClock });
}

export class Share {
  readonly settings: ShareConfig;
  readonly #endpoint: MailboxEndpoint;
  readonly #sharer: Sharer;
  readonly #timer: NodeJS.Timeout;
  #sinceMs = systemClock.wall();
  #closing: Promise<void> | undefined;

  constructor(settings: ShareConfig, journal: Journal, parts: ShareParts, hooks: ShareHooks & { readonly ask: Ask }) {
    const { service, sealer, held, log, config, servers, lists } = parts;
    const { limits, sessions } = config();
    this.settings = settings;
    this.#endpoint = new MailboxEndpoint({
      service,
      sealer,
      held,
      clock: systemClock,
      limits: {
        depth: limits.depth,
        outputBytes: limits.outputBytes,
        parkedMs: limits.questionMs,
        sessions: sessions.max,
        sessionIdleMs: Math.min(sessions.idleMs, SESSION_QUIET_MS),
      },
      // With one server its tools have their own names, as at /mcp/<server>.
      scope: () => {
        const [first, second] = servers();
        return second === undefined ? first : undefined;
      },
      lists,
      failed: (error) => log.error("a message of a mailbox failed inside the gateway", { error }),
    });
    this.#sharer = new Sharer({
      ...settings,
      // `toolway share` names another mailbox than the config, or the config names none: the bound is the machine's.
      calls: settings.calls ?? config().share?.calls,
      service: this.#endpoint,
      journal,
      clock: systemClock,
      log,
      ask: (principal, start, leftMs, unwanted) =>
        isAskedFor(config(), start) ? hooks.ask(principal, start, leftMs, unwanted()) : undefined,
      onState: (state) => {
        this.#sinceMs = systemClock.wall();
        hooks.onState?.(state);
      },
    });
    this.#timer = setInterval(() => this.#endpoint.sweep(), SWEEP_MS).unref();
    this.#sharer.start();
  }

  get state(): SharerState & { readonly since: string } {
    return { ...this.#sharer.state, since: isoTime(this.#sinceMs) };
  }

  get counts(): SharerCounts {
    return this.#sharer.counts;
  }

  /** Lets calls under way end, at most `drainMs`. What has not ended then is told so, and the line closes. */
  close(drainMs: number): Promise<void> {
    this.#closing ??= this.#close(drainMs);
    return this.#closing;
  }

  async #close(drainMs: number): Promise<void> {
    clearInterval(this.#timer);
    await this.#sharer.drain(drainMs);
    this.#endpoint.close(new Fault("closing", "The gateway is closing."));
    await this.#sharer.stop();
  }
}

function isAskedFor({ servers }: Config, { server, tool }: CallStart): boolean {
  if (server === undefined || tool === undefined) return false;
  const tools = servers.find(({ name }) => name === server)?.tools;
  return tools !== undefined && Object.hasOwn(tools, tool) && tools[tool]?.ask === true;
}
