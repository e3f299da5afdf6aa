// What the gateway's own log said of each server, the last of it, and the turns of its breaker: in memory, for whoever looks
// at that server. A server elsewhere has no stderr that is seen here, and these lines are all that there is.

import type { ServerEventsAnswer } from "../contracts/control/server-events.js";
import { isoTime } from "../runtime/clock.js";
import type { Log } from "./log.js";

/** As many as fit on two screens; what is older is in the log. */
const MAX_LINES = 40;
/** An error with what a server said in it is shorter, as a rule. With 40 lines it is 40 kB a server, 160 kB where all are long. */
const MAX_CHARACTERS = 1_000;
/** So much of a line is kept, for who looks for secrets in it. */
const KEPT_CHARACTERS = 4_000;
/** A breaker that opens every 30 s of an hour. */
const MAX_TURNS = 120;
/** As many servers as have a past. The one that was told of longest ago gives way. */
const MAX_SERVERS = 500;

/** How every line about one server begins. */
const ABOUT = 'server "';
const ABOUT_END = '": ';

type Level = ServerEventsAnswer["lines"][number]["level"];

interface EventsOfServer {
  readonly lines: { readonly atMs: number; readonly level: Level; readonly text: string }[];
  readonly turns: { readonly atMs: number; readonly circuit: "open" | "closed" }[];
}

export class ServerEvents {
  readonly #wall: () => number;
  readonly #events = new Map<string, EventsOfServer>();

  constructor(wall: () => number) {
    this.#wall = wall;
  }

  /** The same log, of which the lines about a server are kept here, too, whatever its level is. */
  keeping(log: Log): Log {
    const kept =
      (level: Level): Log["info"] =>
      (text, fields) => {
        this.#take(level, text);
        log[level](text, fields);
      };
    return {
      debug: (text, fields) => log.debug(text, fields),
      info: kept("info"),
      warn: kept("warn"),
      error: kept("error"),
      ...(log.lines === undefined ? {} : { lines: log.lines }),
    };
  }

  turned(server: string, circuit: "open" | "closed"): void {
    const { turns } = this.#of(server);
    turns.push({ atMs: this.#wall(), circuit });
    if (turns.length > MAX_TURNS) turns.shift();
  }

  /** `redact` takes out what must not be seen, should the log have it. */
  answer(server: string, redact: (text: string) => string): ServerEventsAnswer {
    const { lines, turns } = this.#events.get(server) ?? { lines: [], turns: [] };
    return {
      lines: lines.map(({ atMs, level, text }) => ({
        at: isoTime(atMs),
        level,
        text: redact(text).slice(0, MAX_CHARACTERS),
      })),
      breaker: turns.map(({ atMs, circuit }) => ({ at: isoTime(atMs), circuit })),
    };
  }

  #take(level: Level, text: string): void {
    if (!text.startsWith(ABOUT)) return;
    const end = text.indexOf(ABOUT_END, ABOUT.length);
    if (end < 0) return;
    const { lines } = this.#of(text.slice(ABOUT.length, end));
    lines.push({
      atMs: this.#wall(),
      level,
      // More than is shown: a secret that was cut in two would not be found. Copied, so that a long text is not held by it.
      text: Buffer.from(text.slice(end + ABOUT_END.length, end + ABOUT_END.length + KEPT_CHARACTERS)).toString(),
    });
    if (lines.length > MAX_LINES) lines.shift();
  }

  #of(server: string): EventsOfServer {
    const events = this.#events.get(server) ?? { lines: [], turns: [] };
    // The newest is the last of the map.
    this.#events.delete(server);
    this.#events.set(server, events);
    const [oldest] = this.#events.keys();
    if (this.#events.size > MAX_SERVERS && oldest !== undefined) this.#events.delete(oldest);
    return events;
  }
}
