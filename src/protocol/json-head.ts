// The beginning of a value's JSON, for who looks at it: no more of it is written than is wanted, and it holds nothing of the
// rest in memory.

/** `value` is one that JSON.parse could have made; members that are undefined are left out, as by JSON.stringify. */
export function jsonHead(value: unknown, maxCharacters: number): readonly [text: string, isCut: boolean] {
  const writer = new HeadWriter(maxCharacters);
  writer.write(value);
  const text = writer.pieces.join("");
  return text.length > maxCharacters ? [copied(text.slice(0, maxCharacters)), true] : [text, false];
}

/** A part of a long text holds all of it. Half a character at its end is left out. */
export function copied(text: string): string {
  return Buffer.from(text)
    .toString()
    .replace(/\uFFFD$/, "");
}

class HeadWriter {
  readonly pieces: string[] = [];
  /** Below zero once there is more than is wanted. */
  #left: number;

  constructor(maxCharacters: number) {
    this.#left = maxCharacters;
  }

  write(value: unknown): void {
    if (this.#left < 0) return;
    if (typeof value === "string") this.#string(value);
    else if (Array.isArray(value)) this.#array(value);
    else if (typeof value === "object" && value !== null) this.#object(value);
    else this.#put(JSON.stringify(value) ?? "null");
  }

  #array(items: readonly unknown[]): void {
    this.#put("[");
    for (const [at, item] of items.entries()) {
      if (this.#left < 0) return;
      if (at > 0) this.#put(",");
      this.write(item);
    }
    this.#put("]");
  }

  #object(members: object): void {
    let isFirst = true;
    this.#put("{");
    for (const key of Object.keys(members)) {
      if (this.#left < 0) return;
      const value: unknown = members[key as keyof typeof members];
      if (value === undefined) continue;
      if (!isFirst) this.#put(",");
      isFirst = false;
      this.#string(key);
      this.#put(":");
      this.write(value);
    }
    this.#put("}");
  }

  /** Of a long one the quote at the end stands beyond what is wanted. */
  #string(text: string): void {
    this.#put(JSON.stringify(text.length > this.#left ? text.slice(0, Math.max(0, this.#left) + 1) : text));
  }

  #put(piece: string): void {
    this.pieces.push(piece);
    this.#left -= piece.length;
  }
}
