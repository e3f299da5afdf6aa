// A token that a program prints: `gh auth token`. Started without a shell, with the user's environment, and only when a
// token is needed.

import { spawn } from "node:child_process";
import type { BearerSource } from "../contracts/server-spec.js";
import type { Fault } from "../protocol/errors.js";
import { sentence } from "../runtime/expected-error.js";
import { redactShapes } from "../runtime/redact/safe-url.js";
import { errorLine } from "../runtime/words/error-lines.js";
import type { TokenSource } from "./credential.js";
import { checked, MAX_TOKEN_BYTES, noToken } from "./token.js";

/** Programs that ask a key ring answer at once; one that waits for a person is not for here. */
const COMMAND_MS = 10_000;
/** So much of what it says on stderr is kept. */
const MAX_STDERR_CHARS = 4_096;

type CommandSource = Extract<BearerSource, { from: "command" }>;

export function commandSource({ line, ttlMs, cwd }: CommandSource, env: NodeJS.ProcessEnv): TokenSource {
  // Its arguments may name a secret.
  const name = `the command ${line[0] ?? ""}`;
  return { name, keepMs: ttlMs, read: () => run(line, cwd, env, name) };
}

function run(
  [command = "", ...args]: readonly string[],
  cwd: string,
  env: NodeJS.ProcessEnv,
  name: string,
): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd, env: ownEnvironment(env), stdio: ["ignore", "pipe", "pipe"] });
    let out = "";
    let err = "";
    let isTooLong = false;
    const late = setTimeout(() => {
      child.kill("SIGKILL");
      reject(noToken(`${capital(name)} did not end within ${COMMAND_MS / 1000} s.${said(err)}`));
    }, COMMAND_MS);
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      isTooLong ||= out.length + text.length > MAX_TOKEN_BYTES;
      if (isTooLong) child.kill("SIGKILL");
      else out += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      err += text.slice(0, MAX_STDERR_CHARS - err.length);
    });
    child.on("error", (error: NodeJS.ErrnoException) => {
      clearTimeout(late);
      const why = error.code === "ENOENT" ? "there is no such program" : error.message;
      reject(noToken(`${capital(name)} could not be started: ${why}.`));
    });
    child.on("close", (code, signal) => {
      clearTimeout(late);
      if (isTooLong) {
        reject(noToken(`${capital(name)} printed more than ${MAX_TOKEN_BYTES} bytes, and no token is so long.`));
      } else if (code === 0) resolve(Promise.resolve(out).then((text) => checked(text, `What ${name} printed`)));
      else reject(failed(name, code, signal, err));
    });
  });
}

function failed(name: string, code: number | null, signal: NodeJS.Signals | null, err: string): Fault {
  const how = code === null ? `was ended by ${signal ?? "a signal"}` : `ended with the code ${code}`;
  return noToken(`${capital(name)} ${how}.${said(err)}`);
}

/** What it complained of, without what looks like a token. */
function said(err: string): string {
  const line = errorLine(err.split("\n").filter((one) => one.trim() !== ""));
  return line === undefined ? "" : ` It said: ${sentence(redactShapes(line))}`;
}

/** The user's own, without what is Toolway's: its tokens are for nobody else. */
function ownEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith("TOOLWAY_")));
}

function capital(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1);
}
