// Keeps what servers write to stderr in files: a few of a bounded size for each server, readable by their owner alone.
// Writes one piece of a server at a time, off the turn in which it came.

import { appendFile, mkdir, readdir, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { FILES_OF_A_SERVER, LOGS_FOLDER, logPath, MAX_FILE_BYTES, writtenLine } from "./files.js";

/** So much of a server may wait for a slow disk; what comes then is left out and counted. */
const MAX_WAITING_CHARACTERS = 512 * 1024;

/** Files of servers that left the config stay to be read; of so many files the oldest go. */
const MAX_FILES = 768;

const OWNER_ALONE = 0o600;

export interface ServerLogsOptions {
  readonly stateDir: string;
  /** Gives the time of day, in ms. */
  readonly wall: () => number;
  /** Told once for each server, until it can be written again. */
  readonly failed: (server: string, error: unknown) => void;
  readonly maxFileBytes?: number;
}

interface Waiting {
  text: string;
  leftOutBytes: number;
  /** Of the current file; undefined until it was looked at. */
  size: number | undefined;
  hasFailed: boolean;
  writing: Promise<void> | undefined;
}

export class ServerLogs {
  readonly #options: ServerLogsOptions;
  readonly #maxFileBytes: number;
  /** Bounded by the servers of the config, and those that were in it. */
  readonly #servers = new Map<string, Waiting>();
  #folder: Promise<void> | undefined;

  constructor(options: ServerLogsOptions) {
    this.#options = options;
    this.#maxFileBytes = options.maxFileBytes ?? MAX_FILE_BYTES;
  }

  add(server: string, lines: readonly string[], leftOutBytes: number): void {
    let waiting = this.#servers.get(server);
    if (waiting === undefined) {
      waiting = { text: "", leftOutBytes: 0, size: undefined, hasFailed: false, writing: undefined };
      this.#servers.set(server, waiting);
    }
    const now = this.#options.wall();
    for (const line of lines) {
      if (waiting.text.length > MAX_WAITING_CHARACTERS) waiting.leftOutBytes += line.length;
      else waiting.text += writtenLine(now, line);
    }
    waiting.leftOutBytes += leftOutBytes;
    waiting.writing ??= this.#write(server, waiting);
  }

  /** Resolves when all is written, or has failed. */
  async close(): Promise<void> {
    await Promise.all([...this.#servers.values()].map(({ writing }) => writing));
  }

  async #write(server: string, waiting: Waiting): Promise<void> {
    try {
      this.#folder ??= this.#open();
      await this.#folder;
      while (waiting.text !== "" || waiting.leftOutBytes > 0) {
        const text = waiting.text + this.#leftOutLine(waiting.leftOutBytes);
        waiting.text = "";
        waiting.leftOutBytes = 0;
        await this.#append(server, waiting, text);
      }
      waiting.hasFailed = false;
    } catch (error) {
      // The next line is tried anew: the disk may have room again.
      waiting.size = undefined;
      this.#folder = undefined;
      if (!waiting.hasFailed) this.#options.failed(server, error);
      waiting.hasFailed = true;
    } finally {
      waiting.writing = undefined;
    }
  }

  #leftOutLine(bytes: number): string {
    if (bytes === 0) return "";
    return writtenLine(this.#options.wall(), `… ${bytes} bytes left out: it wrote more than is kept in a second`);
  }

  async #append(server: string, waiting: Waiting, text: string): Promise<void> {
    const { stateDir } = this.#options;
    const path = logPath(stateDir, server);
    waiting.size ??= await sizeOf(path);
    const bytes = Buffer.byteLength(text);
    if (waiting.size > 0 && waiting.size + bytes > this.#maxFileBytes) {
      await this.#rotate(server);
      waiting.size = 0;
    }
    await appendFile(path, text, { mode: OWNER_ALONE });
    waiting.size += bytes;
  }

  async #rotate(server: string): Promise<void> {
    const { stateDir } = this.#options;
    for (let age = FILES_OF_A_SERVER - 1; age > 0; age--) {
      await rename(logPath(stateDir, server, age - 1), logPath(stateDir, server, age)).catch(ifThere);
    }
  }

  async #open(): Promise<void> {
    const folder = join(this.#options.stateDir, LOGS_FOLDER);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const files = await readdir(folder);
    if (files.length <= MAX_FILES) return;
    const ages = await Promise.all(
      files.map(async (file) => ({ file, ms: (await stat(join(folder, file)).catch(() => undefined))?.mtimeMs ?? 0 })),
    );
    ages.sort((a, b) => a.ms - b.ms);
    for (const { file } of ages.slice(0, files.length - MAX_FILES)) await rm(join(folder, file), { force: true });
  }
}

async function sizeOf(path: string): Promise<number> {
  const found = await stat(path).catch(ifThere);
  return found?.size ?? 0;
}

/** What is not there needs no care; anything else is a failure. */
function ifThere(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT") throw error;
}
