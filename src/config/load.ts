// Makes a Config of a file, of its text or of an object, or throws a ConfigError with every mistake found. What the
// keys mean is resolve.ts.

import { accessSync, constants } from "node:fs";
import { homedir } from "node:os";
import { extname, resolve as resolvePath } from "node:path";
import { readTextFile } from "../runtime/text-file.js";
import { isObject } from "../runtime/words/json-object.js";
import type { Config } from "./config.js";
import { Inputs } from "./inputs/inputs.js";
import { Source } from "./jsonc.js";
import { ConfigError, type KeyPath, Report } from "./mistakes.js";
import { absolutePath, baseFolder, expandsBareVariables } from "./paths.js";
import { resolve } from "./resolve.js";
import type { ConfigInput } from "./schema.js";
import { expand } from "./variables.js";

type Environment = Readonly<Record<string, string | undefined>>;

export interface LoadOptions {
  /** Where variables are looked up. Default: the environment of the process. */
  readonly env?: Environment;
  /** What `~` and `${userHome}` mean. */
  readonly home?: string;
  /** What people have answered to inputs, by their ids. It is called when the first input is met. */
  readonly answers?: (() => ReadonlyMap<string, string>) | undefined;
  /**
   * What becomes of a server's entry that is wrong in itself: `throw` makes it a mistake of the config; `keep` leaves
   * it alone in `misconfigured`, so that all other servers can be used. Default: throw.
   */
  readonly wrongEntries?: "throw" | "keep";
  /**
   * A certificate or key that cannot be read is a mistake. Whoever serves reads them itself, and an edit of a config must
   * not fail for a file that is just being renewed. Default: false.
   */
  readonly checksFiles?: boolean;
  /** Is given the text of the file, before it is known whether it can be used. */
  readonly onText?: (text: string) => void;
}

export interface ResolveOptions extends LoadOptions {
  /** Where relative paths start. Default: the folder that the process runs in. */
  readonly dir?: string;
}

export { ConfigError } from "./mistakes.js";
export type { ConfigInput } from "./schema.js";

/** Reads and resolves a file. Relative paths in it are relative to it. */
export function loadConfig(path: string, options: LoadOptions = {}): Config {
  let text: string;
  try {
    text = readTextFile(path);
  } catch (error) {
    throw unreadable(path, error);
  }
  // What Windows' shells write: each of the two bytes at its start is no character.
  if (text.startsWith("\uFFFD\uFFFD")) throw unreadable(path, { code: "UTF16" });
  options.onText?.(text);
  return parseConfig(text, { ...options, path });
}

/** Resolves the text of the file at `path`, which need not exist. */
export function parseConfig(text: string, options: LoadOptions & { readonly path: string }): Config {
  const { path } = options;
  const source = new Source(text);
  const report = new Report(path, source);
  if (/^\.(toml|ya?ml)$/i.test(extname(path))) {
    report.mistake([], "expected a JSON file", {
      hint: "run `toolway import` to bring the servers of another client over",
    });
    report.throwIfFailed();
  }
  const value = source.read((at, offset, message, hint) => report.mistakeAt(at, offset, message, hint));
  if (value === undefined) report.throwIfFailed();
  return finish(value, resolvePath(path), baseFolder(path), report, options);
}

/** Resolves a config that was never a file. */
export function resolveConfig(input: ConfigInput, options: ResolveOptions = {}): Config {
  return finish(input, undefined, resolvePath(options.dir ?? "."), new Report(undefined), options);
}

/**
 * The directory that the key `"state"` of a file's text names, and nothing else of it: it must be known before the
 * config is, and also while another key is wrong. Undefined where it names none that can be made out.
 */
export function stateKeyOf(
  text: string,
  path: string,
  { env, home }: Required<Pick<LoadOptions, "env" | "home">>,
): string | undefined {
  return stateIn(
    new Source(text).read(() => {}),
    baseFolder(path),
    env,
    home,
  );
}

function stateIn(value: unknown, dir: string, env: Environment, home: string): string | undefined {
  const state = isObject(value) ? value["state"] : undefined;
  if (typeof state !== "string" || state === "") return undefined;
  const expanded = expand(state, { env, home, workspaceFolder: dir });
  // What is wrong with it is told when the config is loaded.
  return expanded.problems.length > 0 ? undefined : absolutePath(expanded.value, dir, home);
}

function finish(value: unknown, file: string | undefined, dir: string, report: Report, options: LoadOptions): Config {
  const home = options.home ?? homedir();
  const env = options.env ?? process.env;
  const inputs = new Inputs(isObject(value) ? value["inputs"] : undefined, env, options.answers ?? noAnswers);
  const expandsBare = file !== undefined && expandsBareVariables(file);
  const variables = { env, home, workspaceFolder: dir, expandsBare, inputs };
  const config = resolve(value, { file, dir, variables, report, keepsWrong: options.wrongEntries === "keep" });
  if (options.checksFiles === true && config !== undefined) {
    if (config.tls !== undefined) checkTls(config.tls, ["tls"], report);
    if (config.admin && config.admin.tls !== undefined) checkTls(config.admin.tls, ["admin", "tls"], report);
  }
  report.throwIfFailed();
  if (config === undefined) throw new Error("a config that could not be resolved must have a mistake");
  return { ...config, unanswered: inputs.unanswered };
}

const noAnswers = (): ReadonlyMap<string, string> => new Map();

function checkTls(tls: NonNullable<Config["tls"]>, at: KeyPath, report: Report): void {
  for (const key of ["cert", "key"] as const) {
    try {
      accessSync(tls[key], constants.R_OK);
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code ?? "unknown error";
      const why = code === "ENOENT" ? "it does not exist" : code === "EACCES" ? "this user may not" : code;
      report.mistake([...at, key], `${tls[key]} cannot be read: ${why}`, {
        hint: "the path is relative to the folder of the config; it names a PEM file",
      });
    }
  }
}

function unreadable(path: string, cause: unknown): ConfigError {
  const code = (cause as NodeJS.ErrnoException).code ?? "unknown error";
  const [message, hint] = READ_ERRORS[code] ?? [`cannot be read: ${code}`, undefined];
  const mistake = { file: path, line: undefined, column: undefined, key: "", message, hint };
  return new ConfigError([mistake], { cause });
}

const READ_ERRORS: Readonly<Record<string, readonly [message: string, hint: string]>> = {
  ENOENT: ["there is no such file", "check the path, or run `toolway import` to make a config from your clients'"],
  ENOTDIR: ["there is no such file: a part of the path is not a folder", "check the path"],
  EISDIR: ["this is a folder: expected a file", "name the file in it, for instance mcp.json"],
  EACCES: ["this file may not be read", "give the user that runs Toolway the right to read it: chmod u+r"],
  EPERM: ["this file may not be read", "give the user that runs Toolway the right to read it"],
  EFBIG: ["this file has more than 16 MiB, and no config has", "name the config, or take out what is no part of it"],
  UTF16: ["this file is in UTF-16", "save it as UTF-8"],
  ELOOP: ["this link leads back to itself", "make it point to the file"],
};
