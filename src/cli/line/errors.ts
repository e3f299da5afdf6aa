// How the CLI ends: its exit codes, and what its verbs throw when the user can put something right.

import { ExpectedError, type ExpectedKind } from "../../runtime/expected-error.js";

export const Exit = {
  ok: 0,
  /** It was tried and did not work, or something was found to be wrong. */
  failure: 1,
  /** The command line or the config is wrong, or names what there is not; nothing was started or changed. */
  usage: 2,
  /** 128 + SIGINT, as shells have it. */
  interrupted: 130,
} as const;

declare const passedOn: unique symbol;

/** What another program ended with, where that is the answer: the agent of `toolway run`. */
export type PassedExit = number & { readonly [passedOn]: true };

export type ExitCode = (typeof Exit)[keyof typeof Exit] | PassedExit;

/** Something the user can put right: one clear message, and what to do next. Printed without a stack. */
export class UserError extends ExpectedError {
  override readonly name = "UserError";
  override readonly kind: ExpectedKind;
  readonly hint: string | undefined;

  constructor(message: string, options: { hint?: string; kind?: ExpectedKind; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.kind = options.kind ?? "failed";
    this.hint = options.hint;
  }
}

/** A wrong argument or option. */
export function usageError(message: string, hint?: string): UserError {
  return new UserError(message, { kind: "usage", ...(hint === undefined ? {} : { hint }) });
}

/** What the system says of a path, in words. */
export const FILE_TROUBLE: Readonly<Record<string, string>> = {
  EACCES: "permission denied",
  EPERM: "permission denied",
  EROFS: "the file system is read-only",
  ENOSPC: "the disk is full",
  EDQUOT: "the disk quota is used up",
  ENOENT: "it does not exist",
  EEXIST: "a file is in the way",
  ENOTDIR: "a part of the path is a file",
  EISDIR: "it is a folder",
  ENAMETOOLONG: "the path is too long",
};

/** Why a file could not be read or written, in words where there are some. */
export function fileTrouble(error: unknown): string {
  const code = (error as NodeJS.ErrnoException).code ?? "unknown error";
  return FILE_TROUBLE[code] ?? code;
}
