// Starts a server's process, and says in plain words what to do when it cannot be started.

import { type ChildProcess, spawn } from "node:child_process";
import { statSync } from "node:fs";
import type { Socket } from "node:net";
import { isAbsolute, resolve } from "node:path";
import type { Readable, Writable } from "node:stream";
import type { StdioTarget } from "../../contracts/server-spec.js";
import { Fault, type FaultReason } from "../../protocol/errors.js";

const CORRECT_CWD = 'Create it, or correct "cwd".';

/** A server's process; its stdout is null where it was given a socket. */
export interface ServerProcess extends ChildProcess {
  readonly stdin: Writable;
  readonly stderr: Readable;
}

/**
 * Resolves when the program runs; rejects with a Fault `unavailable`. `onChild` gets the process at once. Without a
 * `stdout` it writes to a pipe of its own.
 */
export function spawnServer(
  target: StdioTarget,
  env: Record<string, string>,
  stdout: Socket | undefined,
  onChild: (child: ServerProcess) => void,
): Promise<void> {
  return new Promise((done, failed) => {
    let child: ServerProcess;
    try {
      child = spawn(target.command, target.args, {
        cwd: target.cwd,
        env,
        shell: false,
        stdio: ["pipe", stdout ?? "pipe", "pipe"],
        // It gets its own session and group, so that all it starts can be signalled together. On Windows there are no
        // groups, and this would open a console window.
        detached: process.platform !== "win32",
        windowsHide: true,
      }) as ServerProcess;
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

function explain({ command, cwd }: StdioTarget, error: NodeJS.ErrnoException): Fault {
  const quoted = JSON.stringify(command);
  // The cause is left out: that error carries the arguments, and they may hold secrets.
  const made = (reason: FaultReason, what: string, remedy?: string) =>
    new Fault("unavailable", what, { reason, remedy });
  // The system reports a missing directory as if the program were missing.
  if (cwd !== undefined && kindOf(cwd) !== "directory") {
    const what = kindOf(cwd) === "nothing" ? "does not exist" : "is no directory";
    return made("cwd-missing", `The working directory ${JSON.stringify(cwd)} ${what}.`, CORRECT_CWD);
  }
  const path = /[/\\]/.test(command) ? (isAbsolute(command) ? command : resolve(cwd ?? ".", command)) : undefined;
  switch (error.code) {
    case "ENOENT":
      if (isLine(command, cwd)) {
        const [program = ""] = command.trim().split(/\s/);
        const remedy = `Write "command": ${JSON.stringify(program)}, and each word after it into "args": no shell reads them.`;
        return made("command-line", `Command not found: ${quoted} is a whole line.`, remedy);
      }
      if (path === undefined) {
        const remedy = 'Install it, or write its full path as "command".';
        return made("command-unknown", `Command not found: ${quoted} is not on the PATH.`, remedy);
      }
      return kindOf(path) === "nothing"
        ? made("command-missing", `Command not found: ${quoted} does not exist.`, 'Correct "command".')
        : made(
            "not-a-program",
            `${quoted} cannot be run: the interpreter named in its first line does not exist.`,
            'Install that interpreter, or name one that is there as "command", with the script in "args".',
          );
    case "EACCES":
      return path !== undefined && kindOf(path) === "directory"
        ? made("not-a-program", `${quoted} is a directory.`, 'Name the program itself as "command".')
        : made(
            "not-executable",
            `${quoted} may not be executed.`,
            'Make it executable (chmod +x), or name its interpreter as "command", with the file in "args".',
          );
    case "ENOEXEC": {
      const remedy = 'A script needs a first line such as "#!/usr/bin/env node".';
      return made("not-a-program", `${quoted} is not a program for this machine.`, remedy);
    }
    case "EAGAIN":
    case "ENOMEM": {
      const what = `${quoted} cannot be started: the system has no more processes or memory to give (${error.code}).`;
      return made("no-resources", what, "End what is not needed, or raise the limits (ulimit -u).");
    }
    case "EMFILE":
    case "ENFILE": {
      const what = `${quoted} cannot be started: too many open files (${error.code}).`;
      return made("no-resources", what, "Raise the limit (ulimit -n).");
    }
    case "E2BIG": {
      const what = `${quoted} cannot be started: its arguments and environment are too long.`;
      return made("no-resources", what, 'Shorten "args" and "env".');
    }
    default:
      return new Fault("unavailable", `${quoted} cannot be started: ${error.code ?? error.message}.`);
  }
}

/** Other clients take a whole line. A path may have spaces, too: then what stands before the first is no program. */
function isLine(command: string, cwd: string | undefined): boolean {
  const [program = "", ...more] = command.trim().split(/\s+/);
  if (more.length === 0) return false;
  return !/[/\\]/.test(program) || kindOf(resolve(cwd ?? ".", program)) === "other";
}

function kindOf(path: string): "nothing" | "directory" | "other" {
  try {
    return statSync(path).isDirectory() ? "directory" : "other";
  } catch {
    return "nothing";
  }
}
