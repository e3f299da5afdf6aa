// How much is logged, changed while the gateway runs: for good, or for a time, after which it is as before.

import type { LogLevelAnswer } from "../../contracts/control/log-level.js";
import { ControlError, type ControlRoutes } from "../../control/server.js";
import { LOG_LEVELS, type Log, type LogLevel } from "../../observe/log.js";
import { isObject } from "../../protocol/jsonrpc.js";
import { systemClock } from "../../runtime/clock.js";

/** What is asked for longer is meant for good. */
const MAX_FOR_MS = 24 * 3_600_000;

export class LogLevels {
  readonly #log: Log;
  readonly #changed: () => void;
  /** What it goes back to, and when. */
  #back: { readonly level: LogLevel; readonly untilMs: number; readonly timer: NodeJS.Timeout } | undefined;

  /** `changed` is told after each change. */
  constructor(log: Log, changed: () => void) {
    this.#log = log;
    this.#changed = changed;
  }

  /** `GET /log-level`, and `POST /log-level` with `{level, forMs?}`. */
  get routes(): ControlRoutes {
    return {
      "GET /log-level": () => this.#answer(),
      "POST /log-level": ({ body }) => {
        const { level, forMs } = isObject(body) ? body : {};
        const known = LOG_LEVELS.find((one) => one === level);
        if (known === undefined) throw new ControlError("invalid", `"level" is one of ${LOG_LEVELS.join(", ")}.`);
        if (forMs !== undefined && !(typeof forMs === "number" && forMs > 0 && forMs <= MAX_FOR_MS)) {
          throw new ControlError("invalid", '"forMs" is a number of milliseconds, at most those of a day.');
        }
        this.set(known, forMs);
        return this.#answer();
      },
    };
  }

  set(level: LogLevel, forMs: number | undefined): void {
    const lines = this.#demandLines();
    // A second change for a time goes back to where the first began.
    const before = this.#back?.level ?? lines.level;
    this.close();
    if (forMs !== undefined) {
      const timer = setTimeout(() => this.set(before, undefined), forMs).unref();
      this.#back = { level: before, untilMs: systemClock.wall() + forMs, timer };
    }
    lines.setLevel(level);
    this.#changed();
    this.#log.info(`the log is at ${level} now${forMs === undefined ? "" : `, for ${Math.round(forMs / 1_000)} s`}`);
  }

  close(): void {
    clearTimeout(this.#back?.timer);
    this.#back = undefined;
  }

  #answer(): LogLevelAnswer {
    const { level } = this.#demandLines();
    const back = this.#back;
    return { level, until: back && new Date(back.untilMs).toISOString(), after: back?.level };
  }

  /** The log of a program that embeds the gateway is its own. */
  #demandLines(): NonNullable<Log["lines"]> {
    if (this.#log.lines !== undefined) return this.#log.lines;
    throw new ControlError("denied", "The log is that of the program that embeds this gateway: set its level there.");
  }
}
