// What does not change of a write, as it is in memory: a hundred thousand may wait, so that what many of them have in common
// (whose they are, where they go, on which terms) is one object for all of these.

import type { OwnToolName } from "../../contracts/names.js";
import type { OutboxTerms } from "../../contracts/outbox.js";
import type { Era } from "../../protocol/modern.js";
import type { WriteFacts } from "./write.js";

/** What is common is looked for among so many: lanes by an argument may be endless. Beyond it, some is twice in memory. */
const MAX_COMMON = 4_096;

type Common = Pick<
  WriteFacts,
  "server" | "tool" | "principal" | "byToken" | "lane" | "terms" | "era" | "version" | "target"
>;

/** Ids and hashes are random bytes written as base64url: in memory they are the bytes, one character each, in one text. */
const PLACES = { id: [0, 16], key: [16, 32], keyHash: [32, 64], argumentsHash: [64, 96] } as const;
const PACKED_BYTES = 96;
/** Where they are put together, and read again; only what is being put in counts. */
const scratch = Buffer.alloc(PACKED_BYTES);

type Word = keyof typeof PLACES;
/** Those that are no such bytes, as they are: an agent's own key, an id with a name in front. */
type Words = { readonly [name in Word | "sentKey"]?: string | undefined };

class KeptFacts implements WriteFacts {
  readonly takenMs: number;
  readonly bytes: number;
  readonly #packed: string;
  readonly #words: Words | undefined;
  /** The server's key is the hash of the key, as it is wherever the agent does not name it in an argument. */
  readonly #isHashSent: boolean;
  readonly #common: Common;

  constructor(facts: WriteFacts, common: Common) {
    this.takenMs = facts.takenMs;
    this.bytes = facts.bytes;
    this.#common = common;
    let words: { -readonly [name in keyof Words]: Words[name] } | undefined;
    for (const name of WORDS) {
      const [from, to] = PLACES[name];
      const text = facts[name];
      if (isPacked(text, from, to)) continue;
      scratch.fill(0, from, to);
      words ??= {};
      words[name] = text;
    }
    this.#isHashSent = facts.sentKey === facts.keyHash;
    if (!this.#isHashSent && facts.sentKey !== undefined) {
      words ??= {};
      words.sentKey = facts.sentKey;
    }
    this.#packed = scratch.toString("latin1");
    this.#words = words;
  }

  #word(name: Word): string {
    const word = this.#words?.[name];
    if (word !== undefined) return word;
    const [from, to] = PLACES[name];
    scratch.write(this.#packed, "latin1");
    return scratch.toString("base64url", from, to);
  }

  get id(): string {
    return this.#word("id");
  }

  get key(): string {
    return this.#word("key");
  }

  get keyHash(): string {
    return this.#word("keyHash");
  }

  get sentKey(): string | undefined {
    return this.#isHashSent ? this.keyHash : this.#words?.sentKey;
  }

  get argumentsHash(): string {
    return this.#word("argumentsHash");
  }

  get server(): string {
    return this.#common.server;
  }

  get tool(): OwnToolName {
    return this.#common.tool;
  }

  get principal(): WriteFacts["principal"] {
    return this.#common.principal;
  }

  get byToken(): true | undefined {
    return this.#common.byToken;
  }

  get lane(): string | undefined {
    return this.#common.lane;
  }

  get terms(): OutboxTerms {
    return this.#common.terms;
  }

  get era(): Era {
    return this.#common.era;
  }

  get version(): string {
    return this.#common.version;
  }

  get target(): string | undefined {
    return this.#common.target;
  }
}

const WORDS = Object.keys(PLACES) as readonly Word[];

/** Puts a text to its place, where it is just so many bytes in base64url. */
function isPacked(text: string, from: number, to: number): boolean {
  const size = to - from;
  if (text.length !== Math.ceil((size * 4) / 3)) return false;
  return scratch.write(text, from, size, "base64url") === size && scratch.toString("base64url", from, to) === text;
}

export class CommonFacts {
  readonly #known = new Map<string, Common>();
  /** Of the last one: as a rule the next has the same. */
  #last: Common | undefined;

  /** The same facts, with what others have too in common with them. */
  keep(facts: WriteFacts): WriteFacts {
    if (this.#last === undefined || !isSame(this.#last, facts)) this.#last = this.#commonOf(facts);
    return new KeptFacts(facts, this.#last);
  }

  #commonOf(facts: WriteFacts): Common {
    const { server, tool, principal, byToken, lane, terms, era, version, target } = facts;
    const text = JSON.stringify([server, tool, principal, byToken, lane, terms, era, version, target]);
    let common = this.#known.get(text);
    if (common === undefined) {
      common = { server, tool, principal, byToken, lane, terms, era, version, target };
      if (this.#known.size >= MAX_COMMON) this.#known.clear();
      this.#known.set(text, common);
    }
    return common;
  }
}

/** Terms are compared as an object: the config's are one. */
function isSame(common: Common, facts: WriteFacts): boolean {
  return (
    common.terms === facts.terms &&
    common.server === facts.server &&
    common.tool === facts.tool &&
    common.principal.id === facts.principal.id &&
    common.principal.role === facts.principal.role &&
    common.byToken === facts.byToken &&
    common.lane === facts.lane &&
    common.era === facts.era &&
    common.version === facts.version &&
    common.target === facts.target
  );
}

/** As they are written down: all of them, and nothing else. */
export function writtenFacts(facts: WriteFacts): WriteFacts {
  const { id, server, tool, principal, byToken, lane, key, keyHash, sentKey, argumentsHash } = facts;
  const { terms, era, version, target, takenMs, bytes } = facts;
  const named = { id, server, tool, principal, byToken, lane, key, keyHash, sentKey, argumentsHash };
  return { ...named, terms, era, version, target, takenMs, bytes };
}
