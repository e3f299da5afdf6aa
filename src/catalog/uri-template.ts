// Says whether a URI belongs to a template (RFC 6570, levels 1 to 3, and what of level 4 only modifies). That is enough
// to route, and lenient: the server itself judges the values. All states are followed at once and the steps are
// counted: no regular expression, no backtracking.

/** Steps that may still be spent. One step looks at one character in one state. */
export interface StepBudget {
  left: number;
}

/** Templates are lines; a longer one never matches. It also bounds the states that one character can be in. */
const MAX_TEMPLATE = 2048;
/** Longer URIs are found in the lists or not at all. Browsers and servers stop at about this length too. */
const MAX_URI = 8192;

// The steps of a template: a character code, or one of these.
const ONE = -1;
const ONE_NO_SLASH = -2;
const MANY = -3;
const MANY_NO_SLASH = -4;
const MANY_NO_HASH = -5;
/** Goes on with the character and the run behind it, or behind both of them. */
const OPTIONAL = -6;
const OPTIONAL_LENGTH = 3;

export interface UriTemplate {
  /** The texts before the first expression and behind the last: most templates are ruled out by them. */
  readonly head: string;
  readonly tail: string;
  /** What stands between. */
  readonly ops: Int32Array;
}

/** Undefined for what is no template: an open brace without its end, nested braces. */
export function compileTemplate(template: string): UriTemplate | undefined {
  if (template.length > MAX_TEMPLATE) return undefined;
  const ops: number[] = [];
  let head: string | undefined;
  let at = 0;
  for (;;) {
    const open = template.indexOf("{", at);
    const literal = template.slice(at, open < 0 ? template.length : open);
    if (literal.includes("}")) return undefined;
    // Without any expression the whole text is the head.
    if (open < 0) return { head: head ?? literal, tail: head === undefined ? "" : literal, ops: Int32Array.from(ops) };
    if (head === undefined) head = literal;
    else for (let i = 0; i < literal.length; i++) ops.push(literal.charCodeAt(i));
    const close = template.indexOf("}", open);
    const expression = close < 0 ? "" : template.slice(open + 1, close);
    if (expression === "" || expression.includes("{")) return undefined;
    ops.push(...opsOf(expression));
    at = close + 1;
  }
}

function opsOf(expression: string): number[] {
  const operator = expression.charAt(0);
  const code = expression.charCodeAt(0);
  const several = expression.includes(",") || expression.endsWith("*");
  switch (operator) {
    case "+":
      return [ONE, MANY];
    case "#":
      return [OPTIONAL, code, MANY];
    case "/":
      return [OPTIONAL, code, several ? MANY : MANY_NO_SLASH];
    case ".":
    case ";":
      return [OPTIONAL, code, MANY_NO_SLASH];
    case "?":
    case "&":
      // The order of the parameters and their names are the server's business.
      return [OPTIONAL, code, MANY_NO_HASH];
    default:
      return [ONE_NO_SLASH, MANY_NO_SLASH];
  }
}

const SLASH = 0x2f;
const HASH = 0x23;

/** The states that the text so far allows, each once. Kept between calls: matching is never interrupted. */
class States {
  readonly list = new Int32Array(MAX_TEMPLATE + 1);
  size = 0;
  readonly #stamps = new Int32Array(MAX_TEMPLATE + 1);
  #stamp = 0;

  clear(): void {
    this.size = 0;
    this.#stamp = (this.#stamp + 1) | 0;
  }

  has(state: number): boolean {
    return this.#stamps[state] === this.#stamp;
  }

  /** With all states that follow without a character. */
  add(ops: Int32Array, from: number): void {
    let state = from;
    for (;;) {
      if (this.has(state)) return;
      this.#put(state);
      const op = ops[state];
      if (op === undefined || op > MANY) return;
      if (op === OPTIONAL) {
        if (!this.has(state + 1)) this.#put(state + 1);
        state += OPTIONAL_LENGTH;
      } else {
        state++;
      }
    }
  }

  #put(state: number): void {
    this.#stamps[state] = this.#stamp;
    this.list[this.size++] = state;
  }
}

let current = new States();
let next = new States();

/** False too where the budget ends before the answer is known. */
export function matchesTemplate({ head, tail, ops }: UriTemplate, uri: string, budget: StepBudget): boolean {
  budget.left--;
  if (ops.length === 0) return uri === head;
  const end = uri.length - tail.length;
  if (uri.length > MAX_URI || end < head.length || !uri.startsWith(head) || !uri.endsWith(tail)) return false;
  current.clear();
  current.add(ops, 0);
  for (let at = head.length; at < end; at++) {
    budget.left -= current.size;
    if (budget.left < 0 || current.size === 0) return false;
    const code = uri.charCodeAt(at);
    next.clear();
    for (let i = 0; i < current.size; i++) {
      const state = current.list[i] as number;
      const op = ops[state];
      if (op === code || op === ONE || (op === ONE_NO_SLASH && code !== SLASH)) next.add(ops, state + 1);
      else if (op === MANY) next.add(ops, state);
      else if (op === MANY_NO_SLASH && code !== SLASH) next.add(ops, state);
      else if (op === MANY_NO_HASH && code !== HASH) next.add(ops, state);
    }
    [current, next] = [next, current];
  }
  return current.has(ops.length);
}
