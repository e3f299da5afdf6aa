// Does a URI belong to a template (RFC 6570, levels 1 to 3, and what of level 4 only modifies)? Enough to route,
// and lenient: the server itself judges the values. Linear in each of URI and template, and counted: no regular
// expression, no backtracking.

/** Steps that may still be spent. One step looks at one character in one state. */
export interface Budget {
  left: number;
}

/** Templates are lines; a longer one never matches. It also bounds the states that one character can be in. */
const MAX_TEMPLATE = 2048;
/** Longer URIs are found in the lists or not at all. Browsers and servers stop at about this length too. */
const MAX_URI = 8192;

/** Which characters a variable may stand for. */
const ANY = 0;
const NO_SLASH = 1;
const NO_HASH = 2;
type CharClass = typeof ANY | typeof NO_SLASH | typeof NO_HASH;

type Atom =
  | { readonly kind: "char"; readonly code: number }
  | { readonly kind: "one"; readonly of: CharClass }
  | { readonly kind: "many"; readonly of: CharClass }
  /** Goes on behind itself or at `to`. */
  | { readonly kind: "either"; readonly to: number };

export interface UriTemplate {
  /** The text before the first expression: most templates are ruled out by it. */
  readonly head: string;
  readonly atoms: readonly Atom[];
}

/** Undefined for what is no template: an open brace without its end, nested braces. */
export function compileTemplate(template: string): UriTemplate | undefined {
  if (template.length > MAX_TEMPLATE) return undefined;
  const atoms: Atom[] = [];
  let head: string | undefined;
  let at = 0;
  while (at < template.length) {
    const open = template.indexOf("{", at);
    const literal = template.slice(at, open < 0 ? template.length : open);
    if (literal.includes("}")) return undefined;
    if (head === undefined) head = literal;
    else for (let i = 0; i < literal.length; i++) atoms.push({ kind: "char", code: literal.charCodeAt(i) });
    if (open < 0) break;
    const close = template.indexOf("}", open);
    const expression = close < 0 ? "" : template.slice(open + 1, close);
    if (expression === "" || expression.includes("{")) return undefined;
    pushExpression(atoms, expression);
    at = close + 1;
  }
  return { head: head ?? "", atoms };
}

function pushExpression(atoms: Atom[], expression: string): void {
  const operator = expression[0] ?? "";
  const several = expression.includes(",") || expression.endsWith("*");
  switch (operator) {
    case "+":
      atoms.push({ kind: "one", of: ANY }, { kind: "many", of: ANY });
      return;
    case "#":
      pushOptional(atoms, "#", ANY);
      return;
    case "/":
      pushOptional(atoms, "/", several ? ANY : NO_SLASH);
      return;
    case ".":
    case ";":
      pushOptional(atoms, operator, NO_SLASH);
      return;
    case "?":
    case "&":
      // The order of the parameters and their names are the server's business.
      pushOptional(atoms, operator, NO_HASH);
      return;
    default:
      atoms.push({ kind: "one", of: NO_SLASH }, { kind: "many", of: NO_SLASH });
  }
}

/** Nothing, or `first` and a run: what an expression with undefined or defined variables becomes. */
function pushOptional(atoms: Atom[], first: string, of: CharClass): void {
  atoms.push({ kind: "either", to: atoms.length + 3 });
  atoms.push({ kind: "char", code: first.charCodeAt(0) }, { kind: "many", of });
}

const SLASH = 0x2f;
const HASH = 0x23;

function fits(of: CharClass, code: number): boolean {
  return of === ANY || (of === NO_SLASH ? code !== SLASH : code !== HASH);
}

/** False too where the budget ends before the answer is known. */
export function matchesTemplate(template: UriTemplate, uri: string, budget: Budget): boolean {
  budget.left--;
  if (uri.length > MAX_URI || !uri.startsWith(template.head)) return false;
  const { atoms } = template;
  // All states that the text so far allows, each once.
  let current: number[] = [];
  let next: number[] = [];
  const seenAt = new Int32Array(atoms.length + 1).fill(-1);
  const add = (states: number[], from: number, position: number): void => {
    for (let state = from; ; ) {
      if (seenAt[state] === position) return;
      seenAt[state] = position;
      states.push(state);
      const atom = atoms[state];
      if (atom?.kind === "either") add(states, atom.to, position);
      if (atom?.kind !== "either" && atom?.kind !== "many") return;
      state++;
    }
  };
  budget.left -= atoms.length;
  add(current, 0, template.head.length);
  for (let position = template.head.length; position < uri.length; position++) {
    const code = uri.charCodeAt(position);
    budget.left -= current.length;
    if (budget.left < 0 || current.length === 0) return false;
    next.length = 0;
    for (const state of current) {
      const atom = atoms[state];
      if (atom === undefined || atom.kind === "either") continue;
      if (atom.kind === "char") {
        if (atom.code === code) add(next, state + 1, position + 1);
      } else if (fits(atom.of, code)) {
        add(next, atom.kind === "many" ? state : state + 1, position + 1);
      }
    }
    [current, next] = [next, current];
  }
  return seenAt[atoms.length] === uri.length;
}
