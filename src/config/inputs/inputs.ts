// VS Code's inputs: what `${input:id}` in a config stands for. An editor asks a person; here it is a variable, an answer
// that was given once, or the input's own default. Nothing asks here: `toolway doctor` does, and keeps the answer.

/** One of `inputs` in a file, or one that is used and not declared. */
export interface Input {
  readonly id: string;
  /** The environment variable that answers it. */
  readonly variable: string;
  /** What the person is asked. */
  readonly description: string | undefined;
  readonly isPassword: boolean;
  /** What stands for it where nobody has answered. A password's is not used. */
  readonly fallback: string | undefined;
  /** The answers that are possible; empty where any is. */
  readonly options: readonly string[];
}

export interface FoundInput {
  readonly value: string;
  /** It came from outside of the config, where people keep secrets. */
  readonly isOutside: boolean;
  /** Nobody sees it while it is typed, or nothing is known of it. */
  readonly isPassword: boolean;
}

/** The environment variable that answers an input. */
export function inputVariable(id: string): string {
  return `INPUT_${id.replace(/[^A-Za-z0-9]+/g, "_").toUpperCase()}`;
}

export class Inputs {
  readonly #declared: ReadonlyMap<string, Input>;
  readonly #env: Readonly<Record<string, string | undefined>>;
  readonly #readAnswers: () => ReadonlyMap<string, string>;
  #answers: ReadonlyMap<string, string> | undefined;
  readonly #unanswered = new Map<string, Input>();

  /** `declared` is what the file has under `inputs`; `answers` is called when the first input is looked up. */
  constructor(
    declared: unknown,
    env: Readonly<Record<string, string | undefined>>,
    answers: () => ReadonlyMap<string, string>,
  ) {
    this.#declared = readInputs(declared);
    this.#env = env;
    this.#readAnswers = answers;
  }

  /** Undefined where nobody has answered; it is remembered in `unanswered` then. */
  find(id: string): FoundInput | undefined {
    this.#answers ??= this.#readAnswers();
    const answer = this.#env[inputVariable(id)] ?? this.#answers.get(id);
    const input = this.#declared.get(id) ?? UNDECLARED(id);
    const { fallback, isPassword } = input;
    if (answer !== undefined) return { value: answer, isOutside: true, isPassword };
    if (fallback !== undefined && !isPassword) return { value: fallback, isOutside: false, isPassword };
    this.#unanswered.set(id, input);
    return undefined;
  }

  /** Those that were looked up in vain, in the order in which that was. */
  get unanswered(): readonly Input[] {
    return [...this.#unanswered.values()];
  }
}

/** Nothing is known of it, so it may be a secret. */
const UNDECLARED = (id: string): Input => ({
  id,
  variable: inputVariable(id),
  description: undefined,
  isPassword: true,
  fallback: undefined,
  options: [],
});

/** What cannot be read is passed over: an input that is used and not declared is asked for all the same. */
function readInputs(declared: unknown): Map<string, Input> {
  const inputs = new Map<string, Input>();
  for (const one of Array.isArray(declared) ? declared : []) {
    if (typeof one !== "object" || one === null) continue;
    const { id, description, password, default: fallback, options } = one as Record<string, unknown>;
    if (typeof id !== "string" || inputs.has(id)) continue;
    inputs.set(id, {
      id,
      variable: inputVariable(id),
      description: textOrNone(description),
      isPassword: password === true,
      fallback: textOrNone(fallback),
      options: (Array.isArray(options) ? options : []).flatMap(optionValue),
    });
  }
  return inputs;
}

/** An option is a text, or a label with a value. */
function optionValue(option: unknown): string[] {
  const value = typeof option === "object" && option !== null ? (option as { value?: unknown }).value : option;
  return typeof value === "string" ? [value] : [];
}

function textOrNone(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
