// Reads the head of an answer that leaves no question: HTTP/1.1 in plain ASCII, whole in one read, nothing said twice, a
// body with a length or in chunks, on a connection that stays. All else is undefined, and for a full HTTP client. Pure.

export interface PlainHead {
  readonly status: number;
  /** Frozen: it is shared by all answers with this head. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** Where the body begins. */
  readonly end: number;
  /** Of the body; undefined where it comes in chunks. */
  readonly length: number | undefined;
  /** For how long the server says that it keeps the connection; undefined where it does not say. */
  readonly keepAliveMs: number | undefined;
}

/** Heads of MCP servers are a few hundred bytes. */
const MAX_BYTES = 4 * 1024;

/** The whole grammar: no control characters, no folded lines, no bare CR or LF, a name that is a token. */
const GRAMMAR = /HTTP\/1\.1 [245]\d\d(?: [\t\x20-\x7e]*)?\r\n(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t\x20-\x7e]*\r\n)+\r\n/y;

/** What frames the body or the connection in another way, or says that more is to come. */
const NOT_PLAIN: ReadonlySet<string> = new Set(["__proto__", "proxy-connection", "te", "upgrade"]);

/** Two of these have no body, whatever the length says. */
const WITHOUT_BODY: ReadonlySet<number> = new Set([204, 205]);

/** Beyond it a number is not exact. */
const LENGTH = /^\d{1,15}$/;
const KEEP_ALIVE = /^timeout=(\d{1,6})(?:\s*,|$)/i;

/** Servers repeat their heads: the last one is remembered as text, and what it said is used again. */
export class PlainHeads {
  #text: string | undefined;
  #head: PlainHead | undefined;

  /** Reads the first `length` bytes of `block`. */
  read(block: Buffer, length: number): PlainHead | undefined {
    const text = block.toString("latin1", 0, Math.min(length, MAX_BYTES));
    if (this.#text !== undefined && text.startsWith(this.#text)) return this.#head;
    const head = readHead(text);
    if (head !== undefined) {
      this.#text = text.slice(0, head.end);
      this.#head = head;
    }
    return head;
  }
}

function readHead(text: string): PlainHead | undefined {
  GRAMMAR.lastIndex = 0;
  if (!GRAMMAR.test(text)) return undefined;
  const end = GRAMMAR.lastIndex;
  const status = Number(text.slice(9, 12));
  if (WITHOUT_BODY.has(status)) return undefined;
  const headers: Record<string, string | undefined> = {};
  for (let at = text.indexOf("\r\n") + 2; at < end - 2; ) {
    const colon = text.indexOf(":", at);
    const lineEnd = text.indexOf("\r\n", colon);
    const name = text.slice(at, colon).toLowerCase();
    // What is said twice is for those who know which of the two counts.
    if (NOT_PLAIN.has(name) || Object.hasOwn(headers, name)) return undefined;
    headers[name] = text.slice(colon + 1, lineEnd).trim();
    at = lineEnd + 2;
  }
  const { connection = "keep-alive", "content-length": length, "transfer-encoding": coding } = headers;
  if (connection.toLowerCase() !== "keep-alive") return undefined;
  // One of the two, and never both: whoever says both is understood by each reader in another way.
  if (
    coding === undefined ? length === undefined || !LENGTH.test(length) : coding !== "chunked" || length !== undefined
  )
    return undefined;
  const { "keep-alive": kept = "" } = headers;
  const seconds = KEEP_ALIVE.exec(kept)?.[1];
  // Said in a way that is not known here.
  if (seconds === undefined && kept !== "") return undefined;
  const keepAliveMs = seconds === undefined ? undefined : Number(seconds) * 1000;
  return {
    status,
    headers: Object.freeze(headers),
    end,
    length: length === undefined ? undefined : Number(length),
    keepAliveMs,
  };
}
