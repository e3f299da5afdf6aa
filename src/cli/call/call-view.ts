// What is said of a call while it runs, on stderr: one line of progress that is rewritten, the server's log messages,
// notes. Nothing of it is written into a question that is open.

import { isObject, type JsonObject } from "../../protocol/jsonrpc.js";
import { visible } from "../../runtime/visible.js";
import type { Terminal } from "../line/ask.js";

/** Faster than this nobody reads it. */
const DRAW_MS = 50;

/** After so long without a word a person wonders whether anything happens. */
const SILENCE_MS = 1_500;

/** Lines that wait while a question is open. A server that logs more meanwhile has the rest counted. */
const MAX_HELD_LINES = 100;

/** Where a terminal does not say, or says 0. */
const USUAL_COLUMNS = 80;

/** A log message that is longer is data, which the result or the server's own log has. */
const MAX_LOG_CHARS = 2_000;

const ERASE = "\r\u001b[K";

export interface CallViewOptions {
  readonly server: string;
  readonly tool: string;
  readonly showsProgress: boolean;
  readonly now?: () => number;
}

export class CallView {
  readonly showsProgress: boolean;
  readonly #terminal: Terminal;
  readonly #server: string;
  readonly #now: () => number;
  #line = "";
  #drawnMs = Number.NEGATIVE_INFINITY;
  #isDrawn = false;
  /** Undefined while nothing is held back. */
  #held: string[] | undefined;
  #unheld = 0;
  #silence: NodeJS.Timeout | undefined;

  constructor(terminal: Terminal, { server, tool, showsProgress, now = () => performance.now() }: CallViewOptions) {
    this.#terminal = terminal;
    this.#server = server;
    this.#now = now;
    this.showsProgress = showsProgress;
    if (terminal.isRead) this.#silence = setTimeout(() => this.note(`Waiting for ${tool} …`), SILENCE_MS).unref();
  }

  /** The `params` of a progress notification. */
  progress(params: JsonObject): void {
    this.#speak();
    if (!this.showsProgress) return;
    const line = progressText(params, this.#terminal.columns() || USUAL_COLUMNS);
    if (line === this.#line) return;
    this.#line = line;
    // What is left out is followed by more, or by the end, which erases it.
    if (this.#held === undefined && this.#now() - this.#drawnMs >= DRAW_MS) this.#draw();
  }

  /** The `params` of a log message. */
  log(params: JsonObject): void {
    this.note(logText(this.#server, params));
  }

  note(text: string): void {
    this.#speak();
    if (this.#held !== undefined) {
      if (this.#held.length < MAX_HELD_LINES) this.#held.push(text);
      else this.#unheld++;
      return;
    }
    this.#erase();
    this.#terminal.note(text);
  }

  /** A question is being asked, so that nothing else may be written. */
  hold(): void {
    this.#speak();
    this.#erase();
    this.#held ??= [];
  }

  release(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const text of held) this.#terminal.note(text);
    if (this.#unheld > 0) this.#terminal.note(`… and ${this.#unheld} more that came meanwhile.`);
    this.#unheld = 0;
  }

  /** The call is over: what is printed now stands by itself. */
  end(): void {
    this.#speak();
    this.release();
    this.#erase();
  }

  #draw(): void {
    this.#drawnMs = this.#now();
    this.#isDrawn = true;
    this.#terminal.write(`${ERASE}${this.#line}`);
  }

  #erase(): void {
    if (this.#isDrawn) this.#terminal.write(ERASE);
    this.#isDrawn = false;
    this.#drawnMs = Number.NEGATIVE_INFINITY;
  }

  #speak(): void {
    clearTimeout(this.#silence);
    this.#silence = undefined;
  }
}

/** ` 40% Reading files`, within the width of a terminal: a line that wraps cannot be rewritten. */
export function progressText({ progress, total, message }: JsonObject, columns: number): string {
  const words = typeof message === "string" ? visible(message.replace(/\s+/g, " ").trim()) : "";
  const text = [amountOf(progress, total), words].filter((part) => part !== "").join(" ");
  // One column stays free: some terminals wrap at the last one.
  const room = Math.max(columns - 1, 1);
  return text.length <= room ? text : `${text.slice(0, room - 1)}…`;
}

function amountOf(progress: unknown, total: unknown): string {
  if (typeof progress !== "number" || !Number.isFinite(progress)) return "";
  if (typeof total !== "number" || !(total > 0)) return String(progress);
  const percent = Math.min(100, Math.max(0, Math.floor((progress / total) * 100)));
  return `${String(percent).padStart(3)}%`;
}

/** `demo [warning] db: it is slow`. */
export function logText(server: string, { level, logger, data }: JsonObject): string {
  const from = typeof logger === "string" && logger !== "" ? `${visible(logger)}: ` : "";
  const said = typeof data === "string" ? data : isObject(data) || data !== undefined ? JSON.stringify(data) : "";
  const text = said.length <= MAX_LOG_CHARS ? said : `${said.slice(0, MAX_LOG_CHARS)}…`;
  return `${server} [${visible(String(level ?? "info"))}] ${from}${text}`;
}
