// One HTTP connection of the load: bytes out, replies in. Reads Content-Length and chunked bodies, and finds the JSON-RPC
// message in JSON and in event streams. Knows nothing of what the replies should say.

import { connect } from "node:net";

const READ_BYTES = 256 * 1024;
const FIRST_BYTES = 64 * 1024;
const HEAD_END = Buffer.from("\r\n\r\n");
const DATA = Buffer.from("data:");
/** A target that does not answer for so long hangs. */
const SILENT_MS = 60_000;

export class Connection {
  /** Called with this connection when a reply is whole. */
  onReply = () => {};
  /** Called with an error when the connection is lost or talks nonsense. */
  onFault = () => {};
  /** For the owner: the call that is in flight. */
  id = 0;
  startedAt = 0;

  status = 0;
  head = "";
  /** The body is `body[bodyStart, bodyEnd)`. */
  body = Buffer.allocUnsafe(FIRST_BYTES);
  bodyStart = 0;
  bodyEnd = 0;

  #socket;
  #raw = Buffer.allocUnsafe(FIRST_BYTES);
  #length = 0;
  /** -1: the head is not read yet; -2: chunked; else the length of the body. */
  #expected = -1;
  #at = 0;
  #ended = false;

  /** @returns {Promise<Connection>} */
  static open(url) {
    const connection = new Connection();
    const { hostname, port } = new URL(url);
    return new Promise((resolve, reject) => {
      const onread = {
        buffer: Buffer.allocUnsafe(READ_BYTES),
        callback: (count, buffer) => connection.#read(count, buffer),
      };
      const socket = connect({ host: hostname, port: Number(port), noDelay: true, onread });
      connection.#socket = socket;
      socket.setTimeout(SILENT_MS, () => connection.#fault(`No answer within ${SILENT_MS} ms.`));
      socket.once("connect", () => resolve(connection));
      socket.on("error", (error) => {
        reject(error);
        connection.#fault(`The connection broke: ${error.message}`);
      });
      socket.on("close", () => connection.#fault("The connection was closed."));
    });
  }

  send(bytes) {
    this.#length = 0;
    this.#expected = -1;
    this.#socket.write(bytes);
    // The bytes are changed for the next call, so nothing of them may wait. A request fits into any socket's buffer.
    if (this.#socket.writableLength > 0) this.#fault("A request did not fit into the socket's buffer.");
  }

  /** One request and its reply, for what is not measured. */
  exchange(bytes) {
    return new Promise((resolve, reject) => {
      this.onReply = resolve;
      this.onFault = reject;
      this.send(bytes);
    });
  }

  get isOpen() {
    return !this.#ended && !this.#socket.destroyed;
  }

  close() {
    this.#ended = true;
    this.#socket.destroy();
  }

  /** A header of the last reply. */
  header(name) {
    return new RegExp(`^${name}: *(.*?) *$`, "im").exec(this.head)?.[1];
  }

  /** Where the message of the reply is in the body; in an event stream, that of the event with an answer. */
  message() {
    const { body, bodyStart, bodyEnd } = this;
    if (body[bodyStart] === 0x7b) return { start: bodyStart, end: bodyEnd };
    for (let at = body.indexOf(DATA, bodyStart); at >= 0 && at < bodyEnd; at = body.indexOf(DATA, at)) {
      let start = at + DATA.length;
      if (body[start] === 0x20) start += 1;
      let end = body.indexOf(10, start);
      if (end < 0 || end > bodyEnd) end = bodyEnd;
      if (body[end - 1] === 13) end -= 1;
      const beginsLine = at === bodyStart || body[at - 1] === 10;
      if (beginsLine && body[start] === 0x7b && !isNotification(body, start, end)) return { start, end };
      at = end;
    }
    return undefined;
  }

  #fault(message) {
    if (this.#ended) return;
    this.close();
    this.onFault(new Error(message));
  }

  #read(count, buffer) {
    const needed = this.#length + count;
    if (needed > this.#raw.length) this.#raw = grown(this.#raw, this.#length, needed);
    buffer.copy(this.#raw, this.#length, 0, count);
    this.#length = needed;
    if (this.#expected === -1 && !this.#readHead()) return true;
    if (this.#expected === -2) {
      if (!this.#readChunks()) return true;
    } else {
      if (this.#length - this.#at < this.#expected) return true;
      this.body = this.#raw;
      this.bodyStart = this.#at;
      this.bodyEnd = this.#at + this.#expected;
    }
    this.onReply(this);
    return true;
  }

  #readHead() {
    const end = this.#raw.subarray(0, this.#length).indexOf(HEAD_END);
    if (end < 0) return false;
    const head = this.#raw.latin1Slice(0, end);
    this.head = head;
    this.status = Number(head.slice(9, 12));
    this.#at = end + 4;
    const length = /\r\ncontent-length: *(\d+)/i.exec(head);
    if (length !== null) this.#expected = Number(length[1]);
    else if (/\r\ntransfer-encoding: *chunked/i.test(head)) {
      this.#expected = -2;
      this.bodyStart = 0;
      this.bodyEnd = 0;
      if (this.body === this.#raw) this.body = Buffer.allocUnsafe(FIRST_BYTES);
    } else if (this.status === 202 || this.status === 204) this.#expected = 0;
    else {
      this.#fault(`A reply without a length: ${head.slice(0, 200)}`);
      return false;
    }
    return true;
  }

  /** Takes whole chunks over into the body; true after the last one. */
  #readChunks() {
    for (;;) {
      const lineEnd = this.#raw.indexOf("\r\n", this.#at);
      if (lineEnd < 0 || lineEnd >= this.#length) return false;
      const size = Number.parseInt(this.#raw.latin1Slice(this.#at, lineEnd), 16);
      const start = lineEnd + 2;
      if (start + size + 2 > this.#length) return false;
      this.#at = start + size + 2;
      if (size === 0) return true;
      if (this.bodyEnd + size > this.body.length) this.body = grown(this.body, this.bodyEnd, this.bodyEnd + size);
      this.#raw.copy(this.body, this.bodyEnd, start, start + size);
      this.bodyEnd += size;
    }
  }
}

/** Notifications before an answer are short; what is long is taken for the answer without a look. */
const MAX_NOTIFICATION = 4096;

function isNotification(body, start, end) {
  return end - start < MAX_NOTIFICATION && JSON.parse(body.toString("utf8", start, end)).method !== undefined;
}

function grown(buffer, used, needed) {
  const larger = Buffer.allocUnsafe(Math.max(needed, 2 * buffer.length));
  buffer.copy(larger, 0, 0, used);
  return larger;
}
