// What two servers claim, in sentences: those of one cause are one sentence, so that a server that is there twice is
// told of once and not with each of its tools.

/** More names than this help nobody: who wants all has the servers' own lists. */
const MAX_NAMED = 5;

/** Names or URIs of one server that another has before it. */
interface Claim {
  /** Claims of the same cause are told together. */
  readonly cause: string;
  readonly name: string;
  /** What is said where it is the only one of its cause. */
  readonly alone: string;
  /** What is said of several: their names come in its place. */
  readonly together: (names: string, count: number) => string;
}

export class Conflicts {
  readonly #said: (string | Claim[])[] = [];
  readonly #byCause = new Map<string, Claim[]>();

  add(text: string): void {
    this.#said.push(text);
  }

  claim(claim: Claim): void {
    const known = this.#byCause.get(claim.cause);
    if (known !== undefined) {
      known.push(claim);
      return;
    }
    const claims = [claim];
    this.#byCause.set(claim.cause, claims);
    this.#said.push(claims);
  }

  /** In the order in which each cause was first met. */
  get texts(): string[] {
    return this.#said.map((said) => (typeof said === "string" ? said : textOf(said)));
  }
}

function textOf(claims: readonly Claim[]): string {
  const [first] = claims;
  if (first === undefined) return "";
  if (claims.length === 1) return first.alone;
  const named = claims.slice(0, MAX_NAMED).map(({ name }) => name);
  const rest = claims.length - named.length;
  return first.together(named.join(", ") + (rest === 0 ? "" : ` and ${rest} more`), claims.length);
}
