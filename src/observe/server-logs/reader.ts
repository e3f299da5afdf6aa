// Reads what servers wrote to stderr from the files that the gateway keeps of it, and follows them while they grow and
// are exchanged for new ones. Needs no gateway that runs.

import { type FileHandle, open } from "node:fs/promises";
import { StringDecoder } from "node:string_decoder";
import { FILES_OF_A_SERVER, logPath, readLine, type ServerLine } from "./files.js";

/** A piece that is read at once while following. */
const READ_BYTES = 64 * 1024;

function wholeLines(text: string): string[] {
  return text.split("\n").slice(0, -1);
}

interface OpenFile {
  readonly file: FileHandle;
  readonly inode: bigint;
}

async function openFile(path: string): Promise<OpenFile | undefined> {
  const file = await open(path).catch(() => undefined);
  return file === undefined ? undefined : { file, inode: (await file.stat({ bigint: true })).ino };
}

/** Follows one server: each look gives what has come since the one before. It has no timer. */
export class Follower {
  readonly #stateDir: string;
  readonly #server: string;
  #file: FileHandle | undefined;
  #inode: bigint | undefined;
  #at = 0;
  #decoder = new StringDecoder("utf8");
  #rest = "";
  readonly #buffer = Buffer.allocUnsafe(READ_BYTES);

  constructor(stateDir: string, server: string) {
    this.#stateDir = stateDir;
    this.#server = server;
  }

  /** The last lines of what is there already; look() goes on behind them. */
  async begin(count: number): Promise<ServerLine[]> {
    const lines: ServerLine[] = [];
    const current = await this.#findNext();
    if (current === undefined) return lines;
    await this.#changeTo(current);
    await this.#readOn(lines);
    for (let age = 1; age < FILES_OF_A_SERVER && lines.length < count; age++) {
      const older = await openFile(logPath(this.#stateDir, this.#server, age));
      // One that was exchanged meanwhile was read.
      if (older !== undefined && older.inode !== this.#inode) {
        const text = await older.file.readFile("utf8");
        lines.unshift(...wholeLines(text).map((line) => readLine(this.#server, line)));
      }
      await older?.file.close();
    }
    return count === 0 ? [] : lines.slice(-count);
  }

  async look(): Promise<ServerLine[]> {
    const lines: ServerLine[] = [];
    // As many as there can be: one that is exchanged meanwhile is met at the next look.
    for (let turn = 0; turn < FILES_OF_A_SERVER; turn++) {
      const next = await this.#findNext();
      // Only now: what is still written to a file is written before the next one is there.
      await this.#readOn(lines);
      if (next === undefined) break;
      await this.#changeTo(next);
    }
    await this.#readOn(lines);
    return lines;
  }

  async close(): Promise<void> {
    await this.#file?.close();
    this.#file = undefined;
  }

  async #readOn(lines: ServerLine[]): Promise<void> {
    for (;;) {
      const { bytesRead = 0 } = (await this.#file?.read(this.#buffer, 0, READ_BYTES, this.#at)) ?? {};
      if (bytesRead === 0) return;
      this.#at += bytesRead;
      const parts = (this.#rest + this.#decoder.write(this.#buffer.subarray(0, bytesRead))).split("\n");
      this.#rest = parts.pop() ?? "";
      for (const line of parts) lines.push(readLine(this.#server, line));
    }
  }

  /** The file that was begun after the one that is open; the current one where none is. */
  async #findNext(): Promise<OpenFile | undefined> {
    const files: OpenFile[] = [];
    for (let age = 0; age < FILES_OF_A_SERVER; age++) {
      const file = await openFile(logPath(this.#stateDir, this.#server, age));
      if (file === undefined) break;
      files.push(file);
      // What follows is older than the one that is open, or than all that is wanted.
      if (this.#inode === undefined || files.at(-1)?.inode === this.#inode) break;
    }
    const own = files.findIndex(({ inode }) => inode === this.#inode);
    // One that is gone was exchanged more often than there are files: the oldest that is there is the next.
    const next = this.#inode === undefined ? files[0] : files[own < 0 ? files.length - 1 : own - 1];
    for (const one of files) if (one !== next) await one.file.close();
    return next;
  }

  async #changeTo({ file, inode }: OpenFile): Promise<void> {
    await this.#file?.close();
    this.#file = file;
    this.#inode = inode;
    this.#at = 0;
    this.#decoder = new StringDecoder("utf8");
    this.#rest = "";
  }
}
