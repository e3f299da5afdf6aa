// The agent as a process in the foreground: with our terminal and in our process group, its signals
// passed on, its stops followed and its end turned into an exit code.

import { execFileSync, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { constants } from "node:os";
import type { PassedExit } from "../line/errors.js";
import type { Io, TakenSignal } from "../line/io.js";

/** Those that a terminal sends to the whole group, the agent included: they would come twice. */
const FROM_TERMINAL: ReadonlySet<TakenSignal> = new Set(["SIGINT", "SIGQUIT"]);

/** Resolves with its exit code, or 128 and the number of the signal that ended it. Rejects where it cannot be started. */
export function runChild(
  program: string,
  args: readonly string[],
  { env, io }: { readonly env: Record<string, string>; readonly io: Io },
): Promise<PassedExit> {
  return new Promise((done, fail) => {
    const child = spawn(program, [...args], { cwd: io.cwd, env, stdio: "inherit" });
    child.once("error", fail);
    child.once("exit", (code, signal) => done(exitOf(code, signal)));
    const { pid = 0 } = child;
    const stopWithIt = new StopWithAgent({
      isStopped: () => isStopped(pid),
      raisesSignal: process.platform !== "linux",
      // As a terminal would: where nobody is there who could continue us, the system lets it pass.
      stopOurselves: () => void process.kill(process.pid, "SIGTSTP"),
    });
    child.once("exit", () => stopWithIt.end());
    io.takeSignals?.((signal) => {
      if (signal === "SIGCHLD") stopWithIt.signalled();
      else if (!FROM_TERMINAL.has(signal)) child.kill(signal);
    });
    // It may have stopped before its signals were taken.
    if (pid !== 0) stopWithIt.signalled();
  });
}

function isStopped(pid: number): boolean {
  try {
    if (process.platform === "linux") {
      const text = readFileSync(`/proc/${pid}/stat`, "utf8");
      return text.charAt(text.lastIndexOf(")") + 2) === "T";
    }
    return execFileSync("ps", ["-o", "stat=", "-p", String(pid)], { encoding: "utf8" })
      .trim()
      .startsWith("T");
  } catch {
    return false;
  }
}

function exitOf(code: number | null, signal: NodeJS.Signals | null): PassedExit {
  return (signal === null ? (code ?? 1) : 128 + constants.signals[signal]) as PassedExit;
}

/** Two looks so far apart: one that was stopped and continued together with us is running again by the second. */
const LOOK_AGAIN_MS = 100;

export interface Looking {
  /** Whether the agent is stopped now. */
  isStopped(): boolean;
  /** To look starts a program, whose end is a SIGCHLD like the agent's own: it must not be a reason to look. */
  readonly raisesSignal: boolean;
  stopOurselves(): void;
}

/**
 * An agent that has the terminal to itself answers Ctrl-Z by stopping itself alone: the shell waits for us, so we stop with
 * it, and continue it when we are continued (SIGCONT is passed on). Decides when to look and when to stop.
 */
export class StopWithAgent {
  readonly #looking: Looking;
  #again: NodeJS.Timeout | undefined;
  /** Signals to come that our own looks have raised. */
  #ownSignals = 0;

  constructor(looking: Looking) {
    this.#looking = looking;
  }

  /** A SIGCHLD came. Where one of the agent's falls together with one of ours, the next Ctrl-Z is seen. */
  signalled(): void {
    if (this.#ownSignals > 0) this.#ownSignals--;
    else if (this.#again === undefined && this.#look()) {
      this.#again = setTimeout(() => {
        this.#again = undefined;
        if (this.#look()) this.#looking.stopOurselves();
      }, LOOK_AGAIN_MS);
    }
  }

  end(): void {
    clearTimeout(this.#again);
  }

  #look(): boolean {
    if (this.#looking.raisesSignal) this.#ownSignals++;
    return this.#looking.isStopped();
  }
}
