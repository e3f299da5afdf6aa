// The files of an audit log: how they are called, and reading them from either end. Their names have the number of their
// first line, so that they sort as they were written.

import { createReadStream } from "node:fs";
import { type FileHandle, open, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { turns } from "../../runtime/turns/turns.js";

/** Fifteen digits hold every safe number. */
const NAME = /^audit-(\d{15})\.jsonl$/;

/** So much is read at once, and looked at when there is time for it: a millisecond or two. */
const READ_BYTES = 64 * 1024;

export interface AuditFile {
  readonly name: string;
  readonly path: string;
  readonly firstSeq: number;
}

export function auditFileName(firstSeq: number): string {
  return `audit-${String(firstSeq).padStart(15, "0")}.jsonl`;
}

/** Oldest first. Empty where there is no such folder. */
export async function auditFiles(dir: string): Promise<AuditFile[]> {
  const names = await readdir(dir).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return [];
    throw error;
  });
  return names
    .flatMap((name) => {
      const seq = NAME.exec(name)?.[1];
      return seq === undefined ? [] : [{ name, path: join(dir, name), firstSeq: Number(seq) }];
    })
    .sort((a, b) => a.firstSeq - b.firstSeq);
}

/** The first line; undefined where there is no whole one. */
export async function firstLine(path: string): Promise<string | undefined> {
  const file = await open(path, "r");
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(READ_BYTES), 0, READ_BYTES, 0);
    const end = buffer.subarray(0, bytesRead).indexOf(0x0a);
    return end < 0 ? undefined : buffer.toString("utf8", 0, end);
  } finally {
    await file.close();
  }
}

/** The end of a file, from the beginning of a line on where it is longer than `bytes`. */
export async function tailOf(path: string, bytes: number): Promise<{ readonly text: string; readonly size: number }> {
  const { size } = await stat(path);
  const file = await open(path, "r");
  try {
    const from = Math.max(0, size - bytes);
    const block = Buffer.alloc(size - from);
    await readWhole(file, block, from);
    const text = block.toString("utf8");
    return { text: from === 0 ? text : text.slice(text.indexOf("\n") + 1), size };
  } finally {
    await file.close();
  }
}

async function readWhole(file: FileHandle, into: Buffer, from: number): Promise<void> {
  for (let at = 0; at < into.length; ) {
    const { bytesRead } = await file.read(into, at, into.length - at, from + at);
    if (bytesRead === 0) return;
    at += bytesRead;
  }
}

/**
 * All lines of a file, in order, the last one also where it has no end. They end by a line feed and by nothing else: Node's
 * readline would also end them at U+2028, which a name may hold, and which is how every agent could break the chain.
 */
export async function* linesOf(path: string): AsyncIterableIterator<string> {
  /** The beginning of a line whose end was not read yet. */
  let parts: Buffer[] = [];
  for await (const block of createReadStream(path, { highWaterMark: READ_BYTES }) as AsyncIterable<Buffer>) {
    await turns.wait(block.length);
    let from = 0;
    for (let end = block.indexOf(0x0a); end >= 0; end = block.indexOf(0x0a, from)) {
      const last = block.subarray(from, end);
      yield parts.length === 0 ? last.toString("utf8") : Buffer.concat([...parts, last]).toString("utf8");
      parts = [];
      from = end + 1;
    }
    if (from < block.length) parts.push(block.subarray(from));
  }
  if (parts.length > 0) yield Buffer.concat(parts).toString("utf8");
}

/** The lines of a file before `end`, the last first, each with where it begins. What has no end of line yet is left out. */
export async function* linesBackwards(
  path: string,
  end = Number.POSITIVE_INFINITY,
): AsyncIterableIterator<{ readonly text: string; readonly at: number }> {
  const file = await open(path, "r");
  try {
    let to = Math.min(end, (await file.stat()).size);
    /** The beginning of what was read, which is a part of a line. */
    let rest = Buffer.alloc(0);
    let isFirst = true;
    while (to > 0) {
      const from = Math.max(0, to - READ_BYTES);
      const block = Buffer.alloc(to - from);
      await readWhole(file, block, from);
      await turns.wait(block.length);
      let bytes = rest.length === 0 ? block : Buffer.concat([block, rest]);
      if (isFirst) {
        bytes = bytes.subarray(0, bytes.lastIndexOf(0x0a) + 1);
        if (bytes.length > 0) isFirst = false;
      }
      // `bytes` ends with a line's end, or is empty.
      let lineEnd = bytes.length - 1;
      while (lineEnd > 0) {
        const before = bytes.lastIndexOf(0x0a, lineEnd - 1);
        if (before < 0) break;
        yield { text: bytes.toString("utf8", before + 1, lineEnd), at: from + before + 1 };
        lineEnd = before;
      }
      rest = Buffer.from(bytes.subarray(0, lineEnd + 1));
      to = from;
    }
    if (rest.length > 0) yield { text: rest.toString("utf8", 0, rest.length - 1), at: 0 };
  } finally {
    await file.close();
  }
}
