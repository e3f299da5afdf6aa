// What is wrong in a config: the form of a mistake, its text, and the error that carries all of them at once.

/** The way to a value: keys and indexes from the root. */
export type KeyPath = readonly (string | number)[];

export interface Mistake {
  /** None for a config that was passed as an object. */
  readonly file: string | undefined;
  /** From 1; none where the whole file is meant. */
  readonly line: number | undefined;
  readonly column: number | undefined;
  /** The key as one would write it, `mcpServers.github.args[0]`; empty for the file itself. */
  readonly key: string;
  readonly message: string;
  readonly hint: string | undefined;
}

/** All mistakes of a config. Its message is what `formatMistakes` prints. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  readonly mistakes: readonly Mistake[];

  constructor(mistakes: readonly Mistake[], options?: { cause?: unknown }) {
    super(formatMistakes(mistakes), options);
    this.mistakes = mistakes;
  }
}

/** One line each: `file:line:column: key: what was expected (hint)`. */
export function formatMistakes(mistakes: readonly Mistake[]): string {
  return mistakes.map(formatMistake).join("\n");
}

export function formatMistake(mistake: Mistake): string {
  const { file, line, column, key, message, hint } = mistake;
  const where = [file ?? "config", line, column].filter((part) => part !== undefined).join(":");
  return `${where}: ${key === "" ? "" : `${key}: `}${message}${hint === undefined ? "" : ` (${hint})`}`;
}

export function keyText(path: KeyPath): string {
  let text = "";
  for (const part of path) {
    if (typeof part === "number") text += `[${part}]`;
    else if (/^[$\w-]+$/.test(part)) text += text === "" ? part : `.${part}`;
    else text += `[${JSON.stringify(part)}]`;
  }
  return text;
}

/** `"a"`, `"a" or "b"`, `"a", "b" or "c"`. */
export function oneOf(values: readonly string[]): string {
  const quoted = values.map((value) => JSON.stringify(value));
  const last = quoted.at(-1) ?? "";
  return quoted.length < 2 ? last : `${quoted.slice(0, -1).join(", ")} or ${last}`;
}
