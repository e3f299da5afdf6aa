// Questions between gateways over the engine's core, which keeps nothing: requests to a subject of each gateway's own, sealed under
// a key that only gateways have. Bodies that are long go in pieces, each asked for or acknowledged by itself, so that no piece is
// missing without an error and no more is under way than somebody waits for.
//
//   version 1 | nonce 12 | ciphertext | tag 16      of   head as JSON, "\n", the piece's bytes

import { createCipheriv, createDecipheriv, createHmac, randomBytes } from "node:crypto";
import type { Duplex } from "node:stream";
import type { Msg, NatsConnection, Subscription } from "@nats-io/transport-node";
import { type PeerAsk, PeerError, type PeerErrorCode, type Peers } from "../../contracts/engine/peers.js";
import { messageOf } from "../../runtime/expected-error.js";
import { KIB, MIB } from "../../runtime/sizes.js";
import { toldWithin } from "../../runtime/wait.js";
import { PeerStreams, type StreamHead } from "./peer-streams.js";

/** How large a piece of a body is. Engines refuse messages over 1 MiB by default, and a long one holds up all behind it. */
const PIECE_BYTES = 256 * KIB;
/** Of a message, for what is around a piece: its head, in which others' words may be why there is no answer, and the seal. */
const HEAD_BYTES = 4 * KIB;
const MAX_ERROR_CHARS = 1_000;
/** Where an engine takes less than a head, its refusals say so. */
const LEAST_PIECE_BYTES = 1 * KIB;
/** The largest call that an outbox takes is far below; what is larger is no question. */
const MAX_BODY_BYTES = 16 * MIB;
/** Questions under way at once, of this gateway to all others: some seconds of queued writes. */
const MAX_ASKED = 1_024;
/**
 * Questions that nobody waits for any more, which the client holds until their time is over. What is more than these keeps its
 * place among those under way.
 */
const MAX_GIVEN_UP = 4_096;
/** Questions of others that are being answered at once. */
const MAX_ANSWERING = 2_048;
/** Of bodies of which some pieces came or are still to be fetched. */
const MAX_HELD_BYTES = 64 * MIB;
/** A piece is answered at once. */
const PIECE_MS = 5_000;
/** A body whose next piece has not come, or was not fetched, for so long is let go. */
const HELD_MS = 15_000;

const VERSION = 1;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const ALGORITHM = "aes-256-gcm";

/** What is used of the connection. */
interface AskedEngine {
  readonly connection: NatsConnection;
  readonly status: { readonly state: string };
  watch(listener: (status: { readonly state: string }) => void): () => void;
}

interface PeersOptions {
  readonly engine: AskedEngine;
  readonly prefix: string;
  /** This gateway: letters, digits, "_" and "-". */
  readonly self: string;
  /** The sealing key that all gateways on the engine share. */
  readonly key: Uint8Array;
}

/** Of a message: which question, and which piece of it. */
interface Head {
  readonly from: string;
  readonly id: string;
  /** Of a question; `fetch`: the next piece of an answer. */
  readonly kind?: string;
  readonly piece: number;
  readonly pieces: number;
  readonly fetch?: true;
  /** Of an answer: why there is none. */
  readonly error?: string;
  /** Of an answer: nobody here knows the kind, or too much is under way. It was not begun. */
  readonly notBegun?: true;
  /** Of an answer: it was done, and what came of it cannot be sent. */
  readonly unsaid?: true;
  /** It is of a stream. */
  readonly of?: StreamHead;
}

interface HeldBody {
  readonly pieces: Uint8Array[];
  bytes: number;
  timer: NodeJS.Timeout;
}

type Handler = Parameters<Peers["answer"]>[1];

/** Can be asked when it resolves. */
export async function openPeers(options: PeersOptions): Promise<Peers> {
  const peers = new NatsPeers(options);
  await options.engine.connection.flush();
  return peers;
}

class NatsPeers implements Peers {
  readonly #options: PeersOptions;
  readonly #key: Buffer;
  readonly #subscription: Subscription;
  readonly #handlers = new Map<string, Handler>();
  /** Questions whose pieces are still coming, and answers whose pieces are still to be fetched. */
  readonly #coming = new Map<string, HeldBody>();
  readonly #going = new Map<string, HeldBody>();
  #heldBytes = 0;
  #asked = 0;
  #givenUp = 0;
  #answering = 0;
  /** Ends the waits of answers for the connection. */
  readonly #waiting = new Set<() => void>();
  readonly #streams: PeerStreams;
  #isClosed = false;

