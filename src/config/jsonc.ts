// The text of a config: reads JSON with comments and trailing commas, and knows at which line and column each key
// stands.

import { type Node, type ParseError, parseTree, printParseErrorCode } from "jsonc-parser";
import type { KeyPath } from "./mistakes.js";

export interface Position {
  readonly line: number;
  readonly column: number;
}

/** Reports what is wrong in the text itself. */
export type OnMistake = (path: KeyPath, offset: number, message: string, hint?: string) => void;

export class Source {
  readonly #text: string;
  readonly #root: Node | undefined;
  readonly #errors: readonly ParseError[];

  constructor(text: string) {
    const errors: ParseError[] = [];
    // A byte order mark is blanked, not cut, so that offsets stay right.
    this.#text = text.startsWith("\uFEFF") ? ` ${text.slice(1)}` : text;
    this.#root = parseTree(this.#text, errors, { allowTrailingComma: true, disallowComments: false });
    this.#errors = errors;
  }

  /** The value of the text; undefined, with the mistake reported, where it is not JSON. */
  read(onMistake: OnMistake): unknown {
    if (this.#text.trim() === "") {
      onMistake([], 0, "the file is empty: expected an object with servers", 'write { "mcpServers": {} }');
      return undefined;
    }
    // The first error only: those after it are mostly its echo.
    const error = this.#errors[0];
    if (error !== undefined) {
      onMistake([], error.offset, `not valid JSON: ${syntaxText(printParseErrorCode(error.error))}`);
      return undefined;
    }
    return this.#root === undefined ? undefined : this.#value(this.#root, [], onMistake);
  }

  /** Where the key of that path stands, or its value; where it is absent, the nearest part above it. */
  locate(path: KeyPath, what: "key" | "value"): Position {
    let node = this.#root;
    let offset = node?.offset ?? 0;
    for (const part of path) {
      const child: Node | undefined = childOf(node, part);
      if (child === undefined) break;
      const value: Node | undefined = child.type === "property" ? child.children?.[1] : child;
      const onKey = what === "key" && part === path.at(-1);
      offset = onKey || value === undefined ? child.offset : value.offset;
      node = value;
    }
    return this.position(offset);
  }

  position(offset: number): Position {
    const before = this.#text.slice(0, offset);
    const lineStart = before.lastIndexOf("\n") + 1;
    return { line: before.split("\n").length, column: offset - lineStart + 1 };
  }

  #value(node: Node, path: KeyPath, onMistake: OnMistake): unknown {
    if (node.type === "array") {
      return (node.children ?? []).map((child, index) => this.#value(child, [...path, index], onMistake));
    }
    if (node.type !== "object") return node.value;
    const result: Record<string, unknown> = {};
    for (const property of node.children ?? []) {
      const [key, value] = property.children ?? [];
      if (key === undefined || value === undefined) continue;
      const name = String(key.value);
      const at = [...path, name];
      if (name === "__proto__") {
        onMistake(at, key.offset, '"__proto__" cannot be used as a key', "choose another name");
      } else if (Object.hasOwn(result, name)) {
        onMistake(at, key.offset, "this key is already there: only one of the two can count", "remove or rename one");
      } else {
        result[name] = this.#value(value, at, onMistake);
      }
    }
    return result;
  }
}

function childOf(node: Node | undefined, part: string | number): Node | undefined {
  if (node?.type === "array" && typeof part === "number") return node.children?.[part];
  if (node?.type !== "object") return undefined;
  return node.children?.find((property) => property.children?.[0]?.value === part);
}

function syntaxText(code: string): string {
  const texts: Record<string, string> = {
    InvalidSymbol: "this is neither a string in double quotes, a number, true, false nor null",
    InvalidNumberFormat: "this is not a number",
    PropertyNameExpected: "expected a key in double quotes",
    ValueExpected: "expected a value",
    ColonExpected: 'expected ":" after the key',
    CommaExpected: 'expected "," before this',
    CloseBraceExpected: 'expected "}"',
    CloseBracketExpected: 'expected "]"',
    EndOfFileExpected: "expected the end of the file here",
    InvalidCommentToken: "this comment is not allowed here",
    UnexpectedEndOfComment: "this comment has no end",
    UnexpectedEndOfString: "this string has no closing quote",
    UnexpectedEndOfNumber: "this number is not complete",
    InvalidUnicode: "\\u must be followed by four hexadecimal digits",
    InvalidEscapeCharacter: "this escape is not known; write \\\\ for a backslash",
    InvalidCharacter: "a control character must be written as an escape",
  };
  return texts[code] ?? code;
}
