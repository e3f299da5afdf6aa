// How the CLI ends: exit codes, and mistakes of the user apart from faults of ours.

export const Exit = {
  ok: 0,
  /** It was tried and did not work. */
  failure: 1,
  /** A wrong command line or config; nothing was started. */
  usage: 2,
  /** 128 + SIGINT, as shells have it. */
  interrupted: 130,
} as const;

export type ExitCode = (typeof Exit)[keyof typeof Exit];

/** Something the user can put right: one clear message, and what to do next. Printed without a stack. */
export class UserError extends Error {
  override readonly name = "UserError";
  readonly hint: string | undefined;
  readonly exitCode: ExitCode;

  constructor(message: string, options: { hint?: string; exitCode?: ExitCode; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.hint = options.hint;
    this.exitCode = options.exitCode ?? Exit.failure;
  }
}

/** A wrong argument or option. */
export function usageError(message: string, hint?: string): UserError {
  return new UserError(message, { exitCode: Exit.usage, ...(hint === undefined ? {} : { hint }) });
}