  constructor(options: PeersOptions) {
    this.#options = options;
    this.#streams = new PeerStreams({
      send: (peer, of, body) => this.#send(peer, of, body),
      ask: (peer, of, body, timeoutMs) => this.#askStream(peer, of, body, timeoutMs),
      maxBytes: () => this.#pieceBytes,
      newId,
    });
    this.#key = createHmac("sha256", options.key).update("peers").digest();
    this.#subscription = options.engine.connection.subscribe(this.#subjectOf(options.self), {
      callback: (error, message) => {
        if (error === null) void this.#onMessage(message);
      },
    });
  }

  async ask(peer: string, kind: string, body: Uint8Array, { timeoutMs, signal }: PeerAsk): Promise<Uint8Array> {
    if (body.length > MAX_BODY_BYTES) {
      throw new PeerError(
        "large",
        `Gateways ask each other at most ${MAX_BODY_BYTES / MIB} MiB; this has ${body.length} bytes.`,
      );
    }
    if (this.#asked >= MAX_ASKED) {
      throw new PeerError("busy", `${MAX_ASKED} questions to other gateways are under way: try again in a moment.`);
    }
    this.#asked++;
    const answer = this.#askAll(peer, kind, body, timeoutMs);
    const over = answer.then(ignore, ignore);
    try {
      return await (signal === undefined ? answer : Promise.race([answer, aborted(peer, signal)]));
    } finally {
      if (signal?.aborted === true && this.#givenUp < MAX_GIVEN_UP) {
        this.#asked--;
        this.#givenUp++;
        void over.then(() => this.#givenUp--);
      } else void over.then(() => this.#asked--);
    }
  }

  answer(kind: string, handler: Handler): () => void {
    this.#handlers.set(kind, handler);
    return () => {
      if (this.#handlers.get(kind) === handler) this.#handlers.delete(kind);
    };
  }

  connect(peer: string, kind: string): Promise<Duplex> {
    return this.#streams.connect(peer, kind);
  }

  accept(kind: string, taken: (stream: Duplex, from: string) => void): () => void {
    return this.#streams.accept(kind, taken);
  }

  async close(): Promise<void> {
    this.#streams.close();
    this.#isClosed = true;
    for (const told of this.#waiting) told();
    this.#subscription.unsubscribe();
    for (const held of [this.#coming, this.#going]) for (const id of [...held.keys()]) this.#letGo(held, id);
  }

  /** What the engine takes in one message may be less than we would send; it may be another after a reconnect. */
  get #pieceBytes(): number {
    const most = (this.#options.engine.connection.info?.max_payload ?? MIB) - HEAD_BYTES;
    return Math.max(LEAST_PIECE_BYTES, Math.min(PIECE_BYTES, most));
  }

  #subjectOf(peer: string): string {
    return `${this.#options.prefix}.peer.${peer}`;
  }

  #send(peer: string, of: StreamHead, body: Uint8Array): boolean {
    const { connection, status } = this.#options.engine;
    if (this.#isClosed || status.state !== "connected") return false;
    const head = { from: this.#options.self, id: of.id, piece: 0, pieces: 1, of };
    connection.publish(this.#subjectOf(peer), this.#seal(head, body, peer));
    return true;
  }

  async #askStream(peer: string, of: StreamHead, body: Uint8Array, timeoutMs: number): Promise<Uint8Array> {
    const head = { from: this.#options.self, id: of.id, piece: 0, pieces: 1, of };
    const [told, answer] = await this.#request(peer, head, body, timeoutMs, false);
    if (told.error !== undefined) throw new PeerError("away", told.error);
    return answer;
  }

  async #askAll(peer: string, kind: string, body: Uint8Array, timeoutMs: number): Promise<Uint8Array> {
    const id = newId();
    const from = this.#options.self;
    const parted = piecesOf(body, this.#pieceBytes);
    const pieces = parted.length;
    for (let piece = 0; piece < pieces - 1; piece++) {
      const head = { from, id, kind, piece, pieces };
      const [told] = await this.#request(peer, head, parted[piece] ?? NOTHING, PIECE_MS, piece > 0);
      if (told.error !== undefined) throw new PeerError(codeOf(told), told.error);
    }
    const last = { from, id, kind, piece: pieces - 1, pieces };
    const [first, begin] = await this.#request(peer, last, parted.at(-1) ?? NOTHING, timeoutMs, false);
    if (first.error !== undefined) throw new PeerError(codeOf(first), first.error);
    if (first.pieces === 1) return begin;
    const answered = [begin];
    for (let piece = 1; piece < first.pieces; piece++) {
      const head = { from, id, piece, pieces: first.pieces, fetch: true as const };
      const [next, bytes] = await this.#request(peer, head, NOTHING, PIECE_MS, true);
      if (next.error !== undefined || next.piece !== piece) {
        throw new PeerError(
          "late",
          `A piece of the answer of gateway ${peer} is missing: it is unknown what became of it.`,
        );
      }
      answered.push(bytes);
    }
    return Buffer.concat(answered);
  }

  /** `isBegun`: the peer has a part of it; without an answer nobody can say what became of the whole. */
  async #request(
    peer: string,
    head: Head,
    body: Uint8Array,
    timeoutMs: number,
    isBegun: boolean,
  ): Promise<[Head, Uint8Array]> {
    const { connection, status } = this.#options.engine;
    const lost = isBegun && head.fetch === true ? "late" : "away";
    if (this.#isClosed || status.state !== "connected") {
      throw new PeerError(lost, `Gateway ${peer} cannot be asked: the engine is away.`);
    }
    let message: Msg;
    try {
      message = await connection.request(this.#subjectOf(peer), this.#seal(head, body, peer), { timeout: timeoutMs });
    } catch (error) {
      if (isNobody(error)) throw new PeerError(lost, `Gateway ${peer} is not there.`);
      if (isTooLarge(error)) {
        const most = connection.info?.max_payload;
        throw new PeerError(
          "failed",
          `A message to gateway ${peer} is larger than the engine takes (max_payload ${most}).`,
        );
      }
      throw new PeerError(
        "late",
        `Gateway ${peer} did not answer within ${timeoutMs} ms: it is unknown what became of it.`,
      );
    }
    const opened = this.#open(message.data, this.#options.self);
    if (opened === undefined || opened[0].id !== head.id) {
      throw new PeerError("late", `The answer of gateway ${peer} cannot be read: its key is another, or its version.`);
    }
    return opened;
  }

  async #onMessage(message: Msg): Promise<void> {
    const opened = this.#open(message.data, this.#options.self);
    // Whoever has no key of ours is not answered.
    if (opened === undefined || this.#isClosed) return;
    const [head, body] = opened;
    if (head.of !== undefined) {
      this.#onStream(message, head.from, head.of, body);
      return;
    }
    if (message.reply === undefined) return;
    const { from, id, piece, pieces } = head;
    const reply = (told: Partial<Head>, bytes: Uint8Array = NOTHING) => {
      const answer = { from: this.#options.self, id, piece: 0, pieces: 1, ...told };
      if (!this.#isClosed) message.respond(this.#seal(answer, bytes, from));
    };
    if (head.fetch === true) {
      const part = this.#going.get(id)?.pieces[piece];
      if (part === undefined) reply({ error: "It is gone." });
      else reply({ piece, pieces }, part);
      if (piece >= pieces - 1) this.#letGo(this.#going, id);
      return;
    }
    const handler = this.#handlers.get(head.kind ?? "");
    if (handler === undefined || this.#answering >= MAX_ANSWERING) {
      const why = handler === undefined ? `knows no "${head.kind}"` : "has too much under way";
      reply({ error: `Gateway ${this.#options.self} ${why}: it was not begun.`, notBegun: true });
      return;
    }
    const whole = pieces === 1 ? body : this.#gather(head, body);
    if (whole === undefined) {
      reply({ error: "A piece of it is missing, or too much is under way: it was not begun.", notBegun: true });
      return;
    }
    if (whole === "more") {
      reply({});
      return;
    }
    this.#answering++;
    try {
      const answer = await handler(from, whole);
      const parted = piecesOf(answer, this.#pieceBytes);
      const isHeld =
        parted.length === 1 || (answer.length <= MAX_BODY_BYTES && this.#keep(this.#going, id, parted, answer.length));
      await this.#untilConnected(parted[0]?.length ?? 0);
      if (!isHeld) reply({ error: "The answer is too long for what is under way.", unsaid: true });
      else reply({ pieces: parted.length }, parted[0]);
    } catch (error) {
      const why = messageOf(error);
      reply({ error: why.slice(0, MAX_ERROR_CHARS) });
    } finally {
      this.#answering--;
    }
  }

  /** What is said while the connection is lost is thrown away by the client: an answer waits until it is back, where there is room. */
  async #untilConnected(bytes: number): Promise<void> {
    const { engine } = this.#options;
    if (engine.status.state === "connected" || this.#heldBytes + bytes > MAX_HELD_BYTES) return;
    this.#heldBytes += bytes;
    await toldWithin((told) => {
      this.#waiting.add(told);
      const unwatch = engine.watch(({ state }) => void (state === "connected" && told()));
      return () => {
        this.#waiting.delete(told);
        unwatch();
      };
    }, HELD_MS);
    this.#heldBytes -= bytes;
  }

  #onStream(message: Msg, from: string, of: StreamHead, body: Uint8Array): void {
    const head = { from: this.#options.self, id: of.id, piece: 0, pieces: 1 };
    try {
      const answer = this.#streams.onMessage(from, of, body);
      if (message.reply !== undefined && answer !== undefined) message.respond(this.#seal(head, answer, from));
    } catch (error) {
      message.respond(this.#seal({ ...head, error: (error as Error).message }, NOTHING, from));
    }
  }

  /** The pieces of a question come one after the other: each was acknowledged before the next. */
  #gather({ id, piece, pieces }: Head, body: Uint8Array): Uint8Array | "more" | undefined {
    if (piece === 0 && !this.#keep(this.#coming, id, [], 0)) return undefined;
    const held = this.#coming.get(id);
    if (held === undefined || held.pieces.length !== piece || this.#heldBytes + body.length > MAX_HELD_BYTES) {
      this.#letGo(this.#coming, id);
      return undefined;
    }
    held.pieces.push(body);
    held.bytes += body.length;
    this.#heldBytes += body.length;
    held.timer.refresh();
    if (piece < pieces - 1) return "more";
    this.#letGo(this.#coming, id);
    return Buffer.concat(held.pieces);
  }

  #keep(held: Map<string, HeldBody>, id: string, pieces: Uint8Array[], bytes: number): boolean {
    if (this.#heldBytes + bytes > MAX_HELD_BYTES) return false;
    this.#letGo(held, id);
    this.#heldBytes += bytes;
    const timer = setTimeout(() => this.#letGo(held, id), HELD_MS).unref();
    held.set(id, { pieces, bytes, timer });
    return true;
  }

  #letGo(held: Map<string, HeldBody>, id: string): void {
    const one = held.get(id);
    if (one === undefined) return;
    held.delete(id);
    this.#heldBytes -= one.bytes;
    clearTimeout(one.timer);
  }

  #seal(head: Head, body: Uint8Array, to: string): Uint8Array {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(ALGORITHM, this.#key, nonce, { authTagLength: TAG_BYTES });
    // What was meant for one gateway is of no use at another.
    cipher.setAAD(Buffer.from(to));
    const sealed = [cipher.update(`${JSON.stringify(head)}\n`, "utf8"), cipher.update(body)];
    cipher.final();
    return Buffer.concat([Uint8Array.of(VERSION), nonce, ...sealed, cipher.getAuthTag()]);
  }

  #open(data: Uint8Array, to: string): [Head, Uint8Array] | undefined {
    const end = data.length - TAG_BYTES;
    if (data[0] !== VERSION || end < 1 + NONCE_BYTES) return undefined;
    try {
      const nonce = data.subarray(1, 1 + NONCE_BYTES);
      const decipher = createDecipheriv(ALGORITHM, this.#key, nonce, { authTagLength: TAG_BYTES });
      decipher.setAAD(Buffer.from(to));
      decipher.setAuthTag(data.subarray(end));
      const plain = decipher.update(data.subarray(1 + NONCE_BYTES, end));
      decipher.final();
      const line = plain.indexOf(0x0a);
      return [JSON.parse(plain.toString("utf8", 0, line)) as Head, plain.subarray(line + 1)];
    } catch {
      return undefined;
    }
  }
}

const NOTHING = new Uint8Array(0);
const ignore = () => {};

function newId(): string {
  return randomBytes(12).toString("base64url");
}

function codeOf({ notBegun, unsaid }: Head): PeerErrorCode {
  if (unsaid === true) return "late";
  return notBegun === true ? "away" : "failed";
}

/** At least one, which may be empty. */
function piecesOf(body: Uint8Array, bytes: number): Uint8Array[] {
  const count = Math.max(1, Math.ceil(body.length / bytes));
  return Array.from({ length: count }, (_, n) => body.subarray(n * bytes, (n + 1) * bytes));
}

function isNobody(error: unknown): boolean {
  const { name, cause } = error as { name?: string; cause?: { name?: string } };
  return name === "NoResponders" || cause?.name === "NoResponders";
}

/** The client says so before it sends anything. */
function isTooLarge(error: unknown): boolean {
  return (error as { name?: string }).name === "InvalidArgumentError";
}

function aborted(peer: string, signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const late = () =>
      reject(new PeerError("late", `Gateway ${peer} is no longer waited for: it is unknown what became of it.`));
    if (signal.aborted) late();
    else signal.addEventListener("abort", late, { once: true });
  });
}
