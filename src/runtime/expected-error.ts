// The base of all errors that are expected: a mistake of the user, a refusal, a server or a disk that fails. Their
// message is made for people and says what to do. Whatever else is thrown is a fault of ours.

/** What an expected error means for the process that it ends. */
export type ExpectedKind =
  /** The command line is wrong, or names what there is not; nothing was started or changed. */
  | "usage"
  /** The config is wrong; nothing was started. The message has a line for each mistake, which begins with its place. */
  | "config"
  /** It was tried, and was refused or failed. */
  | "failed"
  /** The one who asked for it took it back. */
  | "cancelled";

/** What anything that was thrown says. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The same, with the place where it was thrown. */
export function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

/** Codes of what stood in the command line or the environment: what cannot be used, and names that there are not. */
const MISTAKEN = new Set(["invalid", "not-found", "weak"]);

/** What an error that carries a code means for the process that it ends: one rule for all that have codes. */
export function kindOfCode(code: string): ExpectedKind {
  if (code === "cancelled") return "cancelled";
  return MISTAKEN.has(code) ? "usage" : "failed";
}

export abstract class ExpectedError extends Error {
  abstract readonly kind: ExpectedKind;
}

/** One that carries a code of a closed set, which says what it means. */
export abstract class CodedError<Code extends string> extends ExpectedError {
  readonly code: Code;

  constructor(code: Code, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }

  override get kind(): ExpectedKind {
    return kindOfCode(this.code);
  }
}
