// A small reader of TOML, enough for the files that people have: tables, arrays of tables, dotted and quoted keys,
// all strings, arrays, inline tables. Dates stay text. It reads Codex's config, and tells in which lines what stands;
// nothing here writes TOML.

import { ExpectedError } from "../../runtime/expected-error.js";
import { isObject } from "../../runtime/words/json-object.js";

export type TomlTable = { [key: string]: unknown };

export class TomlError extends ExpectedError {
  override readonly name = "TomlError";
  override readonly kind = "failed";
  readonly line: number;

  constructor(message: string, line: number) {
    super(message);
    this.line = line;
  }
}

/** Hears in which lines, counted from 1, the tables and their pairs stand. */
export interface TomlPlaces {
  /** `[a.b]`, or `[[a.b]]`. The pairs that follow are its own, until the next. */
  table(path: readonly string[], line: number): void;
  /** A pair outside of inline tables; `path` as it is written, below its table. */
  pair(path: readonly string[], firstLine: number, lastLine: number): void;
}

export function parseToml(text: string, places?: TomlPlaces): TomlTable {
  return new Reader(text.replace(/^\uFEFF/, "").replaceAll("\r\n", "\n"), places).document();
}

/** Deeper than any config, shallower than the stack. */
const MAX_DEPTH = 64;

class Reader {
  readonly #text: string;
  readonly #places: TomlPlaces | undefined;
  #at = 0;

  constructor(text: string, places: TomlPlaces | undefined) {
    this.#text = text;
    this.#places = places;
  }

  document(): TomlTable {
    const root = emptyTable();
    let table = root;
    for (;;) {
      this.#skipBlank();
      if (this.#at >= this.#text.length) return root;
      if (this.#take("[[")) {
        const path = this.#dottedKey();
        this.#expect("]]");
        this.#places?.table([...path], this.#line());
        table = this.#appendTable(root, path);
      } else if (this.#take("[")) {
        const path = this.#dottedKey();
        this.#expect("]");
        this.#places?.table(path, this.#line());
        table = this.#tableAt(root, path);
      } else {
        this.#keyValue(table, 0);
      }
      this.#endOfLine();
    }
  }

  #keyValue(table: TomlTable, depth: number): void {
    const path = this.#dottedKey();
    const firstLine = depth === 0 && this.#places !== undefined ? this.#line() : 0;
    this.#expect("=");
    this.#skipSpace();
    const value = this.#value(depth);
    if (depth === 0) this.#places?.pair([...path], firstLine, this.#line());
    const last = path.pop() ?? "";
    const target = this.#tableAt(table, path);
    if (Object.hasOwn(target, last)) this.#fail(`the key ${last} is given twice`);
    target[last] = value;
  }

