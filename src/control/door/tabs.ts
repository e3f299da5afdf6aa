// What is sent to open pages: a snapshot first, then what changed, made once for all of them. Nothing is looked at while
// no page is open. A page that reads too slowly gets the whole again in place of a queue.

import type { ServerResponse } from "node:http";
import { ControlError } from "../server.js";
import type { Power } from "./sessions.js";

/** Pages at once. More is a program. */
const MAX_TABS = 32;
/** A person sees no more than four changes a second; half of that is enough, and costs half. */
const LOOK_MS = 500;
/** A stream that says nothing is not told from one that is dead: the page waits for twice this. */
const QUIET_LOOKS = 20;

type Parts = Readonly<Record<string, unknown>>;

/** One line of a page's stream. Parts that are null have gone. */
export type FeedLine =
  | { readonly all: Parts; readonly power: Power }
  | { readonly changed: Parts }
  | { readonly quiet: true };

interface Tab {
  /** What waits to be sent, at most one line. Undefined where nothing is new. */
  next: FeedLine | undefined;
  /** It had not read what changed when more did. */
  isLate: boolean;
  quiet: number;
  wake: (() => void) | undefined;
}

/** `isWhole`: nobody has looked before. A part that is the same object as before has not changed. */
export type Look = (isWhole: boolean) => Parts;

interface Known {
  readonly part: unknown;
  readonly text: string;
}

export class Tabs {
  readonly #look: Look;
  readonly #tabs = new Set<Tab>();
  readonly #held = new Map<ServerResponse, string>();
  /** Each part as it was last sent, and its text. */
  #known = new Map<string, Known>();
  #timer: NodeJS.Timeout | undefined;

  constructor(look: Look) {
    this.#look = look;
  }

  async *follow(power: Power, signal: AbortSignal): AsyncIterableIterator<FeedLine> {
    if (this.#tabs.size >= MAX_TABS) throw new ControlError("limit", `${MAX_TABS} pages are open, and no more may be.`);
    const tab: Tab = { next: undefined, isLate: true, quiet: 0, wake: undefined };
    const wake = () => tab.wake?.();
    this.#tabs.add(tab);
    signal.addEventListener("abort", wake, { once: true });
    this.#timer ??= setInterval(() => this.#tick(), LOOK_MS).unref();
    try {
      while (!signal.aborted) {
        if (tab.isLate) {
          tab.isLate = false;
          tab.next = undefined;
          // As it was sent to the others, so that what changes next fits on it.
          if (this.#known.size === 0) this.#changes();
          yield { all: partsOf(this.#known), power };
        } else if (tab.next !== undefined) {
          const line = tab.next;
          tab.next = undefined;
          yield line;
        } else {
          await new Promise<void>((done) => {
            tab.wake = done;
          });
          tab.wake = undefined;
        }
      }
    } finally {
      this.#tabs.delete(tab);
      signal.removeEventListener("abort", wake);
      if (this.#tabs.size === 0) {
        clearInterval(this.#timer);
        this.#timer = undefined;
        this.#known = new Map();
      }
    }
  }

  /** The stream of a page of this session. */
  hold(session: string, response: ServerResponse): void {
    this.#held.set(response, session);
    response.once("close", () => this.#held.delete(response));
  }

  /** The pages of a session that has ended. */
  endOf(session: string): void {
    for (const [response, id] of this.#held) if (id === session) response.destroy();
  }

  end(): void {
    for (const response of this.#held.keys()) response.destroy();
  }

  #tick(): void {
    const changed = this.#changes();
    for (const tab of this.#tabs) {
      if (changed !== undefined) {
        if (tab.next === undefined || "quiet" in tab.next) tab.next = { changed };
        // It has not read the last one yet: it gets the whole when it is ready.
        else tab.isLate = true;
        tab.quiet = 0;
      } else if (++tab.quiet >= QUIET_LOOKS) {
        tab.quiet = 0;
        tab.next ??= { quiet: true };
      }
      if (tab.next !== undefined) tab.wake?.();
    }
  }

  /** What is otherwise than it was; undefined where nothing is. */
  #changes(): Parts | undefined {
    const now = new Map<string, Known>();
    const changed: Record<string, unknown> = {};
    let some = false;
    for (const [name, part] of Object.entries(this.#look(this.#known.size === 0))) {
      if (part === undefined) continue;
      const known = this.#known.get(name);
      const text = known?.part === part ? known.text : JSON.stringify(part);
      now.set(name, { part, text });
      if (known?.text === text) continue;
      changed[name] = JSON.parse(text);
      some = true;
    }
    for (const name of this.#known.keys()) {
      if (now.has(name)) continue;
      changed[name] = null;
      some = true;
    }
    this.#known = now;
    return some ? changed : undefined;
  }
}

function partsOf(known: ReadonlyMap<string, Known>): Parts {
  return Object.fromEntries([...known].map(([name, { text }]) => [name, JSON.parse(text) as unknown]));
}
