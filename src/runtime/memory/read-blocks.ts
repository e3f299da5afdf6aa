// The blocks that sockets are read into, used again and again. V8 counts every buffer that is made against the limit of
// the heap, and marks all of the heap for each few megabytes of them: with a buffer for each read, a few large results
// under way would have it marked without end.
//
// A long read is lent out: whoever has it may keep it for as long as it likes, and the collector frees it as it does any
// buffer. Only who knows that nobody reads it any more gives it back.

import type { OnReadOpts, Socket } from "node:net";

/** As much as libuv reads at once. */
const BLOCK_BYTES = 64 * 1024;

/** Blocks that wait for their next use: eight results of 1 MiB under way at a time. */
const MAX_FREE_BLOCKS = 128;

/** On the ArrayBuffer of a block that is lent out: the block. */
const LENT = Symbol("lent");

interface Lendable {
  [LENT]?: Buffer | undefined;
}

const free: Buffer[] = [];

function take(): Buffer {
  return free.pop() ?? Buffer.allocUnsafeSlow(BLOCK_BYTES);
}

function lend(block: Buffer, length: number): Buffer {
  (block.buffer as Lendable)[LENT] = block;
  return length === BLOCK_BYTES ? block : block.subarray(0, length);
}

/**
 * Nobody reads this piece any more, nor anything else of the same read. What was not lent by a reader here is not
 * touched, so anybody's buffers may be given.
 */
export function giveBack(piece: Buffer): void {
  const block = (piece.buffer as Lendable)[LENT];
  if (block === undefined) return;
  (block.buffer as Lendable)[LENT] = undefined;
  if (free.length < MAX_FREE_BLOCKS) free.push(block);
}

/** Several read parts of this read, each for as long as it likes: nobody can give it back, and the collector frees it. */
export function keepBlock(piece: Buffer): void {
  const buffer = piece.buffer as Lendable;
  if (buffer[LENT] !== undefined) buffer[LENT] = undefined;
}

/**
 * For `net.connect`: each socket reads into a block of its own, and what it read is pushed as if Node had read it. What
 * is short is copied out, so that nobody keeps a block for the sake of a few bytes, and its block is read into again.
 */
export function blockReading(): OnReadOpts {
  let again: Buffer | undefined;
  return {
    // Node asks for it when a socket is made, and after each read.
    buffer: () => {
      const block = again ?? take();
      again = undefined;
      return block;
    },
    callback(this: WithReader, length: number, bytes: Uint8Array): boolean {
      const block = bytes as Buffer;
      const isLong = length * 2 >= BLOCK_BYTES;
      const reader = this[READER];
      let goesOn: boolean;
      if (reader === undefined) goesOn = this.push(isLong ? lend(block, length) : copyOf(block, 0, length));
      else {
        if (isLong) lend(block, length);
        goesOn = reader.read(block, length, isLong);
      }
      // Last of all: what is pushed may open another socket.
      again = isLong ? undefined : block;
      return goesOn;
    },
  } as OnReadOpts;
}

/** Reads a socket's bytes where they lie. */
export interface BlockReader {
  /**
   * The first `length` bytes of the block are what was read. Where it is lent, parts of it may be kept; else copies of
   * them (`copyOf`). False stops the reading until the socket is resumed.
   */
  read(block: Buffer, length: number, isLent: boolean): boolean;
}

const READER = Symbol("reader");
type WithReader = Socket & { [READER]?: BlockReader | undefined };

/** From now on the socket, which was made with `blockReading`, is read by `reader`; by undefined, as a stream again. */
export function readBlocksBy(socket: Socket, reader: BlockReader | undefined): void {
  (socket as WithReader)[READER] = reader;
}

/**
 * The same for who reads without a stream: `read` gets each read where it lies, and says whether it kept a part of it.
 * That part is lent; of all else that it wants to keep it makes a copy.
 */
export function blockReadingBy(read: (bytes: Buffer) => boolean): OnReadOpts {
  let again: Buffer | undefined;
  return {
    buffer: () => {
      const block = again ?? take();
      again = undefined;
      return block;
    },
    callback(length: number, bytes: Uint8Array): boolean {
      const block = bytes as Buffer;
      if (read(lend(block, length))) return true;
      (block.buffer as Lendable)[LENT] = undefined;
      again = block;
      return true;
    },
  } as OnReadOpts;
}

/** A block to be filled by hand, lent as what was read is. */
export function borrowBlock(): Buffer {
  return lend(take(), BLOCK_BYTES);
}

/** From here on a copy has memory of its own: in Node 24 it would else share 64 KiB with others, and keep them all. */
const OWN_BYTES = 4 * 1024;

export function copyOf(block: Buffer, from: number, to: number): Buffer {
  const length = to - from;
  const copy = length < OWN_BYTES ? Buffer.allocUnsafe(length) : Buffer.allocUnsafeSlow(length);
  block.copy(copy, 0, from, to);
  return copy;
}
