// One request on its way through a mailbox: its message, how far it has come, and how long it waits for a machine that is
// away.

import type { Draw } from "../../mailbox/join/draw-turns.js";
import type { Ticket } from "../link/link.js";

export class Outgoing {
  readonly ticket: Ticket;
  /** The id of its message: a repeat has the same, and runs once. */
  readonly id: string;
  /** The body of its message, until the broker has it. */
  body: string;
  /** When its message ends, by our clock. */
  readonly endMs: number;
  /**
   * `waiting`: not under way on this line. `delivering`: written, and the broker has not said that it has it. `delivered`:
   * it has. `answered`: a large reply is being drawn.
   */
  state: "waiting" | "delivering" | "delivered" | "answered" = "waiting";
  /** It was written to a line at least once: the broker may have it. */
  wasTried = false;
  /** The broker was told that it is taken back, or is being told. */
  isTakenBack = false;
  /** When it is taken back because nobody is there to take it; undefined while somebody is. */
  awayDueMs: number | undefined = undefined;
  draw: Draw | undefined = undefined;

  constructor(ticket: Ticket, id: string, body: string, endMs: number) {
    this.ticket = ticket;
    this.id = id;
    this.body = body;
    this.endMs = endMs;
  }
}

const DAY_MS = 86_400_000;

/** "studio is away since 10:02", or without the time where that is not known. */
export function awayText(mailbox: string, since: string | undefined, nowMs: number): string {
  const sinceMs = since === undefined ? Number.NaN : Date.parse(since);
  if (Number.isNaN(sinceMs)) return `${mailbox} is away`;
  const at = new Date(sinceMs);
  const time = `${two(at.getHours())}:${two(at.getMinutes())}`;
  if (nowMs - sinceMs < DAY_MS) return `${mailbox} is away since ${time}`;
  return `${mailbox} is away since ${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${time}`;
}

function two(n: number): string {
  return String(n).padStart(2, "0");
}
