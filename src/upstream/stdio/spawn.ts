// Starts a server's process, and says in plain words what to do when it cannot be started.

import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { statSync } from "node:fs";
import { isAbsolute, resolve } from "node:path";
import type { StdioTarget } from "../../contracts/server-spec.js";
import { Fault } from "../../protocol/errors.js";

/** Resolves when the program runs; rejects with a Fault `unavailable`. `onChild` gets the process at once. */
export function spawnServer(
  target: StdioTarget,
  env: Record<string, string>,
  onChild: (child: ChildProcessWithoutNullStreams) => void,
): Promise<void> {
  return new Promise((done, failed) => {
    let child: ChildProcessWithoutNullStreams;
    try {
      child = spawn(target.command, target.args, {
        cwd: target.cwd,
        env,
        shell: false,
        stdio: ["pipe", "pipe", "pipe"],
        // It gets its own session and group, so that all it starts can be signalled together. On Windows there are no
        // groups, and this would open a console window.
        detached: process.platform !== "win32",
        windowsHide: true,
      });
    } catch (error) {
      failed(explain(target, error as NodeJS.ErrnoException));
      return;
    }
    child.once("spawn", done);
    // The listener stays: a failed kill is an "error" event too, and must not end the gateway.
    child.on("error", (error) => failed(explain(target, error)));
    if (child.pid !== undefined) onChild(child);
  });
}

function explain(target: StdioTarget, error: NodeJS.ErrnoException): Fault {
  // The cause is left out: that error carries the arguments, and they may hold secrets.
  return new Fault("unavailable", sentence(target, error));
}

function sentence({ command, cwd }: StdioTarget, error: NodeJS.ErrnoException): string {
  const quoted = JSON.stringify(command);
  // The system reports a missing directory as if the program were missing.
  if (cwd !== undefined && kindOf(cwd) !== "directory") {
    return `The working directory ${JSON.stringify(cwd)} does not exist. Create it, or correct "cwd".`;
  }
  const path = /[/\\]/.test(command) ? (isAbsolute(command) ? command : resolve(cwd ?? ".", command)) : undefined;
  switch (error.code) {
    case "ENOENT":
      if (path === undefined) {
        return `Command not found: ${quoted} is not on the PATH. Install it, or write its full path as "command".`;
      }
      return kindOf(path) === "nothing"
        ? `Command not found: ${quoted} does not exist. Correct "command".`
        : `${quoted} cannot be run: the interpreter named in its first line does not exist.`;
    case "EACCES":
      return path !== undefined && kindOf(path) === "directory"
        ? `${quoted} is a directory. "command" names a program.`
        : `${quoted} may not be executed. Make it executable (chmod +x), or start it by its interpreter.`;
    case "ENOEXEC":
      return `${quoted} is not a program for this machine. A script needs a first line such as "#!/usr/bin/env node".`;
    case "EAGAIN":
    case "ENOMEM":
      return `${quoted} cannot be started: the system has no more processes or memory to give (${error.code}).`;
    case "EMFILE":
    case "ENFILE":
      return `${quoted} cannot be started: too many open files (${error.code}). Raise the limit (ulimit -n).`;
    case "E2BIG":
      return `${quoted} cannot be started: its arguments and environment are too long.`;
    default:
      return `${quoted} cannot be started: ${error.code ?? error.message}.`;
  }
}

function kindOf(path: string): "nothing" | "directory" | "other" {
  try {
    return statSync(path).isDirectory() ? "directory" : "other";
  } catch {
    return "nothing";
  }
}
