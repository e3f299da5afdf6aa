// Where the bytes of a body lie that comes in chunks (RFC 9112, 7.1), read by read. Extensions of chunks and trailers are
// passed over, within bounds; anything else that is not as written there breaks the body off. Pure.

const CR = 13;
const LF = 10;
const SEMICOLON = 59;
const SPACE = 32;
const TAB = 9;
const DEL = 127;

/** Eight digits are 4 GiB: nobody writes that at once. */
const MAX_DIGITS = 8;
/** Of a chunk's extensions, and of all trailers. */
const MAX_ASIDE_BYTES = 16 * 1024;

type State =
  | "size"
  | "extension"
  | "size-end"
  | "data"
  | "data-cr"
  | "data-lf"
  | "line"
  | "in-line"
  | "line-end"
  | "end";

export class ChunkedBody {
  #state: State = "size";
  #size = 0;
  #digits = 0;
  #aside = 0;
  /** The data that the last step found lies between them. */
  from = 0;
  to = 0;
  isDone = false;
  /** It is not in chunks after all, or too much beside them. */
  isBroken = false;

  /** Goes on at `at`, up to `end` at most. Returns how far it came: to the end of some data, or as far as there is. */
  step(block: Buffer, at: number, end: number): number {
    this.from = 0;
    this.to = 0;
    for (let i = at; i < end; ) {
      if (this.#state === "data") {
        this.from = i;
        this.to = Math.min(end, i + this.#size);
        this.#size -= this.to - i;
        if (this.#size === 0) this.#state = "data-cr";
        return this.to;
      }
      this.#frame(block[i] as number);
      i++;
      if (this.isDone || this.isBroken) return i;
    }
    return end;
  }

  /** One byte that is not data. */
  #frame(byte: number): void {
    switch (this.#state) {
      case "size":
        this.#inSize(byte);
        break;
      case "extension":
        if (byte === CR) this.#state = "size-end";
        else this.#passOver(byte);
        break;
      case "size-end":
        if (byte !== LF) this.isBroken = true;
        this.#digits = 0;
        this.#state = this.#size === 0 ? "line" : "data";
        break;
      case "data-cr":
        if (byte !== CR) this.isBroken = true;
        this.#state = "data-lf";
        break;
      case "data-lf":
        if (byte !== LF) this.isBroken = true;
        this.#aside = 0;
        this.#state = "size";
        break;
      case "line":
        // A line that begins with a space goes on with the one before, which nobody may write any more.
        if (byte === SPACE || byte === TAB) this.isBroken = true;
        this.#state = byte === CR ? "end" : "in-line";
        if (byte !== CR) this.#passOver(byte);
        break;
      case "in-line":
        if (byte === CR) this.#state = "line-end";
        else this.#passOver(byte);
        break;
      case "line-end":
        if (byte !== LF) this.isBroken = true;
        this.#state = "line";
        break;
      default:
        if (byte === LF) this.isDone = true;
        else this.isBroken = true;
    }
  }

  #inSize(byte: number): void {
    const digit = hexDigit(byte);
    if (digit >= 0 && this.#digits < MAX_DIGITS) {
      this.#size = this.#size * 16 + digit;
      this.#digits++;
    } else if (this.#digits === 0) this.isBroken = true;
    else if (byte === CR) this.#state = "size-end";
    else if (byte === SEMICOLON) this.#state = "extension";
    else this.isBroken = true;
  }

  #passOver(byte: number): void {
    if ((byte < SPACE && byte !== TAB) || byte === DEL || ++this.#aside > MAX_ASIDE_BYTES) this.isBroken = true;
  }
}

function hexDigit(byte: number): number {
  if (byte >= 48 && byte <= 57) return byte - 48;
  const lower = byte | 32;
  return lower >= 97 && lower <= 102 ? lower - 87 : -1;
}