  #dottedKey(): string[] {
    const path: string[] = [];
    do {
      this.#skipSpace();
      const quote = this.#text[this.#at];
      if (quote === '"' || quote === "'") path.push(this.#string());
      else path.push(this.#match(/[A-Za-z0-9_-]+/y) ?? this.#fail("expected a key"));
      this.#skipSpace();
    } while (this.#take("."));
    return path;
  }

  #value(depth: number): unknown {
    if (depth > MAX_DEPTH) this.#fail("nested too deeply");
    const char = this.#text[this.#at];
    if (char === '"' || char === "'") return this.#string();
    if (char === "[") return this.#array(depth);
    if (char === "{") return this.#inlineTable(depth);
    const word = this.#match(/[^\s,\]}#]+(?: \d{2}:[^\s,\]}#]+)?/y) ?? this.#fail("expected a value");
    if (word === "true" || word === "false") return word === "true";
    const plain = word.replaceAll("_", "");
    if (/^[+-]?(?:\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|inf|nan)$|^0x[0-9A-Fa-f]+$|^0o[0-7]+$|^0b[01]+$/.test(plain)) {
      return Number(plain.replace("inf", "Infinity").replace("nan", "NaN"));
    }
    return /^\d{2,4}[-:]/.test(word) ? word : this.#fail("expected a value");
  }

  #array(depth: number): unknown[] {
    this.#expect("[");
    const items: unknown[] = [];
    for (;;) {
      this.#skipBlank();
      if (this.#take("]")) return items;
      items.push(this.#value(depth + 1));
      this.#skipBlank();
      if (!this.#take(",")) {
        this.#expect("]");
        return items;
      }
    }
  }

  #inlineTable(depth: number): TomlTable {
    this.#expect("{");
    const table = emptyTable();
    for (;;) {
      this.#skipBlank();
      if (this.#take("}")) return table;
      this.#keyValue(table, depth + 1);
      this.#skipBlank();
      if (!this.#take(",")) {
        this.#expect("}");
        return table;
      }
    }
  }

  #string(): string {
    if (this.#take("'''")) return this.#until("'''").replace(/^\n/, "");
    if (this.#take('"""')) {
      const body = this.#match(/(?:\\[\s\S]|"{1,2}(?!")|[^"\\])*(?=""")/y) ?? this.#fail("a string has no end");
      this.#expect('"""');
      return this.#unescape(body.replace(/^\n/, "").replace(/\\[ \t]*\n\s*/g, ""));
    }
    if (this.#take("'")) {
      const body = this.#match(/[^'\n]*/y) ?? "";
      this.#expect("'");
      return body;
    }
    this.#expect('"');
    const body = this.#match(/(?:\\[^\n]|[^"\\\n])*/y) ?? "";
    this.#expect('"');
    return this.#unescape(body);
  }

  #unescape(body: string): string {
    const simple: Record<string, string> = { b: "\b", t: "\t", n: "\n", f: "\f", r: "\r", e: "\x1b" };
    return body.replace(/\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([\s\S]))/g, (_, short, long, char) => {
      const code = Number.parseInt(short ?? long ?? "0", 16);
      if (code > 0x10ffff) this.#fail("a character beyond Unicode");
      return char === undefined ? String.fromCodePoint(code) : (simple[char] ?? char);
    });
  }

  #tableAt(from: TomlTable, path: readonly string[]): TomlTable {
    let table = from;
    for (const key of path) {
      const next = Object.hasOwn(table, key) ? table[key] : undefined;
      const inner = Array.isArray(next) ? next.at(-1) : next;
      if (inner === undefined) {
        const made = emptyTable();
        table[key] = made;
        table = made;
      } else if (isObject(inner)) {
        table = inner;
      } else {
        this.#fail(`${key} is not a table`);
      }
    }
    return table;
  }

  #appendTable(root: TomlTable, path: string[]): TomlTable {
    const last = path.pop() ?? "";
    const parent = this.#tableAt(root, path);
    const list = Object.hasOwn(parent, last) ? parent[last] : [];
    if (!Array.isArray(list)) return this.#fail(`${last} is not a list of tables`);
    const made = emptyTable();
    list.push(made);
    parent[last] = list;
    return made;
  }

  #until(end: string): string {
    const close = this.#text.indexOf(end, this.#at);
    if (close < 0) this.#fail("a string has no end");
    const body = this.#text.slice(this.#at, close);
    this.#at = close + end.length;
    return body;
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0];
    if (found !== undefined) this.#at += found.length;
    return found;
  }

  #take(token: string): boolean {
    if (!this.#text.startsWith(token, this.#at)) return false;
    this.#at += token.length;
    return true;
  }

  #expect(token: string): void {
    this.#skipSpace();
    if (!this.#take(token)) this.#fail(`expected ${token}`);
  }

  #skipSpace(): void {
    this.#match(/[ \t]+/y);
  }

  #skipBlank(): void {
    this.#match(/(?:[ \t\n]|#[^\n]*)+/y);
  }

  #endOfLine(): void {
    this.#match(/[ \t]*(?:#[^\n]*)?/y);
    if (this.#at < this.#text.length && this.#text[this.#at] !== "\n") this.#fail("expected the end of the line");
  }

  #fail(message: string): never {
    throw new TomlError(message, this.#line());
  }

  #line(): number {
    return this.#text.slice(0, this.#at).split("\n").length;
  }
}

function emptyTable(): TomlTable {
  return Object.create(null);
}
