// Notices edits of a file: in place, by rename over it, and by a swapped link on the way to it. It only says that
// something changed; the caller reads the file.

import { type FSWatcher, realpathSync, statSync, watch } from "node:fs";
import { realpath, stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { fingerprintOf, fingerprintOfNone } from "../../runtime/text-file.js";

/**
 * Editors write in bursts (truncate, write, rename, chmod); a tenth of a second is past the burst and feels instant.
 */
const DEBOUNCE_MS = 100;

/** Finds what fs.watch misses: network file systems, no inotify watches left. A stat costs microseconds. */
const POLL_MS = 2_000;

export interface WatchOptions {
  readonly signal?: AbortSignal;
  readonly debounceMs?: number;
  readonly pollMs?: number;
  /** Gets what `onChange` throws. */
  readonly onError?: (error: unknown) => void;
}

export interface ConfigWatcher extends Disposable {
  close(): void;
}

/**
 * Calls `onChange` after each change of the file at `path`, its removal included. One call at a time: a change
 * during a call leads to one more. Never throws, and does not keep the process alive.
 */
export function watchConfig(
  path: string,
  onChange: () => void | Promise<void>,
  options: WatchOptions = {},
): ConfigWatcher {
  const { signal, debounceMs = DEBOUNCE_MS, pollMs = POLL_MS, onError } = options;
  const file = resolve(path);
  const folders = new Map<string, FSWatcher>();
  let closed = false;
  // Taken before this function returns, so that no later edit is missed.
  let known = lookNow(file);
  let debounce: NodeJS.Timeout | undefined;
  let checking = false;
  let again = false;

  const soon = (): void => {
    if (closed) return;
    clearTimeout(debounce);
    debounce = setTimeout(() => void check(), debounceMs).unref();
  };

  /** Watches the folders of the file as named and of the file as it really is: each can be where a change shows. */
  const watchFolders = (wanted: ReadonlySet<string>): void => {
    for (const [folder, watcher] of folders) {
      if (wanted.has(folder)) continue;
      watcher.close();
      folders.delete(folder);
    }
    for (const folder of wanted) {
      if (folders.has(folder) || closed) continue;
      try {
        const watcher = watch(folder, { persistent: false }, soon);
        folders.set(folder, watcher);
        // Nobody has been told of a change between the last look and now.
        again = true;
        // The folder itself may go; the poll finds it again.
        watcher.on("error", () => {
          watcher.close();
          folders.delete(folder);
        });
      } catch {
        // Left to the poll.
      }
    }
  };

  const check = async (): Promise<void> => {
    if (checking) {
      again = true;
      return;
    }
    checking = true;
    do {
      again = false;
      const { fingerprint, real } = await look(file);
      if (closed) break;
      watchFolders(new Set([dirname(file), dirname(real)]));
      if (fingerprint !== known) {
        known = fingerprint;
        try {
          await onChange();
        } catch (error) {
          onError?.(error);
        }
      }
    } while (again && !closed);
    checking = false;
  };

  const close = (): void => {
    closed = true;
    clearTimeout(debounce);
    clearInterval(poll);
    signal?.removeEventListener("abort", close);
    watchFolders(new Set());
  };

  const poll = setInterval(() => void check(), pollMs).unref();
  if (signal?.aborted === true) close();
  else {
    signal?.addEventListener("abort", close, { once: true });
    void check();
  }
  return { close, [Symbol.dispose]: close };
}

async function look(file: string): Promise<{ fingerprint: string; real: string }> {
  try {
    const real = await realpath(file);
    return { fingerprint: `${real}:${fingerprintOf(await stat(real, { bigint: true }))}`, real };
  } catch (error) {
    return { fingerprint: fingerprintOfNone(error), real: file };
  }
}

function lookNow(file: string): string {
  try {
    const real = realpathSync(file);
    return `${real}:${fingerprintOf(statSync(real, { bigint: true }))}`;
  } catch (error) {
    return fingerprintOfNone(error);
  }
}
