// What does not change of a write, as it is in memory: a hundred thousand may wait, so that what many of them have in common
// (whose they are, where they go, on which terms) is one object for all of these.

import type { OwnToolName } from "../../contracts/names.js";
import type { OutboxTerms } from "../../contracts/outbox.js";
import type { Era } from "../../protocol/modern.js";
import type { WriteFacts } from "./write.js";

/** What is common is looked for among so many: lanes by an argument may be endless. Beyond it, some is twice in memory. */
const MAX_COMMON = 4_096;

type Common = Pick<WriteFacts, "server" | "tool" | "principal" | "byToken" | "lane" | "terms" | "era" | "version">;

class KeptFacts implements WriteFacts {
  readonly id: string;
  readonly key: string;
  readonly keyHash: string;
  readonly sentKey: string | undefined;
  readonly argumentsHash: string;
  readonly takenMs: number;
  readonly bytes: number;
  readonly #common: Common;

  constructor({ id, key, keyHash, sentKey, argumentsHash, takenMs, bytes }: WriteFacts, common: Common) {
    this.id = id;
    this.key = key;
    this.keyHash = keyHash;
    this.sentKey = sentKey;
    this.argumentsHash = argumentsHash;
    this.takenMs = takenMs;
    this.bytes = bytes;
    this.#common = common;
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
}

export class CommonFacts {
  readonly #known = new Map<string, Common>();

  /** The same facts, with what others have too in common with them. */
  keep(facts: WriteFacts): WriteFacts {
    const { server, tool, principal, byToken, lane, terms, era, version } = facts;
    const text = JSON.stringify([server, tool, principal, byToken, lane, terms, era, version]);
    let common = this.#known.get(text);
    if (common === undefined) {
      common = { server, tool, principal, byToken, lane, terms, era, version };
      if (this.#known.size >= MAX_COMMON) this.#known.clear();
      this.#known.set(text, common);
    }
    return new KeptFacts(facts, common);
  }
}

/** As they are written down: all of them, and nothing else. */
export function writtenFacts(facts: WriteFacts): WriteFacts {
  const { id, server, tool, principal, byToken, lane, key, keyHash, sentKey, argumentsHash } = facts;
  const { terms, era, version, takenMs, bytes } = facts;
  const named = { id, server, tool, principal, byToken, lane, key, keyHash, sentKey, argumentsHash };
  return { ...named, terms, era, version, takenMs, bytes };
}
