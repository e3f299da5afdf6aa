// The agent as a process in the foreground: found on the PATH, with our terminal and in our process group, its signals
// passed on and its end turned into an exit code.

import { execFileSync, spawn } from "node:child_process";
import { accessSync, constants as fsConstants, readFileSync, statSync } from "node:fs";
import { constants } from "node:os";
import { delimiter, isAbsolute, join, resolve } from "node:path";
import type { PassedExit } from "../line/errors.js";
import type { Io, TakenSignal } from "../line/io.js";
import { StopWithAgent } from "./stop-with.js";

/** The whole path of a program; undefined where there is none, as a shell would find it. */
export function findProgram(word: string, { env, cwd }: Pick<Io, "env" | "cwd">): string | undefined {
  if (word.includes("/")) return isProgram(resolve(cwd, word)) ? resolve(cwd, word) : undefined;
  const folders = (env["PATH"] ?? "").split(delimiter);
  return folders
    .map((folder) => (isAbsolute(folder) ? join(folder, word) : resolve(cwd, folder, word)))
    .find((path) => isProgram(path));
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, fsConstants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

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
