// The beginning of a value's JSON: what is behind it is not written, however long it is, since megabytes would take a turn.

/** As `JSON.stringify(value).slice(0, characters)`, of a value that came as JSON. Its depth is bounded where it was read. */
export function jsonStart(value: unknown, characters: number): string {
  return new Start(characters).of(value);
}

class Start {
  readonly #characters: number;
  #text = "";

  constructor(characters: number) {
    this.#characters = characters;
  }

  of(value: unknown): string {
    this.#write(value);
    return this.#text.slice(0, this.#characters);
  }

  get #room(): number {
    return this.#characters - this.#text.length;
  }

  #write(value: unknown): void {
    if (Array.isArray(value)) this.#writeArray(value);
    else if (typeof value === "object" && value !== null) this.#writeObject(value);
    // With its quote a cut string is one longer than the room: where half of a pair was left, its escape is behind the end.
    else this.#text += JSON.stringify(typeof value === "string" ? value.slice(0, this.#room) : value);
  }

  #writeArray(values: readonly unknown[]): void {
    this.#text += "[";
    for (let i = 0; i < values.length && this.#room > 0; i++) {
      if (i > 0) this.#text += ",";
      this.#write(values[i]);
    }
    this.#text += "]";
  }

  #writeObject(value: object): void {
    let before = "{";
    for (const key in value) {
      if (this.#room <= 0) return;
      this.#text += before;
      before = ",";
      this.#write(key);
      this.#text += ":";
      this.#write((value as Record<string, unknown>)[key]);
    }
    this.#text += before === "{" ? "{}" : "}";
  }
}
