// The mailboxes in which a gateway's tools are shared: that of its config, and those of `toolway share`. What it takes is
// loaded with the first of them.

import type { ShareConfig } from "../../config/config.js";
import type { SharedMailbox } from "../../contracts/status.js";
import type { Store } from "../../contracts/store.js";
import type { Log } from "../../observe/log.js";
import { Fault } from "../../protocol/errors.js";
import { systemClock } from "../../runtime/clock.js";
import type { Asks } from "./asks.js";
import type { openJournal, Share, ShareHooks, ShareParts } from "./open-share.js";

type Journal = Awaited<ReturnType<typeof openJournal>>;

interface Loaded {
  readonly Share: typeof Share;
  readonly journal: Journal;
  readonly asks: Asks;
}

export class Sharing {
  readonly #parts: ShareParts;
  readonly #store: Store | undefined;
  readonly #log: Log;
  readonly #shares = new Set<Share>();
  #loaded: Promise<Loaded> | undefined;
  #asks: Asks | undefined;
  /** What the config says, and what came of it. */
  #wanted: ShareConfig | undefined;
  #ofConfig: Share | undefined;
  #changing: Promise<void> = Promise.resolve();
  #isClosed: boolean = false;

  constructor(parts: ShareParts, store: Store | undefined) {
    this.#parts = parts;
    this.#store = store;
    this.#log = parts.log;
  }

  /** Questions that nobody at a terminal is asked; undefined before anything is shared. */
  get asks(): Asks | undefined {
    return this.#asks;
  }

  /** What the config says. What was shared before and is not any more ends when its calls have. */
  apply(settings: ShareConfig | undefined, drainMs: number): void {
    if (JSON.stringify(settings) === JSON.stringify(this.#wanted)) return;
    this.#wanted = settings;
    this.#changing = this.#changing.then(() => this.#follow(settings, drainMs));
  }

  async #follow(settings: ShareConfig | undefined, drainMs: number): Promise<void> {
    if (this.#ofConfig !== undefined) await this.end(this.#ofConfig, drainMs);
    this.#ofConfig = undefined;
    if (settings === undefined || this.#isClosed) return;
    try {
      this.#ofConfig = await this.begin(settings, {});
    } catch (error) {
      this.#log.error("the tools cannot be shared", { mailbox: settings.as, why: (error as Error).message });
    }
  }

  /** Throws a Fault where this gateway shares there already, or keeps nothing over restarts. */
  async begin(settings: ShareConfig, hooks: ShareHooks): Promise<Share> {
    const { broker, as } = settings;
    const { Share: Made, journal, asks } = await this.#load();
    if (this.#isClosed) throw new Fault("closing", "The gateway is closing.");
    for (const { settings: other } of this.#shares) {
      if (other.as !== as || other.broker !== broker) continue;
      throw new Fault("invalid", `This gateway shares its tools as "${as}" at ${broker} already.`);
    }
    const share = new Made(settings, journal, this.#parts, {
      ...hooks,
      ask: hooks.ask ?? ((principal, start, leftMs, signal) => asks.ask(principal, start, leftMs, signal)),
    });
    this.#shares.add(share);
    return share;
  }

  async end(share: Share, drainMs: number): Promise<void> {
    await share.close(drainMs);
    this.#shares.delete(share);
  }

  status(): SharedMailbox[] {
    return [...this.#shares].map(({ settings, state, counts }) => ({
      broker: settings.broker,
      mailbox: settings.as,
      ...state,
      ...counts,
    }));
  }

  async close(drainMs: number): Promise<void> {
    this.#isClosed = true;
    this.#asks?.close();
    await this.#changing;
    await Promise.all([...this.#shares].map((share) => this.end(share, drainMs)));
  }

  #load(): Promise<Loaded> {
    this.#loaded ??= this.#open().catch((error: unknown) => {
      this.#loaded = undefined;
      throw error;
    });
    return this.#loaded;
  }

  async #open(): Promise<Loaded> {
    // Without one, nobody would know after a restart what was begun before.
    if (this.#store === undefined) throw new Fault("invalid", "Tools are shared by a gateway with a state directory.");
    const { Asks, Share, openJournal } = await import("./open-share.js");
    const asks = new Asks(systemClock, (text, fields) => this.#log.info(text, fields));
    this.#asks = asks;
    return { Share, journal: await openJournal(this.#store), asks };
  }
}
