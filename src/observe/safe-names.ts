// Names of tools as they may be written down: without the secrets of their servers' entries, and not longer than they need
// to be. A name that was looked at is remembered.

/** A text of this server's, or of any where that is not known, without the secrets of their entries. */
export type RedactName = (server: string | undefined, name: string) => string;

/** So much of a name is looked at for secrets: an agent may ask for one that is as long as it likes. */
export const MAX_NAME_READ = 4_096;
/** Names and ids are as long as an agent likes; real ones are far shorter. What is kept of calls, and shown of them, is cut here. */
export const MAX_NAME_CHARACTERS = 128;
/** So many names are remembered without their secrets; servers have tens of tools, and all of these share a few bytes. */
const MAX_SAFE_NAMES = 4_096;

export class SafeNames {
  readonly #redact: RedactName;
  readonly #maxCharacters: number;
  /** By server and by the tool's own name. */
  readonly #known = new Map<string, Map<string, string>>();
  #count = 0;

  constructor(redact: RedactName, maxCharacters: number) {
    this.#redact = redact;
    this.#maxCharacters = maxCharacters;
  }

  /** A server may name a tool like a secret of its entry. It is redacted before it is cut: half of one is not found. */
  of(server: string | undefined, tool: string): string {
    // What agents make up is looked at each time.
    if (server === undefined) return this.#made(undefined, tool);
    let names = this.#known.get(server);
    let safe = names?.get(tool);
    if (safe !== undefined) return safe;
    safe = this.#made(server, tool);
    if (this.#count >= MAX_SAFE_NAMES) {
      this.forget();
      names = undefined;
    }
    if (names === undefined) {
      names = new Map();
      this.#known.set(server, names);
    }
    names.set(tool, safe);
    this.#count++;
    return safe;
  }

  /** To be called with every config: secrets may be others. */
  forget(): void {
    this.#known.clear();
    this.#count = 0;
  }

  #made(server: string | undefined, tool: string): string {
    return cutName(this.#redact(server, tool.slice(0, MAX_NAME_READ)), this.#maxCharacters);
  }
}

export function cutName(name: string, maxCharacters: number = MAX_NAME_CHARACTERS): string {
  return name.length > maxCharacters ? `${name.slice(0, maxCharacters)}…` : name;
}
