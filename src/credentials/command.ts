// A token that a program prints: `gh auth token`. Started without a shell, with the user's environment, and only when a
// token is needed.

import { spawn } from "node:child_process";
import type { BearerSource } from "../contracts/server-spec.js";
import type { Fault } from "../protocol/errors.js";
import { ProcessGroup } from "../runtime/processes/group.js";
import type { Reaper } from "../runtime/processes/reaper.js";
import { MARKER_VARIABLE } from "../runtime/processes/reaper-marker.js";
import { REDACTED, redactShapes } from "../runtime/redact/safe-url.js";
import { errorLine } from "../runtime/words/error-lines.js";
import { capital, sentence } from "../runtime/words/sentence.js";
import type { TokenSource } from "./credential.js";
import type { SourceContext } from "./sources.js";
import { checked, MAX_TOKEN_BYTES, noToken } from "./token.js";

/** Programs that ask a key ring answer at once; one that waits for a person is not for here. */
const COMMAND_MS = 10_000;
/** From its end to that of its pipes, where nobody else holds them. */
const AFTER_EXIT_MS = 500;
/** So much of what it says on stderr is kept. */
const MAX_STDERR_CHARS = 4_096;

type CommandSource = Extract<BearerSource, { from: "command" }>;

export function commandSource({ line, ttlMs, cwd }: CommandSource, { env, reaper }: SourceContext): TokenSource {
  // Its arguments may name a secret.
  const name = `the command ${line[0] ?? ""}`;
  let running: ProcessGroup | undefined;
  const onGroup = (group: ProcessGroup | undefined): void => {
    running = group;
  };
  return {
    name,
    remedy: "Log in with it, and see what it prints by itself.",
    keepMs: ttlMs,
    read: () => run(line, { cwd, env, reaper, name, onGroup }),
    stop: () => void running?.kill(),
  };
}

interface Run {
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  readonly reaper: Reaper;
  readonly name: string;
  /** While it runs. One runs at a time. */
  onGroup(group: ProcessGroup | undefined): void;
}

function run(
  [command = "", ...args]: readonly string[],
  { cwd, env, reaper, name, onGroup }: Run,
): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    const marker = reaper.prepare();
    // A group of its own: what it started ends with it, and it with us.
    const child = spawn(command, args, {
      cwd,
      env: { ...ownEnvironment(env), [MARKER_VARIABLE]: marker },
      stdio: ["ignore", "pipe", "pipe"],
      detached: process.platform !== "win32",
    });
    const group = child.pid === undefined ? undefined : new ProcessGroup(child, child.pid, marker, reaper);
    onGroup(group);
    let out = "";
    let err = "";
    let isOver = false;
    const end = (act: () => void): void => {
      if (isOver) return;
      isOver = true;
      clearTimeout(late);
      onGroup(undefined);
      // Whoever is left of it has had its time: the leader is gone, or was too slow or too loud.
      void group?.terminate(0);
      for (const pipe of [child.stdout, child.stderr]) pipe?.destroy();
      act();
    };
    const late = setTimeout(() => {
      end(() => reject(noToken(`${capital(name)} did not end within ${COMMAND_MS / 1000} s.${said(err)}`)));
    }, COMMAND_MS);
    child.on("error", (error: NodeJS.ErrnoException) => {
      const why = error.code === "ENOENT" ? "there is no such program" : error.message;
      end(() => reject(noToken(`${capital(name)} could not be started: ${why}.`)));
    });
    // Without a file descriptor left there are no pipes either, and the error is still to come.
    if (child.pid === undefined) return;
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      if (out.length + text.length <= MAX_TOKEN_BYTES) out += text;
      else {
        const why = `${capital(name)} printed more than ${MAX_TOKEN_BYTES} bytes, and no token is so long.`;
        end(() => reject(noToken(why)));
      }
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      err += text.slice(0, MAX_STDERR_CHARS - err.length);
    });
    const ended = (code: number | null, signal: NodeJS.Signals | null): void =>
      end(() => {
        if (code === 0) resolve(Promise.resolve(out).then((text) => checked(text, `What ${name} printed`)));
        else reject(failed(name, code, signal, err));
      });
    child.on("close", ended);
    // Something that it left behind may hold the pipes open; what it printed itself is here in a moment.
    child.on("exit", (code, signal) => setTimeout(() => ended(code, signal), AFTER_EXIT_MS));
  });
}

function failed(name: string, code: number | null, signal: NodeJS.Signals | null, err: string): Fault {
  const how = code === null ? `was ended by ${signal ?? "a signal"}` : `ended with the code ${code}`;
  return noToken(`${capital(name)} ${how}.${said(err)}`);
}

/** What it complained of, without what looks like a token: nobody knows which of them are. */
function said(err: string): string {
  const line = errorLine(err.split("\n").filter((one) => one.trim() !== ""));
  if (line === undefined) return "";
  const shown = redactShapes(line).replace(TOKEN_LIKE, REDACTED);
  return ` It said: ${sentence(shown)}`;
}

/** A long word with letters and digits that is no path and no address. */
const TOKEN_LIKE = /(?<![\w./:~+=-])(?=[\w.~+=-]*\d)(?=[\w.~+=-]*[A-Za-z])[\w.~+=-]{16,}(?![\w./:~+=-])/g;

/** The user's own, without what is Toolway's: its tokens are for nobody else. */
function ownEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith("TOOLWAY_")));
}
