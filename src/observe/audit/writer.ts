// Writes the audit log: batches of lines at the end of the last file, a new file when one is full or a day old, and the
// oldest removed when there are too many. A batch is written whole or not at all: what a full disk took of it is cut off
// again before the next try.

import { type FileHandle, mkdir, open, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { type ChainEnd, type ChainHead, chained, lineHash, NO_LINES, readLine, resumption } from "./chain.js";
import { type AuditFile, auditFileName, auditFiles, firstLine, tailOf } from "./files.js";

export interface AuditLimits {
  readonly maxFileBytes: number;
  readonly maxBytes: number;
  readonly maxAgeDays: number;
}

export interface AuditWriterOptions extends AuditLimits {
  readonly dir: string;
  readonly wall: () => number;
  /** What the store says that was written last; undefined where it knows of nothing. */
  readonly kept: ChainHead | undefined;
  /** Told when a file was begun: its line is an anchor for whoever keeps it elsewhere. */
  readonly rotated: (head: ChainHead) => void;
  /** For tests, whose disks are full when they want. */
  readonly openFile?: typeof open;
}

const DAY_MS = 86_400_000;
/** More than the longest line: what is looked at for the last whole one. */
const TAIL_BYTES = 1024 * 1024;
const OWNER_ALONE = 0o600;

export class AuditWriter {
  readonly #options: AuditWriterOptions;
  readonly #open: typeof open;
  #head: ChainHead;
  #file: FileHandle | undefined;
  #name = "";
  #size = 0;
  #begunMs = 0;
  /** Whether what is beyond #size has to be cut off first. */
  #isRagged = false;

  private constructor(options: AuditWriterOptions, head: ChainHead) {
    this.#options = options;
    this.#open = options.openFile ?? open;
    this.#head = head;
  }

  /** Goes on where the last one ended. Resolves once the line that says so is written, or throws what is in the way. */
  static async open(options: AuditWriterOptions): Promise<AuditWriter> {
    await mkdir(options.dir, { recursive: true, mode: 0o700 });
    const files = await auditFiles(options.dir);
    const found = await endOf(files);
    const writer = new AuditWriter(options, found?.head ?? NO_LINES);
    const last = files.at(-1);
    if (last !== undefined && found !== undefined) await writer.#goOn(last, found);
    const due = await missingHead(files, options.kept, found?.whole ?? NO_LINES);
    const { isTorn = false } = found ?? {};
    const at = new Date(options.wall()).toISOString();
    const resumed = { time: at, kind: "resumed", torn: isTorn ? true : undefined, due, pid: process.pid };
    try {
      await writer.append([JSON.stringify(resumed)]);
    } catch (error) {
      // What a full disk took of it is cut off: a second torn line is one that no line tells of.
      await writer.close().catch(() => {});
      throw error;
    }
    return writer;
  }

  get head(): ChainHead {
    return this.#head;
  }

  /** Rejects where it cannot be written: nothing is then, and the head stays. */
  async append(bodies: readonly string[]): Promise<void> {
    const nowMs = this.#options.wall();
    const bytes = bodies.reduce((sum, body) => sum + Buffer.byteLength(body) + LINK_BYTES, 0);
    const isFull = this.#size > 0 && this.#size + bytes > this.#options.maxFileBytes;
    // So that what is too old can go, also where little is written.
    const isOld = this.#size > 0 && nowMs - this.#begunMs >= DAY_MS;
    if (this.#file === undefined || isFull || isOld) await this.#rotate(nowMs);
    await this.#write(bodies);
  }

  async close(): Promise<void> {
    const file = this.#file;
    await this.#cutOff().catch(() => {});
    this.#file = undefined;
    await file?.datasync().catch(() => {});
    await file?.close();
  }

  async #goOn({ name, path }: AuditFile, { end }: ChainEnd): Promise<void> {
    this.#file = await this.#open(path, "r+", OWNER_ALONE);
    this.#name = name;
    const { size, birthtimeMs, mtimeMs } = await this.#file.stat();
    this.#size = size;
    this.#begunMs = Math.min(birthtimeMs > 0 ? birthtimeMs : mtimeMs, mtimeMs);
    if (end !== "") {
      await this.#file.write(end, size);
      this.#size += end.length;
    }
  }

  async #rotate(nowMs: number): Promise<void> {
    const { dir, rotated } = this.#options;
    await this.#cutOff();
    const before = this.#name;
    const name = auditFileName(this.#head.seq + 1);
    const made = await this.#open(join(dir, name), "w+", OWNER_ALONE);
    const old = { file: this.#file, size: this.#size, begunMs: this.#begunMs, isRagged: this.#isRagged };
    this.#file = made;
    this.#size = 0;
    this.#isRagged = false;
    this.#begunMs = nowMs;
    const time = new Date(nowMs).toISOString();
    try {
      await this.#write([JSON.stringify({ time, kind: "file", after: before === "" ? undefined : before })]);
    } catch (error) {
      // The one before goes on: a file without a line would be taken for the last.
      await made.close().catch(() => {});
      await rm(join(dir, name), { force: true }).catch(() => {});
      this.#file = old.file;
      this.#size = old.size;
      this.#begunMs = old.begunMs;
      this.#isRagged = old.isRagged;
      throw error;
    }
    this.#name = name;
    await old.file?.datasync().catch(() => {});
    await old.file?.close();
    rotated(this.#head);
    await this.#removeOld(nowMs);
  }

  /** A line says which file goes before it goes. */
  async #removeOld(nowMs: number): Promise<void> {
    const { dir, maxBytes, maxFileBytes, maxAgeDays } = this.#options;
    const files = await auditFiles(dir);
    const sizes = await Promise.all(files.map(({ path }) => stat(path)));
    let all = sizes.reduce((sum, { size }) => sum + size, 0);
    for (let i = 0; i < files.length - 1; i++) {
      const { size, mtimeMs } = sizes[i] as { size: number; mtimeMs: number };
      // The file that is being written may become as large as it may.
      const isTooMuch = all > Math.max(0, maxBytes - maxFileBytes);
      if (!isTooMuch && nowMs - mtimeMs < maxAgeDays * DAY_MS) return;
      const next = readLine((await firstLine((files[i + 1] as AuditFile).path)) ?? "");
      if (next === undefined) return;
      const { name, path } = files[i] as AuditFile;
      const last = { lastSeq: next.seq - 1, lastHash: next.prev };
      await this.#write([
        JSON.stringify({ time: new Date(nowMs).toISOString(), kind: "removed", file: name, ...last }),
      ]);
      await rm(path, { force: true });
      all -= size;
    }
  }

  async #cutOff(): Promise<void> {
    if (!this.#isRagged) return;
    await this.#file?.truncate(this.#size);
    this.#isRagged = false;
  }

  async #write(bodies: readonly string[]): Promise<void> {
    const file = this.#file as FileHandle;
    const { text, head } = chained(bodies, this.#head);
    const bytes = Buffer.from(text);
    await this.#cutOff();
    this.#isRagged = true;
    for (let at = 0; at < bytes.length; ) {
      const { bytesWritten } = await file.write(bytes, at, bytes.length - at, this.#size + at);
      at += bytesWritten;
    }
    this.#isRagged = false;
    this.#size += bytes.length;
    this.#head = head;
  }
}

/** What the number and the hash add to a line. */
const LINK_BYTES = 80;

async function endOf(files: readonly AuditFile[]): Promise<ChainEnd | undefined> {
  const last = files.at(-1);
  if (last === undefined) return undefined;
  const { text } = await tailOf(last.path, TAIL_BYTES);
  const found = resumption(text);
  const before = files.at(-2);
  if (found !== undefined) return found;
  if (before === undefined) {
    const torn = text.replace(/\n$/, "");
    if (torn === "") return { head: NO_LINES, whole: NO_LINES, isTorn: false, end: "" };
    const head = { seq: 0, hash: lineHash(torn) };
    return { head, whole: NO_LINES, isTorn: true, end: torn === text ? "\n" : "" };
  }
  // Not even its first line is whole: the chain goes on from the file before.
  const { text: earlier } = await tailOf(before.path, TAIL_BYTES);
  return resumption(earlier + text);
}

/** What the store knows of and the files do not have; undefined where they do. */
async function missingHead(
  files: readonly AuditFile[],
  kept: ChainHead | undefined,
  whole: ChainHead,
): Promise<ChainHead | undefined> {
  if (kept === undefined || kept.seq === 0) return undefined;
  if (kept.seq > whole.seq) return kept;
  if (kept.seq === whole.seq) return kept.hash === whole.hash ? undefined : kept;
  // A kill came between writing lines and keeping the head of them: the next line after the kept one says which it was.
  for (const { path } of [...files].reverse()) {
    const { text } = await tailOf(path, TAIL_BYTES);
    for (const line of text.split("\n").reverse()) {
      const found = readLine(line);
      if (found?.seq === kept.seq + 1) return found.prev === kept.hash ? undefined : kept;
    }
  }
  // Further back than is looked: a whole check finds it.
  return undefined;
}
