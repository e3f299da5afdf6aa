// What an operator is shown of the config that runs: its text without keys, and what is wrong at which line. It is loaded when
// somebody asks.

import { maskedText, shownText } from "../../config/edit/shown-text.js";
import type { ConfigRemark, ConfigTextAnswer } from "../../contracts/control/config.js";

/** So many lines before and after a mistake. */
const LINES_AROUND = 2;

/** What a config in use knows of its texts. */
export interface ConfigTexts {
  readonly path: string | undefined;
  /** As it was read when it was taken on. */
  readonly text: string | undefined;
  /** Of the file that could not be applied. */
  readonly editText: string | undefined;
  readonly error: string | undefined;
  /** Each with its place before it, `file:line:column: …`, where it has one. */
  readonly remarks: readonly string[];
}

export function configAnswer({ path, text, editText, error, remarks }: ConfigTexts): ConfigTextAnswer {
  return {
    path,
    text: text === undefined ? undefined : shownText(text),
    remarks: remarks.flatMap((one) => one.split("\n")).map((line) => remarkIn(line, path)),
    edit: error === undefined ? undefined : editAnswer(editText, error, path),
  };
}

function editAnswer(
  text: string | undefined,
  error: string,
  path: string | undefined,
): NonNullable<ConfigTextAnswer["edit"]> {
  const mistakes = error.split("\n").map((line) => remarkIn(line, path));
  if (text === undefined) return { mistakes, lines: [], isMasked: false };
  const whole = shownText(text);
  const around = new Set(
    mistakes.flatMap(({ line }) =>
      line === undefined ? [] : Array.from({ length: 2 * LINES_AROUND + 1 }, (_, i) => line - LINES_AROUND + i),
    ),
  );
  const lines = (whole ?? maskedText(text))
    .split("\n")
    .flatMap((shown, i) => (around.has(i + 1) ? [{ line: i + 1, text: shown }] : []));
  return { mistakes, lines, isMasked: whole === undefined };
}

/** `file:line:column: what` of this file is told by its line. */
function remarkIn(text: string, path: string | undefined): ConfigRemark {
  const [, line, rest] =
    path !== undefined && text.startsWith(`${path}:`) ? (PLACE.exec(text.slice(path.length)) ?? []) : [];
  return line === undefined || rest === undefined ? { line: undefined, text } : { line: Number(line), text: rest };
}

const PLACE = /^:(\d{1,9}):\d+: (.*)$/s;
