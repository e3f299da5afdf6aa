// Takes off the content encodings that fetch takes off: the executor hands a body on as it came.

import { pipeline, type Readable, Transform, type TransformCallback } from "node:stream";
import { constants, createBrotliDecompress, createGunzip, createInflate, createInflateRaw } from "node:zlib";

/** What is decoded is given on as soon as it can be: an event stream may be compressed, too. */
const ZLIB = { flush: constants.Z_SYNC_FLUSH, finishFlush: constants.Z_SYNC_FLUSH };
const BROTLI = { flush: constants.BROTLI_OPERATION_FLUSH, finishFlush: constants.BROTLI_OPERATION_FLUSH };

/** One after the other; nobody does more than two, and each costs memory. */
const MAX_ENCODINGS = 5;

const DECODERS: Readonly<Record<string, () => Transform>> = {
  gzip: () => createGunzip(ZLIB),
  "x-gzip": () => createGunzip(ZLIB),
  deflate: () => new Deflate(),
  br: () => createBrotliDecompress(BROTLI),
};

/** The body itself where an encoding is not known: who asked for it can read it. */
export function decodedBody(body: Readable, headers: Headers): Readable {
  const names = (headers.get("content-encoding") ?? "")
    .toLowerCase()
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "" && name !== "identity");
  if (names.length === 0 || names.length > MAX_ENCODINGS) return body;
  const makers = names.map((name) => DECODERS[name]);
  if (!makers.every((make) => make !== undefined)) return body;
  let decoded = body;
  // The last that was put on is the first to be taken off. An error of one destroys all of them.
  for (const make of makers.reverse()) decoded = pipeline(decoded, make(), () => {});
  return decoded;
}

/** With zlib's header, or without, as some servers have it: the first byte tells. */
class Deflate extends Transform {
  #inflate: Transform | undefined;

  override _transform(chunk: Buffer, _encoding: BufferEncoding, callback: TransformCallback): void {
    if (chunk.length === 0) {
      callback();
      return;
    }
    this.#inflate ??= this.#begin(chunk[0] as number);
    this.#inflate.write(chunk, callback);
  }

  override _flush(callback: TransformCallback): void {
    if (this.#inflate === undefined) {
      callback();
      return;
    }
    this.#inflate.once("end", () => callback());
    this.#inflate.end();
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.#inflate?.destroy();
    callback(error);
  }

  override _read(size: number): void {
    this.#inflate?.resume();
    super._read(size);
  }

  #begin(first: number): Transform {
    const inflate = (first & 0x0f) === 8 ? createInflate(ZLIB) : createInflateRaw(ZLIB);
    inflate.on("data", (data: Buffer) => {
      if (!this.push(data)) inflate.pause();
    });
    inflate.on("error", (error) => this.destroy(error));
    return inflate;
  }
}
