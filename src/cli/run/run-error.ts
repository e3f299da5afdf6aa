// Why a run was not begun, for the user to put right. The verb makes the CLI's own error of it: what that is made of is
// not loaded from here, so that a start has no file more to open.

export class RunError extends Error {
  override readonly name = "RunError";
  readonly hint: string | undefined;
  readonly isUsage: boolean;

  constructor(message: string, { hint, isUsage = false }: { hint?: string | undefined; isUsage?: boolean } = {}) {
    super(message);
    this.hint = hint;
    this.isUsage = isUsage;
  }
}
