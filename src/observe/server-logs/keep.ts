// Takes what servers write to stderr: it goes into files, where there is a place for them, and into the log at `debug`.

import { stderrLog } from "../debug-log.js";
import type { Log } from "../log.js";
import type { ServerLogs } from "./writer.js";

export interface KeptStderr {
  take(server: string, batch: { readonly lines: readonly string[]; readonly leftOutBytes: number }): void;
  /** Resolves when all is written. */
  close(): Promise<void>;
}

/** `stateDir`: undefined where nothing outlives the process. */
export function keepStderr(stateDir: string | undefined, log: Log, wall: () => number): KeptStderr {
  const told = stderrLog(log);
  const failed = (server: string, error: unknown) =>
    log.warn(`what server "${server}" writes to stderr could not be kept: ${(error as Error).message}`);
  let files: Promise<ServerLogs> | undefined;
  return {
    take: (server, { lines, leftOutBytes }) => {
      told?.(server, lines);
      if (stateDir === undefined) return;
      // Loaded with the first line: a start need not wait for it.
      files ??= import("./writer.js").then((writer) => new writer.ServerLogs({ stateDir, wall, failed }));
      void files.then((opened) => opened.add(server, lines, leftOutBytes));
    },
    close: async () => (await files)?.close(),
  };
}
